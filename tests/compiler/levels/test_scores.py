"""``emb.score``: the same bits at every level, in the interpreter and on the machine."""

from typing import Any

import numpy as np
import pytest

import daedal
from daedal.compiler.dialects.emb_score import rows_of
from daedal.compiler.interpreters import interpret
from daedal.compiler.operation_compiler import compiler_for
from daedal.runtime.operations import Score
from tests.compiler.kernels.kernel_support import floats
from tests.compiler.layers.compiler_support import device, run

__all__ = ["device"]

SCORES = {
    "product": Score("sum", "0.0 1.1 mul", 20, 2, (64, 32)),
    "negatives": Score("mean", "0.0 1.1 mul", 64, 2, (64, 64), 1),
    "three lists": Score("sum", "0.0 1.1 add 0.2 sub abs", 60, 2, (32, 64, 64)),
    "two outer ones": Score("squares", "0.0 1.1 add 0.2 sub", 33, 2, (64, 64, 64), 2),
    "one list": Score("sum", "0.0 1.0 mul neg =0.5 add", 7, 2, (64,)),
}


@pytest.mark.parametrize("opt", [0, 2, 3])
@pytest.mark.parametrize("name", SCORES)
def test_levels_agree(device: daedal.Device, name: str, opt: int, rng: np.random.Generator) -> None:
    score, length, outer = SCORES[name], 3, 5
    entries = outer * (length if score.outer else 1)
    kernel = compiler_for(device.config, "fatal", opt)(score, False)
    buffers: dict[str, Any] = {f"table{n or ''}": floats(rng, 9 + n, score.width) for n in range(score.tables)}
    for number, bits in enumerate(score.index_bits):
        count = outer if number < score.outer else entries
        buffers[f"indices{number or ''}"] = rng.integers(0, 9, count).astype(f"int{bits}")
    wanted = interpret(kernel.ir("emb"), buffers, {"length": length})["out"]
    on_machine = run(device, kernel, values={"length": length}, **buffers, out=(entries,))
    assert np.array_equal(on_machine.view(np.int32), wanted.view(np.int32))
    for level in ("scf", "slc", "slcv", "dlc"):
        given = {**buffers, "out": np.zeros(entries, np.float32)}
        found = interpret(kernel.ir(level), given, {"length": length})["out"]
        assert np.array_equal(found.view(np.int32), wanted.view(np.int32)), level


@pytest.mark.parametrize("bad", ["0.0 mul", "0.0 1.1", "", "0.x", "0.0 power"])
def test_expressions_that_are_none(bad: str) -> None:
    with pytest.raises(ValueError, match=r"operands|one row|invalid literal"):
        rows_of(bad)


def test_the_level_checks_indices(device: daedal.Device, rng: np.random.Generator) -> None:
    text = compiler_for(device.config, "fatal", 3)(SCORES["one list"], False).ir("emb")
    tables = {"table": floats(rng, 9, 7), "table1": floats(rng, 8, 7)}
    with pytest.raises(daedal.IndexOutOfRange, match="index 8 at 1 must be from 0 to 7"):
        interpret(text, {**tables, "indices": np.array([0, 8])}, {"length": 1})
