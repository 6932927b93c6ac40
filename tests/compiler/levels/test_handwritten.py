"""The hand-written programs on the emulator and on the RTL, against NumPy bit for bit; their suite of the bench."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import daedal
from daedal.bench import registry
from daedal.bench.handwritten import comparison, operations
from daedal.bench.handwritten.operations import OPERATIONS, SMALL, Operation
from daedal.bench.suite import Order, is_broken
from daedal.driver.launch.record import Stats
from daedal.errors import IndexOutOfRange
from daedal.hw.config.core import Config

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


def test_what_several_launches_did_is_added_up(device: daedal.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    with device.arena() as arena:
        session = operations.Session(device, arena)
    stats = {number: SimpleNamespace(stats=Stats(cycles=number, launches=1)) for number in (1, 20, 300)}
    monkeypatch.setattr(session, "_launches", list(stats))
    monkeypatch.setattr(device, "finish", stats.__getitem__)
    assert session.finish() == Stats(cycles=321, launches=3)


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


def test_the_mean_is_of_what_has_both() -> None:
    assert comparison.mean([{"ratio": 2.0}, {"ratio": None}, {"ratio": 8.0}])["ratio"] == pytest.approx(4.0)
    assert comparison.mean([{"ratio": None}])["ratio"] is None


def test_suite_on_the_emulator() -> None:
    order = Order(((Config.preset("ddr3"), "ideal"),), quick=True, target="emulator")
    *rows, mean = registry.run("handwritten", order, lambda text: None)
    assert [row["workload"] for row in rows] == [operation.name for operation in OPERATIONS]
    assert (mean["workload"], mean["outcome"]) == (comparison.MEAN, "of 0 operations")
    for row in rows:
        assert row["bit_exact"] is True and not is_broken(row)
        assert row["handwritten_cycles"] is None
        assert row["handwritten_lines"] >= row["lines"]


def test_other_bits_than_numpys_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "OPERATIONS", OPERATIONS[:1])
    monkeypatch.setattr(comparison, "_same_bits", lambda ours, theirs: False)
    order = Order(((Config.preset("ddr3"), "ideal"),), quick=True, target="emulator")
    row, _ = registry.run("handwritten", order, lambda text: None)
    assert is_broken(row) and row["verdict"] == "handwritten: NOT EQUAL to NumPy; compiled: NOT EQUAL to NumPy"
