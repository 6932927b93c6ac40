"""What ``daedal.compile`` gives for a kernel: loops that run on a device."""

import struct
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from daedal.base.float_mode import default_float_mode
from daedal.base.handle import Handle
from daedal.compiler import array_promises
from daedal.compiler.frontends.python.bounds import Bounds, Need, text
from daedal.compiler.frontends.python.function import KernelFunction
from daedal.compiler.frontends.python.integers import Element, evaluate
from daedal.compiler.frontends.python.scf.writer import Written
from daedal.compiler.frontends.python.signature import Argument
from daedal.compiler.frontends.python.source import ir_name
from daedal.compiler.frontends.torch.device_suitability import why_not, why_not_here
from daedal.compiler.futures import Pending, Submitted
from daedal.compiler.kernel import Kernel
from daedal.compiler.kernel_launch import submit_kernel
from daedal.driver.device import Device
from daedal.driver.launcher import Launch
from daedal.driver.record import Record, Stats
from daedal.driver.tables import Use
from daedal.errors import BoundsWarning, DaedalError, IndexOutOfRange, InvalidOffsets, UnsupportedOperation
from daedal.hw.isa.launch import Counter
from daedal.hw.isa.tools.assembler import disassemble


@dataclass(frozen=True)
class _Made:
    """A kernel for some sizes of rows: what was written, and what was compiled, or why it cannot be."""

    written: Written
    kernel: Kernel


