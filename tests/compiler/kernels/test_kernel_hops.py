"""Loads at loaded numbers, and checks, that the machine has no slots and no loops for: the host does them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daedal
from daedal import f32, i32, i64
from daedal.compiler.frontends.python.function import KernelFunction
from tests.compiler.kernels.kernel_support import check, floats, offsets
from tests.compiler.layers.compiler_support import ddr3

__all__ = ["ddr3"]

B, C, D, N, M, E, K = daedal.dims("B C D N M E K")


@daedal.kernel
def second_hop(out: f32[B, D], x: f32[N, D], ptr: i64[M + 1], col: i64[E], seeds: i64[B]):
    """Neighbours of neighbours: four loads at loaded numbers, of which ddr3 has two, and four checks."""
    for b in range(B):
        for p in range(ptr[seeds[b]], ptr[seeds[b] + 1]):
            for q in range(ptr[col[p]], ptr[col[p] + 1]):
                for d in range(D):
                    out[b, d] += x[col[q], d]


@daedal.kernel
def renamed(out: f32[B, D], x: f32[N, D], first: i32[M], second: i64[C], third: i64[K], pairs: i32[B, 2]):
    """A chain of three arrays, begun at an array of two dimensions."""
    for b in range(B):
        for e in range(2):
            for d in range(D):
                out[b, d] += x[third[second[first[pairs[b, e]]]], d]


@daedal.kernel
def crossed(out: f32[B, D], x: f32[N, D], y: f32[M, D], kind: i64[E], col: i64[E], off: i64[B + 1], many: f32[K]):
    """Two checked numbers of one loop, and no loop to spare."""
    for b in range(B):
        for _k in range(K):
            for p in range(off[b], off[b + 1]):
                for _j in range(3):
                    for d in range(D):
                        out[b, d] += x[col[p], d] * y[kind[p], d]


@daedal.kernel
def padded(out: f32[B, D], x: f32[N, D], remap: i64[M], idx: i64[B]):
    """-1 is no index; two checks under the condition are loops."""
    for b in range(B):
        if idx[b] >= 0:
            for d in range(D):
                out[b, d] += x[remap[idx[b]], d]


KERNELS: tuple[KernelFunction, ...] = (second_hop, renamed, crossed)


def arguments(kernel: KernelFunction, rng: np.random.Generator, width: int = 20) -> list[Any]:
    out = floats(rng, 6, width)
    if kernel is second_hop:
        return [out, floats(rng, 9, width), offsets(rng, 9, 30), rng.integers(0, 9, 30), rng.integers(0, 9, 6)]
    if kernel is renamed:
        lists = rng.integers(0, 7, 5).astype(np.int32), rng.integers(0, 8, 7), rng.integers(0, 9, 8)
        return [out, floats(rng, 9, width), *lists, rng.integers(0, 5, (6, 2)).astype(np.int32)]
    numbers = rng.integers(0, 4, 14), rng.integers(0, 9, 14), offsets(rng, 6, 14)
    return [out, floats(rng, 9, width), floats(rng, 4, width), *numbers, np.zeros(2, np.float32)]


@pytest.mark.parametrize("bounds", ["fatal", "warn", "ignore", "none"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_as_python(ddr3: daedal.Device, kernel: KernelFunction, bounds: str, rng: np.random.Generator) -> None:
    if kernel is crossed and bounds in ("warn", "ignore"):  # the host does not put row 0 in a number's place there
        with pytest.raises(daedal.UnsupportedOperation, match="is loop 5 of its nest"):
            daedal.compile(kernel, arguments(kernel, rng), device=ddr3, bounds=bounds)
        return
    check(ddr3, kernel, *arguments(kernel, rng), bounds=bounds)


@pytest.mark.rtl
@pytest.mark.slow
def test_on_the_rtl(rng: np.random.Generator) -> None:
    with daedal.Device.open("verilator", config="ddr3", memory="ideal:stall=0.1,seed=2") as rtl:
        check(rtl, second_hop, *arguments(second_hop, rng))


BAD = {
    "a seed": (second_hop, 4, 3, 9, r"`for p in .*seeds must be from 0 to 8, but its element 3 is 9"),
    "a seed below 0": (second_hop, 4, 0, -1, r"seeds must be from 0 to 8, but its element 0 is -1"),
    "a column": (second_hop, 3, 29, 1 << 40, r"`for p in .*|col must be from 0 to 8, but its element 29 is"),
    "an offset that is not increasing": (second_hop, 2, 4, -3, r"must not be negative where a loop starts"),
    "an offset": (second_hop, 2, 9, 31, r"31"),
    "the first of a chain": (renamed, 5, (2, 1), 5, r"pairs must be from 0 to 4, but its element 5 is 5"),
    "the second of a chain": (renamed, 2, 1, -2, r"first\[pairs\] must be from 0 to 6, but"),
    "the last of a chain": (renamed, 4, slice(None), 9, r"index 9 .* must be below 9"),
    "one of two": (crossed, 4, 13, 9, r"col.*9"),
    "the other of two": (crossed, 3, 0, 4, r"kind.*4"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_outside_stops_the_call(ddr3: daedal.Device, name: str, rng: np.random.Generator) -> None:
    kernel, position, place, value, message = BAD[name]
    good = arguments(kernel, rng)
    if kernel is renamed:
        good[5][:] = np.resize(np.arange(5), (6, 2))
    executable = daedal.compile(kernel, good, device=ddr3)
    wrong = [each.copy() for each in good]
    wrong[position][place] = value
    with pytest.raises((daedal.IndexOutOfRange, daedal.InvalidOffsets), match=message):
        executable(*wrong)
    assert np.array_equal(wrong[0], good[0])
    executable(*good)


@pytest.mark.parametrize("bounds", ["warn", "ignore"])
def test_number_0_takes_its_place(ddr3: daedal.Device, bounds: str, rng: np.random.Generator) -> None:
    given = arguments(second_hop, rng)
    executable = daedal.compile(second_hop, given, device=ddr3, bounds=bounds)
    wanted, wrong = [each.copy() for each in given], [each.copy() for each in given]
    wanted[4][2], wrong[4][2] = 0, -7
    executable(*wanted)
    if bounds == "ignore":
        executable(*wrong)
    else:
        with pytest.warns(daedal.BoundsWarning, match="seeds must be from 0 to 8, but its element 2 is -7"):
            executable(*wrong)
    assert np.array_equal(wrong[0], wanted[0])
    given[2] = given[2][:1]  # no number at all
    with pytest.raises(daedal.IndexOutOfRange, match="seeds must be from 0 to -1"):
        executable(*given)


def test_explained(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    found = daedal.compile(second_hop, arguments(second_hop, rng), device=ddr3).explain()
    for name in ("ptr[seeds]", "ptr[seeds + 1]", "ptr[col]", "ptr[col + 1]"):
        of = "seeds" if "seeds" in name else "col"
        assert f"{name} is made by the host, for want of load slots, from all of {of}, which it checks" in found
    assert "col[q]: checked by the machine" in found
    found = daedal.compile(crossed, arguments(crossed, rng), device=ddr3).explain()
    assert ("checked by the host, in all of kind" in found) != ("checked by the host, in all of col" in found)


def test_a_file_has_them(ddr3: daedal.Device, tmp_path: Path, rng: np.random.Generator) -> None:
    given = arguments(second_hop, rng)
    wanted = [each.copy() for each in given]
    executable = daedal.compile(second_hop, given, device=ddr3)
    executable(*wanted)
    executable.save(tmp_path / "hops.daedal")
    loaded = daedal.load(tmp_path / "hops.daedal", device=ddr3)
    loaded(*given)
    assert np.array_equal(given[0], wanted[0])
    given[4][1] = 9
    with pytest.raises(daedal.IndexOutOfRange, match=r"`for p in range.*seeds must be from 0 to 8"):
        loaded(*given)


def test_what_a_condition_keeps_away_is_left_to_the_machine(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    given = [floats(rng, 6, 20), floats(rng, 9, 20), rng.integers(0, 9, 9), rng.integers(0, 9, 6)]
    given[3][2] = -1
    with pytest.raises(daedal.UnsupportedOperation, match="needs 1 random loads"):
        daedal.compile(padded, given, device=ddr3)
    config = replace(ddr3.config, random_loads=(1, 1, 1, 0))
    with daedal.Device.open("emulator", config=config) as larger:
        found = check(larger, padded, *given).explain()
    assert "is made by the host" not in found and "checked by the host, in all of" not in found
