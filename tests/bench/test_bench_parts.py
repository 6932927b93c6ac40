"""What ``daedal bench`` is made of: streams, workloads, limits, tables, pages; nothing that needs a simulation."""

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from daedal.bench import host, registry
from daedal.bench.host import fbgemm_operation
from daedal.bench.limit import TrafficError, ideal_limit, launch_bursts, lines_of, lines_of_tables
from daedal.bench.report import document, html, pictures, run_page, table
from daedal.bench.run import Setting, verdict
from daedal.bench.suites import sweep
from daedal.bench.workloads import reuse_traces
from daedal.bench.workloads.made import Made
from daedal.bench.workloads.models import OWN, WORKLOADS, Workload
from daedal.bench.workloads.streams import DISTRIBUTIONS, draw, strided
from daedal.cosim.harness_library import BURST, WRITE_PORT
from daedal.cosim.memory_spec import MemorySpec
from daedal.driver.launch.record import RECORD_BYTES, Stats
from daedal.driver.memory.regions import Region
from daedal.driver.tables.table_store import Table
from daedal.hw.config.core import Config
from daedal.hw.isa.address_mapping import in_class, memory_addresses

CONFIG = Config.preset("ddr3")
SMALL = Workload("small", "two tables", "weighted", (32, 48), 8, 6, (1, 5))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_indices_are_in_their_table_and_the_same_every_time(distribution) -> None:
    first, again = (draw(distribution, 500, 40, np.random.default_rng(3), CONFIG) for _ in range(2))
    assert np.array_equal(first, again)
    assert first.dtype == np.int64 and len(first) == 500
    assert all(0 <= index < 40 for index in first)


def test_what_the_distributions_are() -> None:
    def counts(distribution: str) -> np.ndarray:
        drawn = draw(distribution, 20_000, 64, np.random.default_rng(1), CONFIG)
        return np.bincount(drawn, minlength=64)

    assert counts("uniform").max() < 2 * counts("uniform").min()
    assert np.count_nonzero(counts("fixed")) == 1
    ranked = np.arange(1, 65) ** -1.05
    assert counts("sorted") / 20_000 == pytest.approx(ranked / ranked.sum(), abs=0.01)
    assert np.sort(counts("zipf"))[::-1] / 20_000 == pytest.approx(ranked / ranked.sum(), abs=0.01)
    assert counts("zipf").argmax() != 0 or counts("zipf")[1] != np.sort(counts("zipf"))[-2]


def test_a_stride_takes_every_row_once() -> None:
    drawn = strided(40, 40, 8)
    assert list(drawn[:6]) == [0, 8, 16, 24, 32, 1]
    assert sorted(drawn) == list(range(40))


def test_an_unknown_distribution_is_named() -> None:
    with pytest.raises(ValueError, match=r"distribution must be one of uniform, .* not 'normal'"):
        draw("normal", 1, 1, np.random.default_rng(1), CONFIG)
    with pytest.raises(ValueError, match=r"workload text must have distributions \('own',\), not 'zipf'"):
        WORKLOADS["text"].make("zipf", 1, CONFIG)


@pytest.mark.parametrize("name", WORKLOADS)
def test_workloads_are_the_same_every_time_and_pytorch_takes_them(name) -> None:
    workload = WORKLOADS[name].smaller()
    first, again = (workload.make(workload.distributions[0], 5, CONFIG) for _ in range(2))
    assert torch.equal(first.module(*first.inputs), again.module(*again.inputs))
    other = workload.make(workload.distributions[0], 6, CONFIG)
    assert not torch.equal(first.module(*first.inputs), other.module(*other.inputs))
    indices = first.inputs[0] if workload.mode == "gather" else first.inputs[0][0][0]
    assert indices.dtype == torch.int64
    assert first.lookups == sum(len(t[0]) for t in first.inputs[0]) if workload.mode != "gather" else len(indices)


