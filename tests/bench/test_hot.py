"""The suite ``hot``: records from files and drawn ones, and rows of results."""

import gzip
from itertools import pairwise
from pathlib import Path

import pytest

from daedal.bench.suite import Machine, Order
from daedal.bench.suites import hot_rows
from daedal.bench.workloads.records import BAGS, CATEGORICAL, all_records, inputs_of, read_bags, read_fields
from daedal.bench.workloads.reuse_traces import DataError
from daedal.hw.config.core import Config


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_records_of_files(tmp_path: Path) -> None:
    fields = read_fields(_write(tmp_path / CATEGORICAL, "age,work,sex\n44,x,f\n20,,m\n44,y,m\n"))
    assert fields.rows == (2, 3, 2) and len(fields) == 3 and fields.source == "data"
    assert [tensor.tolist() for tensor in fields[1]] == [[0], [0], [1]]
    words = fields.without_numbers()
    assert words.rows == (3, 2) and [tensor.tolist() for tensor in words[2]] == [[2], [1]]
    bags = read_bags(_write(tmp_path / BAGS, "0 5 7\n1\n2 7\n"))
    assert bags.rows == (8,) and [bag.tolist() for (bag,) in (bags[0], bags[1], bags[2])] == [[5, 7], [], [7]]
    rows, offsets = inputs_of([bags[0], bags[1], bags[2]])
    assert rows.tolist() == [5, 7, 7] and offsets.tolist() == [0, 2, 2]
    named = list(all_records(tmp_path, 1, quick=True))
    assert [(each.name, each.source) for each in named] == [
        ("fields", "data"), ("fields of words", "data"), ("bags", "data")
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "a,b\n", "a,b\n1\n"])
def test_files_that_have_no_records(text: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="take it out of the data folder or replace it"):
        read_fields(_write(tmp_path / CATEGORICAL, text))


@pytest.mark.parametrize("text", ["0 x\n", "0 -1\n", "0\n", f"0 {1 << 24}\n"])
def test_files_that_have_no_bags(text: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must have bags"):
        read_bags(_write(tmp_path / BAGS, text))


def test_rows_of_the_suite() -> None:
    rows = list(hot_rows.run(Order(((Config.preset("edge"), "ideal"),), quick=True), lambda _: None))
    assert len(rows) == 9 and all(row["bit_exact"] and row["source"] == "drawn" for row in rows)
    for first, second in pairwise(rows):
        if first["workload"] == second["workload"]:
            assert first["lookups"] <= second["lookups"] and first["lines_saved"] <= second["lines_saved"]
    assert any(0 < row["hot_batches"] < 1 for row in rows)


def test_all_hot_rows_save_the_lines_of_all_rows() -> None:
    records = next(iter(all_records(None, 1, quick=True)))
    row = hot_rows.measure(records, 1.0, Machine(Config.preset("edge")))
    lines = row["lines_saved"] / row["lookups"]  # of one look-up, as a share of all
    assert 0.5 < row["lookups"] <= 1 and 0 < lines < 1
