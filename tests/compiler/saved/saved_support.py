"""Executables that are saved and loaded again, and held against those that were saved: bit for bit."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import daedal
from daedal.runtime.executable import Executable
from daedal.runtime.tensors import array_of


def arrays(values: Any) -> Any:
    """The same with arrays for tensors."""
    return pytree.tree_map(lambda value: array_of(value) if isinstance(value, Tensor) else value, values)


def state_of(module: nn.Module) -> dict[str, Any]:
    """A module's tensors by name, as arrays."""
    return {name: array_of(value) for name, value in module.state_dict().items() if isinstance(value, Tensor)}


def load(path: Path, device: daedal.Device, tables: Any = None) -> Executable:
    """The executable of a module in a file."""
    loaded = daedal.load(path, device=device, tables=tables)
    assert isinstance(loaded, Executable)
    return loaded


def check_same(
    saved: Any,
    loaded: Executable,
    inputs: Sequence[Any],
    named: Mapping[str, Any] | None = None,
    launches: int | None = None,
) -> None:
    """That both give the same bits, for arrays, tensors and as futures; ``loaded`` in ``launches``, or in as many."""
    given = dict(named or {})
    expected = pytree.tree_leaves(saved(*inputs, **given))
    wanted = saved.stats.launches if launches is None else launches
    found = loaded(*arrays(tuple(inputs)), **arrays(given))
    assert loaded.stats.launches == wanted
    _check(expected, found, are_arrays=True)
    _check(expected, loaded(*inputs, **given), are_arrays=False)
    _check(expected, loaded.submit(*arrays(tuple(inputs)), **arrays(given)).result(), are_arrays=True)
    _check(expected, loaded.submit(*inputs, **given).result(), are_arrays=False)


def _check(expected: Sequence[Any], found: Any, *, are_arrays: bool) -> None:
    leaves = pytree.tree_leaves(found)
    assert len(leaves) == len(expected)
    for wanted, leaf in zip(expected, leaves, strict=True):
        if are_arrays:
            assert isinstance(leaf, np.ndarray) and leaf.shape == tuple(wanted.shape)
            assert leaf.tobytes() == array_of(wanted.contiguous()).tobytes()
        else:
            assert leaf.dtype is wanted.dtype and leaf.shape == wanted.shape
            assert array_of(leaf.contiguous()).tobytes() == array_of(wanted.contiguous()).tobytes()


def round_trip(
    module: nn.Module, inputs: Sequence[Any], device: daedal.Device, path: Path, named: Mapping[str, Any] | None = None
) -> tuple[Executable, Executable]:
    """A module, compiled for these inputs, and the same from a file."""
    executable = daedal.compile(module, tuple(inputs), example_kwargs=named, device=device)
    executable.save(path)
    loaded = load(path, device, state_of(module))
    check_same(executable, loaded, inputs, named)
    assert torch.is_grad_enabled()
    return executable, loaded