@pytest.mark.parametrize(("name", "lines"), [("rm1", 352_512), ("rm2", 278_784), ("rm3", 176_000), ("kaggle", 119_808)])
def test_lines_that_a_workload_has_to_move(name, lines) -> None:
    workload = WORKLOADS[name]
    bags = workload.batch * len(workload.tables)
    made = Made(workload, torch.nn.Module(), (), bags * workload.pooling[0], bags, "")
    assert made.lines(16) == lines


def test_bytes_and_operations_of_a_workload() -> None:
    made = SMALL.make("uniform", 1, CONFIG)
    assert made.flops == 2 * 8 * made.lookups
    assert made.useful_bytes == made.lookups * (32 + 8 + 4) + 12 * (8 + 32)
    assert made.row_bytes == 32 * made.lookups


HISTOGRAM = """fbgemm_t10_bs20.pt
Avg # of indices: 1000
Avg # of unique cols: 300
Histogram of col sizes:
(0, 1]: 0.5
Ratio of index distribution at different column sizes:
(0, 1]: 0.250
(1, 2]: 0.250
(2, 4]: 0.000
(4+: 0.500
[0, 1]

fbgemm_t99_bs1.pt
"""


def test_histograms_of_reuse(tmp_path: Path) -> None:
    folder = tmp_path / "bags"
    folder.mkdir()
    (folder / "meta_locality_stats_2021.txt").write_text(HISTOGRAM)
    histogram = reuse_traces.read_histogram(folder / "meta_locality_stats_2021.txt")
    assert histogram == reuse_traces.Histogram(5.0, (1.0, 2.0, 6.5), (0.25, 0.25, 0.5))
    chances = histogram.chances(1000)
    assert len(chances) == 1000 and chances.sum() == pytest.approx(1.0)
    cold, hot = chances.min(), chances.max()
    assert hot / cold == pytest.approx(6.5, rel=0.02)  # as their uses
    workload = WORKLOADS["reuse21"].smaller()
    assert workload.make(OWN, 1, CONFIG, tmp_path).origin == "meta_locality_stats_2021.txt"
    assert workload.make(OWN, 1, CONFIG, None).origin == "stand-in: zipf"
    assert WORKLOADS["reuse22"].smaller().make(OWN, 1, CONFIG, tmp_path).origin == "stand-in: zipf"


