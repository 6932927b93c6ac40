"""The worked example of ``waveforms.md``: from a module to its waveform, with the values of a real run.

``python docs/measuring/waveform_example.py`` writes the generated part of the page anew; ``--keep FOLDER`` leaves the
waveform and the viewers' files in a folder.
"""

import struct
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

import daedal
from daedal.cosim.waveform.samples import sample
from daedal.cosim.waveform.signals import Signals, read_signals
from daedal.cosim.waveform.view import TILE
from daedal.cosim.waveform.waveform_verilog import traced_verilog
from daedal.hw.config.core import Config
from daedal.hw.config.file import read_config
from daedal.hw.verilog import core_verilog

HERE = Path(__file__).resolve().parent
PAGE = HERE / "waveforms.md"
BEGIN, END = "<!-- begin: docs/measuring/waveform_example.py -->\n", "<!-- end -->\n"
MEMORY = "ideal:latency=20"

STREAMS = {
    "level 0": ("core.access.level0", "o"),
    "level 1": ("core.access.level1", "o"),
    "events: row fetch": ("core.access.events", "rows"),
    "events: store address": ("core.access.events", "store_addresses"),
    "events: token": ("core.access.events", "tokens"),
    "vector queue 0": ("core.vectors", "vector0"),
    "execute unit": ("core.execute.issue", "i"),
}
"""What the table calls a stream -> its unit and name. A transfer is a cycle in which ``valid`` and ``ready`` are 1."""

FIELDS = {
    "level 0": ("registers__0", "registers__1", "registers__2", "flags__begin", "flags__iteration", "flags__end"),
    "level 1": ("registers__0", "registers__1", "flags__begin", "flags__iteration", "flags__end"),
    "events: row fetch": ("address", "size"),
    "events: store address": ("address", "size"),
    "events: token": ("callback",),
    "vector queue 0": ("data",),
    "execute unit": ("op", "a__kind"),
}
"""The fields of each payload that the table shows."""

AXI = {
    "memory: read": ("read0__ar", ("read0__araddr",)),
    "memory: line": ("read0__r", ("read0__rdata",)),
    "memory: write": ("write__w", ("write__wdata",)),
    "memory: written": ("write__b", ("write__bresp",)),
}
"""Channels of the tile's ports."""

STATES = {"controller": ("control.controller", "fsm_state"), "loader": ("core.loader", "fsm_state")}


def module() -> tuple[torch.nn.Module, tuple[torch.Tensor, torch.Tensor]]:
    """A bag of two sums: rows 2 and 5, and row 1, of a table whose elements count up."""
    bag = torch.nn.EmbeddingBag(8, 4, mode="sum")
    with torch.no_grad():
        bag.weight.copy_(torch.arange(32, dtype=torch.float32).reshape(8, 4))
    return bag, (torch.tensor([2, 5, 1], dtype=torch.int32), torch.tensor([0, 2], dtype=torch.int32))


@dataclass(frozen=True)
class Example:
    """The loops, the program and the result of the example, and what its waveform shows: cycle, place, values."""

    scf: str
    asm: str
    result: torch.Tensor
    rows: list[tuple[int, str, str]]


def config() -> Config:
    """The machine of the example."""
    return read_config(HERE.parent / "tiny.toml")


def compiled(target: str, wave: Path | None = None) -> Example:
    """Run the example on a target; without a waveform there are no rows."""
    bag, inputs = module()
    shown = None if wave is None else str(wave)
    with daedal.Device.open(target, config(), MEMORY, memory_bytes=1 << 20, wave=shown) as device:
        exe = daedal.compile(bag, inputs, device=device)
        result = exe(*inputs)
        scf, asm = exe.ir("scf"), exe.asm()
    rows = [] if wave is None else list(read_rows(wave))
    return Example(scf, asm, result, rows)


def read_rows(wave: Path) -> Iterator[tuple[int, str, str]]:
    """What happens from the start of the nest to the last acknowledged write of the result."""
    signals = read_signals(traced_verilog(core_verilog(config())))
    columns = [*_columns(signals)]
    paths = sorted({path for _, paths in columns for path in paths})
    states: dict[str, str] = {}
    running = False
    for cycle, values in sample(wave, paths):
        now = dict(zip(paths, values, strict=True))
        for place, (unit, name) in STATES.items():
            path = f"{TILE}.{unit}.{name}"
            state = _name(signals, path, now[path])
            running = running or (place == "loader" and state == "SETTLE")
            if running and states.get(place) != state:
                yield cycle, place, state
            states[place] = state
        if states["controller"] not in ("RUN", "DRAIN"):
            running = False
        for place, (valid, ready, *fields) in columns:
            if place and running and now[valid] and now[ready]:
                yield cycle, place, ", ".join(_shown(signals, field, now[field]) for field in fields)


def _columns(signals: Signals) -> Iterator[tuple[str, list[str]]]:
    """Place -> the paths of valid, ready and the fields."""
    for place, (unit, name) in STREAMS.items():
        own = signals.own(f"{TILE}.{unit}")
        wanted = ["valid", "ready", *(f"payload__{field}" for field in FIELDS[place])]
        yield place, [f"{TILE}.{unit}.{own[f'{name}__{item}']}" for item in wanted]
    own = signals.own(TILE)
    for place, (channel, fields) in AXI.items():
        yield place, [f"{TILE}.{own[item]}" for item in (f"{channel}valid", f"{channel}ready", *fields)]
    for unit, name in STATES.values():
        yield "", [f"{TILE}.{unit}.{name}"] * 2


def _name(signals: Signals, path: str, value: int) -> str:
    place, _, signal = path.rpartition(".")
    names = signals.names.get((place, signal))
    return str(value) if names is None else dict(names.values).get(value, str(value))


def _shown(signals: Signals, path: str, value: int) -> str:
    field = path.rpartition(".")[2].rpartition("__")[2]
    named = _name(signals, path, value)
    if not named.isdigit():
        return f"{field} {named}"
    if field.endswith("data"):
        floats = struct.unpack("<4f", value.to_bytes(16, "little"))
        return " ".join(f"{number:g}" for number in floats) if all(0.5 < abs(x) < 1e6 for x in floats if x) else "…"
    if "flags" in path:
        return f"{field} {value:02b}"
    if field.isdigit():
        return f"r{field} {value}"
    return f"{field} {value:#x}" if "addr" in field else f"{field} {value}"


def page_part(example: Example) -> str:
    """The generated part of the page."""
    table = ["| cycle | where | what |", "|--:|---|---|"]
    previous = None
    for cycle, place, what in example.rows:
        table.append(f"| {'' if cycle == previous else cycle} | {place} | {what} |")
        previous = cycle
    parts = [
        'Its loops (`exe.ir("scf")`):\n',
        f"```mlir\n{example.scf.strip()}\n```\n",
        "Its program (`exe.asm()`):\n",
        f"```\n{example.asm.strip()}\n```\n",
        f"The result is `{example.result.tolist()}`. What one sees (memory `{MEMORY}`; viewer time is 10 × cycle):\n",
        "\n".join(table) + "\n",
    ]
    return "\n".join(parts)


def main(arguments: list[str]) -> None:
    """Run the example and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(arguments[1]) if arguments[:1] == ["--keep"] else Path(folder)
        part = page_part(compiled("verilator", place / "example.vcd"))
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    PAGE.write_text(head + BEGIN + part + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
