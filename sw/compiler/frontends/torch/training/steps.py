"""Launches that update tables: the samples that backward passes recorded, as kernels take them."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from daedal.base.float_mode import default_float_mode
from daedal.compiler.frontends.python.function import KernelFunction
from daedal.compiler.frontends.torch.training.owner import Owner
from daedal.compiler.frontends.torch.training.recording import Array, Pair, Samples, accumulated
from daedal.compiler.library import dense_updates, kept_updates, updates
from daedal.compiler.library.segments import Segments, segments
from daedal.driver.device import Device
from daedal.driver.memory.layout import line_pitch, row_pitch
from daedal.driver.tables.table_store import Table
from daedal.errors import IndexOutOfRange, UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.runtime.kernel import Kernel
from daedal.runtime.kernel_launch import KernelLaunch, PlacedKernel, place_kernel
from daedal.runtime.launch_arguments import Buffer
from daedal.runtime.loops.signature import ir_name


@cache
def kernel_for(function: KernelFunction, width: int, config: Config) -> Kernel | str:
    """The kernel for rows of so many elements; why there is none."""
    fixed = dict.fromkeys(function.shape.fixed, width)
    try:
        written, kernel = function.build(fixed, config)
    except UnsupportedOperation as error:
        return f"the machine has no kernel for its update: {error}"
    reads_parts = any(row.width != width for row in written.bounds.rows)
    if reads_parts and row_pitch(4 * width, config) != line_pitch(4 * width, config):
        return f"rows of {width} elements are longer than the machine's registers, and do not end where lines do"
    return kernel


def kept_function(name: str) -> KernelFunction:
    """The kernel of this name that can be undone."""
    found: KernelFunction = getattr(dense_updates if hasattr(dense_updates, name) else kept_updates, name)
    return found


class Update:
    """An update of one table that is checked, and not launched yet.

    Parameters
    ----------
    name
        The kernel's, of ``compiler.library.updates`` and ``kept_updates``, or of ``dense_updates``.
    arrays
        What it is given beside the table ``w``, by name: arrays, or what is on the device.
    numbers
        Its single numbers of f32, by name.
    """

    def __init__(self, owner: Owner, name: str, arrays: Mapping[str, Any], numbers: Mapping[str, float]) -> None:
        self.owner, self._name = owner, name
        self._arrays, self._numbers = dict(arrays), dict(numbers)

    def place(self, table: Table) -> list[PlacedKernel]:
        """Put what it needs into device memory: launches behind each other, the last of which changes the table."""
        device, undo = self.owner.device, self.owner.undo
        buffers: dict[str, Any] = {"w": table, **self._arrays}
        rows = buffers["rows"] if "rows" in buffers else np.arange(table.rows)
        buffers |= undo.begin(table, rows, self._state)
        self._numbers["tag"] = undo.tag
        functions = [kept_function(self._name)]
        if isinstance(kernel_for(functions[0], table.dim, device.config), str) and "rows" in buffers:
            keep = kept_updates.keep_with_state if "h" in buffers else kept_updates.keep
            functions = [keep, getattr(updates, self._name)]
        kernels = [kernel_for(each, table.dim, device.config) for each in functions]
        if wrong := [each for each in kernels if isinstance(each, str)]:
            raise UnsupportedOperation(f"parameter {self.owner.name!r}: {wrong[0]}")
        return [self._placed(*each, buffers) for each in zip(functions, kernels, strict=True)]

    def _placed(self, function: KernelFunction, kernel: Kernel | str, buffers: Mapping[str, Any]) -> PlacedKernel:
        assert isinstance(kernel, Kernel)
        given = {name: buffers[name] for name in function.signature.arguments if name in buffers}
        values = function.signature.sizes({name: _shape(each) for name, each in given.items()}, {})
        with default_float_mode(), np.errstate(over="ignore"):
            bits = {name: int(np.float32(number).view(np.uint32)) for name, number in self._numbers.items()}
        numbers = {ir_name(name): number for name, number in {**values, **bits}.items()}
        return place_kernel(self.owner.device, kernel, given, {name: numbers[name] for name in kernel.values})

    def undo(self) -> None:
        """Write back what launches have changed, which have ended."""
        self.owner.undo.restore(self._state)

    @property
    def _state(self) -> Buffer | None:
        return self._arrays.get("h") or self._arrays.get("m")


def _shape(source: Table | Buffer | Array) -> tuple[int, ...]:
    return (source.rows, source.dim) if isinstance(source, Table) else tuple(source.shape)


def arrays_of(owner: Owner, pairs: Sequence[Pair]) -> dict[str, Array]:
    """What kernels are given of samples, by name, in PyTorch's order. IndexOutOfRange for a sample of a row that the
    table does not have.

    Of several backward passes PyTorch adds up the gradients, in an order that is its own: what they come to goes up.
    """
    for pair in pairs:
        _check(owner, pair.samples)
    if len(pairs) > 1:
        return _added_up(pairs)
    samples = pairs[0].samples
    order = sort_order(samples) if samples.is_sorted else np.arange(len(samples.rows))
    order = order[_counted(samples)[order]]
    found = segments(samples.rows[order])
    arrays = {**_segmented(found), "grad": pairs[0].grad.numpy(), "src": samples.sources[order][found.order]}
    if samples.scale is not None:
        arrays["scale"] = samples.scale[order][found.order]
    return arrays


def of_all_rows(owner: Owner, pairs: Sequence[Pair]) -> dict[str, Array]:
    """The same, with a segment for each row of the table and a scale for each sample."""
    found = arrays_of(owner, pairs)
    counts = np.zeros(len(owner.parameter) + 1, np.int64)
    counts[found.pop("rows") + 1] = np.diff(found["seg"])
    found.setdefault("scale", np.ones(len(found["src"]), np.float32))
    if not len(found["grad"]):
        found["grad"] = np.zeros((1, found["grad"].shape[-1]), np.float32)
    return {**found, "seg": counts.cumsum()}


def stacked(owner: Owner, pairs: Sequence[Pair]) -> dict[str, Array]:
    """The same of all backward passes behind each other, samples of a row in their own order, as FBGEMM has them."""
    for pair in pairs:
        _check(owner, pair.samples)
    counted = [np.flatnonzero(_counted(pair.samples)) for pair in pairs]
    firsts = np.cumsum([0, *(len(pair.grad) for pair in pairs)])
    found = segments(np.concatenate([p.samples.rows[n] for p, n in zip(pairs, counted, strict=True)]).astype(np.int64))
    sources = [p.samples.sources[n] + first for p, n, first in zip(pairs, counted, firsts, strict=False)]
    arrays = {
        **_segmented(found),
        "grad": np.concatenate([pair.grad.numpy() for pair in pairs]),
        "src": np.concatenate(sources)[found.order],
    }
    if any(pair.samples.scale is not None for pair in pairs):
        scales = [
            np.ones(len(n), np.float32) if p.samples.scale is None else p.samples.scale[n]
            for p, n in zip(pairs, counted, strict=True)
        ]
        arrays["scale"] = np.concatenate(scales)[found.order]
    return arrays


def _segmented(found: Segments) -> dict[str, Array]:
    return {"rows": found.rows, "seg": found.ends}


def _counted(samples: Samples) -> NDArray[np.bool_]:
    """Which samples have a gradient."""
    if samples.padding is None:
        return np.ones(len(samples.rows), np.bool_)
    found: NDArray[np.bool_] = samples.rows != samples.padding
    return found


def _added_up(pairs: Sequence[Pair]) -> dict[str, Array]:
    total = accumulated(pairs)
    assert total is not None
    if total.is_sparse:
        found = segments(total._indices()[0].numpy())
        return {**_segmented(found), "grad": total._values().numpy(), "src": found.order}
    rows = np.unique(np.concatenate([pair.samples.rows[_counted(pair.samples)] for pair in pairs]).astype(np.int64))
    every = np.arange(len(rows) + 1)
    return {"rows": rows, "seg": every, "grad": total[torch.from_numpy(rows)].numpy(), "src": every[:-1]}


def sort_order(samples: Samples) -> Array:
    """PyTorch's own: its sort is not stable for some numbers of elements."""
    order: Array = torch.from_numpy(samples.rows).sort()[1].numpy()
    return order


