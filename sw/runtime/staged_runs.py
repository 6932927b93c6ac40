"""Runs of a kernel on the same tables and on arrays of the same sizes, again and again, with little ado."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.base.handle import Handle
from daedal.driver.device import Device
from daedal.driver.launch.launch import Launch
from daedal.driver.tables.table_sources import array_type
from daedal.driver.tables.table_store import Table
from daedal.runtime.batch.staging import Layout, Part, Placed, StagedProgram, Staging
from daedal.runtime.kernel import Kernel
from daedal.runtime.kernel_launch import check_buffer, region_of, submit_kernel
from daedal.runtime.launch_arguments import Buffer

Array = NDArray[Any]

MOST_STAGED = 1 << 20
"""Bytes of inputs from which on a copy of them on the host costs more than it saves."""


class Form:
    """What is the same in all runs: which tables, shapes and types of arrays, numbers; and what follows from that."""

    def __init__(self, device: Device, kernel: Kernel, buffers: Mapping[str, Any], values: Mapping[str, int]) -> None:
        self.values = dict(values)
        self.sources = {name: _form_of(source) for name, source in buffers.items()}
        self._fixed: dict[str, Buffer] = {}
        inputs, outputs = dict[str, Part](), dict[str, Part]()
        for spec in kernel.buffers:
            source = buffers[spec.name]
            if isinstance(source, Table):
                check_buffer(spec, (source.rows, source.dim), source.dtype)
                item = array_type(source.dtype).itemsize
                self._fixed[spec.name] = Buffer(source.address, (source.rows, source.dim), (source.pitch, item))
            elif isinstance(source, tuple):
                check_buffer(spec, source, spec.dtype)
                outputs[spec.name] = Part(source, array_type(spec.dtype))
            else:
                check_buffer(spec, source.shape, str(source.dtype))
                inputs[spec.name] = Part(source.shape, source.dtype)
        self.inputs = Staging(device, inputs)
        self.outputs, self._layout = tuple(outputs), Layout(list(outputs.values()))
        self._kernel, program = kernel, device.load_program(kernel.program)
        self.is_repeated = False
        """Whether there was more than one run of it."""
        self.program = StagedProgram(device, program, self.inputs, self._layout, self._placed)

    @staticmethod
    def can_be_of(kernel: Kernel, buffers: Mapping[str, Any]) -> bool:
        """Whether all of these are tables, small arrays that are only read, and results that are only written."""
        small = 0
        for spec in kernel.buffers:
            source = buffers.get(spec.name)
            if isinstance(source, np.ndarray) and not spec.is_output and not spec.has_free_pitch:
                small += source.nbytes
            elif not (isinstance(source, tuple) and spec.is_output and source) and not isinstance(source, Table):
                return False
        return small <= MOST_STAGED

    def fits(self, buffers: Mapping[str, Any], values: Mapping[str, int]) -> bool:
        """Whether a run with these is of this form."""
        sources = self.sources
        return values == self.values and all(_form_of(given) == sources[name] for name, given in buffers.items())

    def _placed(self, address: int, first: int) -> Placed:
        """What the launch is told if its inputs are at ``address``, and what it writes at ``first``."""
        buffers = self._fixed | self.inputs.buffers(address)
        reads = [region_of(buffer) for buffer in buffers.values()]
        for name, place, part in zip(self.outputs, self._layout.places, self._layout.parts, strict=True):
            buffers[name] = Buffer(first + place, part.shape, part.strides)
        return Placed(tuple(self._kernel.launch_arguments(buffers, self.values)), reads)


def _form_of(source: Any) -> object:
    return (source.shape, source.dtype) if isinstance(source, np.ndarray) else source


class StagedRuns(Handle):
    """Runs of one kernel."""

    def __init__(self, device: Device, kernel: Kernel) -> None:
        self.kernel, self._device = kernel, device
        self.form: Form | None = None
        """Of the last run; None while one is made ready."""

    def submit(
        self,
        buffers: Mapping[str, Any],
        values: Mapping[str, int],
        filled: Callable[[Mapping[str, Array]], None] = lambda outputs: None,
    ) -> tuple[Launch, Mapping[str, Array]]:
        """Submit a run, as ``submit_kernel`` does; the launch, and the arrays that it will have filled."""
        device = self._device
        form, self.form = self.form, None
        if form is None or not form.fits(buffers, values):
            if not Form.can_be_of(self.kernel, buffers):
                run = submit_kernel(device, self.kernel, buffers, values, filled)
                return run.launch, run.outputs
            form = Form(device, self.kernel, buffers, values)
        else:
            form.is_repeated = True
        for name, array in form.inputs.arrays.items():
            array[...] = buffers[name]
        outputs, launch = form.program.submit(lambda arrays: filled(dict(zip(form.outputs, arrays, strict=True))))
        self.form = form
        return launch, dict(zip(form.outputs, outputs, strict=True))
