"""Runs kernels on a device: places buffers, launches, fetches results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daedal.base.handle import Handle
from daedal.driver.device import Device
from daedal.driver.launch.launch import Launch
from daedal.driver.launch.record import Record, Stats
from daedal.driver.memory.arena import Arena
from daedal.driver.memory.layout import line_pitch, row_mapping, table_mapping
from daedal.driver.memory.regions import Region
from daedal.driver.tables.table_sources import array_type
from daedal.driver.tables.table_store import Table
from daedal.errors import UnsupportedOperation
from daedal.hw.isa.address_mapping import PLAIN
from daedal.hw.isa.elements import ROW_GRANULE
from daedal.runtime.kernel import BufferSpec, Kernel
from daedal.runtime.launch_arguments import Buffer
from daedal.runtime.loops.distinct import check_distinct
from daedal.runtime.tensors import array_of


@dataclass(frozen=True)
class KernelRun:
    """What a run of a kernel gave: arrays by buffer name, and the launch's record."""

    outputs: dict[str, NDArray[Any]]
    record: Record

    @property
    def stats(self) -> Stats:
        """The launch's figures."""
        return self.record.stats


class KernelLaunch(Handle):
    """A run of a kernel that was submitted; its buffers live until it has ended."""

    launch: Launch

    def __init__(
        self,
        device: Device,
        arena: Arena,
        outputs: Mapping[str, tuple[Buffer, NDArray[Any]]],
        filled: Callable[[Mapping[str, NDArray[Any]]], None],
    ) -> None:
        self._device, self._arena, self._outputs, self._filled = device, arena, outputs, filled

    @property
    def outputs(self) -> dict[str, NDArray[Any]]:
        """Arrays by buffer name, whose content is undefined before the launch has ended well."""
        return {name: array for name, (_, array) in self._outputs.items()}

    def ended(self, record: Record | None) -> None:
        """The launch has ended: fetch what it gives, and give the buffers back."""
        try:
            if record is not None:
                for buffer, array in self._outputs.values():
                    array[...] = self._download(buffer, array)
                self._filled(self.outputs)
        finally:
            self._arena.release()

    def _download(self, buffer: Buffer, array: NDArray[Any]) -> NDArray[Any]:
        """What a buffer holds, without the bytes between its rows."""
        if array.ndim < 2:
            return self._arena.download(buffer.address, array.shape, array.dtype)
        shape = (*array.shape[:-1], buffer.strides[-2] // array.itemsize)
        return self._arena.download(buffer.address, shape, array.dtype)[..., : array.shape[-1]]

    def finish(self) -> KernelRun:
        """Wait for its end, and stop it if that is interrupted; what it gave. Raises what the launch raises."""
        return KernelRun(self.outputs, self._device.finish(self.launch))

    def result(self, timeout: float | None = None) -> KernelRun:
        """Wait for its end; what it gave. Raises what the launch raises, TimeoutError after so many seconds."""
        return KernelRun(self.outputs, self.launch.result(timeout))


def run_kernel(
    device: Device,
    kernel: Kernel,
    buffers: Mapping[str, Any],
    values: Mapping[str, int] | None = None,
) -> KernelRun:
    """Run ``kernel`` with these buffers and numbers; see :func:`submit_kernel`."""
    return submit_kernel(device, kernel, buffers, values).finish()


class PlacedKernel(Handle):
    """A run of a kernel whose buffers are checked and in device memory, and which is not launched yet."""

    def __init__(self, run: KernelLaunch, submit: Callable[[Callable[[Record | None], None]], Launch]) -> None:
        self._run, self._submit = run, submit

    def submit(self) -> KernelLaunch:
        """Launch it, once."""
        self._run.launch = self._submit(self._run.ended)
        return self._run


def submit_kernel(
    device: Device,
    kernel: Kernel,
    buffers: Mapping[str, Any],
    values: Mapping[str, int] | None = None,
    filled: Callable[[Mapping[str, NDArray[Any]]], None] = lambda outputs: None,
) -> KernelLaunch:
    """Submit a run of ``kernel`` with these buffers and numbers; see :func:`place_kernel`."""
    return place_kernel(device, kernel, buffers, values, filled).submit()


def place_kernel(
    device: Device,
    kernel: Kernel,
    buffers: Mapping[str, Any],
    values: Mapping[str, int] | None = None,
    filled: Callable[[Mapping[str, NDArray[Any]]], None] = lambda outputs: None,
) -> PlacedKernel:
    """Make ready a run of ``kernel`` with these buffers and numbers.

    When it has ended well, ``filled`` is given the outputs.

    A buffer is a NumPy array or torch tensor of the dtype and shape that the kernel says; for rows it may be a resident
    ``Table``, for anything a ``Buffer`` that is in device memory already, both of which stay there when the kernel
    writes them. For an output it may be a tuple, its shape, if its content before the run does not matter. Raises
    UnsupportedOperation for buffers that do not fit.
    """
    values = {} if values is None else values
    missing = [spec.name for spec in kernel.buffers if spec.name not in buffers]
    missing += [name for name in kernel.values if name not in values]
    if missing:
        raise UnsupportedOperation(f"a run of this kernel must be given {', '.join(missing)} as well")
    for spec in kernel.buffers:
        if spec.is_distinct:
            check_distinct(spec.name, array_of(buffers[spec.name]))
    program = device.load_program(kernel.program)
    arena = device.arena()  # an interrupt leaves it to the launch, or to nobody
    placed = _place_all(device, arena, kernel, buffers)
    outputs = {
        spec.name: (placed[spec.name], np.empty(placed[spec.name].shape, array_type(spec.dtype)))
        for spec in kernel.buffers
        if spec.is_output and not isinstance(buffers[spec.name], Table | Buffer)
    }
    run = KernelLaunch(device, arena, outputs, filled)
    reads = [region_of(buffer) for buffer in placed.values()]
    writes = [region_of(placed[spec.name]) for spec in kernel.buffers if spec.is_output]
    arguments = kernel.launch_arguments(placed, values)
    return PlacedKernel(run, lambda ended: device.submit(program, arguments, reads=reads, writes=writes, ended=ended))


def region_of(buffer: Buffer) -> Region:
    """The memory that a buffer takes."""
    return Region(buffer.address, max(buffer.end - buffer.address, ROW_GRANULE))


class _Content(NamedTuple):
    """What a buffer is to hold, if that matters, and how it lies in memory."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int
    mapping: int
    array: NDArray[Any] | None = None


def _place_all(device: Device, arena: Arena, kernel: Kernel, sources: Mapping[str, Any]) -> dict[str, Buffer]:
    """Buffers by name. The outputs lie next to each other, so that the launch's store window is small."""
    contents = {
        spec.name: _content(device, spec, sources[spec.name])
        for spec in kernel.buffers
        if not isinstance(sources[spec.name], Table | Buffer)
    }
    outputs = [spec.name for spec in kernel.buffers if spec.is_output and spec.name in contents]
    addresses: dict[str, int] = {}
    placed: dict[str, Buffer] = {}
    for spec in kernel.buffers:
        name, source = spec.name, sources[spec.name]
        if isinstance(source, Table):
            check_buffer(spec, (source.rows, source.dim), source.dtype)
            strides = (source.pitch, array_type(source.dtype).itemsize)
            placed[name] = _in_memory(spec, Buffer(source.address, (source.rows, source.dim), strides))
            continue
        if isinstance(source, Buffer):
            check_buffer(spec, source.shape, spec.dtype)
            placed[name] = _in_memory(spec, source)
            continue
        content = contents[name]
        if name in outputs and name not in addresses:
            each = [contents[output] for output in outputs]
            together = arena.reserve_together([one.size for one in each], [one.mapping for one in each])
            addresses |= dict(zip(outputs, together, strict=True))
        elif name not in outputs:
            addresses[name] = arena.reserve(content.size, mapping=content.mapping)
        if content.array is not None:
            arena.fill(addresses[name], content.array)
        placed[name] = Buffer(addresses[name], content.shape, content.strides)
    return placed


def _in_memory(spec: BufferSpec, buffer: Buffer) -> Buffer:
    """A buffer in device memory. UnsupportedOperation if its elements are not where the kernel looks for them."""
    wanted = _contiguous(buffer.shape, array_type(spec.dtype).itemsize)
    if spec.has_free_pitch:
        wanted = (*buffer.strides[:-1], *wanted[-1:])
    if buffer.strides != wanted:
        raise UnsupportedOperation(
            f"buffer {spec.name!r} must have steps of {wanted} bytes, not {buffer.strides}: the kernel has no argument "
            "for others"
        )
    return buffer


def _content(device: Device, spec: BufferSpec, source: Any) -> _Content:
    if isinstance(source, tuple):
        check_buffer(spec, source, spec.dtype)
        strides = _contiguous(source, array_type(spec.dtype).itemsize)
        size = source[0] * strides[0] if source else ROW_GRANULE
        return _Content(tuple(source), strides, max(size, 1), PLAIN)
    array = np.ascontiguousarray(array_of(source))
    check_buffer(spec, array.shape, str(array.dtype))
    strides = _contiguous(array.shape, array.itemsize)
    if spec.has_free_pitch and array.ndim > 1 and array.shape[-1]:
        pitch = line_pitch(array.shape[-1] * array.itemsize, device.config)  # parts of rows may be read
        padded = np.zeros((*array.shape[:-1], pitch // array.itemsize), array.dtype)
        padded[..., : array.shape[-1]] = array
        strides = (*_contiguous(padded.shape, array.itemsize)[:-1], array.itemsize)
        rows = 0 if spec.is_output else padded.nbytes // pitch
        mapping = table_mapping(rows, pitch, device.config) if rows else row_mapping(pitch, device.config)
        return _Content(source.shape, strides, padded.nbytes, mapping, padded)
    return _Content(array.shape, strides, array.nbytes, device.memory.array_mapping, array)


def _contiguous(shape: Sequence[int], item: int) -> tuple[int, ...]:
    strides, size = [], item
    for length in reversed(shape):
        strides.append(size)
        size *= length
    return tuple(reversed(strides))


def check_buffer(spec: BufferSpec, shape: Sequence[int], dtype: str) -> None:
    """Raise UnsupportedOperation for a buffer that is not as the kernel says."""
    fits = len(shape) == len(spec.shape) and all(
        wanted is None or wanted == given for wanted, given in zip(spec.shape, shape, strict=True)
    )
    if not fits or dtype not in (spec.dtype, str(array_type(spec.dtype))):
        wanted = ", ".join("?" if size is None else str(size) for size in spec.shape)
        raise UnsupportedOperation(
            f"buffer {spec.name!r} must be of {spec.dtype} with shape ({wanted}), not of {dtype} with {tuple(shape)}"
        )
