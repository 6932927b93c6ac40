"""Files whose values cannot be: each reader names the file, the value and what it may be."""

from pathlib import Path

import numpy as np
import pytest

import daedal
from bench.synthesis import history
from daedal.base.messages import one_line_of
from daedal.bench.report import document
from daedal.compiler.interpreters import interpret
from daedal.driver.targets.description import read_description
from daedal.errors import FileError, InvalidConfig
from daedal.hw.config.core import Config
from daedal.hw.config.file import read_config
from tests.fuzz.campaign import read_cases
from tests.fuzz.configs import KNOWN

CONFIGS = [
    (f"ports = 0x{'f' * 5000}", r"ports must be from 1 to 16, not 0xfff"),
    (f"alus = [0x{'f' * 5000}]", "alus must have 4 entries"), (f"base = 0x{'f' * 5000}", "base must be one of"),
    (f"ports = {'[' * 400}{']' * 400}", "ports must be from 1 to 16"), ("ports = nan", "not nan"),
    ('"\\u0000" = 1', "a field must be one of"), ("a.b.c = 1", "not 'a'"),
    ("levels = 99999999999", "levels must be from 1 to 6"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), CONFIGS, ids=range(len(CONFIGS)))
def test_configurations_of_hostile_values(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(InvalidConfig, match=message) as caught:
        read_config(tmp_path / "x.toml")
    assert len(one_line_of(str(caught.value))) < 1600


READERS = {
    "facts": (document.load, '{"schema": 1, "results": {}}', "facts must be a table, not None"),
    "results' schema": (document.load, '{"schema": 2}', "must be a result of `daedal bench` with schema 1"),
    "no results": (document.load, '{"schema": 1, "results": []}', "must be a result of `daedal bench` with schema 1"),
    "rows": (document.load, '{"schema": 1, "facts": {}, "results": {"a": 3}}', "must be a result of `daedal bench`"),
    "history": (history.read, "[]", "must have schema 1, not"),
    "landings": (
        history.read,
        '{"schema": 1, "landings": [{"config": "a", "units": {"x": {"lut": "5"}}}]}',
        "must have",
    ),
    "history of huge numbers": (
        history.read,
        f'{{"schema": 1, "landings": [{{"config": "a", "units": {{"x": {{"lut": {"9" * 390}}}}}}}]}}',
        "must have landings",
    ),
    "kept program": (
        lambda path: read_cases(path, KNOWN),
        "; config moon\n",
        "must be a kept program: a configuration",
    ),
    "kept word": (lambda path: read_cases(path, KNOWN), f"raw {'9' * 5000}\nlength\nend\n", "a number must be from 0"),
    "nothing kept": (lambda path: read_cases(path, KNOWN), "", "a program must have at least 3 words"),
    "board": (lambda path: read_description(str(path)), '{"design": 1}', "which lacks 'board'"),
}


@pytest.mark.parametrize("case", READERS)
def test_files_of_another_form(case: str, tmp_path: Path) -> None:
    read, text, message = READERS[case]
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


ROW = {"workload": "a", "distribution": "zipf", "memory": "ideal", "config": "ddr3", "placement": 0,
       "cycles": 5, "stalls": {"load": 1},
       "flops": 4, "lines_read": 1, "lines_written": 0, "bit_exact": True}  # fmt: skip
WRONG_ROWS = [
    ({"workload": None}, "a row must have workload"), ({"memory": "ideal:latency=x"}, "memory of a row must be"),
    ({"cycles": "5"}, "cycles of a row must be a whole number that is not negative, not '5'"),
    ({"cycles": -1}, "not -1"), ({"cycles": True}, "not True"), ({"cycles": 0}, "a row with stalls must have cycles"),
    ({"stalls": [1]}, "stalls of a row must be a table"), ({"stalls": {"load": 1.5}}, "stalls of a row"),
    ({"lines_read": None}, "a row with flops must have lines_read"),
    ({"lines_read": 0}, "a row with flops must have lines_read or lines_written, not 0 of both"),
    ({"limit_share": "1"}, "limit_share of a row must be a number"), ({"row_share": 1e300}, "row_share of a row"),
    ({"bit_exact": 1}, "bit_exact of a row must be true or false"), ({"placement": "x"}, "placement of a row"),
    ({"workload": "a\0"}, "workload of a row must be a text"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), WRONG_ROWS, ids=range(len(WRONG_ROWS)))
def test_rows_that_no_table_can_show(change: dict[str, object], message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    about = document.facts([(Config(), "ideal")], seed=1, placements=1, quick=True)
    for row, right in ((ROW, True), ({**ROW, **change}, False)):
        document.save(path, about, {"rm1": [row]})
        if right:
            assert document.load(path)["results"]["rm1"] == [row]
            continue
        with pytest.raises(FileError, match=message):
            document.load(path)


NUMBERS = {"dimension": ("c0", "255"), "huge dimension": ("c0", "18446744073709551616"), "no step": ("c1", "0")}


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_that_an_operation_cannot_have(case: str) -> None:
    name, number = NUMBERS[case]
    values = {"c0": "0", "c1": "1"} | {name: number}
    text = f"""
func.func @f(%out: memref<?xf32>) {{
  %c0 = arith.constant {values["c0"]} : index
  %c1 = arith.constant {values["c1"]} : index
  %n = memref.dim %out, %c0 : memref<?xf32>
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {{
    memref.store %zero, %out[%i] : memref<?xf32>
  }}
  func.return
}}"""
    with pytest.raises(daedal.UnsupportedOperation, match="the text cannot be"):
        interpret(text, {"out": np.ones(3, np.float32)})
