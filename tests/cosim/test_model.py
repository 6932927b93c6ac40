"""The target ``model``: the emulator's results, and cycles that are near to the RTL's."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import daedal
from daedal.bench.suite import Machine
from daedal.bench.suites import element_types, model_check
from daedal.bench.workloads import shape_list
from daedal.bench.workloads.typed import Typed
from daedal.cosim.clock.checks import CHECKS, REVISION
from daedal.cosim.dram_times import DRAMS
from daedal.hw.config.core import Config

LANDED = Path(__file__).parents[2] / "bench" / "results" / "model.json"
BAGS = 64


def _bags(rows: int = 1000, dim: int = 16, pooling: int = 10) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(3)
    module = nn.EmbeddingBag(rows, dim, mode="sum", include_last_offset=True)
    indices = torch.randint(0, rows, (BAGS * pooling,))
    return module, (indices, torch.arange(0, BAGS * pooling + 1, pooling))


def _run(config: Config | str = "ddr3", memory: str = "ideal", **shape: int) -> Any:
    """Figures of the second launch, the first of which has a start of its own."""
    module, inputs = _bags(**shape)
    with daedal.Device.open("model", config=config, memory=memory) as device:
        executable = daedal.compile(module, inputs, device=device)
        for _ in range(2):
            assert torch.equal(executable(*inputs), module(*inputs))
        return executable.stats


@pytest.mark.parametrize("config", ["ddr3", "edge", "wide", "minimum"])
def test_results_are_those_of_pytorch_and_cycles_are_predicted(config: str) -> None:
    stats = _run(config)
    assert stats.predicted
    assert stats.cycles > stats.rows
    assert stats.stalls["vector_full"] + stats.stalls["load"] + stats.stalls["vector_empty"] > 0
    assert 0 < stats.marks["vector0"] <= Config.preset(config).vector_beats


def test_the_emulator_predicts_nothing() -> None:
    module, inputs = _bags()
    with daedal.Device.open("emulator", config="ddr3") as device:
        executable = daedal.compile(module, inputs, device=device)
        executable(*inputs)
        assert not executable.stats.predicted
        assert executable.stats.checked == ""


def test_a_prediction_is_the_same_each_time() -> None:
    assert _run(memory="litedram-ddr3-x16") == _run(memory="litedram-ddr3-x16")


def test_one_bag_takes_four_latencies_more() -> None:
    module = nn.EmbeddingBag(100, 64, mode="sum", include_last_offset=True)
    inputs = torch.tensor([7]), torch.tensor([0, 1])
    cycles = []
    for latency in (20, 100, 400):
        with daedal.Device.open("model", config="ddr3", memory=f"ideal:latency={latency}") as device:
            executable = daedal.compile(module, inputs, device=device)
            executable(*inputs)
            executable(*inputs)
            cycles.append(executable.stats.cycles)
    assert [cycles[1] - cycles[0], cycles[2] - cycles[1]] == [4 * 80, 4 * 300]


def test_fewer_places_for_lines_cost_cycles_once_latency_is_long() -> None:
    few = replace(Config.preset("ddr3"), name="few", reorder_beats=128)
    slow = "ideal:latency=400"
    assert _run(few, slow, dim=64).cycles > 1.8 * _run("ddr3", slow, dim=64).cycles
    assert _run(few, slow, dim=64).stalls["vector_full"] > _run("ddr3", slow, dim=64).stalls["vector_full"]


def test_half_the_bandwidth_takes_twice_the_time() -> None:
    half, whole = (_run(memory=f"ideal:lines={lines}", dim=64, pooling=40).cycles for lines in (0.5, 1))
    assert 1.8 < half / whole < 2.1


def test_a_fault_is_the_emulators_and_the_device_goes_on() -> None:
    module, inputs = _bags()
    with daedal.Device.open("model", config="ddr3") as device:
        executable = daedal.compile(module, inputs, device=device)
        before = executable(*inputs)
        with pytest.raises(IndexError):
            executable(torch.full_like(inputs[0], 5000), inputs[1])
        assert torch.equal(executable(*inputs), before)
        assert executable.stats.cycles > 0


def test_queued_launches_overlap() -> None:
    module, inputs = _bags()
    alone = _run().cycles
    with daedal.Device.open("model", config="ddr3") as device:
        executable = daedal.compile(module, inputs, device=device)
        executable(*inputs)
        futures = [executable.submit(*inputs) for _ in range(4)]
        cycles = [(future.result(), future.stats.cycles)[1] for future in futures]
    assert sum(cycles) < 4 * alone
    assert min(cycles[1:]) < 0.95 * alone


def test_bags_of_one_row_come_as_fast_as_their_lines() -> None:
    """The event unit holds some bags; then a level waits for it, but not for the levels outside of it once more."""
    stats = _run(memory="litedram-ddr3-x16", rows=500, dim=32, pooling=1)
    lines = stats.lines_read + stats.lines_written
    assert stats.cycles < lines + 700
    assert stats.stalls["load"] < 350


@pytest.mark.parametrize("memory", DRAMS)
def test_memories_without_rtl(memory: str) -> None:
    of = DRAMS[memory]
    lanes = min(16, of.line_bytes // 4)
    config = replace(Config.preset("wide"), name="fits", bus_bytes=of.line_bytes, lanes=lanes, page_bytes=of.page_bytes)
    stats = _run(config, memory, dim=64, pooling=100)
    lines = stats.lines_read + stats.lines_written
    assert stats.checked == ""
    assert lines < stats.cycles < 3 * lines


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wave": "x.vcd"}, "wave must be None for target model, which has no signals, not 'x.vcd': use"),
        ({"memory": "hbm9"}, "memory must be one of ideal, .*, hbm2e, not 'hbm9'"),
        ({"memory": "hbm2e:channels=2"}, "memory hbm2e must be without options, not 'hbm2e:channels=2'"),
        ({"memory": "hbm2e"}, "bus_bytes of configuration ddr3 must be 32 for memory hbm2e, not 16"),
        ({"memory": "litedram-ddr3-x64"}, "bus_bytes of configuration ddr3 must be 64 for memory litedram-ddr3-x64"),
        ({"memory": "ideal:stall=0.1"}, "memory of target model must be without stall, seed and pause, not 'ide"),
    ],
)  # fmt: skip
def test_what_it_cannot_do_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        daedal.Device.open("model", config="ddr3", **options)


def _landed() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(LANDED.read_text(encoding="utf-8"))["results"][model_check.NAME]
    return rows


def test_what_stats_say_of_the_errors_is_what_was_landed() -> None:
    facts = json.loads(LANDED.read_text(encoding="utf-8"))["facts"]
    found: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in _landed():
        machine = int(facts["configs"][row["config"]], 16), row["memory"].partition(":")[0]
        found.setdefault(machine, []).append(row)
    assert {machine: model_check.summary(rows) for machine, rows in found.items()} == CHECKS
    assert facts["revision"] == REVISION
    page = (LANDED.parents[2] / "docs" / "measuring" / "model.md").read_text(encoding="utf-8")
    assert all(f"| {text} |" in page for text in CHECKS.values())


SAMPLE = (
    "mean D 4 pooling 17",
    "sum D 16 pooling 2",
    "mean D 64 pooling 20",
    "weighted D 1 pooling 3",
    "gather D 9",
    "one bag of one row, D 64",
    "26 tables, D 16, batch 1",
    "mean D 64 pooling 3",
)


@pytest.mark.parametrize("memory", ["ideal", "litedram-ddr3-x16"])
@pytest.mark.parametrize("name", SAMPLE)
def test_predictions_are_near_the_landed_cycles_of_the_rtl(name: str, memory: str) -> None:
    (row,) = [row for row in _landed() if (row["workload"], row["config"], row["memory"]) == (name, "ddr3", memory)]
    (shape,) = [shape for shape in shape_list.shapes() if shape.name == name]
    machine = Machine(Config.preset("ddr3"), memory)
    predicted = model_check.launch(shape.sized(machine.config).make(row["seed"]), machine, "model")
    assert model_check.is_within(row["cycles"], predicted.cycles), (row["cycles"], predicted.cycles)
    lines = row["lines_read"]
    assert abs(predicted.lines_read - lines) <= max(0.01 * lines, 64)


IDEAL, DRAM = element_types.MEMORIES
NARROW_TYPES = [
    ("types-narrow16", "narrow16", name, memory)
    for name in ("bf16 mean 64", "int8 weighted 64", "int4 sum 64", "int2 gather 64")
    for memory in element_types.MEMORIES
]
WITHOUT_PREADDERS = [("types", "ddr3", "int8 sum 16", IDEAL), ("types", "ddr3", "int4 weighted 32", DRAM)]
"""Rows whose scale is a scalar register, for which the lanes wait."""


@pytest.mark.parametrize(("file", "config", "name", "memory"), NARROW_TYPES + WITHOUT_PREADDERS)
def test_predictions_of_narrow_types_are_near_the_landed_cycles(file: str, config: str, name: str, memory: str) -> None:
    document = json.loads((LANDED.parent / f"{file}.json").read_text(encoding="utf-8"))
    rows = document["results"][element_types.NAME]
    (landed,) = [row["cycles"] for row in rows if (row["workload"], row["memory"]) == (name, memory)]
    (typed,) = element_types.operations([name])
    machine = Machine(element_types.with_types(Config.preset(config)), memory, "model")
    found = element_types.measure(typed, machine)
    most = 0.05 if (config, memory) == ("narrow16", DRAM) else 0.03
    assert not found["verdict"] and abs(found["cycles"] - landed) <= most * landed, (found["cycles"], landed)


@pytest.mark.parametrize(("name", "most"), [("gather D 4, 3 rows", 0.1), ("sum D 16 pooling 2", 0.35)])
def test_lanes_without_work_wait_for_tokens_as_in_the_rtl(name: str, most: float) -> None:
    """Rows that are copied pass the lanes by."""
    (row,) = [row for row in _landed() if (row["workload"], row["config"], row["memory"]) == (name, "ddr3", "ideal")]
    (shape,) = [shape for shape in shape_list.shapes() if shape.name == name]
    machine = Machine(Config.preset("ddr3"), "ideal")
    predicted = model_check.launch(shape.sized(machine.config).make(row["seed"]), machine, "model")
    assert predicted.stalls["token_empty"] == pytest.approx(row["stalls"]["token_empty"], rel=most, abs=200)


def test_lanes_do_not_wait_in_a_launch_for_what_was_before_it() -> None:
    rows, ids = nn.Embedding(100, 64), torch.arange(100)
    module, inputs = _bags(rows=100)
    with daedal.Device.open("model", config="ddr3") as device, torch.no_grad():
        sums, copies = daedal.compile(module, inputs, device=device), daedal.compile(rows, (ids,), device=device)
        figures = []
        for executable, given in ((sums, inputs), (sums, inputs), (copies, (ids,)), (copies, (ids,)), (sums, inputs)):
            executable(*given)
            figures.append(executable.stats)
        _, before, _, copied, after = figures
        assert abs(after.stalls["token_empty"] - before.stalls["token_empty"]) < 50
        assert 0.4 * copied.cycles < copied.stalls["token_empty"] <= copied.cycles


@pytest.mark.parametrize("name", ["50 tables, D 16, batch 1", "one long bag, D 16"])
def test_a_longer_latency_moves_predictions_as_it_moves_the_rtl(name: str) -> None:
    (shape,) = [shape for shape in shape_list.shapes() if shape.name == name]
    cycles = []
    for latency in (20, 400):
        machine = Machine(Config.preset("ddr3"), f"ideal:latency={latency}")
        (row,) = [row for row in _landed() if (row["workload"], row["memory"]) == (name, machine.memory)]
        predicted = model_check.launch(shape.sized(machine.config).make(row["seed"]), machine, "model")
        cycles.append((row["cycles"], predicted.cycles))
    (rtl_short, short), (rtl_long, long) = cycles
    assert abs((long - short) - (rtl_long - rtl_short)) <= 0.05 * (rtl_long - rtl_short)


def test_sums_behind_each_other_wait_for_the_pre_adders() -> None:
    """One bag, each of whose rows of a beat needs the sum before: 10 cycles, which are 5 without pre-adders."""
    typed = Typed("bf16", "sum", 16, rows=64, bags=1, pooling=400)
    with_them = Config.preset("narrow16")
    without = replace(with_them, name="without", preadder=0)
    slow, fast = (element_types.measure(typed, Machine(each, "ideal", "model")) for each in (with_them, without))
    assert 400 * 4 < slow["cycles"] - fast["cycles"] < 400 * 6


TWO_PASS = replace(Config.preset("narrow16"), name="two-pass", preadder=0, two_pass=1)


@pytest.mark.parametrize("name", ["int8 sum 64", "int8 weighted 64", "int4 sum 64", "int4 weighted 64"])
def test_two_passes_over_rows_of_four_beats_take_nine_cycles(name: str) -> None:
    """Five until the first sum is there, and four."""
    (typed,) = element_types.operations([name])
    found = element_types.measure(typed, Machine(TWO_PASS, "ideal", "model"))
    assert not found["verdict"] and 9 <= found["cycles_each"] <= 9.5


@pytest.mark.rtl
@pytest.mark.full
@pytest.mark.parametrize("config", [Config.preset("narrow16"), TWO_PASS], ids=lambda config: config.name)
@pytest.mark.parametrize("name", ["bf16 sum 16", "int8 weighted 16", "int8 sum 16", "bf16 mean 16"])
def test_predictions_of_bags_of_narrow_types_are_near_the_rtl(name: str, config: Config) -> None:
    """One long bag of rows of a beat, and many short ones."""
    (typed,) = element_types.operations([name])
    for bags, pooling in ((1, 400), (40, 2)):
        small = replace(typed, rows=64, bags=bags, pooling=pooling)
        machines = (Machine(config, "ideal", target) for target in ("verilator", "model"))
        rtl, predicted = (element_types.measure(small, machine)["cycles"] for machine in machines)
        assert abs(predicted - rtl) <= 0.05 * rtl, (bags, rtl, predicted)


@pytest.mark.rtl
@pytest.mark.parametrize("name", ["sum D 16 pooling 2", "26 tables, D 16, batch 8"])
def test_predictions_are_near_the_rtl(name: str) -> None:
    (shape,) = [shape for shape in shape_list.shapes() if shape.name == name]
    machine = Machine(Config.preset("ddr3"), "ideal", quick=True)
    small = shape if shape.batch else shape.smaller(machine.config)
    row = model_check.compared(small.make(1), machine)
    assert row["within"], row
    assert sum(row["port_lines"]) == row["lines_read"]
    assert all(abs(a - b) <= 0.05 * a + 8 for a, b in zip(row["port_lines"], row["predicted_port_lines"], strict=True))
