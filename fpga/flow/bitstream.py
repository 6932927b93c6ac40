"""A board's configuration file, and the report on it."""

import inspect
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from daedal.base.files import write_json, write_whole
from daedal.errors import BuildFailed, ClockTooSlow, DesignTooLarge, InvalidConfig
from daedal.fpga.boards import find_board
from daedal.fpga.boards.board import Board
from daedal.fpga.flow import reports, tools
from daedal.fpga.flow.flows import FLOWS, IDLE, LOGIC, NETLIST, REPORT, SOURCE, YOSYS, Flow
from daedal.fpga.flow.router_progress import RouterProgress
from daedal.fpga.soc.generator import Generated, generate
from daedal.hw.config.core import Config

TIMEOUT = 4 * 3600.0
"""Longest run of one tool, seconds."""

Say = Callable[[str], object]
"""Takes what is being done, for people."""

DONE = "seconds"
"""File that a finished step leaves, with the seconds that it took."""


def build(
    board: str, config: Config | None = None, *, folder: Path, route: bool = True, seed: int | None = None,
    core_hz: float | None = None, etherbone: bool = False, grade: int | None = None,
    closed: Sequence[dict[str, Any]] = (), say: Say = str,
) -> dict[str, Any]:  # fmt: skip
    """Make ``folder/BOARD.bit`` (or the family's suffix), ``folder/board.json`` and ``folder/report.json``.

    The files are put there when all is done, so what is there is whole. What the tools leave is kept in
    ``folder/work-KEY`` and used again for the same design and tools.

    Parameters
    ----------
    board
        Its name.
    folder
        Where the results go; it need not be there.
    config
        The core; the board's own if None.
    route
        Otherwise the design is synthesised and placed only: there is a report, with the clocks that nextpnr estimates,
        but no configuration file.
    seed
        Where the placement starts, if not where the board's own does.
    core_hz
        The core's clock, if not the board's own.
    etherbone
        With a bridge to the network as well.
    grade
        Another speed grade than that of the board's part, one of ``Board.grades``: there is a report on what the system
        would do in such a part, but no configuration file, which the board's part would not take.
    closed
        Designs that closed, as :func:`daedal.fpga.flow.history.read` gives them: such a one is not made again.
    say
        Is told each step that takes long, with the log that its tool writes.

    Returns the report: that of :func:`daedal.fpga.flow.reports.make`, ``bitstream`` (the file's name or None),
    ``steps`` (step -> seconds, as it took when it was done) and ``seconds`` (their sum), ``part`` (nextpnr's options),
    ``seed``, ``tools``, ``design`` (the key of all that the outcome depends on). Of a design that is among ``closed``,
    what stands there.

    Raises ToolchainNotFound, UnknownBoard, InvalidConfig, DesignTooLarge, BuildFailed; and ClockTooSlow if a clock is
    slower than the board needs: the report, with ``closed`` false, is written then, but no configuration file.
    """
    found = _in_grade(find_board(board), grade)
    flow, seed = FLOWS[found.flow], found.seed if seed is None else seed
    versions = {program: tools.version(program) for program in (YOSYS, flow.route, flow.pack[0])}
    start = time.monotonic()
    _check_folder(folder)
    say(f"{board}: generating the design")
    design = generate(found, config, core_hz=core_hz, etherbone=etherbone)
    work = _prepare(folder, design, flow, versions)
    options = _options(design, flow, (*found.part, *found.placer), route, seed)
    run = f"seed-{seed}-{tools.key(*options, str(found.free_rows), _text(flow.spread))}"
    key = tools.key(work.name, run, *flow.pack)
    if known := next((each for each in closed if each["design"] == key), None):
        return known
    steps = {"generate": round(time.monotonic() - start, 1), "synthesise": _synthesise(work, flow, say)}
    _route(work, run, design, flow, found.free_rows, options, say)
    steps["route" if route else "place"] = float((work / run / DONE).read_text())
    report = reports.make(design.description, flow, work, run, routed=route)
    packed = route and report["closed"] and grade is None
    if packed:
        steps["pack"] = _pack(work, run, flow)
    report |= {
        "seconds": round(sum(steps.values()), 1), "steps": steps, "part": list(found.part), "seed": seed,
        "tools": versions,
        "bitstream": f"{board}{flow.suffix}" if packed else None, "design": key,
    }  # fmt: skip
    _publish(folder, board, work / run, flow, design, report)
    if not report["closed"]:
        raise ClockTooSlow(reports.slow_message(report))
    return report


def _in_grade(board: Board, grade: int | None) -> Board:
    """The board with a part of this speed grade (None: its own)."""
    if grade is None:
        return board
    if grade not in board.grades:
        known = ", ".join(map(str, board.grades)) or "none"
        raise InvalidConfig(f"grade must be one that {board.name} can be tried in ({known}), or left out, not {grade}")
    return replace(board, **board.grades[grade])


