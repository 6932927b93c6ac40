"""The workloads over graphs, triples and blocks: their data, what they count, and their results on the emulator."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

import daedal
from daedal.bench.run import verdict
from daedal.bench.workloads import graphs, structured_tasks, triples
from daedal.bench.workloads.graphs import Graph, graph_of
from daedal.bench.workloads.models import OWN
from daedal.bench.workloads.reuse_traces import DataError
from daedal.bench.workloads.row_sums import reduction_cycles
from daedal.bench.workloads.runner import first_difference
from daedal.bench.workloads.structured_models import WORKLOADS, attended
from daedal.bench.workloads.structured_tasks import StructuredTask
from daedal.hw.config.core import Config

DDR3, WIDE, EDGE = (Config.preset(name) for name in ("ddr3", "wide", "edge"))


def run(task: StructuredTask, config: Config) -> None:
    """The task on the emulator: PyTorch's bits or the specification's, each row read, no more launches than it may."""
    with daedal.Device.open("emulator", config=config) as device:
        executable, call = task.compile(device)
        difference = first_difference(call(), task.expected())
        stats = executable.stats
    lines = task.fetched(config)[1]  # the emulator has no ports that would tell
    row = {"rows": stats.rows, "launches": stats.launches, "row_lines": lines}
    assert verdict(row, task, difference, config) == ""


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("config", [DDR3, WIDE, EDGE], ids=lambda config: config.name)
def test_small_ones_on_the_emulator(name: str, config: Config) -> None:
    task = WORKLOADS[name].smaller().make(OWN, 3, config)
    assert task.lookups > 0
    run(task, config)


@pytest.mark.parametrize("name", WORKLOADS)
def test_they_compute_what_pytorch_does(name: str) -> None:
    """As far as rounding: sums along rows are added in another order."""
    task = WORKLOADS[name].smaller().make(OWN, 4, DDR3)
    torch.testing.assert_close(task.expected(), task.in_torch()(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", WORKLOADS)
def test_they_are_the_same_every_time(name: str) -> None:
    small = WORKLOADS[name].smaller()
    first, again, other = (small.make(OWN, seed, DDR3) for seed in (5, 5, 6))
    assert not first_difference(first.expected(), again.expected())
    assert first_difference(first.expected(), other.expected())
    with pytest.raises(ValueError, match="must have distributions"):
        small.make("zipf", 1, DDR3)


def edges(*pairs: tuple[int, int], nodes: int) -> Graph:
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return graph_of(ends[:, 0], ends[:, 1], nodes)


ODD = {
    "no edge": edges(nodes=4),
    "one node, one loop": edges((0, 0), nodes=1),
    "self-loops and isolated nodes": edges((1, 1), (3, 3), (3, 1), nodes=6),
    "one node of a high degree": edges(*((2, k % 9) for k in range(70)), (8, 2), nodes=9),
    "an edge three times": edges((0, 1), (0, 1), (0, 1), nodes=2),
    "degrees around the delay of row pipelining": edges(*((v, k) for v in range(12) for k in range(v)), nodes=12),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("config", [DDR3, WIDE], ids=lambda config: config.name)
@pytest.mark.parametrize("dim", [5, 64])
def test_odd_graphs(name: str, config: Config, dim: int) -> None:
    graph, rng = ODD[name], np.random.default_rng(7)
    x = rng.standard_normal((graph.nodes, dim), dtype=np.float32)
    x[0, :4] = (-0.0, np.inf, 1e-42, -1e38)
    weights = rng.standard_normal(len(graph.columns), dtype=np.float32)
    workload = WORKLOADS["spmm-cora"]
    for make in (structured_tasks.sparse_product, structured_tasks.graph_convolution):
        run_bits(make(workload, graph, x, weights, ""), config)
    run_bits(structured_tasks.message_passing(WORKLOADS["mp-cora"], graph, x, ""), config)


def run_bits(task: StructuredTask, config: Config) -> None:
    with daedal.Device.open("emulator", config=config) as device:
        _, call = task.compile(device)
        assert first_difference(call(), task.expected()) == ""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_graphs_are_read_both_ways(tmp_path: Path) -> None:
    listed = graphs.read_graph(write(tmp_path / "a.txt.gz", "0 1\n0 3\n3 3\n"))
    assert (listed.nodes, list(listed.pointers), list(listed.columns)) == (4, [0, 2, 3, 3, 5], [1, 3, 0, 0, 3])
    assert list(listed.rows) == [0, 0, 1, 3, 3]
    metis = graphs.read_graph(write(tmp_path / "a.metis.gz", "3 1 0\n3\n\n1\n"))
    assert (list(metis.pointers), list(metis.columns)) == ([0, 1, 1, 2], [2, 0])
    few = listed.first(1, 2)
    assert (few.nodes, list(few.columns)) == (1, [1, 1])


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.txt.gz", "0 1 2\n"), ("a.txt.gz", "0 -1\n"), ("a.txt.gz", "x y\n"), ("a.txt.gz", ""),
     ("a.metis.gz", "2 1 0\n3\n1\n"), ("a.metis.gz", "9 1 0\n"), ("a.metis.gz", "\n")],
)  # fmt: skip
def test_a_file_that_is_no_graph(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(DataError, match="must be a graph: take it out of the data folder"):
        graphs.read_graph(write(tmp_path / name, text))


def test_a_file_that_is_not_compressed(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_text("0 1\n")
    with pytest.raises(DataError, match="must be a file of gzip, not 4 other bytes"):
        graphs.read_graph(tmp_path / "a.txt.gz")


def test_data_or_a_stand_in(tmp_path: Path) -> None:
    cora, kg = WORKLOADS["mp-cora"], WORKLOADS["kg-codex-transe"]
    assert cora.make(OWN, 1, DDR3, tmp_path).origin == "stand-in: power-law graph"
    assert kg.smaller().make(OWN, 1, DDR3, tmp_path).origin == "stand-in: zipf"
    assert WORKLOADS["mp-power"].smaller().make(OWN, 1, DDR3, tmp_path).origin == "generated"
    write(tmp_path / graphs.FOLDER / "cora_edges.txt.gz", "0 1\n1 2\n")
    task = cora.make(OWN, 1, DDR3, tmp_path)
    assert (task.origin, task.lookups, task.bags) == ("cora_edges.txt.gz", 4 + 3, 3)
    for part, text in (("train", "a\tr\tb\n"), ("valid", "b\ts\tc\n"), ("test", "c\tr\ta\n")):
        write(tmp_path / triples.FOLDER / f"codex_m_{part}.tsv.gz", text)
    task = kg.make(OWN, 1, DDR3, tmp_path)
    assert (task.origin, task.lookups) == ("codex_m", 3)
    assert [list(array) for array in task.inputs[3:]] == [[2], [0], [0]]
    write(tmp_path / triples.FOLDER / "codex_m_valid.tsv.gz", "b\ts\n")
    with pytest.raises(DataError, match=r"codex_m_valid.tsv.gz must have lines of 3 fields, not 'b\\ts'"):
        kg.make(OWN, 1, DDR3, tmp_path)


def test_a_drawn_graph_is_as_large_as_the_one_it_stands_for() -> None:
    graph = WORKLOADS["spmm-astro"].graph(None)[0]
    degrees = np.diff(graph.pointers)
    assert (graph.nodes, len(graph.columns)) == (16_706, 242_502)
    assert 200 < degrees.max() < 1000 and degrees.min() == 0
    assert (np.diff(graph.columns)[np.diff(graph.rows) == 0] >= 0).all()


def test_blocks_of_attention() -> None:
    found = attended(32, np.random.default_rng(1))
    assert found.shape == (32, 8)
    for own, blocks in enumerate(found):
        assert {0, 31, own, (own + 1) % 32, (own - 1) % 32} <= set(blocks) and len(set(blocks)) == 8


def test_what_lanes_need_for_a_sum_along_a_row() -> None:
    """64 elements: 16 beats and 5 of the tree on 4 lanes; on 16 lanes three of the adder's loops and a beat."""
    assert [reduction_cycles(DDR3, dim) for dim in (64, 16, 4, 128)] == [21, 9, 6, 39]
    assert [reduction_cycles(WIDE, dim) for dim in (64, 16, 128)] == [16, 5, 36]


def test_counts_of_message_passing() -> None:
    task = structured_tasks.message_passing(
        WORKLOADS["mp-cora"], edges((0, 1), (0, 2), (2, 0), nodes=3), np.zeros((3, 64), np.float32), ""
    )
    assert task.lookups == 3 + 3 and task.flops == 4 * 3 * 64
    assert task.lane_cycles(DDR3) == 3 * 37 + 3 * 16
    assert task.lines(16) == 6 * 16 + 3 // 2 + 1 + 2 + 3 * 16
    assert task.useful_bytes == 6 * 256 + 3 * 8 + 4 * 8 + 3 * 256


def test_sums_along_rows_of_a_bag_overlap_and_bags_do_not_come_in_turn() -> None:
    """Rows shorter than the adder's loop wait for a tree each if bags come in turn: five times the cycles."""
    task = structured_tasks.message_passing(
        WORKLOADS["mp-cora"], ODD["one node of a high degree"], np.ones((9, 64), np.float32), ""
    )
    with daedal.Device.open("emulator", config=WIDE) as device:
        executable, _ = task.compile(device)
        said = executable.explain()
    assert "their second use is 6 iterations later" in said and "come in turn" not in said
