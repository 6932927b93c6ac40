"""Kernels on a machine whose integers have 32 bits: what Python computes, or the call is refused with the line."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import daedal
from daedal.errors import IndexOutOfRange, UnsupportedOperation
from daedal.hw.config.core import Config
from tests.compiler.kernels.kernel_support import check
from tests.compiler.kernels.test_kernel_numbers import ARRAYS, EQUAL, ROWS, kernel_of, numbers, rows

TOO_WIDE = {"comparisons with negative integers"}
"""Of the cases of ``test_kernel_numbers`` those that need more than 32 bits."""


@pytest.fixture(scope="module")
def narrow() -> Iterator[daedal.Device]:
    config = replace(Config.preset("ddr3"), name="narrow", address_bits=32)
    with daedal.Device.open("emulator", config=config, memory_bytes=1 << 24) as device:
        yield device


@pytest.mark.parametrize("name", EQUAL)
def test_as_python(narrow: daedal.Device, tmp_path: Path, name: str) -> None:
    arguments, body, given = EQUAL[name]
    kernel = kernel_of(tmp_path, arguments, body)
    if name in TOO_WIDE:
        with pytest.raises(UnsupportedOperation, match="integers have 32 bits"):
            check(narrow, kernel, *given)
    else:
        check(narrow, kernel, *given)


ENDS = "for i in range(N):\n    for j in range(n[i]):\n        out[i] += 1.0"
HELD: dict[str, tuple[str, str, tuple[Any, ...]]] = {
    "the ends of 32 bits, compared": (
        "out: f32[N], n: i64[N]",
        f"for i in range(N):\n    if n[i] < {(1 << 31) - 2}:\n        out[i] = 1.0",
        numbers((1 << 31) - 2, (1 << 31) - 3, 1 - (1 << 31), 0),
    ),
    "loops that end at what is loaded": ("out: f32[N], n: i64[N]", ENDS, numbers(0, 3, 1)),
    "indices of 64 bits": (ARRAYS + ", n: i64[N]", ROWS + "x[n[i], d]", (*rows(), np.array([15, 0, 3, 7]))),
}


@pytest.mark.parametrize("name", HELD)
def test_what_it_holds(narrow: daedal.Device, tmp_path: Path, name: str) -> None:
    arguments, body, given = HELD[name]
    check(narrow, kernel_of(tmp_path, arguments, body), *given)


REFUSED: dict[str, tuple[str, str, tuple[Any, ...], str]] = {
    "compared": (
        "out: f32[N], n: i64[N]",
        "for i in range(N):\n    if n[i] < 5:\n        out[i] = 1.0",
        numbers(1, 1 << 31),
        r": what is compared must be .*integers have 32 bits\), but n\[i\] may reach 2147483648",
    ),
    "the end of a loop": (
        "out: f32[N], n: i64[N]",
        ENDS,
        numbers(2, (1 << 32) + 5),
        r"`: n says where a loop starts or ends, but has 4294967301: integers of the machine have 32 bits",
    ),
    "the end of a loop by a sum": (
        "out: f32[N], n: i32[N]",
        ENDS.replace("n[i]", "n[i] + n[i]"),
        (np.zeros(2, np.float32), np.array([1, 1 << 30], np.int32)),
        r": where a loop starts or ends must be .*but n\[i\] \+ n\[i\] may reach 2147483648",
    ),
    "a number that a call gives": (
        "out: f32[N], k: i64",
        "for i in range(N):\n    if i < k:\n        out[i] = 1.0",
        (np.zeros(2, np.float32), 1 << 31),
        "argument 'k' must be a single .*, not 2147483648",
    ),
    "shifted by too much": (
        "out: f32[N], n: i64[N]",
        "for i in range(N):\n    out[i] = n[i] >> 32",
        numbers(1, 2),
        "what an integer is shifted by must be from 0 to 31",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_it_does_not_hold_is_refused(narrow: daedal.Device, tmp_path: Path, name: str) -> None:
    arguments, body, given, message = REFUSED[name]
    kernel = kernel_of(tmp_path, arguments, body)
    with pytest.raises(UnsupportedOperation, match=message):
        daedal.compile(kernel, given, device=narrow)(*given)


def test_an_index_beyond_32_bits_is_reported_whole(narrow: daedal.Device, tmp_path: Path) -> None:
    given = (*rows(), np.array([1, (1 << 32) + 3, 0, 0]))
    kernel = kernel_of(tmp_path, ARRAYS + ", n: i64[N]", ROWS + "x[n[i], d]")
    with pytest.raises(IndexOutOfRange, match=str((1 << 32) + 3)):
        daedal.compile(kernel, given, device=narrow)(*given)


def test_the_end_of_a_loop_beyond_40_bits_is_refused(tmp_path: Path) -> None:
    with daedal.Device.open("emulator", memory_bytes=1 << 24) as device:
        kernel, given = kernel_of(tmp_path, "out: f32[N], n: i64[N]", ENDS), numbers(2, (1 << 40) + 5)
        with pytest.raises(UnsupportedOperation, match="has 1099511627781: integers of the machine have 40 bits"):
            daedal.compile(kernel, given, device=device)(*given)
        check(device, kernel, *numbers(2, 5))
