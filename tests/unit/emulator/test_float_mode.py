"""The floating-point mode of the caller's thread: the emulator computes the same in each, and leaves it as it was."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import pytest
import torch

from daedal.cosim.emulator import EmulatorTarget
from daedal.hw.config.core import Config
from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.words import FetchQueue
from tests.reference.layers import random_values
from tests.unit.emulator.programs import QUEUE0, QUEUE1, Bench, instruction
from tests.unit.emulator.test_operations import ELEMENTS, Array, run

C = ctypes.CDLL(None)
NEAREST, DOWNWARD, UPWARD, TO_ZERO = 0, 0x400, 0x800, 0xC00
INVALID, DIVIDE_BY_ZERO, ALL_FLAGS = 1, 4, 0x3D
"""As of x86's <fenv.h>."""

CONFIG = Config.preset("ddr3")


@contextmanager
def flushing() -> Iterator[None]:
    """Subnormal numbers are 0 in this thread, where a processor can do that."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


@contextmanager
def rounding(mode: int) -> Iterator[None]:
    """Results are rounded in this direction."""
    assert C.fesetround(mode) == 0
    try:
        yield
    finally:
        C.fesetround(NEAREST)


@contextmanager
def trapping() -> Iterator[None]:
    """An invalid operation or a division by zero kills the process."""
    C.feclearexcept(ALL_FLAGS)
    C.feenableexcept(INVALID | DIVIDE_BY_ZERO)
    try:
        yield
    finally:
        C.fedisableexcept(INVALID | DIVIDE_BY_ZERO)


Mode = Callable[[], AbstractContextManager[None]]
MODES: dict[str, Mode] = {
    "flush": flushing,
    "down": lambda: rounding(DOWNWARD),
    "up": lambda: rounding(UPWARD),
    "to zero": lambda: rounding(TO_ZERO),
    "traps": trapping,
}

CODE = {
    "products": [
        instruction(0, VectorOp.MOVE, a=QUEUE0, destination=1),
        instruction(1, VectorOp.MUL_ADD, a=QUEUE0, b=QUEUE1, c=1, destination=0),
        instruction(2, VectorOp.STORE, a={"number": 0}, last=1),
    ],
    "fused": [
        instruction(0, VectorOp.MOVE, a=QUEUE0, destination=1),
        instruction(1, VectorOp.FMA, a=QUEUE0, b=QUEUE1, c=1, destination=0),
        instruction(2, VectorOp.STORE, a={"number": 0}, last=1),
    ],
    "mean": [
        instruction(0, VectorOp.MOVE, a=QUEUE0, destination=1),
        instruction(1, VectorOp.ADD, a=QUEUE0, c=1, destination=1),
        instruction(2, VectorOp.SUBTRACT, a=QUEUE1, c=1, destination=1),
        instruction(3, VectorOp.DIVIDE_COUNT, a={"number": 1}, destination=0),
        instruction(4, VectorOp.STORE, a={"number": 0}, last=1),
    ],
}


class InMode(EmulatorTarget):
    """Works in a mode of the caller's."""

    mode: Mode

    def wait(self, timeout_s: float | None = None) -> bool:
        with self.mode():
            return super().wait(timeout_s)


@pytest.fixture
def rows(rng: np.random.Generator) -> list[tuple[FetchQueue, Array]]:
    """Subnormal numbers, infinities that cancel, and numbers whose sums and products are not exact."""
    a, b, c = (random_values(rng, (ELEMENTS,), special=True) for _ in range(3))
    for k, row in enumerate((a, b, c)):
        row[:16:2] = row[:16:2] * np.float32(1e-38) * np.float32(1e-3)
        row[16:20] = np.roll(np.array([np.inf, -np.inf, 0.0, 1.0], np.float32), k)
    return [(FetchQueue.VECTOR0, c), (FetchQueue.VECTOR0, a), (FetchQueue.VECTOR1, b)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("code", CODE)
def test_same_bits_in_every_mode(mode: str, code: str, rows: list[tuple[FetchQueue, Array]]) -> None:
    scalars = [3] if code == "mean" else []
    with EmulatorTarget(CONFIG, 1 << 20) as plain, InMode(CONFIG, 1 << 20) as other:
        other.mode = MODES[mode]
        expected = run(Bench(plain, CONFIG), CODE[code], rows, scalars)
        assert len(set(expected.tolist())) > ELEMENTS // 2
        assert np.any((expected & 0x7F80_0000 == 0) & (expected & 0x7F_FFFF != 0)), "some must be subnormal"
        assert run(Bench(other, CONFIG), CODE[code], rows, scalars).tolist() == expected.tolist()


def test_the_caller_s_mode_stays(rows: list[tuple[FetchQueue, Array]]) -> None:
    with flushing(), EmulatorTarget(CONFIG, 1 << 20) as target:
        C.feclearexcept(ALL_FLAGS)
        C.fesetround(UPWARD)
        try:
            flag_before = C.fetestexcept(ALL_FLAGS)
            target.wait()
            assert (C.fegetround(), C.fetestexcept(ALL_FLAGS)) == (UPWARD, flag_before)
            assert np.float32(1e-30) * np.float32(1e-10) == 0
        finally:
            C.fesetround(NEAREST)
    assert np.float32(1e-30) * np.float32(1e-10) > 0
