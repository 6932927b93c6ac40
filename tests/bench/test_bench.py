"""The bench: figures from known inputs, each suite once on something small."""

from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from daedal.bench import registry
from daedal.bench.report.form import check_row
from daedal.bench.suite import Machine, Order, Row, against, is_broken
from daedal.bench.suites import against as beside_others
from daedal.bench.suites import launches, levels, linearity, plans, single_layers, speed, systems
from daedal.bench.suites.published_processors import PUBLISHED
from daedal.bench.workloads import layers
from daedal.bench.workloads.fleets import FLEETS
from daedal.bench.workloads.runner import same_bits
from daedal.bench.workloads.streams import DISTRIBUTIONS
from daedal.errors import DaedalError
from daedal.hw.config.core import Config

CONFIG = Config.preset("edge")
EMULATED = Machine(CONFIG, target="emulator", quick=True)


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
    row = single_layers.figures(stats(80), Machine(CONFIG, memory=memory_model))
    assert row["line_share"] == share
    assert row["main_stall"] == "port"
    assert row["stalls"] == {"load": 3, "port": 7}


@pytest.mark.parametrize(("memory_model", "share"), [("ideal", 0.55), ("ideal:latency=20,lines=0.5", 0.2),
                                                     ("litedram-ddr3-x16", None)])  # fmt: skip
def test_share_of_what_traffic_allows(memory_model: str, share: float | None) -> None:
    """40 lines, and four times the memory's latency, in 800 cycles."""
    row = {"cycles": 800, "lines_read": 30, "lines_written": 10}
    assert single_layers.allowed_share(row, 4, Machine(CONFIG, memory=memory_model)) == share
    assert single_layers.allowed_share({**row, "cycles": None}, 4, Machine(CONFIG, memory=memory_model)) is None


def test_useful_bytes_of_a_layer() -> None:
    """3 bags of 5 rows of 16 bytes, with an index of 4 bytes each, 3 offsets and 3 results; then weights; a gather."""
    layer = layers.Workload("x", "sum", 4, bags=3, pooling=5)
    assert layer.useful_bytes == 15 * (16 + 4) + 3 * (4 + 16)
    assert replace(layer, weighted=True).useful_bytes == layer.useful_bytes + 15 * 4
    assert replace(layer, mode="gather").useful_bytes == 15 * (16 + 16 + 4)
    assert layers.Tables("x", ((9, 4, 5), (9, 2, 1)), batch=3).useful_bytes == layer.useful_bytes + 3 * (8 + 4 + 4 + 8)
    row = {"cycles": 10, "useful_bytes": 80}
    assert single_layers.useful_share(row, Machine(CONFIG)) == 0.5
    assert single_layers.useful_share(row, Machine(CONFIG, memory="ideal:lines=2")) == 0.25
    assert single_layers.useful_share({**row, "cycles": None}, Machine(CONFIG)) is None


def lengths(*cycles: int) -> list[Row]:
    return [{"rows": 100 * 4**k, "cycles": cycle} for k, cycle in enumerate(cycles)]


def test_linear_cost() -> None:
    rows = linearity.compare(lengths(50 + 200, 50 + 800, 50 + 3200))
    assert [row["cycles_per_row"] for row in rows] == [2.0, 2.0, 2.0]
    assert all(row["start_up"] == 50 and row["outcome"].endswith("reached") for row in rows)


def test_cost_that_grows() -> None:
    rows = linearity.compare(lengths(50 + 200, 50 + 800, 50 + 3300))
    assert [row["outcome"].split()[-1] for row in rows] == ["missed", "missed", "reached"]
    assert rows[0]["deviation"] == pytest.approx(200 / 100 / (3300 / 1600) - 1)


def test_linearity_without_a_clock() -> None:
    assert all("not measured" in row["outcome"] for row in linearity.compare(lengths(0, 0, 0)))