def _check_folder(folder: Path) -> None:
    """BuildFailed, before the design takes its time, if the folder could not be made; it is not made yet."""
    place = folder.absolute()
    there = next(each for each in (place, *place.parents) if os.path.exists(each))
    if not (there.is_dir() and os.access(there, os.W_OK | os.X_OK)):
        raise _unusable(folder, f"{there} is no folder that can be written to")


def _unusable(folder: Path, why: str | None) -> BuildFailed:
    return BuildFailed(f"{folder} must be a folder to write to, or a new one: {why}")


def _prepare(folder: Path, design: Generated, flow: Flow, versions: dict[str, str]) -> Path:
    """The folder for everything that depends on this design and these tools, with the design in it."""
    script = flow.script(design.description["top"], SOURCE)
    depends = (design.verilog, json.dumps(design.constraints), script, _text(flow.finish), repr(versions))
    work = folder / f"work-{tools.key(*depends)}"
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(folder, error.strerror) from error
    for name, text in {SOURCE: design.verilog, "synthesis.ys": script, **design.constraints}.items():
        write_whole(work / name, text.encode())
    return work


def _synthesise(work: Path, flow: Flow, say: Say) -> float:
    """The netlist, unless it is there; the seconds that it took."""
    done, start = work / DONE, time.monotonic()
    if done.exists():
        return float(done.read_text())
    say(f"synthesising with {YOSYS} (log: {work}/synthesis.log)")
    if tools.run(YOSYS, ["-q", "synthesis.ys"], work, "synthesis.log", timeout=TIMEOUT):
        raise BuildFailed(f"{YOSYS} failed: {tools.telling_lines(work / 'synthesis.log')} (log: {work}/synthesis.log)")
    if flow.finish is not None:
        flow.finish(work / NETLIST)
    seconds = round(time.monotonic() - start, 1)
    write_whole(done, f"{seconds}\n".encode())
    return seconds


def _options(design: Generated, flow: Flow, part: tuple[str, ...], route: bool, seed: int) -> list[str]:
    """What nextpnr is told."""
    constraints, mhz = next(iter(design.constraints)), design.description["clock_hz"] / 1e6
    options = [option.format(constraints=constraints, mhz=mhz) for option in flow.route_options]
    options = [*part, "--json", NETLIST, *options, "--seed", str(seed), "--report", REPORT, "--timing-allow-fail"]
    return [*options, *([] if route else ["--no-route"])]


def _route(
    work: Path, run: str, design: Generated, flow: Flow, free_rows: int, options: Sequence[str], say: Say
) -> None:
    """Place and route in the folder ``run``, unless that is done. ``DONE`` there has the seconds that it took."""
    start = time.monotonic()
    if (work / run / DONE).exists():
        return
    fresh = work / f"{run}.part"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    shutil.copy(work / next(iter(design.constraints)), fresh)
    if flow.spread is None:
        os.link(work / NETLIST, fresh / NETLIST)
    else:
        write_whole(fresh / IDLE, f"{flow.spread(work / NETLIST, fresh / NETLIST, free_rows)}\n".encode())
    what = "placing" if "--no-route" in options else "placing and routing"
    say(f"{what} with {flow.route} (log: {fresh}/nextpnr.log)")
    failed = tools.run(flow.route, options, fresh, "nextpnr.log", timeout=TIMEOUT, watch=RouterProgress())
    over = reports.overfull(fresh / "nextpnr.log")
    if over:
        raise DesignTooLarge(reports.large_message(design.description, over, work / LOGIC))
    if failed:
        said = tools.telling_lines(fresh / "nextpnr.log")
        raise BuildFailed(f"{flow.route} failed: {said} (log: {fresh}/nextpnr.log)")
    write_whole(fresh / DONE, f"{time.monotonic() - start:.1f}\n".encode())
    shutil.rmtree(work / run, ignore_errors=True)
    fresh.rename(work / run)


def _pack(work: Path, run: str, flow: Flow) -> float:
    """The configuration file; the seconds that it took."""
    start = time.monotonic()
    program, *options = flow.pack
    options = [option.format(output=f"packed{flow.suffix}") for option in options]
    if tools.run(program, options, work / run, "pack.log", timeout=TIMEOUT):
        raise BuildFailed(f"{program} failed: {tools.telling_lines(work / run / 'pack.log')}")
    return round(time.monotonic() - start, 1)


def _publish(folder: Path, board: str, run: Path, flow: Flow, design: Generated, report: dict[str, Any]) -> None:
    """Put the results where they belong; without a configuration file, one of an earlier design goes."""
    final = folder / f"{board}{flow.suffix}"
    if report["bitstream"] is None:
        final.unlink(missing_ok=True)
    else:
        part = final.with_suffix(".part")
        shutil.copy(run / f"packed{flow.suffix}", part)
        os.replace(part, final)
    write_json(folder / "board.json", design.description)
    write_json(folder / "report.json", report)


def _text(step: Callable[..., object] | None) -> str:
    """The file of a step, on which its results depend."""
    return "" if step is None else Path(inspect.getfile(step)).read_text(encoding="utf-8")