class KernelExecutable(Handle):
    """A kernel for one device: call it with the kernel's arguments.

    Made by ``daedal.compile``. A call fills the arrays that the kernel writes, torch tensors or NumPy arrays, in place
    and returns None, as the Python function does. It serves arrays of any size that the signature allows; for other
    widths of rows than those of the examples it compiles another program and keeps it. ``submit`` does the same and
    gives a future. ``bounds`` is what an index outside its array does, ``opt`` the optimisation level asked for.
    """

    def __init__(self, function: KernelFunction, device: Device, bounds: str, opt: int) -> None:
        self._function, self._device, self.bounds, self.opt = function, device, bounds, opt
        self._made: dict[tuple[tuple[str, int], ...], _Made] = {}
        self._current: _Made | None = None
        self._last_call: Submitted | None = None

    def __copy__(self) -> "KernelExecutable":
        """A copy works on the same device."""
        made = KernelExecutable(self._function, self._device, self.bounds, self.opt)
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
            array_promises.promise(self._device, launch, arrays)
        return submitted

    def _start(
        self, arguments: Sequence[Any], wait: Callable[[Launch], Record]
    ) -> tuple[Submitted, Launch, list[NDArray[Any]]]:
        """The call with these arguments, its launch, which ``wait`` waits for, and the arrays that this fills."""
        _ = self._device.target
        arrays, scalars = self._take(arguments)
        self._check_outputs(arrays)
        array_promises.wait_for(self._device, map(_array, arrays.values()))
        sizes = self._sizes(arrays, scalars)
        made = self._make(sizes)
        self._check_bounds(made.written.bounds, arrays, sizes)
        numbers = {ir_name(name): number for name, number in {**sizes, **scalars}.items()}
        values = {name: numbers[name] for name in made.kernel.values}

        def fill(outputs: Mapping[str, NDArray[Any]]) -> None:
            for name, array in arrays.items():
                if ir_name(name) in outputs:
                    _fill(array, outputs[ir_name(name)])
                    self._device.table_changed(array)  # a tensor may share the memory of a NumPy array

        def explain(error: IndexOutOfRange | InvalidOffsets) -> DaedalError:
            return self._explained(error, made.written.bounds, arrays, sizes)

        try:
            with self._device.preparing():
                run = submit_kernel(self._device, made.kernel, self._buffers(made.kernel, arrays), values, fill)
        except UnsupportedOperation as error:
            raise self._function.source.refusal(self._function.source.tree, str(error)) from error
        submitted = Submitted(wait)
        submitted.add(Pending(run.launch, explain, self._warning))
        filled = sorted(self._function.shape.written & arrays.keys())
        return submitted, run.launch, [_array(arrays[name]) for name in filled]

    def _take(self, arguments: Sequence[Any]) -> tuple[dict[str, Any], dict[str, int]]:
        """The arrays, and the single numbers as launch arguments, by name."""
        signature = self._function.signature
        arrays, scalars = {}, {}
        for name, given in signature.by_name(arguments, self._function.name).items():
            argument = signature.arguments[name]
            if argument.shape is None:
                scalars[argument.name] = _scalar(argument, given, self._device.config.address_bits)
            else:
                _check_array(argument, given)
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
            _check_output(output, arrays[output])
            for name, array in arrays.items():
                if name != output and np.may_share_memory(_array(array), _array(arrays[output])):
                    raise UnsupportedOperation(
                        f"arguments {output!r} and {name!r} must not share memory, because {output!r} is written: "
                        "reads run ahead of writes; give a copy of one of them"
                    )

    def _buffers(self, kernel: Kernel, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """What the launch works on: tables stay on the device."""
        buffers: dict[str, Any] = {}
        given = {ir_name(name): array for name, array in arrays.items()}
        for spec in kernel.buffers:
            array = given[spec.name]
            is_resident = spec.is_table and not spec.is_output and spec.has_free_pitch and len(spec.shape) == 2
            use = Use.PARAMETER if isinstance(array, nn.Parameter) else Use.INPUT
            buffers[spec.name] = self._device.bind_table(spec.name, array, use=use) if is_resident else _array(array)
        return buffers

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
            array = _array(arrays[name])
            if array.size and array.min() < 0:
                position = int(array.argmin())
                raise InvalidOffsets(
                    f"{self._function.source.place(line)}: {name} must not be negative where a loop starts, but its "
                    f"element {position} is {array.flat[position]}"
                )
        for element, limit in bounds.limits.items():
            if self.bounds != "fatal" and evaluate(limit, sizes) <= 0 and _array(arrays[element.array]).size:
                raise IndexOutOfRange(
                    f"{self._function.name}: {text(element)} has nothing to take instead of an index that is out of "
                    "range: the array has no rows"
                )

    def _check_ends(self, lines: Mapping[str, int], arrays: Mapping[str, Any]) -> None:
        """Check that the machine can count to what is loaded where these arrays say where loops start and end."""
        bits = self._device.config.address_bits
        for name, line in lines.items():
            array = _array(arrays[name])
            if array.dtype.itemsize * 8 <= bits or not array.size:
                continue
            value = max(_span(array), key=abs)
            if value >= (1 << (bits - 1)) - 1 or value < -(1 << (bits - 1)):
                raise UnsupportedOperation(
                    f"{self._function.source.place(line)}: {name} says where a loop starts or ends, but has {value}: "
                    f"integers of the machine have {bits} bits"
                )

    def _check_integers(
        self, bounds: Bounds, needs: Mapping[Need, None], arrays: Mapping[str, Any], sizes: Mapping[str, int]
    ) -> None:
        """Check what the machine's arithmetic asks of integers, by the numbers that are in the arrays."""
        unmet = bounds.first_unmet(needs, sizes, lambda name: _span(_array(arrays[name])))
        if unmet is not None:
            need, value = unmet
            raise UnsupportedOperation(
                f"{self._function.source.place(need.line)}: {need.what} must be from {need.low} to {need.high} "
                f"({need.hint}), but {text(need.value)} may reach {value}"
            )

    def _explained(
        self,
        error: IndexOutOfRange | InvalidOffsets,
        bounds: Bounds,
        arrays: Mapping[str, Any],
        sizes: Mapping[str, int],
    ) -> DaedalError:
        """The error of the machine with its line, and the element that has the value, as far as one array has it."""
        source, record = self._function.source, error.record
        is_index = isinstance(error, IndexOutOfRange)
        value = None if record is None else record.signed_value
        elements: Iterable[Element] = () if value is None else bounds.limits if is_index else bounds.lines
        for element in elements:
            limit = (bounds.limits if is_index else bounds.ends).get(element)
            values, least = _array(arrays[element.array]).reshape(-1), evaluate(limit, sizes) if limit else None
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

    def _warning(self, record: Record) -> BoundsWarning | None:
        """What there is to warn of."""
        count = record.counters[Counter.BOUNDS_WARNINGS]
        if not count or self.bounds != "warn":
            return None
        return BoundsWarning(
            f"{self._function.name}: {count} indices were out of range, the first one met "
            f"{record.signed_value}: 0 was taken instead"
        )

    # ------------------------------------------------------------------ looking at it

    @property
    def _last(self) -> _Made:
        assert self._current is not None
        return self._current

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

    def explain(self) -> str:
        """What of the kernel runs where, line by line, what each pass did, and what code generation chose."""
        fixed = next(key for key, made in self._made.items() if made is self._last)
        sizes = ", ".join(f"{name} = {value}" for name, value in fixed)
        lines = [f"{self._function.name}: on the device, in one launch" + (f", compiled for {sizes}" if sizes else "")]
        lines.append(f"optimisation level {self._last.kernel.optimisation}")
        for line, note in dict.fromkeys(self._last.written.notes):
            lines.append(f"{self._function.source.place(line)}: {note}")
        bounds = self._last.written.bounds
        for element in {**bounds.ends, **bounds.limits}:
            who = "nobody (bounds='none')" if self.bounds == "none" else "the machine"
            lines.append(f"{text(element)}: checked by {who}")
        if len(bounds.accesses) > len(bounds.limits):
            lines.append("all other indices: checked by the host before the launch")
        return "\n".join(lines + self._last.kernel.account)


def _array(given: Any) -> NDArray[Any]:
    array: NDArray[Any] = given.detach().resolve_neg().numpy() if isinstance(given, Tensor) else given
    return array


def _span(array: NDArray[Any]) -> tuple[int, int]:
    """Smallest and largest element; of no elements what no number is between."""
    return (int(array.min()), int(array.max())) if array.size else (0, -1)


def _fill(target: Any, result: NDArray[Any]) -> None:
    if isinstance(target, Tensor):
        with torch.no_grad():
            target.copy_(torch.from_numpy(result))
    else:
        target[...] = result


def _check_array(argument: Argument, given: Any) -> None:
    if not isinstance(given, Tensor | np.ndarray):
        raise UnsupportedOperation(
            f"argument {argument.name!r} must be a torch tensor or a NumPy array ({argument.text}), "
            f"not {type(given).__name__}"
        )
    reason = why_not_here() or why_not([given])
    if reason is not None:
        raise UnsupportedOperation(f"argument {argument.name!r} must be plain, outside of modes: {reason}")
    if isinstance(given, Tensor) and given.device.type != "cpu":
        raise UnsupportedOperation(f"argument {argument.name!r} must be on the CPU, not on {given.device}")
    if isinstance(given, Tensor) and (given.layout is not torch.strided or given.is_nested):
        found = "nested" if given.is_nested else str(given.layout)
        raise UnsupportedOperation(f"argument {argument.name!r} must be dense, not {found}: use to_dense()")
    if isinstance(given, np.ma.MaskedArray):
        raise UnsupportedOperation(f"argument {argument.name!r} must not be masked: fill what is masked")
    found = str(given.dtype).removeprefix("torch.")
    if found != argument.dtype:
        raise UnsupportedOperation(
            f"argument {argument.name!r} must be of {argument.dtype} ({argument.text}), not of {found}"
        )


def _check_output(name: str, given: Any) -> None:
    """Check that an array can be written, before anything runs."""
    array = _array(given)
    if isinstance(given, Tensor) and given.is_inference() and not torch.is_inference_mode_enabled():
        raise UnsupportedOperation(
            f"argument {name!r} is written: outside of inference mode it must not be from inside"
        )
    if isinstance(given, np.ndarray) and not given.flags.writeable:
        raise UnsupportedOperation(f"argument {name!r} is written, but read-only: give a copy")
    extent = 0
    for stride, size in sorted((abs(stride), size) for stride, size in zip(array.strides, array.shape, strict=True)):
        if array.size and size > 1 and stride <= extent:
            raise UnsupportedOperation(
                f"argument {name!r} is written, but several of its elements share memory: give a copy"
            )
        extent += stride * (size - 1)


def _scalar(argument: Argument, given: Any, address_bits: int) -> int:
    """A single number as a launch argument: integers as they are, f32 as their bits."""
    if isinstance(given, Tensor | np.ndarray) and given.ndim == 0:
        given = given.item()
    is_number = isinstance(given, int | float | np.integer | np.floating) and not isinstance(given, bool)
    if argument.is_float and is_number:
        with default_float_mode(), np.errstate(over="ignore"), suppress(OverflowError):
            (bits,) = struct.unpack("<I", np.float32(given).tobytes())
            return int(bits)
    limit = 1 << (address_bits - 1) if argument.element == "i64" else 1 << 31
    if is_number and isinstance(given, int | np.integer) and -limit <= given < limit:
        return int(given)
    raise UnsupportedOperation(f"argument {argument.name!r} must be a single {argument.text}, not {given!r}")