def _check(owner: Owner, samples: Samples) -> None:
    count = len(owner.parameter)
    if len(samples.rows) and not 0 <= samples.rows.min() <= samples.rows.max() < count:
        wrong = int(np.flatnonzero((samples.rows < 0) | (samples.rows >= count))[0])
        raise IndexOutOfRange(
            f"{owner.name}: index {samples.rows[wrong]} of sample {wrong} must be from 0 to {count - 1}"
        )


def run(device: Device, launches: Sequence[PlacedKernel]) -> None:
    """Launch these behind each other, and wait for all of them. An interrupt from the keyboard comes when they have
    ended. None is at work any more when this raises.
    """
    running: list[KernelLaunch] = []
    interrupt: KeyboardInterrupt | None = None
    try:
        for each in launches:
            running.append(each.submit())
        try:
            _wait(running)
        except KeyboardInterrupt as error:
            interrupt = error
            _wait(running)
    except Exception:
        device.withdraw([each.launch for each in running], "another launch of a step has failed")
        raise
    except BaseException:
        device.reset()
        raise
    if interrupt is not None:
        raise Interrupted from interrupt


def _wait(running: Sequence[KernelLaunch]) -> None:
    for each in running:
        each.result()


class Interrupted(KeyboardInterrupt):
    """An interrupt from the keyboard during launches, which have ended well."""