def test_a_file_that_is_no_histogram(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("nonsense")
    with pytest.raises(reuse_traces.DataError, match="must begin with a histogram of uses"):
        reuse_traces.read_histogram(tmp_path / "x")


def bursts(*entries: tuple[int, int]) -> np.ndarray:
    """Lines and port of each, the first at address 0 and the others behind it, one line to another."""
    starts = np.cumsum([0, *(lines for lines, _ in entries)])
    return np.array([(n, CONFIG.bus_bytes * starts[n], lines, port) for n, (lines, port) in enumerate(entries)], BURST)


RECORD = RECORD_BYTES // CONFIG.bus_bytes


def records(*lines: int) -> list[Region]:
    """Places of records from these lines on."""
    return [Region(CONFIG.bus_bytes * line, RECORD_BYTES) for line in lines]


def test_a_launch_without_its_record() -> None:
    all_ = bursts((8, 0), (2, WRITE_PORT), (4, 3), (RECORD - 4, WRITE_PORT), (4, WRITE_PORT))
    kept = launch_bursts(all_, Stats(launches=1, lines_read=12, lines_written=2), CONFIG, records(14, 2000))
    assert lines_of(kept) == (12, 2) and len(kept) == 3


def test_several_launches_without_their_records() -> None:
    all_ = bursts((8, 0), (2, WRITE_PORT), (RECORD, WRITE_PORT), (3, WRITE_PORT), (4, 1), (RECORD, WRITE_PORT))
    stats = Stats(launches=2, lines_read=12, lines_written=5)
    kept = launch_bursts(all_, stats, CONFIG, records(10, 17 + RECORD))
    assert [int(number) for number in kept["beats"]] == [8, 2, 3, 4]
    again = np.concatenate([all_, all_[2:3]])  # a place of which two launches made use
    assert len(launch_bursts(again, replace(stats, launches=3), CONFIG, records(10, 17 + RECORD))) == 4
    with pytest.raises(TrafficError, match=f"and {2 * RECORD} of the records' {RECORD}"):
        launch_bursts(all_, replace(stats, launches=1), CONFIG, records(10, 17 + RECORD))


@pytest.mark.parametrize(("read", "written"), [(11, 2), (12, 3)])
def test_lines_that_the_machine_did_not_count(read, written) -> None:
    all_ = bursts((8, 0), (2, WRITE_PORT), (4, 3), (RECORD, WRITE_PORT))
    with pytest.raises(TrafficError, match=f"must move {read} lines in and {written} out"):
        launch_bursts(all_, Stats(launches=1, lines_read=read, lines_written=written), CONFIG, records(14))


def test_a_record_that_is_not_there() -> None:
    with pytest.raises(TrafficError, match="and 2 of the records'"):
        launch_bursts(bursts((2, WRITE_PORT)), Stats(launches=1), CONFIG, records(0))


@pytest.mark.parametrize(
    ("read", "written", "memory", "cycles"),
    [
        (1000, 200, "ideal", 1200),  # the writes fill the first read's latency
        (1000, 50, "ideal", 1100),
        (0, 50, "ideal", 150),
        (1000, 200, "ideal:lines=2", 600),
        (100, 10, "ideal:lines=0.5,latency=7", 220),
    ],
)
def test_limit_of_the_ideal_memory(read, written, memory, cycles) -> None:
    assert ideal_limit(read, written, MemorySpec.parse(memory)).cycles == cycles


def test_what_makes_a_row_an_error() -> None:
    made = SMALL.make("uniform", 1, CONFIG)
    row = {"rows": made.lookups, "row_lines": 2 * made.lookups, "launches": 1}

    def found(difference: str = "", config: Config = CONFIG, **values: int) -> str:
        return verdict(row | values, made, difference, config)

    assert found() == ""
    assert found(rows=3) == f"3 rows were read for {made.lookups} indices"
    assert found(row_lines=4) == f"4 lines were read out of tables for rows of {2 * made.lookups} lines"
    assert found("element [0]", launches=2) == "not PyTorch's: element [0]; 2 launches instead of 1"
    assert found(launches=0) == "0 launches instead of 1"


def test_what_a_small_machine_may_do() -> None:
    small = Config.preset("minimum")  # 2 levels, lines of 2 elements, registers of 4: rows of 8 come in two parts
    assert Made(SMALL, torch.nn.Module(), (), 1, 1, "").row_parts(small) == [4, 4]
    assert Made(replace(SMALL, dim=6), torch.nn.Module(), (), 1, 1, "").row_parts(small) == [4, 2]
    assert Made(replace(SMALL, dim=6, mode="gather"), torch.nn.Module(), (), 1, 1, "").row_parts(small) == [6]
    assert Made(SMALL, torch.nn.Module(), (), 1, 1, "").row_parts(CONFIG) == [8]
    made = SMALL.make("uniform", 1, small)
    row = {"rows": 2 * made.lookups, "row_lines": 4 * made.lookups, "launches": 2}
    assert verdict(row, made, "", small) == verdict(row | {"launches": 1}, made, "", small) == ""
    assert verdict(row | {"launches": 3}, made, "", small) == "3 launches instead of 2"
    assert "rows were read for" in verdict(row | {"rows": made.lookups}, made, "", small)


def test_lines_read_out_of_tables() -> None:
    block = CONFIG.superblock_bytes
    first, second = in_class(block, 1, CONFIG), in_class(4 * block, 2, CONFIG)
    tables = [Table(first, 3, 16, 64, "float32"), Table(second, 1, 4, 16, "float32")]
    places = (block - 16, block, 2 * block - 16, 2 * block, 4 * block, 5 * block - 16, 4 * block)
    all_ = np.array([(0, place, 1 + n, WRITE_PORT if n == 6 else 0) for n, place in enumerate(places)], BURST)
    assert lines_of_tables(all_, tables, CONFIG) == 2 + 3 + 5 + 6
    assert lines_of_tables(all_, [], CONFIG) == 0


def rows() -> list[dict[str, object]]:
    common = {
        "suite": "rm2", "workload": "rm2", "distribution": "zipf", "memory": "ideal", "config": "ddr3",
        "row_bytes": 256, "data": "generated", "flops": 4096, "lines_read": 900, "lines_written": 100,
        "line_share": 0.9, "useful_share": 0.85, "row_share": 0.8, "main_stall": "load", "torch_share": 0.25,
        "bit_exact": True, "verdict": "",
    }  # fmt: skip
    return [
        {**common, "placement": place, "cycles": cycles, "limit_cycles": 900, "limit_share": 900 / cycles,
         "stalls": {"vector_full": 500, "load": 20, "hazard": 1}}
        for place, cycles in enumerate((1000, 1200))
    ]  # fmt: skip


def test_placements_have_a_mean_behind_them() -> None:
    other = {**rows()[0], "distribution": "uniform"}
    found = table.with_means([*rows(), other])
    assert [row["placement"] for row in found] == [0, 1, "mean", 0]
    assert found[2]["cycles"] == 1100 and found[2]["limit_share"] == pytest.approx((0.9 + 0.75) / 2)
    assert found[2]["bit_exact"] is True and "fbgemm_share" not in found[2]


def test_legends_of_a_timeline_are_beside_their_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = []
    monkeypatch.setattr(pictures, "_svg", lambda _, figure: figures.append(figure) or "")
    line = ([0.0, 9.0], [1.0, 2.0])
    pictures.timeline({"queues": {"tokens": line, "scalars": line}, "ports": {"read": line}})
    figures[0].canvas.draw()
    for panel in figures[0].axes:
        legend, lines = panel.get_legend().get_window_extent(), panel.get_window_extent()
        assert lines.y0 < legend.y0 and legend.y1 < lines.y1 and lines.x1 <= legend.x0


def test_tables_name_the_largest_stalls() -> None:
    text = table.markdown(table.COLUMNS, rows())
    assert "| vector full 50, load 2, hazard 0 |" in text
    assert "| rm2 | zipf | ideal | 0 | 1,000 | 0.900 | – | – | 0.900 | 0.850 | 0.800 |" in text


def test_pictures_are_svg_and_stay_as_they_are() -> None:
    for picture in (pictures.roofline, pictures.stalls):
        text = picture(rows())
        assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
        assert picture(rows()) == text
    assert ElementTree.fromstring(pictures.roofline([])) is not None
    assert ElementTree.fromstring(pictures.stalls([{"workload": "broken"}])) is not None


REFERENCES = re.compile(
    r"""\b(?:src|href|action|data)\s*=\s*(?:["'](?!#)|[^"'#\s])|url\((?!#)|@import|<script|<link|<iframe""",
    re.IGNORECASE,
)
"""What could load something."""


def test_a_page_needs_nothing_else() -> None:
    panels = {
        "queues": {"tokens": ([0.0, 1.0], [3.0, 4.0]), "a<b": ([0.0, 1.0], [1.0, 1.0])},
        "ports": {"0": ([0.0], [1.0])},
    }
    text = html.page(
        "A <page>",
        {
            "Rows": html.table(table.COLUMNS, rows()),
            "Pictures": html.figure(pictures.roofline(rows()), "one", "&")
            + html.figure(pictures.stalls(rows()), "two", ""),
            "Time": html.figure(pictures.timeline(panels), "three", ""),
            "Program": html.text("a < b"),
        },
    )
    assert not REFERENCES.search(text)
    assert not re.search(r"https?://(?!www\.w3\.org/(2000/svg|1999/xlink)\")", text)
    assert "A &lt;page&gt;" in text and "a &lt; b" in text and text.count("<svg") == 3
    identifiers = re.findall(r'\bid="([^"]+)"', text)
    assert {name.split("-")[0] for name in identifiers} == {"one", "two", "three"}
    assert set(re.findall(r'(?:href="|url\()#([^")]+)', text)) <= set(identifiers)


def test_a_program_by_its_units() -> None:
    access, execute = run_page.units("config 0x1\nlength 0 elements = 4\nlevel 0 step = 1\ninstruction 0 code op=add\n")
    assert access.splitlines() == ["config 0x1", "level 0 step = 1"]
    assert execute.splitlines() == ["length 0 elements = 4", "instruction 0 code op=add"]


def test_the_sweep_has_every_width() -> None:
    found = list(sweep.workloads())
    assert [workload.row_bytes for workload in found] == 2 * list(sweep.WIDTHS)
    assert all(workload.batch * workload.pooling[0] >= sweep.LEAST for workload in found)


def test_documents_are_read_back(tmp_path: Path) -> None:
    about = document.facts([(CONFIG, "ideal:latency=7")], seed=1, placements=2, quick=False)
    document.save(tmp_path / "new" / "x.json", about, {"rm2": rows()})
    found = document.load(tmp_path / "new" / "x.json")
    assert found["facts"]["configs"] == {"ddr3": f"{CONFIG.hash:#010x}"}
    assert found["results"]["rm2"][0]["stalls"]["load"] == 20
    (tmp_path / "y.json").write_text("{}")
    with pytest.raises(ValueError, match="must be a result of `daedal bench` with schema 1"):
        document.load(tmp_path / "y.json")
    assert found["facts"]["memories"] == {"ideal:latency=7": "ideal: latency 7 cycles, 1 lines per cycle"}


def test_the_presets_for_memories() -> None:
    assert registry.preset_for("ideal:latency=3").name == "ddr3"
    assert registry.preset_for("litedram-ddr3-x16").name == "ddr3"
    assert registry.preset_for("litedram-ddr3-x64").name == "wide"


def test_the_host_beside_a_row(monkeypatch) -> None:
    monkeypatch.setattr(host, "ELEMENTS", 1 << 12)
    ticks = iter(range(10**6))
    monkeypatch.setattr(host.time, "perf_counter", lambda: next(ticks) / 1000)  # whatever is timed takes a millisecond
    threads = torch.get_num_threads()
    made = SMALL.make("uniform", 1, CONFIG)
    row = host.Host().measure(made).as_row()
    assert torch.get_num_threads() == threads == row["threads"]
    assert row["triad_gb_s"] == pytest.approx(host.TRIAD_BYTES / 1e6, rel=0.01)
    assert row["torch_share"] == pytest.approx(made.useful_bytes / host.TRIAD_BYTES)


def test_fbgemm_gives_the_same_sums() -> None:
    made = SMALL.make("uniform", 1, CONFIG)
    operation = fbgemm_operation(made)
    if operation is None:
        pytest.skip("fbgemm_gpu is not installed")
    assert torch.allclose(operation(), made.module(*made.inputs), atol=1e-5)


def test_settings_differ_by_placement() -> None:
    first, second = (Setting(CONFIG, placement=n).make(SMALL, "zipf") for n in (0, 1))
    assert not torch.equal(first.inputs[0][0][0][:5], second.inputs[0][0][0][:5])


def test_rows_of_a_stride_take_all_banks() -> None:
    """Without the hash, rows that are a bank period apart would be in one bank."""
    places = strided(64, 65_536, CONFIG.banks).astype(np.uint64) * np.uint64(64)
    banks = memory_addresses(places, 1, CONFIG) // np.uint64(CONFIG.page_bytes) % np.uint64(CONFIG.banks)
    assert len(set(banks.tolist())) == CONFIG.banks
