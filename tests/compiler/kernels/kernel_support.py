"""What the tests of kernels share: the same loops run by Python and by a device, compared bit for bit."""

import linecache
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

import daedal
from daedal.compiler.frontends.python.function import KernelFunction
from daedal.runtime.loops.kernel_executable import KernelExecutable
from tests import reference


def copied(arguments: Sequence[Any]) -> list[Any]:
    """Arguments of which a kernel may change the arrays; floats as Python would round them."""
    copies = [np.float32(a) if isinstance(a, float) else a for a in arguments]
    return [a.copy() if isinstance(a, np.ndarray) else a for a in copies]


def same_bits(a: Any, b: Any) -> bool:
    """Whether two arrays have the same bits, except that all NaNs are the same."""
    if a.dtype != b.dtype or a.dtype != np.float32:
        return bool(a.dtype == b.dtype and np.array_equal(a, b))
    return reference.same_bits(a, b)


def in_python(kernel: KernelFunction, *arguments: Any) -> list[Any]:
    """The arguments after Python has run the loops."""
    wanted = copied(arguments)
    with np.errstate(all="ignore"):
        kernel(*wanted)
    return wanted


def check(
    device: daedal.Device, kernel: KernelFunction, *arguments: Any, bounds: str = "fatal", opt: int = 3
) -> KernelExecutable:
    """The device does with the arguments what Python does."""
    wanted, given = in_python(kernel, *arguments), copied(arguments)
    executable = daedal.compile(kernel, arguments, device=device, bounds=bounds, opt=opt)
    assert executable(*given) is None
    for name, a, b in zip(kernel.signature.arguments, given, wanted, strict=True):
        if isinstance(a, np.ndarray):
            assert same_bits(a, b), name
    return executable


def floats(rng: np.random.Generator, *shape: int) -> Any:
    """Random f32 whose sums depend on order and rounding."""
    scale = np.exp2(rng.integers(-12, 12, shape)).astype(np.float32)
    return rng.standard_normal(shape).astype(np.float32) * scale


def offsets(rng: np.random.Generator, bags: int, entries: int, dtype: Any = np.int64) -> Any:
    """Offsets of bags, some of them empty, that cover all entries."""
    inner = np.sort(rng.integers(0, entries + 1, bags - 1))
    return np.concatenate([[0], inner, [entries]]).astype(dtype)


HEAD = """from __future__ import annotations

import daedal
from daedal import f32, i32, i64

"""


def load_kernel(folder: Path, text: str, name: str = "kernel") -> KernelFunction:
    """The kernel ``f`` of a file with this text after the imports; its arguments need no names of sizes."""
    path = folder / f"{name}.py"
    path.write_text(HEAD + text, encoding="utf-8")
    spec = spec_from_file_location(f"{name}_{abs(hash(str(path)))}", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    linecache.checkcache(str(path))
    spec.loader.exec_module(module)
    found = module.f
    assert isinstance(found, KernelFunction)
    return found
