"""A caller that flushes subnormal numbers: programs, numbers and levels of the compiler have them all the same."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import daedal
from daedal import f32
from daedal.compiler.frontends.python.function import KernelFunction
from daedal.compiler.functions import numpy_exponential, numpy_sigmoid
from daedal.compiler.interpreters import interpret
from daedal.compiler.pipeline import forget_kernels
from daedal.driver.device import Device

Array = NDArray[np.float32]
N, D = daedal.dims("N D")
OPENED = ["emulator", pytest.param("verilator", marks=(pytest.mark.rtl, pytest.mark.slow))]


@daedal.kernel
def scaled(out: f32[N, D], x: f32[N, D], factor: f32):
    for n in range(N):
        for d in range(D):
            out[n, d] = x[n, d] * factor + 1e-40


@daedal.kernel
def compared(out: f32[N], x: f32[N]):
    for n in range(N):
        if x[n] > 3e-41:
            out[n] = daedal.sqrt(x[n])


@daedal.kernel
def exponentials(out: f32[N], x: f32[N]):
    for n in range(N):
        out[n] = daedal.exp(x[n]) * 0.5


@contextmanager
def flushing() -> Iterator[None]:
    """As ``torch.set_flush_denormal(True)`` leaves the thread, with nothing compiled yet."""
    forget_kernels()
    assert torch.set_flush_denormal(True)
    try:
        yield
        assert np.float32(1e-40) == 0, "the caller's mode must stay"
    finally:
        torch.set_flush_denormal(False)


@pytest.fixture(scope="module", params=OPENED)
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    with Device.open(request.param, config="ddr3") as opened:
        yield opened


TINY = np.array([1e-40, 2e-41, -1e-39, 4e-41, 1.0, 0.0, 1e-45, 3e38], np.float32)
ARGUMENTS: dict[KernelFunction, Callable[[], tuple[Array, Array, *tuple[float, ...]]]] = {
    scaled: lambda: (np.zeros((2, 4), np.float32), TINY.reshape(2, 4).copy(), 3e-40),
    compared: lambda: (np.zeros(8, np.float32), TINY.copy()),
    exponentials: lambda: (np.zeros(8, np.float32), np.linspace(-104, -86, 8, dtype=np.float32)),
}


def bits(array: Array | Tensor) -> list[int]:
    return [int(number) for number in np.asarray(array).view(np.uint32).ravel()]


@pytest.mark.parametrize("kernel", ARGUMENTS, ids=lambda kernel: str(kernel.name))
def test_kernels(device: Device, kernel: KernelFunction) -> None:
    expected, given = ARGUMENTS[kernel](), ARGUMENTS[kernel]()
    daedal.compile(kernel, expected, device=device)(*expected)
    assert any(0 < number & 0x7FFF_FFFF < 1 << 23 for number in bits(expected[0])) or kernel is compared
    with flushing():
        executable = daedal.compile(kernel, given, device=device)
        executable(*given)
    assert bits(given[0]) == bits(expected[0])


@pytest.mark.parametrize("kernel", ARGUMENTS, ids=lambda kernel: str(kernel.name))
def test_levels(device: Device, kernel: KernelFunction) -> None:
    out, x, *numbers = ARGUMENTS[kernel]()
    daedal.compile(kernel, (out, x, *numbers), device=device)(out, x, *numbers)
    values = {"N": len(x), **({"factor": numbers[0]} if numbers else {})}
    with flushing():
        made = kernel.build({"D": 4} if kernel is scaled else {}, device.config)[1]
        for level in ("scf", "slc", "slcv", "dlc"):
            result = interpret(made.ir(level), {"out": np.zeros_like(out), "x": x}, values)
            assert bits(result["out"]) == bits(out), level


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_layers(device: Device, mode: str) -> None:
    table = torch.from_numpy(np.tile(TINY[:4], (8, 4)) * np.arange(1, 9, dtype=np.float32)[:, None])
    layer = nn.EmbeddingBag.from_pretrained(table, mode=mode, include_last_offset=True)
    inputs = torch.tensor([0, 1, 7, 3, 3]), torch.tensor([0, 2, 2, 5])
    expected = layer(*inputs)
    assert 0 < float(expected.abs().max()) < 1e-37
    with flushing():
        result = daedal.compile(layer, inputs, device=device)(*inputs)
    assert bits(result) == bits(expected)


def test_functions() -> None:
    x = np.linspace(-104, -86, 50, dtype=np.float32)
    expected = [bits(function(x)) for function in (numpy_exponential, numpy_sigmoid)]
    least, root = np.float32(1e-45), bits(daedal.sqrt(np.float32(1e-45)))
    with flushing():
        assert [bits(function(x)) for function in (numpy_exponential, numpy_sigmoid)] == expected
        assert bits(daedal.sqrt(least)) == root
