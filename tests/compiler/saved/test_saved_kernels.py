"""Kernels of loops as files."""

from pathlib import Path

import numpy as np
import pytest
import torch

import daedal
from daedal import f32, i64
from daedal.runtime.loops.kernel_executable import KernelExecutable
from tests.compiler.layers.compiler_support import device

__all__ = ["device"]

B, D, N, P = daedal.dims("B D N P")


@daedal.kernel
def pooled(out: f32[B, D], table: f32[N, D], idx: i64[P], off: i64[B + 1], scale: f32):
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                out[b, d] += table[idx[p] * 2, d] * scale


def given(width: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    table, out = rng.standard_normal((50, width), np.float32), np.zeros((4, width), np.float32)
    return out, table, rng.integers(0, 25, 30), np.array([0, 3, 3, 20, 30]), np.float32(1.25)


def saved(device: daedal.Device, path: Path, rng: np.random.Generator) -> tuple[KernelExecutable, KernelExecutable]:
    """A kernel for rows of two sizes, and the same from its file."""
    executable = daedal.compile(pooled, given(16, rng), device=device)
    executable(*given(64, rng))
    executable.save(path)
    loaded = daedal.load(path, device=device)
    assert isinstance(loaded, KernelExecutable)
    return executable, loaded


def test_a_kernel_from_a_file(device: daedal.Device, rng: np.random.Generator, tmp_path: Path) -> None:
    """It fills arrays and tensors with the same bits, for all sizes that it was saved for, and is saved again."""
    executable, loaded = saved(device, tmp_path / "kernel.daedal", rng)
    loaded.save(tmp_path / "again.daedal")
    again = daedal.load(tmp_path / "again.daedal", device=device)
    assert loaded.asm() and loaded.explain() == executable.explain()
    assert (tmp_path / "again.daedal").read_bytes() == (tmp_path / "kernel.daedal").read_bytes()
    for width in (16, 64):
        arrays = given(width, rng)
        executable(*arrays)
        for other in (loaded, again):
            out = torch.zeros(arrays[0].shape)
            other(out, torch.from_numpy(arrays[1]), *arrays[2:])
            assert out.numpy().tobytes() == arrays[0].tobytes()


def test_what_a_kernel_checks(device: daedal.Device, rng: np.random.Generator, tmp_path: Path) -> None:
    """Indices and offsets out of their arrays have the messages of the kernel that was saved, with its lines."""
    both = saved(device, tmp_path / "kernel.daedal", rng)
    bad = []
    for place, position, value in ((2, 7, 25), (2, 0, -1), (3, 1, -2), (3, 4, 31)):
        arrays = given(16, rng)
        arrays[place][position] = value
        bad.append(arrays)
    for arrays in bad:
        told = []
        for executable in both:
            with pytest.raises((daedal.IndexOutOfRange, daedal.InvalidOffsets)) as caught:
                executable(*arrays)
            told.append((type(caught.value), str(caught.value)))
        assert told[0] == told[1] and "test_saved_kernels.py" in told[0][1]


def test_other_sizes(device: daedal.Device, rng: np.random.Generator, tmp_path: Path) -> None:
    _, loaded = saved(device, tmp_path / "kernel.daedal", rng)
    with pytest.raises(daedal.UnsupportedOperation, match=r"saved for \(D = 16; D = 64\), not D = 32: call the"):
        loaded(*given(32, rng))
    with pytest.raises(daedal.UnsupportedOperation, match="dimension 0 of argument 'off' must be 5"):
        loaded(*given(16, rng)[:3], np.zeros(9, np.int64), np.float32(1))
    with pytest.raises(daedal.DaedalError, match="a program from a file has no IR"):
        loaded.ir("slc")
    with pytest.raises(daedal.UnsupportedOperation, match="tables must be left out for a kernel"):
        daedal.load(tmp_path / "kernel.daedal", device=device, tables=[np.zeros((1, 1), np.float32)])
