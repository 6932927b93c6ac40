"""The files of landed results, and how each is made."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from daedal.base.files import read_json, write_json
from daedal.base.messages import shown
from daedal.bench.report.document import load
from daedal.bench.workloads import structured_models
from daedal.fpga.boards import find_board
from daedal.fpga.flow.reports import clock_kind

FOLDER = Path(__file__).parent

NARROW, WIDE = ("ideal", "litedram-ddr3-x16"), ("litedram-ddr3-x64", "litedram-ddr4-x64")
"""Memory models of the tables in their order: those for `ddr3`, and those for `wide`."""

MEMORIES = (*NARROW, *WIDE)
DRAMS = MEMORIES[1:]


def _memories(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for name in names for word in ("--memory", name))


STRUCTURES = tuple(structured_models.WORKLOADS)
"""Workloads over graphs, triples and blocks, with the data folder that ``DAEDAL_DATA`` names."""


def _only(*patterns: str) -> tuple[str, ...]:
    return tuple(word for pattern in patterns for word in ("--only", pattern))


_PREDICTED = ("--no-host", "--target", "model")
_WIDTHS = ("* 16", "* 32", "* 128", "fp8 * 64")

RUNS: Mapping[str, tuple[str, ...]] = {
    "layers": ("layers", "handwritten", "levels", "launches", "linearity"),
    "host": ("speed", "overhead"),
    "workloads": ("--no-host", *_memories(NARROW)),
    "workloads-wide": ("--no-host", *_memories(WIDE)),
    "sweep": ("--no-host", *_memories(NARROW), "sweep"),
    "sweep-wide": ("--no-host", *_memories(WIDE), "sweep"),
    "shapes": (*_memories((*NARROW, "ideal:latency=20", "ideal:latency=400")), "shapes"),
    "shapes-wide": ("--config", "wide", *_memories(("ideal", WIDE[0])), "shapes"),
    "types": (*_memories(NARROW), "types"),
    "types-narrow16": ("--no-host", "--config", "narrow16", *_memories(NARROW), "--only", "* 64", "types"),
    "types-widths": (*_PREDICTED, "--config", "narrow16", *_memories(NARROW), *_only(*_WIDTHS), "types"),
    "types-fp8": (*_PREDICTED, *_memories(NARROW), *_only("fp8 *"), "types"),
    "types-wide": (*_PREDICTED, "--config", "wide", "--memory", WIDE[0], "types"),
    "structures": (*_memories(NARROW), *STRUCTURES),
    "structures-wide": ("--no-host", "--memory", WIDE[0], *STRUCTURES),
    "training": (*_memories(NARROW), "training"),
    "models": ("models",),
    "system": ("--no-host", "--memory", NARROW[1], "system"),
    "plans": ("--no-host", "--memory", NARROW[1], "plans"),
    "hot": ("--no-host", "hot"),
    "against": ("against",),
    "oracle": ("--no-host", *_memories(DRAMS), "oracle"),
}
"""File -> arguments of ``daedal bench`` that make it. ``prediction`` is made from reports of boards."""

DOCUMENTS = (*RUNS, "prediction")
BOARDS, SCHEMA = "boards", 1
"""The file of the boards' figures, and the version of its form."""

FIGURES = ("lut", "ff", "bram", "dsp", "fmax_mhz", "clock_mhz", "seed", "closed", "part")
"""What a board's row takes from its report."""


def path_of(name: str, folder: Path = FOLDER) -> Path:
    """Where results of this name are."""
    return folder / f"{name}.json"


def results(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Name -> document of ``daedal bench``. FileError if one is missing, is of another form or of a quick run."""
    found = {name: load(path_of(name, folder)) for name in DOCUMENTS}
    for name, document in found.items():
        if document["facts"]["quick"]:
            raise ValueError(f"{path_of(name, folder)} must not be of a run with --quick: run the bench without it")
    return found


def land(name: str, revision: str, folder: Path = FOLDER) -> None:
    """Say in the file of a run from which commit's sources its figures are."""
    document = load(path_of(name, folder))
    document["facts"]["revision"] = revision
    write_json(path_of(name, folder), document)


def boards(folder: Path = FOLDER) -> list[dict[str, Any]]:
    """The boards' rows, as they were landed. ValueError if the file is of another form."""
    path = path_of(BOARDS, folder)
    document = read_json(path, "figures of boards")
    if (
        not isinstance(document, dict)
        or document.get("schema") != SCHEMA
        or not isinstance(document.get("boards"), list)
    ):
        raise ValueError(f"{path} must have schema {SCHEMA} and boards, a list: take it from git again")
    found: list[dict[str, Any]] = document["boards"]
    return found


def land_board(report: Path, revision: str, folder: Path = FOLDER) -> None:
    """Put the figures of a ``report.json`` in the place of those of its board and part.

    ``revision`` is the commit of the sources that it was made from. ValueError if the file is no report.
    """
    found = read_json(report, "a report")
    missing = [name for name in ("board", "routed", *FIGURES) if not isinstance(found, dict) or name not in found]
    if missing:
        raise ValueError(f"{report} must be a report of daedal bitstream, with {missing[0]}, not {shown(found)}")
    name, patches = _board_of(found)
    row = {"board": name, "patches": patches, "revision": revision, **{name: found[name] for name in FIGURES}}
    row |= {"clock": clock_kind(found["routed"]), "note": "" if found["closed"] else "does not close"}
    rows = {other["board"]: other for other in boards(folder)} | {name: row}
    write_json(path_of(BOARDS, folder), {"schema": SCHEMA, "boards": list(rows.values())})


def _board_of(report: Mapping[str, Any]) -> tuple[str, str]:
    """What a report's row is called, and the patches of LiteDRAM that its system has."""
    board, name = find_board(report["board"]), str(report["board"])
    for grade, fields in board.grades.items():
        if list(fields["part"]) == report["part"]:
            board, name = replace(board, **fields), f"{name}, grade {grade}"
    return name, ", ".join(board.litedram_patches) or "none"
