"""One unit through Yosys and nextpnr, or its result out of the cache."""

import hashlib
import json
import re
import statistics
import time
from collections.abc import Sequence
from inspect import getsource
from pathlib import Path
from typing import Any

from amaranth.back import verilog

from bench.synthesis import cells, lut6, tools
from bench.synthesis.harness import Ring, pins
from bench.synthesis.units import Unit
from daedal.base.files import write_whole
from daedal.fpga.flow.reports import clock_kind
from daedal.fpga.soc.global_resets import promote_resets
from daedal.hw.config.core import Config

FOLDER = Path("build/bench/synthesis")
"""Where results and logs are kept; relative to the top folder, in which the bench runs."""

CORE_CLOCK = re.compile(r"\binput clk;")

Row = dict[str, Any]


def measure(
    unit: Unit, config: Config, *, seeds: Sequence[int], route: bool, timeout: float, with_lut6: bool = False
) -> Row:
    """Area of ``unit``, and its clock as the median over placements from ``seeds`` (none: not placed).

    With ``route``, the clock after routing, and ``critical_path`` of the placement with the median clock; else
    nextpnr's estimate before routing, which names no path. ``with_lut6``: also the LUTs of six inputs.

    ``status`` is ``ok``, ``missing`` (the unit is not there), or what went wrong.
    """
    row: Row = {"unit": unit.name, "source": unit.source, "config": config.name, "status": "ok"}
    try:
        component = unit.build(config)
    except ModuleNotFoundError as error:
        return {**row, "status": "missing", "reason": str(error)}
    try:
        text = verilog.convert(component, name=tools.UNIT, emit_src=False)
        folder = _folder(unit, config, text)
        area = _synthesised(folder, text, timeout)
        row |= {**area.as_dict(), "marks": area.marks(unit.kinds), "flags": list(tools.FLAGS)}
        if with_lut6:
            row["lut6"] = lut6.measure(folder, timeout)
        return row | _placed(folder, component, text, seeds, route, timeout)
    except tools.ToolFailed as error:
        return {**row, "status": "failed", "reason": str(error)}


def _folder(unit: Unit, config: Config, text: str) -> Path:
    """The folder of everything that depends on this Verilog, these scripts and these tools."""
    options = (*tools.placing(1, "", route=False), getsource(promote_resets), getsource(Ring))
    parts = (text, tools.synthesis_script(), tools.ring_script(), repr(sorted(tools.versions().items())), *options)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    folder = FOLDER / f"{unit.name.replace(' ', '_')}-{config.name}-{key}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _synthesised(folder: Path, text: str, timeout: float) -> cells.Area:
    kept = folder / "area.json"
    if not kept.exists():
        (folder / f"{tools.UNIT}.v").write_text(text, encoding="utf-8")
        (folder / "synthesis.ys").write_text(tools.synthesis_script(), encoding="utf-8")
        tools.run(tools.YOSYS, ["synthesis.ys"], folder, "synthesis.log", timeout=timeout)
        _keep(kept, cells.read_area(folder).as_dict())
    return cells.Area(**json.loads(kept.read_text()))


def _placed(folder: Path, component: Any, text: str, seeds: Sequence[int], route: bool, timeout: float) -> Row:
    if not seeds:
        return {"fmax_mhz": None, "place_seeds": [], "critical_path": ""}
    clocks = [_clock(folder, component, text, seed, route, timeout) for seed in seeds]
    middle = statistics.median_low(clock["fmax_mhz"] for clock in clocks)
    row = next(clock for clock in clocks if clock["fmax_mhz"] == middle)
    each = [clock["fmax_mhz"] for clock in clocks]
    return row | {"place_seeds": list(seeds), "routed": route, "clock": clock_kind(route), "fmax_mhz_each": each}


def _clock(folder: Path, component: Any, text: str, seed: int, route: bool, timeout: float) -> Row:
    run = f"{seed}" if route else f"{seed}-placed"
    kept = folder / f"clock-{run}.json"
    if not kept.exists():
        start = time.monotonic()
        _make_ring(folder, component, text, timeout)
        log, report = f"place-{run}.log", f"report-{run}.json"
        tools.run(tools.NEXTPNR, tools.placing(seed, report, route=route), folder, log, timeout=timeout)
        if route:
            clock, path = cells.read_clock(folder / report)
        else:  # nextpnr's report is of routed designs only
            clock, path = cells.estimated_clock((folder / log).read_text(encoding="utf-8")), ""
        seconds = round(time.monotonic() - start, 1)
        _keep(kept, {"fmax_mhz": round(clock, 1), "critical_path": path, "place_seconds": seconds})
    row: Row = json.loads(kept.read_text())
    return row


def _make_ring(folder: Path, component: Any, text: str, timeout: float) -> None:
    done = folder / "ring.done"  # Yosys or the resets may have been interrupted
    if done.exists():
        return
    inputs, outputs = pins(component)
    ring = Ring(tools.UNIT, inputs, outputs, clocked=_has_clock(text))
    (folder / "ring.v").write_text(verilog.convert(ring, name="ring", emit_src=False), encoding="utf-8")
    (folder / "selector_map.v").write_text(tools.SELECTOR_MAP, encoding="utf-8")
    (folder / "ring.ys").write_text(tools.ring_script(), encoding="utf-8")
    tools.run(tools.YOSYS, ["ring.ys"], folder, "ring.log", timeout=timeout)
    promote_resets(folder / "ring.json")  # as on the boards
    done.touch()


def _has_clock(text: str) -> bool:
    """Whether the top module has a clock."""
    top = text[text.index(f"module {tools.UNIT}(") :]
    return bool(CORE_CLOCK.search(top[: top.index("endmodule")]))


def _keep(path: Path, value: Row) -> None:
    """Write a result so that it is there wholly or not at all."""
    write_whole(path, json.dumps(value, ensure_ascii=False).encode())
