"""Integers of kernels: what the machine computes is what Python computes, or the call is refused with the line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daedal
from tests.compiler.kernels.kernel_support import HEAD, check, floats, load_kernel
from tests.compiler.layers.compiler_support import ddr3

__all__ = ["ddr3"]

RNG = np.random.default_rng(1)
ROWS = "for i in range(N):\n    for d in range(D):\n        out[i, d] = "
ARRAYS = "out: f32[N, D], x: f32[M, D]"


def rows() -> tuple[Any, ...]:
    return np.zeros((4, 8), np.float32), floats(RNG, 16, 8)


def numbers(*values: int) -> tuple[Any, ...]:
    return np.zeros(len(values), np.float32), np.array(values)


def kernel_of(folder: Path, arguments: str, body: str) -> Any:
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    return load_kernel(folder, f"@daedal.kernel\ndef f({arguments}):\n{indented}")


EQUAL = {
    "a difference that a size is added to": (ARRAYS, ROWS + "x[-i + N - 1, d]", rows()),
    "a negative factor": (ARRAYS, ROWS + "x[(N - 1) + i * -1, d]", rows()),
    "a constant less a multiple": (ARRAYS, ROWS + "x[12 - i * 3, d]", rows()),
    "a product with a negative number": (ARRAYS, ROWS + "x[-3 * i + 12, d]", rows()),
    "backwards by a size": (ARRAYS, ROWS + "x[N + (2 - i), d]", rows()),
    "negative integers as f32": (
        "out: f32[N], n: i64[N]",
        "for i in range(N):\n    out[i] = n[i]",
        numbers(-7, 1 << 24),
    ),
    "the ends of 32 bits": (
        "out: f32[N], n: i64[N]",
        "for i in range(N):\n    out[i] = n[i]",
        numbers((1 << 31) - 1, -(1 << 31)),
    ),
    "comparisons with negative integers": (
        "out: f32[N], n: i64[N]",
        "for i in range(N):\n    if n[i] == -1:\n        out[i] = 1.0",
        numbers(1, -1, -(1 << 38)),
    ),
    "rows by a scalar that may be negative": (
        ARRAYS + ", k: i64",
        ROWS + "x[i, d] / max(k, 1)",
        (*rows(), -4),
    ),
    "rows by loaded numbers that may be negative": (
        ARRAYS + ", n: i64[N]",
        ROWS + "x[i, d] / max(n[i], 1)",
        (*rows(), np.array([-4, 0, 1, 3])),
    ),
    "rows by a difference that may be negative": (
        ARRAYS + ", n: i64[N]",
        ROWS + "x[i, d] / max(n[i] - 3, 1)",
        (*rows(), np.array([-(1 << 30), 0, 5, 30])),
    ),
    "rows by what a size is short of": (ARRAYS, ROWS + "x[i, d] / max(N - 9, 1)", rows()),
    "single f32 by negative numbers": (
        "out: f32[N], n: i64[N], k: i64",
        "for i in range(N):\n    out[i] = 5.0 / max(n[i], 1) + 7.0 / max(k, 1)",
        (*numbers(-7, 3), -1),
    ),
    "a length of entries that no loop goes over": (
        ARRAYS + ", n: i64[N], k: i64",
        "for i in range(N):\n    if n[i] > 0:\n        for p in range(i, i + k):\n            for d in range(D):\n"
        "                out[i, d] += x[p, d]\n    for d in range(D):\n        out[i, d] = out[i, d] / max(k, 1)",
        (*rows(), np.array([0, 0, 0, 0]), -2),
    ),
    "a scalar that comes first": (
        "out: f32[N], n: i64[N], k: i64",
        "for i in range(N):\n    out[i] = k * n[i]",
        (*numbers((1 << 25) + 4, 5), 3),
    ),
    "a long sum of f32": (
        "out: f32[N], x: f32[N]",
        "for i in range(N):\n    k = x[i]\n" + 30 * "    k = k + k\n" + "    out[i] = k",
        (np.zeros(3, np.float32), floats(RNG, 3)),
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_as_python(ddr3: daedal.Device, tmp_path: Path, name: str) -> None:
    arguments, body, given = EQUAL[name]
    check(ddr3, kernel_of(tmp_path, arguments, body), *given)


FAULTS = {
    "a factor below 0": (
        ARRAYS + ", n: i64",
        ROWS + "x[i * n + 12, d]",
        (*rows(), -3),
        2,
        "24 bits.*but n may reach -3",
    ),
    "a negative variable": (
        ARRAYS,
        "for i in range(-2, 2):\n    for d in range(D):\n        out[i + 2, d] = x[i + 2, d]",
        rows(),
        2,
        "has of loops must be from 0 .*but i may reach -2",
    ),
    "a negative column": (
        ARRAYS,
        "for i in range(N):\n    for d in range(-2, 2):\n        out[i, d + 2] = x[i, d + 2]",
        rows(),
        2,
        "count loops from 0.*but d may reach -2",
    ),
    "a scalar as f32": (
        "out: f32[N], n: i64",
        "for i in range(N):\n    out[i] = n",
        (np.zeros(2, np.float32), 1 << 31),
        1,
        "becomes an f32 must be from -2147483648 to 2147483647 .*but n may reach 2147483648",
    ),
    "elements as f32": (
        "out: f32[N], n: i64[N]",
        "for i in range(N):\n    out[i] = n[i]",
        numbers(1, 1 << 35),
        1,
        r"32 bits are converted\), but n\[i\] may reach 34359738368",
    ),
    "a product as f32": (
        "out: f32[N], n: i64[N]",
        "for i in range(N):\n    out[i] = n[i] * n[i]",
        numbers(2, -3),
        1,
        r"a factor of a product must be from 0 to \d+ .*but n\[i\] may reach -3",
    ),
    "a comparison": (
        "out: f32[N], n: i64[N]",
        "for i in range(N):\n    if n[i] > 5:\n        out[i] = 1.0",
        numbers(1 << 45, 3),
        1,
        r"what is compared must be .*40 bits\), but n\[i\] may reach 35184372088832",
    ),
    "a maximum": (
        "out: f32[N], n: i64[N]",
        "for i in range(N):\n    out[i] = max(n[i], 0)",
        numbers(-(1 << 45), 3),
        1,
        r"what max compares must be .* but n\[i\] may reach -35184372088832",
    ),
    "a count": (
        ARRAYS + ", n: i64",
        ROWS + "x[i, d] / max(n, 1)",
        (*rows(), 1 << 24),
        2,
        r"a count that is divided by must be .* but max\(n, 1\) may reach 16777216",
    ),
    "a bound": (
        "out: f32[N], n: i64",
        "for i in range(n * n):\n    out[0] = 1.0",
        (np.zeros(2, np.float32), 1 << 30),
        0,
        r"a bound of a loop must be .* but n \* n may reach 1152921504606846976",
    ),
    "bits of a negative number": (
        "out: f32[N], n: i64[N]",
        "for i in range(N):\n    out[i] = n[i] >> 1",
        numbers(4, -4),
        1,
        r"what is shifted must be from 0 .* but n\[i\] may reach -4",
    ),
    "a shift by much": (
        "out: f32[N], n: i64[N]",
        "for i in range(N):\n    out[i] = i << n[i]",
        numbers(4, 64),
        1,
        r"shifted by must be from 0 to 39 .* but n\[i\] may reach 64",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_a_call_must_not_give(ddr3: daedal.Device, tmp_path: Path, name: str) -> None:
    arguments, body, given, line, reason = FAULTS[name]
    kernel = kernel_of(tmp_path, arguments, body)
    executable = daedal.compile(kernel, given, device=ddr3)
    out = given[0].copy()
    with pytest.raises(daedal.UnsupportedOperation, match=reason) as raised:
        executable(*given)
    assert f"kernel.py:{HEAD.count(chr(10)) + 3 + line}: `" in str(raised.value)
    assert np.array_equal(given[0], out)


LINES = {
    "a negative shift": ("x[1 << -1, d]", "must be shifted by 0 to 39, not by -1"),
    "a shift that no memory holds": ("x[1 << 50000000000000, d]", "must be shifted by 0 to 39"),
    "more than a float": (f"x[i, d] * {1 << 1030}", r"a constant must be below 2\*\*1000"),
    "a product of large constants": (f"x[i, d] * ({1 << 90} * {1 << 90})", r"must be below 2\*\*80 for arithmetic"),
}


@pytest.mark.parametrize("name", LINES)
def test_what_no_call_can_give(ddr3: daedal.Device, tmp_path: Path, name: str) -> None:
    value, reason = LINES[name]
    kernel = kernel_of(tmp_path, ARRAYS, ROWS + value)
    with pytest.raises(daedal.UnsupportedOperation, match=reason) as raised:
        daedal.compile(kernel, rows(), device=ddr3)
    assert f"kernel.py:{HEAD.count(chr(10)) + 5}: `" in str(raised.value)


def test_integers_that_double(ddr3: daedal.Device, tmp_path: Path) -> None:
    """An expression that stands for very many is refused at once."""
    kernel = kernel_of(
        tmp_path, "out: f32[N]", "for i in range(N):\n    k = i\n" + 60 * "    k = k + k\n" + "    out[i] = k"
    )
    with pytest.raises(daedal.UnsupportedOperation, match="takes more arithmetic here than the machine has"):
        daedal.compile(kernel, (np.zeros(3, np.float32),), device=ddr3)


def test_elements_far_apart(ddr3: daedal.Device, tmp_path: Path) -> None:
    """The machine's multipliers take 24 bits of a distance."""
    body = "for a in range(A):\n    for d in range(D):\n        out[a, d] = x[a, 5, d]"
    given = np.zeros((2, 4), np.float32), np.broadcast_to(floats(RNG, 1, 1 << 20, 4), (2, 1 << 20, 4))
    for size in ("B", str(1 << 20)):
        kernel = kernel_of(tmp_path, f"out: f32[A, D], x: f32[A, {size}, D]", body)
        with pytest.raises(daedal.UnsupportedOperation, match=r"kernel.py:\d+: .*16777216"):
            daedal.compile(kernel, given, device=ddr3)(*given)
