"""Two loops in the body of a loop, of which the second needs what the first computes: one nest, gone through twice."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import daedal
from daedal import f32, i64
from daedal.compiler.frontends.python.function import KernelFunction
from daedal.compiler.interpreters import interpret
from daedal.compiler.opt_levels import OPT_LEVELS
from tests.compiler.kernels.kernel_support import check, copied, floats, offsets, same_bits
from tests.compiler.layers.compiler_support import ddr3

__all__ = ["ddr3"]

Q, D, N, P = daedal.dims("Q D N P")


@daedal.kernel
def attention(out: f32[Q, D], queries: f32[Q, D], keys: f32[N, D], off: i64[Q + 1], col: i64[P], scale: f32):
    """Loads and checks that both loops have, and no exponential, whose bits NumPy has not."""
    for q in range(Q):
        most = -1e30
        for p in range(off[q], off[q + 1]):
            most = max(most, scale * daedal.dot(keys[col[p], :], queries[q, :]))
        acc = daedal.zeros(D)
        for e in range(off[q], off[q + 1]):
            weight = scale * daedal.dot(keys[col[e], :], queries[q, :]) - most
            for d in range(D):
                acc[d] += weight * queries[q, d]
        for d in range(D):
            out[q, d] += acc[d]


@daedal.kernel
def centred(out: f32[Q], x: f32[P], off: i64[Q + 1]):
    """A number of between the loops is used in the second one and behind it."""
    for q in range(Q):
        total = 0.0
        for p in range(off[q], off[q + 1]):
            total += x[p]
        third = total * 0.25
        spread = 0.0
        for e in range(off[q], off[q + 1]):
            spread += (x[e] - third) * (x[e] - third)
        out[q] = spread + third


@daedal.kernel
def between(out: f32[Q], x: f32[P], off: i64[Q + 1]):
    """What the first loop computes is changed between the loops."""
    for q in range(Q):
        most = 0.0
        for p in range(off[q], off[q + 1]):
            most = max(most, x[p])
        most = most * 2.0
        for e in range(off[q], off[q + 1]):
            most += x[e]
        out[q] = most


@daedal.kernel
def softmax_head(out: f32[Q, D], queries: f32[Q, D], keys: f32[N, D], values: f32[N, D], scale: f32):
    """An attention head: all keys for each query."""
    for q in range(Q):
        most = -1e30
        for k in range(N):
            most = max(most, scale * daedal.dot(queries[q, :], keys[k, :]))
        total = 0.0
        acc = daedal.zeros(D)
        for k in range(N):
            weight = daedal.exp(scale * daedal.dot(queries[q, :], keys[k, :]) - most)
            total += weight
            for d in range(D):
                acc[d] += weight * values[k, d]
        inverse = 1.0 / total
        for d in range(D):
            out[q, d] = acc[d] * inverse


KERNELS: tuple[KernelFunction, ...] = (attention, centred, between)


def arguments(kernel: KernelFunction, rng: np.random.Generator) -> list[Any]:
    off = offsets(rng, 6, 19)
    if kernel is attention:
        return [floats(rng, 6, 24), floats(rng, 6, 24), floats(rng, 9, 24), off, rng.integers(0, 9, 19), 0.5]
    return [floats(rng, 6), floats(rng, 19), off]


@pytest.mark.parametrize("opt", OPT_LEVELS)
@pytest.mark.parametrize("kernel", [centred, between], ids=lambda kernel: kernel.name)
def test_as_python(ddr3: daedal.Device, kernel: KernelFunction, opt: int, rng: np.random.Generator) -> None:
    check(ddr3, kernel, *arguments(kernel, rng), opt=opt)


@pytest.mark.parametrize("opt", [0, 3])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_levels_agree(ddr3: daedal.Device, kernel: KernelFunction, opt: int, rng: np.random.Generator) -> None:
    """The first one has the loops as they were written, and sums along rows in the machine's order."""
    given = arguments(kernel, rng)
    executable = daedal.compile(kernel, given, device=ddr3, opt=opt)
    buffers = {name: each for name, each in zip(kernel.signature.arguments, given, strict=True) if np.ndim(each)}
    wanted = copied(given)
    executable(*wanted)
    for level in ("scf", "slc", "slcv", "dlc"):
        found = interpret(executable.ir(level), buffers, {"scale": 0.5})["out"]
        assert same_bits(found, wanted[0]), level


def head_arguments(rng: np.random.Generator) -> list[Any]:
    queries, keys, values = (rng.standard_normal((rows, 32)).astype(np.float32) for rows in (5, 17, 17))
    return [np.zeros((5, 32), np.float32), queries * 20, keys, values, 0.5]  # exp(most) is no f32


def check_head(device: daedal.Device, given: list[Any]) -> None:
    executable = daedal.compile(softmax_head, given, device=device)
    executable(*given)
    out, queries, keys, values, scale = given
    scores = scale * (queries.astype(float) @ keys.T)
    assert scores.max() > 100
    weights = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(out, weights @ values / weights.sum(1, keepdims=True), rtol=1e-3, atol=1e-4)
    assert executable.stats.launches == 1


def test_an_attention_head(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    check_head(ddr3, head_arguments(rng))


@pytest.mark.rtl
@pytest.mark.slow
def test_on_the_rtl(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    given = head_arguments(rng)
    on_emulator = copied(given)
    check_head(ddr3, on_emulator)
    with daedal.Device.open("verilator", config="ddr3", memory="ideal:stall=0.1,seed=2") as rtl:
        for kernel in (centred, between):
            check(rtl, kernel, *arguments(kernel, rng))
        check_head(rtl, given)
    assert same_bits(given[0], on_emulator[0])


def test_a_bad_index_of_both_stops_the_call(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    given = arguments(attention, rng)
    given[4][3] = 9
    executable = daedal.compile(attention, given, device=ddr3)
    with pytest.raises(daedal.IndexOutOfRange, match="element 3 of col, and must be below 9"):
        executable(*given)


@daedal.kernel
def other_bounds(out: f32[Q], x: f32[P], off: i64[Q + 1]):
    for q in range(Q):
        most = 0.0
        for p in range(off[q], off[q + 1]):
            most = max(most, x[p])
        for e in range(off[q]):
            most += x[e]
        out[q] = most


def test_other_bounds_are_refused(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    with pytest.raises(daedal.UnsupportedOperation, match="two innermost loops with the same bounds can"):
        daedal.compile(other_bounds, arguments(between, rng), device=ddr3)


@daedal.kernel
def below(out: f32[Q, D], x: f32[Q, D]):
    """What the second loop takes is what the first one carries, itself."""
    for q in range(Q):
        most = -3.0e38
        for d in range(D):
            most = max(most, x[q, d])
        for d in range(D):
            out[q, d] = daedal.sqrt(most - x[q, d])


@pytest.mark.parametrize("opt", OPT_LEVELS)
def test_a_carried_number_itself(ddr3: daedal.Device, opt: int, rng: np.random.Generator) -> None:
    given = np.zeros((3, 8), np.float32), floats(rng, 3, 8)
    with pytest.raises(daedal.UnsupportedOperation, match="needs 2 ALU operations; level 3 of configuration ddr3 has"):
        daedal.compile(below, given, device=ddr3, opt=opt)
    with daedal.Device.open("emulator", config=replace(ddr3.config, name="sums", alus=(2, 2, 2, 2))) as device:
        check(device, below, *given, opt=opt)