def test_a_target_without_a_clock_has_no_share() -> None:
    row = single_layers.figures(stats(0), EMULATED)
    assert row["cycles"] is None
    assert row["line_share"] is None


def test_goals_in_words() -> None:
    assert against(0.95, 0.93) == "0.93: reached"
    assert against(0.92, 0.93) == "0.93: missed"
    assert against(None, 0.93) == "0.93: not measured"
    assert against(0.1, None) == ""


def test_workloads_are_the_same_every_time() -> None:
    for workload in layers.WORKLOADS:
        small = workload.smaller()
        (module, inputs), (again, same_inputs) = small.make(3), small.make(3)
        assert all(torch.equal(a, b) for a, b in zip(inputs, same_inputs, strict=True))
        assert inputs[0].dtype == torch.int32
        assert same_bits(module(*inputs), again(*inputs))


def test_a_smaller_workload_has_as_much_work_as_its_bounds_allow() -> None:
    wide = layers.Tables("wide", ((1000, 64, 10), (5, 4, 3)))
    assert wide.smaller() == replace(wide, shapes=((256, 32, 6), (5, 4, 3)), batch=4)


def rows_of(suite: str, **changes: Any) -> list[Row]:
    order = Order(((CONFIG, "ideal"),), quick=True, target="emulator")
    return list(registry.run(suite, replace(order, **changes), lambda text: None))


def test_layers_and_speed_on_the_emulator() -> None:
    rows = rows_of("layers")
    assert [row["workload"] for row in rows] == [w.name for w in layers.WORKLOADS]
    for row in rows:
        assert row["bit_exact"] is True and not is_broken(row)
        assert row["cycles"] is None
        assert row["lookups"] == row["bags"] * row["pooling"]
    for suite, count in (("speed", 2), ("overhead", 13)):
        found = rows_of(suite)
        assert all(row["value"] > 0 and row["bit_exact"] is True and not is_broken(row) for row in found)
        assert len(found) == count


