"""What ``daedal.compile`` gives for a kernel: loops that run on a device."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.base.handle import Handle
from daedal.driver.device import Device
from daedal.driver.launch.launch import Launch
from daedal.driver.launch.record import Record, Stats
from daedal.driver.memory.layout import line_pitch, row_pitch
from daedal.driver.tables.quantised import SignedRows
from daedal.driver.tables.table_store import Use
from daedal.errors import BoundsWarning, DaedalError, IndexOutOfRange, InvalidOffsets, UnsupportedOperation
from daedal.hw.isa.launch import Counter
from daedal.hw.isa.tools.assembler import disassemble
from daedal.runtime.futures import Pending, Submitted, promise, wait_for
from daedal.runtime.kernel import Kernel
from daedal.runtime.kernel_launch import submit_kernel
from daedal.runtime.loops.arrays import WhyNot, check_array, check_output, scalar, span
from daedal.runtime.loops.bounds import Bounds, Need, text
from daedal.runtime.loops.host_checks import chained_arrays, check_hosted
from daedal.runtime.loops.integers import Element, evaluate
from daedal.runtime.loops.kernel_function import LoopFunction, Written
from daedal.runtime.loops.saved_function import saved_function
from daedal.runtime.loops.signature import ir_name
from daedal.runtime.saved.files import Writer
from daedal.runtime.tensors import array_of, fill, is_parameter

_NOBODY = "nobody (bounds='none')"


@dataclass(frozen=True)
class _Made:
    """A kernel for some sizes of rows: what was written, and what was compiled, or why it cannot be."""

    written: Written
    kernel: Kernel


@dataclass(frozen=True)
class LoopCall:
    """A call whose arguments were checked.

    Attributes
    ----------
    made
        What runs.
    arrays
        The arrays by name, also those that the host made.
    sizes, scalars
        The sizes, and single numbers as launch arguments, by name.
    warned
        What there is to warn of already.
    """

    made: _Made
    arrays: Mapping[str, Any]
    sizes: Mapping[str, int]
    scalars: Mapping[str, int]
    warned: Sequence[str]


class KernelExecutable(Handle):
    """A kernel for one device: call it with the kernel's arguments.

    Made by ``daedal.compile``. A call fills the arrays that the kernel writes, torch tensors or NumPy arrays, in place
    and returns None, as the Python function does. It serves arrays of any size that the signature allows; for other
    widths of rows than those of the examples it compiles another program and keeps it. ``submit`` does the same and
    gives a future. ``bounds`` is what an index outside its array does, ``opt`` the optimisation level asked for.

    Parameters
    ----------
    function
        The kernel, which makes programs for sizes of rows.
    why_not
        Tells what a framework has against an array or a tensor of its.
    """

    def __init__(self, function: LoopFunction, device: Device, why_not: WhyNot, bounds: str, opt: int) -> None:
        self._function, self._device, self._why_not = function, device, why_not
        self.bounds, self.opt = bounds, opt
        self._made: dict[tuple[tuple[str, int], ...], _Made] = {}
        self._current: _Made | None = None
        self._last_call: Submitted | None = None

    def __copy__(self) -> "KernelExecutable":
        """A copy works on the same device."""
        made = KernelExecutable(self._function, self._device, self._why_not, self.bounds, self.opt)
        made._made, made._current = dict(self._made), self._current
        return made

    def __deepcopy__(self, memo: dict[int, object]) -> "KernelExecutable":
        return self.__copy__()

    @property
    def stats(self) -> Stats:
        """The figures of the last call; of a submitted one, see ``Submitted.stats``."""
        return Stats() if self._last_call is None else self._last_call.stats

    # ------------------------------------------------------------------ running

    def prepare(self, arguments: Sequence[Any]) -> None:
        """Compile what a call with arguments like these needs, without running it."""
        arrays, scalars = self._take(arguments)
        self._make(self._sizes(arrays, scalars))

    def prepare_sizes(self, sizes: Mapping[str, int]) -> None:
        """Compile what rows of these sizes need."""
        self._make(sizes)

    def __call__(self, *arguments: Any) -> None:
        """Run the kernel. What the call writes is in the arrays it was given; after an error they are as before.

        Raises UnsupportedOperation for arguments that do not fit, IndexOutOfRange and InvalidOffsets for indices
        outside of their arrays, and what the device raises. Issues a BoundsWarning with ``bounds="warn"``.
        """
        with self._device.turn:
            self._last_call = None
            self._last_call = submitted = self._start(arguments, self._device.finish)[0]
            submitted.settle()
        for warning in submitted.warnings:
            warnings.warn(warning, stacklevel=2)

    def submit(self, *arguments: Any) -> Submitted:
        """A future, whose result is None, of a call with these arguments: its launch is queued behind those before it.

        The arrays are read now, and those that the kernel writes are filled when the launch has ended well: leave them
        alone until then. Kernels and modules on the same device that are given one of them wait for it. Raises what is
        wrong with the arguments' types, shapes and sizes; all else comes with ``result()``.
        """
        with self._device.turn:
            submitted, launch, arrays = self._start(arguments, Launch.result)
            promise(self._device, launch, arrays)
        return submitted

    def _start(
        self, arguments: Sequence[Any], wait: Callable[[Launch], Record]
    ) -> tuple[Submitted, Launch, list[NDArray[Any]]]:
        """The call with these arguments, its launch, which ``wait`` waits for, and the arrays that this fills."""
        call = self.checked(arguments, [self._device])
        launch = self.launch(call, self._device)
        submitted = Submitted(wait)
        submitted.add(
            Pending(launch, lambda error: self.explained(error, call), lambda record: self.warning(call, [record]))
        )
        return submitted, launch, self.written(call)

    def checked(self, arguments: Sequence[Any], devices: Iterable[object]) -> LoopCall:
        """The call with these arguments, when ``devices`` have filled them; raises what is wrong with them."""
        _ = self._device.target
        arrays, scalars = self._take(arguments)
        self._check_outputs(arrays)
        for device in devices:
            wait_for(device, map(array_of, arrays.values()))
        sizes = self._sizes(arrays, scalars)
        made = self._make(sizes)
        chains, warned = chained_arrays(self._function.source, made.written.bounds, self.bounds, arrays, sizes)
        arrays = {**arrays, **chains}
        self._check_bounds(made.written.bounds, arrays, sizes)
        self._check_rows(made, arrays, sizes)
        return LoopCall(made, arrays, sizes, scalars, warned)

    def launch(self, call: LoopCall, device: Device) -> Launch:
        """Submit a call, which fills what it writes when its launch has ended well."""
        numbers = {ir_name(name): number for name, number in {**call.sizes, **call.scalars}.items()}
        values = {name: numbers[name] for name in call.made.kernel.values}

        def filled(outputs: Mapping[str, NDArray[Any]]) -> None:
            for name, array in call.arrays.items():
                if ir_name(name) in outputs:
                    fill(array, outputs[ir_name(name)])
                    device.table_changed(array)  # a tensor may share the memory of a NumPy array

        try:
            with device.preparing():
                return submit_kernel(device, call.made.kernel, self._buffers(call, device), values, filled).launch
        except UnsupportedOperation as error:
            raise self._function.source.refusal(self._function.source.tree, str(error)) from error

    def written(self, call: LoopCall) -> list[NDArray[Any]]:
        """The arrays that a call fills."""
        return [array_of(call.arrays[name]) for name in sorted(self._function.shape.written & call.arrays.keys())]

    def _take(self, arguments: Sequence[Any]) -> tuple[dict[str, Any], dict[str, int]]:
        """The arrays, and the single numbers as launch arguments, by name."""
        signature = self._function.signature
        arrays, scalars = {}, {}
        for name, given in signature.by_name(arguments, self._function.name).items():
            argument = signature.arguments[name]
            if argument.shape is None:
                scalars[argument.name] = scalar(argument, given, self._device.config.address_bits)
            else:
                check_array(argument, given, self._why_not)
                arrays[argument.name] = given
        return arrays, scalars

    def _sizes(self, arrays: Mapping[str, Any], scalars: Mapping[str, int]) -> dict[str, int]:
        signature = self._function.signature
        whole = {name: number for name, number in scalars.items() if not signature.arguments[name].is_float}
        return signature.sizes({name: tuple(array.shape) for name, array in arrays.items()}, whole)

    def _make(self, sizes: Mapping[str, int]) -> _Made:
        fixed = {name: sizes[name] for name in sorted(self._function.shape.fixed)}
        key = tuple(fixed.items())
        if key not in self._made:
            self._made[key] = _Made(*self._function.build(fixed, self._device.config, self.bounds, self.opt))
        self._current = self._made[key]
        return self._current

    def _check_outputs(self, arrays: Mapping[str, Any]) -> None:
        written = self._function.shape.written
        for output in sorted(written & arrays.keys()):
            check_output(output, arrays[output])
            for name, array in arrays.items():
                if name != output and np.may_share_memory(array_of(array), array_of(arrays[output])):
                    raise UnsupportedOperation(
                        f"arguments {output!r} and {name!r} must not share memory, because {output!r} is written: "
                        "reads run ahead of writes; give a copy of one of them"
                    )

    def _buffers(self, call: LoopCall, device: Device) -> dict[str, Any]:
        """What the launch works on: tables stay on the device."""
        made, arrays, sizes = call.made, call.arrays, call.sizes
        buffers: dict[str, Any] = {}
        given = {ir_name(name): (name, array) for name, array in arrays.items()}
        for spec in made.kernel.buffers:
            name, array = given[spec.name]
            is_resident = spec.is_table and not spec.is_output and spec.has_free_pitch and len(spec.shape) == 2
            if is_resident and made.written.bounds.reads_parts(name, array.shape[1], sizes):
                is_resident = self._lies_in_lines(array_of(array))
            use = Use.PARAMETER if is_parameter(array) else Use.INPUT
            argument = self._function.signature.arguments.get(name)  # none of what the host made
            form = SignedRows() if argument is not None and argument.element == "i8" else None
            if is_resident:
                buffers[spec.name] = device.bind_table(spec.name, array, use=use, form=form)
            else:
                buffers[spec.name] = array_of(array) if form is None else form.pack(array_of(array))
        return buffers

    def _lies_in_lines(self, array: NDArray[Any]) -> bool:
        """Whether parts of its rows can be fetched as well where it is resident."""
        row_bytes, config = array.shape[1] * array.itemsize, self._device.config
        return row_bytes > 0 and row_pitch(row_bytes, config) == line_pitch(row_bytes, config)

    # ------------------------------------------------------------------ indices

    def _check_bounds(self, bounds: Bounds, arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
        checks = self.bounds != "none"
        self._check_integers(bounds, bounds.needs, arrays, sizes)
        self._check_ends(bounds.loaded_ends(machine_checks=checks), arrays)
        fault = bounds.first_fault(sizes, machine_checks=checks)
        if fault is not None:
            access = fault.access
            raise IndexOutOfRange(
                f"{self._function.source.place(access.line)}: index {text(access.index)} of {access.array} in "
                f"dimension {access.dimension} reaches {fault.value}, but must be from 0 to {fault.size - 1}: "
                + ("the machine checks only what is loaded; compile with bounds='none' if it is right"
                   if fault.is_loaded else "give other sizes")
            )  # fmt: skip
        self._check_integers(bounds, bounds.terms, arrays, sizes)
        line_bytes = self._device.config.bus_bytes
        crooked = bounds.first_crooked(sizes, line_bytes)
        if crooked is not None:
            row, first = crooked
            apart = line_bytes // row.element_bytes
            raise UnsupportedOperation(
                f"{self._function.source.place(row.line)}: the row of {row.array} starts at element {first}; rows of "
                f"{row.width} must start at a multiple of {apart} elements, the width of a line of memory"
            )
        if not checks:
            return
        for name, line in bounds.starts.items():
            array = array_of(arrays[name])
            if array.size and array.min() < 0:
                position = int(array.argmin())
                raise InvalidOffsets(
                    f"{self._function.source.place(line)}: {name} must not be negative where a loop starts, but its "
                    f"element {position} is {array.flat[position]}"
                )
        check_hosted(self._function.source, bounds, arrays, sizes)
        for element, limit in bounds.limits.items():
            if self.bounds != "fatal" and evaluate(limit, sizes) <= 0 and array_of(arrays[element.array]).size:
                raise IndexOutOfRange(
                    f"{self._function.name}: {text(element)} has nothing to take instead of an index that is out of "
                    "range: the array has no rows"
                )

    def _check_rows(self, made: _Made, arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> None:
        """Check the numbers of rows that are read and written: what is done for one out of range is done to row 0."""
        distinct = {spec.name for spec in made.kernel.buffers if spec.is_distinct}
        for element, limit in made.written.bounds.limits.items():
            array = array_of(arrays[element.array])
            if self.bounds == "fatal" or ir_name(element.array) not in distinct or not array.size:
                continue  # the machine stops at it, and nothing is lost
            for value in span(array):
                if not 0 <= value < evaluate(limit, sizes):
                    raise IndexOutOfRange(
                        f"{self._function.source.place(made.written.bounds.lines[element])}: {text(element)} is "
                        f"{value}, but must be from 0 to {evaluate(limit, sizes) - 1}: it chooses a row that is read "
                        "and written"
                    )

    def _check_ends(self, lines: Mapping[str, int], arrays: Mapping[str, Any]) -> None:
        """Check that the machine can count to what is loaded where these arrays say where loops start and end."""
        bits = self._device.config.address_bits
        for name, line in lines.items():
            array = array_of(arrays[name])
            if array.dtype.itemsize * 8 <= bits or not array.size:
                continue
            value = max(span(array), key=abs)
            if value >= (1 << (bits - 1)) - 1 or value < -(1 << (bits - 1)):
                raise UnsupportedOperation(
                    f"{self._function.source.place(line)}: {name} says where a loop starts or ends, but has {value}: "
                    f"integers of the machine have {bits} bits"
                )

    def _check_integers(
        self, bounds: Bounds, needs: Mapping[Need, None], arrays: Mapping[str, Any], sizes: Mapping[str, int]
    ) -> None:
        """Check what the machine's arithmetic asks of integers, by the numbers that are in the arrays."""
        unmet = bounds.first_unmet(needs, sizes, lambda name: span(array_of(arrays[name])))
        if unmet is not None:
            need, value = unmet
            raise UnsupportedOperation(
                f"{self._function.source.place(need.line)}: {need.what} must be from {need.low} to {need.high} "
                f"({need.hint}), but {text(need.value)} may reach {value}"
            )

    def explained(self, error: IndexOutOfRange | InvalidOffsets, call: LoopCall) -> DaedalError:
        """The error of the machine with its line, and the element that has the value, as far as one array has it."""
        bounds, arrays, sizes = call.made.written.bounds, call.arrays, call.sizes
        source, record = self._function.source, error.record
        is_index = isinstance(error, IndexOutOfRange)
        value = None if record is None else record.signed_value
        elements: Iterable[Element] = () if value is None else bounds.limits if is_index else bounds.lines
        for element in elements:
            limit = (bounds.limits if is_index else bounds.ends).get(element)
            values, least = array_of(arrays[element.array]).reshape(-1), evaluate(limit, sizes) if limit else None
            is_inside = value is not None and least is not None and 0 <= value < least
            if value not in values or (is_index and is_inside):
                continue
            position = int(np.flatnonzero(values == value)[0])
            must = "" if least is None or is_inside else f", and must be below {max(least, 0)}"
            where = source.place(bounds.lines[element])
            return self._made_again(error, f"{where}: {error}; it is element {position} of {element.array}{must}")
        return self._made_again(error, f"{source.place(source.tree.lineno)}: {error}")

    def _made_again(self, error: IndexOutOfRange | InvalidOffsets, text: str) -> DaedalError:
        made: DaedalError = type(error)(text)
        made.record = error.record
        return made

    def warning(self, call: LoopCall, records: Sequence[Record]) -> BoundsWarning | None:
        """What there is to warn of: what the host found, or a machine, in one of the call's launches."""
        if call.warned:
            return BoundsWarning(f"{self._function.name}: {call.warned[0]}")
        found = [record for record in records if record.counters[Counter.BOUNDS_WARNINGS]]
        if not found or self.bounds != "warn":
            return None
        count = sum(record.counters[Counter.BOUNDS_WARNINGS] for record in found)
        return BoundsWarning(
            f"{self._function.name}: {count} indices were out of range, the first one met "
            f"{found[0].signed_value}: 0 was taken instead"
        )

    # ------------------------------------------------------------------ looking at it

    @property
    def _last(self) -> _Made:
        assert self._current is not None
        return self._current

    def save(self, path: Path | str) -> None:
        """Write a file that ``daedal.load`` makes this executable of, without the compiler (docs/files.md).

        It is for the sizes of rows that there is a program for by now. FileError if it cannot be written.
        """
        writer = Writer()
        made = {key: (each.written.bounds, list(each.written.notes), each.kernel) for key, each in self._made.items()}
        content = saved_function(self._function, made, writer)
        writer.write(Path(path), self._device.config, self.bounds, self.opt, content)

    @property
    def kernels(self) -> dict[str, Kernel]:
        """The kernel as used last, by the function's name."""
        return {self._function.name: self._last.kernel}

    @property
    def program(self) -> bytes:
        """The bytes that the machine executes."""
        return self._last.kernel.program

    def asm(self) -> str:
        """The program as text; ``daedal.assemble`` gives the bytes back."""
        return disassemble(self.program)

    def ir(self, level: str) -> str:
        """The IR of a level (``scf``, ``slc``, ``slcv``, ``dlc``); DaedalError names those there are."""
        return self._last.kernel.ir(level)

    def explain(self, *, passes: bool = False) -> str:
        """What of the kernel runs where, line by line, and what code generation chose; with ``passes``, what each pass
        of the compiler did as well.
        """
        fixed = next(key for key, made in self._made.items() if made is self._last)
        sizes = ", ".join(f"{name} = {value}" for name, value in fixed)
        lines = [f"{self._function.name}: on the device, in one launch" + (f", compiled for {sizes}" if sizes else "")]
        lines.append(f"optimisation level {self._last.kernel.optimisation}")
        for line, note in dict.fromkeys(self._last.written.notes):
            lines.append(f"{self._function.source.place(line)}: {note}")
        bounds = self._last.written.bounds
        for name, chain in bounds.chains.items():
            why = f"made by the host, for want of load slots, from all of {chain.indices}, which it checks"
            lines.append(f"{self._function.source.place(chain.line)}: {name} is {why}")
        machine = bounds.by_machine
        for element in {**bounds.ends, **bounds.limits}:
            who = "the machine" if element in machine else f"the host, in all of {element.array}, for want of loops"
            lines.append(f"{text(element)}: checked by {who if self.bounds != 'none' else _NOBODY}")
        if len(bounds.accesses) > len(bounds.limits):
            lines.append("all other indices: checked by the host before the launch")
        return "\n".join(lines + self._last.kernel.account(passes=passes))
