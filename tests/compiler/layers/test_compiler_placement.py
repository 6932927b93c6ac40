"""On which levels of the machine loops are: inner ones on pipelined levels, if they fit there."""

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

import daedal
from daedal import f32, i64
from daedal.hw.config.core import Config

B, D, N, P = daedal.dims("B D N P")
DDR3 = Config.preset("ddr3")


@daedal.kernel
def gathered(out: f32[B, D], table: f32[N, D], idx: i64[B]):  # type: ignore[no-untyped-def]
    for b in range(B):
        for d in range(D):
            out[b, d] = table[idx[b], d]


@daedal.kernel
def pooled(out: f32[B, D], table: f32[N, D], idx: i64[P], off: i64[B + 1]):  # type: ignore[no-untyped-def]
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                out[b, d] += table[idx[p], d]


@daedal.kernel
def remapped(out: f32[B, D], table: f32[N, D], remap: i64[N], idx: i64[P], off: i64[B + 1]):  # type: ignore[no-untyped-def]
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                out[b, d] += table[remap[idx[p]], d]


def arguments(kernel: Any, rng: np.random.Generator) -> list[np.ndarray]:
    out, table = np.zeros((3, 20), np.float32), rng.standard_normal((9, 20), np.float32)
    if kernel is gathered:
        return [out, table, rng.integers(0, 9, 3)]
    lists = [rng.integers(0, 9, 7), np.array([0, 2, 2, 7])]
    return [out, table, *([rng.permutation(9)] if kernel is remapped else []), *lists]


def used(kernel: Any, config: Config, rng: np.random.Generator) -> list[int]:
    """The levels that a kernel's program uses; its result is that of NumPy."""
    given = arguments(kernel, rng)
    with daedal.Device.open("emulator", config=config) as device:
        executable = daedal.compile(kernel, given, device=device, bounds="none" if kernel is remapped else "fatal")
        executable(*given)
        levels = sorted({int(n) for n in re.findall(r"^level (\d) control", executable.asm(), re.M)})
    out, table, *_, idx = given[:3] if kernel is gathered else given[:-1]
    rows = table[given[2][idx] if kernel is remapped else idx]
    starts = range(4) if kernel is gathered else given[-1]
    expected = np.zeros_like(out)
    for b in range(3):
        for row in rows[starts[b] : starts[b + 1]]:
            expected[b] += row
    assert out.tobytes() == expected.tobytes()
    return levels


def serial(*levels: int) -> Config:
    return dataclasses.replace(
        DDR3, name="placed", contexts=(), dealt_bundles=0, serial=tuple(level in levels for level in range(DDR3.levels))
    )


@pytest.mark.parametrize(
    ("kernel", "config", "levels"),
    [
        (gathered, DDR3, [1]),
        (pooled, DDR3, [1, 2]),
        (remapped, DDR3, [0, 1]),  # level 2 has no random load
        (gathered, serial(0, 1), [2]),
        (pooled, serial(0, 1), [2, 3]),
        (pooled, serial(1, 2, 3), [0, 1]),
        (pooled, serial(0, 2, 3), [0, 1]),
        (remapped, serial(1, 2, 3), [0, 1]),
        (pooled, serial(), [0, 1]),
        (pooled, serial(0, 1, 2, 3), [0, 1]),
    ],
)
def test_loops_are_on_the_levels_that_suit_them(
    kernel: Any, config: Config, levels: list[int], rng: np.random.Generator
) -> None:
    assert used(kernel, config, rng) == levels