def test_a_suite_leaves_pytorchs_threads_as_they_were() -> None:
    """The host beside a workload is measured with all of them."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        rows_of("layers")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("suite", "where"), [("layers", single_layers), ("speed", speed), ("levels", levels)])
def test_other_bits_than_pytorchs_are_an_error(suite: str, where: ModuleType, monkeypatch) -> None:
    monkeypatch.setattr(where, "same_bits", lambda ours, theirs: False)
    found = rows_of(suite)
    assert found and all(is_broken(row) and row["verdict"] == "NOT EQUAL to PyTorch" for row in found)


def test_a_layer_that_breaks_is_a_row(monkeypatch) -> None:
    def figures_of(*_: object) -> Row:
        raise DaedalError("it broke")

    monkeypatch.setattr(single_layers, "figures_of", figures_of)
    found = rows_of("layers")
    assert len(found) == len(layers.WORKLOADS)
    assert all(is_broken(row) and row["verdict"] == "DaedalError: it broke" for row in found)


def test_optimisation_levels_on_the_emulator() -> None:
    rows = rows_of("levels")
    assert [row["workload"] for row in rows] == [w.name for w in levels.WORKLOADS]
    assert all(row["bit_exact"] and row["compiled_at"] == [0, 1, 2, 3] for row in rows)
    assert all(row["o0"] is None and row["vectorise"] is None for row in rows)


def test_lengths_of_a_launch_on_the_emulator() -> None:
    rows = rows_of("linearity")
    assert [row["rows"] for row in rows] == list(linearity.QUICK)
    assert all(row["bit_exact"] and "not measured" in row["outcome"] for row in rows)


@pytest.mark.rtl
def test_launches_behind_one_another() -> None:
    rows = rows_of("launches", machines=((Config.preset("ddr3"), "ideal"),))
    assert [(row["workload"], row["dim"]) for row in rows] == [(w.name, w.dim) for w in launches.WORKLOADS]
    for row in rows:
        assert not is_broken(row) and row["outcome"] == "", "what is small has no goal"
        assert 0 < row["cycles_each"] < row["cycles_alone"] and 0 <= row["idle"] <= launches.WINDOW + launches.STEP


def test_steps_from_level_to_level() -> None:
    assert levels.steps([120, 30, 20, 10]) == {"vectorise": 4.0, "bufferise": 1.5, "align": 2.0}
    assert set(levels.steps([None] * 4).values()) == {None}


def test_systems_are_run_on_all_their_tiles() -> None:
    order = Order(((Config.preset("edge"), "ideal"),), quick=True, target="emulator", only=("rm2", "skew"))
    rows = list(systems.run(order, lambda what: None))
    assert [(row["workload"], row["tiles"]) for row in rows] == [("rm2", 1), ("rm2", 2), ("skew", 1), ("skew", 2)]
    assert all(row["bit_exact"] and not row["verdict"] and row["share"] is None for row in rows)
    assert rows[0]["predicted"] > rows[1]["predicted"]
    for row in rows:
        check_row(row)


def test_plans_are_tried_on_the_model() -> None:
    order = Order(((Config.preset("ddr3"), "litedram-ddr3-x16"),), quick=True, only=("skew",))
    rows = {row["workload"]: row for row in plans.run(order, lambda what: None)}
    assert list(rows) == ["skew, five distributions", "skew, Zipf", "26 tables", "100 tables", "1,000 tables"]
    spread = rows["skew, five distributions"]
    assert spread["value"] == max(spread["each"].values()) / min(spread["each"].values())
    assert all(1 <= row["value"] < 2 and row["target"] == "model" for row in rows.values())
    assert rows["1,000 tables"]["outcome"].endswith("reached (seconds)")
    tables = plans.drawn(40)
    assert tables == plans.drawn(40)
    assert {each.lookups // each.bags for each in tables} == {1, 5, 20, 80}


def test_fleets_by_name() -> None:
    assert systems.fleets_of(()) == tuple(FLEETS)
    with pytest.raises(ValueError, match=r"a fleet must be one of rm1, .*, not 'rm9'"):
        systems.fleets_of(("rm9",))


def test_bags_of_a_fleet_are_as_long_for_all_distributions() -> None:
    fleet, config = FLEETS["mixed100"].smaller(), Config.preset("ddr3")
    found = [fleet.make(name, 3, config)[1][0] for name in DISTRIBUTIONS]
    for inputs in found[1:]:
        assert all(torch.equal(one, other) for (_, one), (_, other) in zip(found[0], inputs, strict=True))
        assert not all(torch.equal(one, other) for (one, _), (other, _) in zip(found[0], inputs, strict=True))


def test_others_are_measured_predicted_or_published() -> None:
    order = Order(((Config.preset("ddr3"), "ideal"),), quick=True, host=False, only=("rm2",))
    rows = list(beside_others.run(order, lambda what: None))
    kinds = [row["kind"] for row in rows]
    assert kinds[0] == "predicted"
    assert kinds[1:] == ["published"] * len(PUBLISHED)
    assert rows[0]["lookups_per_s"] > 1e6
    assert 0 < rows[0]["nj_least"] < rows[0]["nj_most"]
    for row in rows:
        check_row(row)
    with pytest.raises(ValueError, match=r"a workload must be one of rm1, .*, not 'rm9'"):
        beside_others.names_of(("rm9",))


def test_published_figures_have_sources_and_no_share_above_one() -> None:
    for each in PUBLISHED:
        row = each.as_row()
        assert "arXiv" in row["note"] or "pull request" in row["note"]
        assert row["share"] is None or 0 < each.least <= each.most < 1
    (known,) = [each for each in PUBLISHED if each.bytes_per_s]
    assert known.bytes_per_s / known.lookups_per_s == pytest.approx(4 * 192, rel=0.02)
