"""The suite ``shapes``: what shapes need, what is wanted of them, and runs on the emulator and on small RTL."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from daedal.bench import registry
from daedal.bench.limit import lines_of, needed_bursts
from daedal.bench.suite import Machine, Order, Row, is_broken
from daedal.bench.suites import shape_goals, shapes
from daedal.bench.suites.shape_goals import goals_of
from daedal.bench.workloads import shape_list
from daedal.bench.workloads.shape_list import bag, gather
from daedal.bench.workloads.shapes import LONG_LINES, MODES, Shape, Table, passes
from daedal.cli import cli
from daedal.cosim.harness_library import BURST, WRITE_PORT
from daedal.driver.tables.table_store import Table as Resident
from daedal.errors import DaedalError
from daedal.hw.config.core import Config
from daedal.hw.isa.address_mapping import in_class

DDR3, WIDE, EDGE = (Config.preset(name) for name in ("ddr3", "wide", "edge"))


def rows_of(**changes: Any) -> list[Row]:
    order = Order(((EDGE, "ideal"),), quick=True, target="emulator")
    return list(registry.run("shapes", replace(order, **changes), lambda text: None))


def made(shape: Shape) -> Any:
    return shape.make(1)


@pytest.mark.parametrize(("dim", "ceiling"), [(5, 0.70), (9, 0.786), (17, 0.864)])
def test_the_ceiling_of_widths_that_do_not_end_with_a_line(dim: int, ceiling: float) -> None:
    found = made(replace(bag("x", "sum", dim, 1000), batch=1))
    assert found.useful_bytes / (found.needed_lines(DDR3) * 16) == pytest.approx(ceiling, abs=2e-3)


def test_what_a_shape_needs() -> None:
    """3 bags of 5 rows of 20 bytes: 2 lines each, 120 bytes of indices, 24 of offsets, 60 of weights and of results."""
    found = made(replace(bag("x", "weighted", 5, 5), batch=3))
    assert found.lookups == 15 and found.row_lines(DDR3) == 30
    assert found.needed_lines(DDR3) == 30 + 8 + 2 + 4 + 4
    assert found.useful_bytes == 15 * 20 + 120 + 24 + 60 + 60
    assert made(replace(found.shape, index_bytes=4)).needed_lines(DDR3) == 30 + 4 + 1 + 4 + 4
    rows = made(replace(gather("x", 5), batch=3))
    assert rows.needed_lines(DDR3) == 6 + 2 + 4 and rows.lane_cycles(DDR3) == 0


def test_lines_of_a_result_of_several_tables() -> None:
    """Rows of 12 + 20 bytes, two lines each: the first table's parts touch one, the second one's two. Rows of 28 + 8:
    the parts touch 2, 2, 3 and 3 lines, one of them twice, and 2, 1, 1, 1.
    """
    tables = (Table(9, 3), Table(9, 5))
    assert made(Shape("x", "x", "sum", tables, batch=4)).result_lines(DDR3) == 4 + 8
    tables = (Table(9, 7), Table(9, 2))
    assert made(Shape("x", "x", "sum", tables, batch=4)).result_lines(DDR3) == 9 + 5
    assert made(Shape("x", "x", "sum", (Table(9, 1),), batch=9)).result_lines(DDR3) == 3


def test_beats_of_the_lanes() -> None:
    assert [passes(n) for n in (0, 1, 2, 3, 4, 5, 8, 4095, 4096, 4097, 8192)] == [0, 0, 1, 2, 1, 2, 1, 2, 1, 3, 1]
    for rows, beats in ((1, 16), (3, 80), (4, 80), (5, 112)):
        assert made(replace(bag("x", "mean", 64, rows), batch=2)).lane_cycles(DDR3) == 2 * beats
    assert made(replace(bag("x", "sum", 64, 3), batch=2)).lane_cycles(DDR3) == 2 * 48
    assert made(replace(bag("x", "mean", 64, 5), batch=2)).lane_cycles(WIDE) == 2 * 28


@pytest.mark.parametrize("config", [DDR3, WIDE])
def test_a_launch_is_long_enough_for_its_start_not_to_count(config: Config) -> None:
    for shape in shape_list.shapes():
        sized = shape.sized(config)
        assert sized.batch and (sized == shape or not shape.batch)
        if not shape.batch and shape.group not in (shape_list.START, shape_list.WIDE):
            small = replace(sized, tables=tuple(Table(min(t.rows, 100), t.dim) for t in sized.tables))
            assert made(small).needed_lines(config) == pytest.approx(LONG_LINES, rel=0.02)


def test_names_are_of_one_shape_each() -> None:
    names = [shape.name for shape in shape_list.shapes()]
    assert len(set(names)) == len(names) > 80


def goals(shape: Shape, config: Config = DDR3, memory: str = "ideal") -> dict[str, float]:
    return {goal.figure: goal.value for goal in goals_of(shape.sized(config), config, memory)}


def test_goals_by_class() -> None:
    assert goals(bag("x", "mean", 64, 3)) == goals(bag("x", "mean", 16, 17)) == {"bound_share": 0.95}
    assert goals(bag("x", "mean", 64, 1)) == {"of_sum": 1.03}
    assert goals(bag("x", "mean", 4, 1)) == {"of_sum": 1.03, "need_share": 0.80}
    assert goals(bag("x", "mean", 16, 3)) == {"need_share": 0.80, "bound_share": 0.95}
    assert goals(bag("x", "max", 16, 3)) == goals(bag("x", "sum", 1, 1)) == {"need_share": 0.80}
    assert goals(bag("x", "sum", 4, 20, rows=7)) == goals(gather("x", 64, 3)) == {"need_share": 0.80}
    assert goals(bag("x", "sum", 5, 20)) == goals(gather("x", 17)) == {"need_share": 0.95}
    tables = (Table(3, 5), Table(1000, 16))
    mixed = replace(bag("x", "sum", 5, 20), tables=tables)
    for ordinary in (bag("x", "sum", 64, 20), gather("x", 16), bag("x", "mean", 4, 17), mixed):
        assert goals(ordinary) == {"bound_share": 0.80}
    assert goals(replace(mixed, batch=8)) == goals(bag("x", "sum", 4, 9000, batch=1)) == {}


def test_goals_of_starts() -> None:
    one = bag("x", "sum", 64, 1, batch=1)
    assert [goals(one, memory=f"ideal:latency={m}")["cycles"] for m in (20, 100, 400)] == [340, 740, 2240]
    many = Shape("x", "x", "sum", (Table(1000, 16),) * 26, batch=1)
    assert goals(many)["cycles"] == pytest.approx(1200)
    assert goals(many, memory="ideal:latency=20") == goals(one, memory="litedram-ddr3-x16") == {}


def test_goals_of_wide_memory() -> None:
    x64 = "litedram-ddr3-x64"
    assert goals(bag("x", "sum", 16, 1), WIDE, x64) == {"limit_share": 0.85}
    assert goals(bag("x", "sum", 16, 1), WIDE) == {}
    assert goals(bag("x", "mean", 64, 20), WIDE, x64) == {"bound_share": 0.85}
    kaggle = next(shape for shape in shape_list.shapes() if shape.name == "wide: kaggle")
    assert goals(kaggle, WIDE, x64) == {"limit_share": 0.90}


def test_goals_in_words() -> None:
    goal = shape_goals.Goal("cycles", 740.0, most=True)
    assert goal.text({"cycles": 740}) == "cycles at most 740: reached"
    assert goal.text({"cycles": 741}) == "cycles at most 740: missed"
    assert shape_goals.Goal("need_share", 0.8).text({"need_share": None}) == "need 0.80: not measured"
    assert shape_goals.Goal("need_share", 0.8).is_reached({"need_share": 0.8}) is True


def test_bursts_that_a_launch_needs() -> None:
    block, line = DDR3.superblock_bytes, 16
    table = Resident(in_class(block, 1, DDR3), 3, 16, 64, "float32")
    bursts = np.array(
        [
            (0, 0, 3, 0),  # indices
            (1, block, 1, 1),
            (2, 2 * line, 2, 0),  # one of them again, and the next
            (3, block, 1, 2),  # a row twice
            (4, 2 * line, 1, WRITE_PORT),  # what was read is written
            (5, 5 * line, 1, 0),
        ],
        BURST,
    )
    found = needed_bursts(bursts, [table], DDR3)
    assert lines_of(found) == (7, 1)
    assert found["address"].tolist() == [0, 16, 32, block, 48, block, 32, 80]


@pytest.mark.parametrize(("distinct", "cycles", "asked"), [(198, 600 * 100 / 198, [198]), (200, 550 * 100 / 201, [])])
def test_lines_that_are_read_again_do_not_count(
    distinct: int, cycles: float, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """201 lines, of which so many differ and 100 are needed: limits of 550 cycles for all and of 600 without."""
    calls = []

    def limit_of(bursts: Any, memory: str) -> Any:
        calls.append(len(bursts))
        return SimpleNamespace(cycles=600)

    monkeypatch.setattr(shapes, "limit_of", limit_of)
    monkeypatch.setattr(shapes.MadeShape, "needed_lines", lambda self, config: 100)
    bursts = np.array([(n, 16 * (n % distinct), 1, 0) for n in range(201)], BURST)
    some = made(replace(gather("x", 4), batch=9))
    found = shapes.needed_cycles(bursts, [], some, Machine(DDR3, "litedram-ddr3-x16"), 550)
    assert found == pytest.approx(cycles) and calls == asked
    assert shapes.needed_cycles(bursts, [], some, Machine(DDR3), 550) == 100


def test_random_shapes_are_the_same_for_a_seed() -> None:
    first, again, other = (list(shape_list.drawn(200, seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert {shape.mode for shape in first} == set(MODES) and len({shape.name for shape in first}) == 200
    assert {shape.index_bytes for shape in first} == {4, 8}
    assert all(table.rows >= 2 for shape in first for table in shape.tables)
    assert all(shape.mode != "gather" or shape.pooling == (1, 1) for shape in first)


def test_shapes_on_the_emulator() -> None:
    rows = rows_of(only=("mean D ?6 *", "short", "tiny", "odd", "start"))
    assert len(rows) > 40 and not any(map(is_broken, rows))
    assert all(row["bit_exact"] is True and row["cycles"] is None for row in rows)


def test_random_shapes_on_the_emulator() -> None:
    rows = rows_of(drawn=20, seed=3)
    assert len(rows) == 20 and not any(map(is_broken, rows))


def test_other_bits_and_missing_rows_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "first_difference", lambda ours, theirs: "element [0]")
    (row,) = rows_of(only=("gather D 5",))
    assert is_broken(row) and row["verdict"] == "not PyTorch's: element [0]"
    monkeypatch.undo()
    monkeypatch.setattr(shapes.MadeShape, "rows", lambda self, config: 5)
    (row,) = rows_of(only=("gather D 5",))
    assert is_broken(row) and row["verdict"].endswith("rows were read for 5 that are to be")


def test_a_shape_that_breaks_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Row:
        raise DaedalError("it broke")

    monkeypatch.setattr(shapes, "_figures", broken)
    (row,) = rows_of(only=("one bag of *",))
    assert is_broken(row) and row["verdict"] == "DaedalError: it broke"


def test_which_machine_measures_what() -> None:
    start, means, wide = (bag(group, "sum", 64, 1, batch=n) for group, n in (("start", 1), ("means", 0), ("wide", 0)))
    narrow, far, broad = (
        Machine(c, m) for c, m in ((DDR3, "ideal"), (DDR3, "ideal:latency=20"), (WIDE, "litedram-ddr3-x64"))
    )
    assert [shapes.is_for(start, machine) for machine in (narrow, far, broad)] == [True, True, False]
    assert [shapes.is_for(means, machine) for machine in (narrow, far, broad)] == [True, False, False]
    assert [shapes.is_for(wide, machine) for machine in (narrow, far, broad)] == [False, False, True]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["shapes", "--only", "nonsense"], "or be one of means, short"),
        (["rm2", "--only", "means"], "are for the suites shapes and model"),
        (["--random", "3"], "are for the suites shapes and model"),
        (["shapes", "--random", "-1"], "not in the range"),
    ],
)
def test_wrong_usage(words: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, ["bench", *words])
    assert result.exit_code == 2 and message in " ".join(result.output.split())


@pytest.mark.rtl
def test_a_shape_on_the_rtl() -> None:
    torch.set_num_threads(1)
    shape = replace(bag("x", "mean", 5, 3), batch=40)
    row = shapes.measure(shape, Machine(Config.preset("minimum")))
    assert not is_broken(row) and row["cycles"] > row["lines_needed"]
    assert row["need_share"] == pytest.approx(row["useful_share"] / row["useful_ceiling"])
    assert 0 < row["need_share"] <= row["limit_share"] <= row["bound_share"] <= 1
    assert row["row_lines"] <= row["lines_read"]
