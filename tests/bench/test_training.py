"""The suite ``training``: each kernel's result, and rows of results."""

import json
from pathlib import Path

import numpy as np
import pytest

from daedal.bench.suite import Machine, Order
from daedal.bench.suites import training
from daedal.bench.suites.training import STEPS, Batch
from daedal.hw.config.core import Config

RESULTS = json.loads((Path(__file__).parents[2] / "bench/results/training.json").read_text())

MACHINE = Machine(Config.preset("ddr3"), target="emulator", quick=True, seed=7)


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_compared(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = training.measure(name, MACHINE, None)
    assert row["bit_exact"] and not row["verdict"] and 0 < row["table_rows"] < row["samples"]
    assert row["cycles"] is None and row["cycles_per_row"] is None and not row["outcome"]
    make = STEPS[name]

    def changed(batch: Batch) -> training.Step:
        step = make(batch)
        step.expected.view(np.uint32)[0, 3] ^= 1
        return step

    monkeypatch.setitem(STEPS, name, changed)
    row = training.measure(name, MACHINE, None)
    assert not row["bit_exact"] and row["verdict"]


def test_the_model_predicts_the_cycles_that_are_landed() -> None:
    """Of the simulated machine, with reductions of eight partial results. It takes loads of short loops for slower than
    they are, by up to 7 %.
    """
    landed = {row["workload"]: row["cycles"] for row in RESULTS["results"]["training"] if row["memory"] == "ideal"}
    order = Order(((Config.preset("ddr3"), "ideal"),), host=False, target="model")
    for row in training.run(order, lambda _: None):
        assert row["cycles"] == pytest.approx(landed[row["workload"]], rel=0.08), row["workload"]


def test_rows_have_cycles_and_goals() -> None:
    order = Order(((Config.preset("ddr3"), "ideal"),), host=False, target="model")
    rows = {row["workload"]: row for row in training.run(order, lambda _: None)}
    assert list(rows) == list(STEPS) and all(row["bit_exact"] and row["cycles"] for row in rows.values())
    assert "0.97: " in rows["gradient of sums"]["outcome"]
    for name in ("EXACT_ROWWISE_ADAGRAD", "EXACT_ROWWISE_ADAGRAD, undoable"):
        assert rows[name]["outcome"] == "at most 140: reached"
    for name in ("sparse SGD", "EXACT_SGD", "EXACT_ROWWISE_ADAGRAD"):  # what is kept is stored, and so takes time
        assert rows[name]["cycles"] < rows[f"{name}, undoable"]["cycles"] < 1.4 * rows[name]["cycles"]
