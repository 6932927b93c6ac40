"""Waveforms: values by name in both viewers, the files name signals that are there, and the page shows what happens."""

import importlib.util
import re
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest

from daedal.cosim.waveform import surfer, write_views
from daedal.cosim.waveform.signals import Signals, read_signals
from daedal.cosim.waveform.view import TILE, VIEW, select
from daedal.cosim.waveform.waveform_verilog import traced_verilog
from daedal.hw.config.core import MAX_LEVELS
from daedal.hw.config.file import read_config
from daedal.hw.isa import instructions, launch, words
from daedal.hw.isa.tools.c_header import enums
from daedal.hw.memory.axi import Burst
from daedal.hw.verilog import core_verilog

PIECE = r"""
module top(clk, \a$1 );
  input clk;
  wire clk;
  (* enum_base_type = "Colour" *)
  (* enum_value_00 = "RED" *)
  (* enum_value_10 = "BLUE" *)
  wire [1:0] \a$1.colour ;
  wire \a.colour ;
  wire \$7 ;
  wire [7:0] \list[1] ;
endmodule
"""


@pytest.fixture(scope="module")
def example(root: Path) -> ModuleType:
    """docs/measuring/waveform_example.py."""
    spec = importlib.util.spec_from_file_location(
        "waveform_example", root / "docs" / "measuring" / "waveform_example.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def verilog(root: Path) -> str:
    return traced_verilog(core_verilog(read_config(root / "docs" / "tiny.toml")))


@pytest.fixture(scope="module")
def signals(verilog: str) -> Signals:
    return read_signals(verilog)


def test_names_become_plain_ones() -> None:
    text = traced_verilog(PIECE)
    assert r"\a$1__colour " in text
    assert r"\list__1 " in text
    assert r"\_$7 " in text
    found = read_signals(text)
    assert found.widths == {"top": {"clk": 1, "a$1__colour": 2, "a__colour": 1, "list__1": 8}}
    (names,) = found.names.values()
    assert (names.kind, names.width, names.values) == ("Colour", 2, ((0, "RED"), (2, "BLUE")))
    assert found.own("top")["a__colour"] == "a$1__colour"  # a port goes before what is only inside


def test_values_have_the_names_of_the_encodings(signals: Signals) -> None:
    encodings = {kind.__name__: kind for module in (instructions, launch, words) for kind in enums(module)}
    assert "Burst" not in encodings
    assert Burst.INCR.value == 1
    found = signals.enumerations()
    assert {"Cause", "Queue", "State", "Unit", "AluOp", "Source", "CheckKind", "FetchQueue", "OperandKind"} <= set(
        found
    )
    for label in set(found) & set(encodings):
        assert dict(found[label].values) == {member.value: member.name for member in encodings[label]}, label


def test_every_state_machine_has_names(signals: Signals) -> None:
    registers = [(path, name) for path, names in signals.widths.items() for name in names if name.endswith("fsm_state")]
    assert len(registers) >= 3
    assert set(registers) <= set(signals.names)


def test_the_view_shows_all_that_it_names(signals: Signals) -> None:
    shown = {title for group in select(signals) for title in [group.title]}
    assert shown >= {title for title, _, _ in VIEW} - {f"level {k}" for k in range(2, MAX_LEVELS)}
    for title, unit, items in VIEW:
        own = signals.own(f"{TILE}.{unit}".strip("."))
        missing = [item for item in items if not any(name == item or name.startswith(f"{item}__") for name in own)]
        assert title not in shown or title == "memory" or not missing, (title, missing)


def test_surfer_counts_items_in_letters() -> None:
    assert [surfer.item_label(k) for k in (0, 15, 16, 255)] == ["a", "p", "ba", "pp"]


def test_files_for_the_viewers(verilog: str, tmp_path: Path) -> None:
    write_views(tmp_path / "run.vcd", verilog)
    lines = (tmp_path / "run.gtkw").read_text().splitlines()
    at = next(k for k, line in enumerate(lines) if line.endswith("loader.fsm_state[3:0]"))
    number, filter_file = lines[at - 1].removeprefix("^").split(maxsplit=1)
    assert number.isdigit()
    names = dict(line.split() for line in Path(filter_file).read_text().splitlines())
    state = next(int(value, 16) for value, name in names.items() if name == "BLOCK")
    commands = (tmp_path / "run.sucl").read_text().splitlines()
    at = commands.index(f"variable_add {TILE}.core.loader.fsm_state")
    items = [line for line in commands[: at + 1] if line.startswith(("divider_add", "variable_add"))]
    assert commands[at + 1 : at + 3] == [
        f"item_focus {surfer.item_label(len(items) - 1)}",
        "item_set_format Daedal_LoaderState",
    ]
    mapping = (tmp_path / ".surfer" / "mappings" / "Daedal_LoaderState.txt").read_text().splitlines()
    assert mapping[:2] == ["Name = Daedal_LoaderState", "Bits = 4"]
    assert f"0b{state:04b} BLOCK" in mapping


def test_the_page_has_the_loops_and_the_program(example: ModuleType) -> None:
    found = example.compiled("emulator")
    page = example.PAGE.read_text(encoding="utf-8")
    for text in (found.scf.strip(), found.asm.strip(), str(found.result.tolist())):
        assert text in page, (
            "docs/measuring/waveforms.md must be written anew: python docs/measuring/waveform_example.py"
        )


def by_place(rows: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """What happens at each place in its order, which does not depend on time; states last for a time that does."""
    found: dict[str, list[str]] = {}
    for place, what in rows:
        found.setdefault(place, []).append(what)
    return {place: what for place, what in found.items() if not place.startswith("memory: read")}


@pytest.mark.rtl
@pytest.mark.slow
def test_the_page_shows_what_happens(example: ModuleType, tmp_path: Path) -> None:
    found = example.compiled("verilator", tmp_path / "run.vcd")
    module, inputs = example.module()
    assert found.result.tolist() == module(*inputs).tolist()

    page = example.PAGE.read_text(encoding="utf-8")
    table = re.findall(r"^\| *\d* \| ([\w: ]+) \| (.*) \|$", page, re.MULTILINE)
    assert by_place(table) == by_place((place, what) for _, place, what in found.rows), "write the page anew"
    assert {("loader", "CLEAR"), ("controller", "DRAIN"), ("execute unit", "op ADD, kind QUEUE")} <= set(table)

    header = (tmp_path / "run.vcd").read_text(encoding="ascii").partition("$enddefinitions")[0]
    path, known = [], set()
    for line in header.splitlines():
        match line.split():
            case ["$scope", _, scope, "$end"]:
                path.append(scope)
            case ["$upscope", *_]:
                path.pop()
            case ["$var", _, _, _, name, *_]:
                known.add(".".join([*path, name]))
    save = (tmp_path / "run.gtkw").read_text().splitlines()
    named = {re.sub(r"\[\d+:0\]$", "", line.split()[-1]) for line in save if line.startswith("+{")}
    commands = (tmp_path / "run.sucl").read_text().splitlines()
    named |= {line.split()[1] for line in commands if line.startswith("variable_add ")}
    assert len(named) > 200
    assert named <= known
