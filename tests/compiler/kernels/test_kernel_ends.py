"""Ends of loops that the host checks, since the machine has no loop left for it."""

import re
from pathlib import Path

import numpy as np
import pytest

import daedal
from daedal import f32, i64
from tests.compiler.kernels.kernel_support import check, floats, offsets
from tests.compiler.layers.compiler_support import ddr3

__all__ = ["ddr3"]

B, D, N, M, E, K, J = daedal.dims("B D N M E K J")


@daedal.kernel
def deep(
    out: f32[B, D], x: f32[N, D], y: f32[M, D], kind: i64[B], off: i64[B + 1], col: i64[E], many: f32[K], more: f32[J]
):
    """Four loops, and two checks in the first one."""
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            for _k in range(K):
                for _j in range(J):
                    for d in range(D):
                        out[b, d] += x[col[p], d] * y[kind[b], d]


@daedal.kernel
def flat(out: f32[B, D], x: f32[N, D], y: f32[M, D], kind: i64[B], off: i64[B + 1], col: i64[E]):
    """The same with loops to spare."""
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                out[b, d] += x[col[p], d] * y[kind[b], d]


def arguments(rng: np.random.Generator, width: int) -> list[np.ndarray]:
    """Those of both."""
    return [
        np.zeros((7, width), np.float32), floats(rng, 9, width), floats(rng, 4, width), rng.integers(0, 4, 7),
        offsets(rng, 7, 20), rng.integers(0, 9, 20),
    ]  # fmt: skip


TWICE, THRICE = np.zeros(2, np.float32), np.zeros(3, np.float32)


@pytest.mark.parametrize("width", [1, 12, 70])
@pytest.mark.parametrize("bounds", ["fatal", "warn", "none"])
def test_a_check_costs_no_loop_that_there_is_not(
    ddr3: daedal.Device, width: int, bounds: str, rng: np.random.Generator
) -> None:
    executable = check(ddr3, deep, *arguments(rng, width), TWICE, THRICE, bounds=bounds)
    who = "nobody (bounds='none')" if bounds == "none" else "the host, in all of off, for want of loops"
    assert f"off[b + 1]: checked by {who}" in executable.explain()
    who = "nobody" if bounds == "none" else "the machine"
    assert f"kind[b]: checked by {who}" in executable.explain()


def test_the_machine_checks_where_it_can(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    executable = check(ddr3, flat, *arguments(rng, 12))
    assert "off[b + 1]: checked by the machine" in executable.explain()


@pytest.mark.parametrize(("place", "value"), [(3, 21), (7, 1 << 30), (2, -1), (0, -(1 << 20))])
def test_an_end_outside_of_its_array(ddr3: daedal.Device, place: int, value: int, rng: np.random.Generator) -> None:
    given = [*arguments(rng, 12), TWICE, THRICE]
    executable = daedal.compile(deep, tuple(given), device=ddr3)
    given[4] = given[4].copy()
    given[4][place] = value
    must = "must not be negative" if value < 0 else "must be from 0 to 20 where a loop ends"
    message = rf"off {must}.*element {place} is {re.escape(str(value))}"
    with pytest.raises(daedal.InvalidOffsets, match=message):
        executable(*given)


def test_an_end_before_its_start(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    given = [*arguments(rng, 12), TWICE, THRICE]
    executable = daedal.compile(deep, tuple(given), device=ddr3)
    given[4] = np.array([0, 5, 3, 3, 20, 20, 20, 20])
    with pytest.raises(daedal.InvalidOffsets):
        executable(*given)


def test_a_file_says_who_checks(ddr3: daedal.Device, tmp_path: Path, rng: np.random.Generator) -> None:
    given = [*arguments(rng, 12), TWICE, THRICE]
    daedal.compile(deep, tuple(given), device=ddr3).save(tmp_path / "deep.daedal")
    loaded = daedal.load(tmp_path / "deep.daedal", device=ddr3)
    given[4] = np.array([0, 1, 2, 3, 4, 5, 6, 21])
    with pytest.raises(daedal.InvalidOffsets, match="off must be from 0 to 20 where a loop ends"):
        loaded(*given)
