"""The hand-written programs on the emulator and on the RTL, against NumPy bit for bit; their suite of the bench."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import daedal
from bench import __main__ as command
from bench.handwritten import operations, suite
from bench.handwritten.arithmetic import fused, tree
from bench.handwritten.operations import OPERATIONS, SMALL, Operation
from daedal.errors import IndexOutOfRange
from daedal.hw.isa.execute import VectorOp
from tests.unit.execute_unit import model

OPENED = ["emulator", pytest.param("verilator", marks=(pytest.mark.rtl, pytest.mark.slow))]
SIZES = [SMALL, replace(SMALL, outputs=9, pooling=17, rows=64)]


@pytest.fixture(params=OPENED, scope="module")
def device(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    with daedal.Device.open(request.param, config="ddr3", memory="ideal:stall=0.1,seed=3") as opened:
        yield opened


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.programs[0])
@pytest.mark.parametrize("size", SIZES, ids=["small", "larger"])
def test_same_bits_as_numpy(device: daedal.Device, operation: Operation, size, rng: np.random.Generator) -> None:
    case = operation.make(rng, size)
    result, _ = operations.run(device, case)
    assert result.view(np.uint32).tolist() == case.expected.view(np.uint32).tolist()


def test_a_bad_index_is_reported(device: daedal.Device, rng: np.random.Generator) -> None:
    """Each index is checked, also the third one of a triple; the device works on."""
    case = operations.distmult(rng, SMALL)
    for name, limit in (("heads", SMALL.rows), ("kinds", SMALL.relations), ("tails", SMALL.rows)):
        good = case.data[name][3]
        case.data[name][3] = limit
        with pytest.raises(IndexOutOfRange, match=str(limit)):
            operations.run(device, case)
        case.data[name][3] = good
    result, _ = operations.run(device, case)
    assert result.view(np.uint32).tolist() == case.expected.view(np.uint32).tolist()


def test_arithmetic_is_that_of_the_machine(rng: np.random.Generator) -> None:
    a, b, c = rng.standard_normal((3, 4000)).astype(np.float32)
    c[::2] = -a[::2] * b[::2]
    assert fused(a, b, c).view(np.uint32).tolist() == model.fma(*(x.view(np.uint32) for x in (a, b, c))).tolist()
    rows = rng.standard_normal((20, 64)).astype(np.float32)
    wanted = [model.reduce(VectorOp.ADD, row.view(np.uint32), None) for row in rows]
    assert tree(rows).view(np.uint32).tolist() == wanted


def test_the_mean_is_of_what_has_both() -> None:
    assert suite.mean([{"ratio": 2.0}, {"ratio": None}, {"ratio": 8.0}])["ratio"] == pytest.approx(4.0)
    assert suite.mean([{"ratio": None}])["ratio"] is None


def test_suite_on_the_emulator(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    arguments = ["handwritten", "--quick", "--target", "emulator", "--json", str(file)]
    result = CliRunner().invoke(command.main, arguments)
    assert result.exit_code == 0, result.output
    *rows, mean = json.loads(file.read_text())["results"]["handwritten"]
    assert [row["operation"] for row in rows] == [operation.name for operation in OPERATIONS]
    assert mean["operation"] == suite.MEAN
    for row in rows:
        assert row["bit_exact"] is True
        assert row["handwritten_cycles"] is None
        assert row["handwritten_lines"] >= row["lines"]
