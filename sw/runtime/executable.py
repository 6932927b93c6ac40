"""What ``daedal.compile`` gives: a model whose embedding operations run on a device."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daedal.base.handle import Handle
from daedal.driver.device import Device
from daedal.driver.launch.launch import Launch
from daedal.driver.launch.record import Record, Stats
from daedal.driver.tables.table_sources import array_of
from daedal.driver.tables.table_store import Table, Use
from daedal.driver.tables.table_watch import Watch
from daedal.errors import (
    BoundsWarning,
    DaedalError,
    IndexOutOfRange,
    InvalidOffsets,
    OutOfDeviceMemory,
    UnsupportedOperation,
)
from daedal.hw.isa.launch import Counter
from daedal.hw.isa.tools.assembler import disassemble
from daedal.runtime.batch.fast_path import FastPath
from daedal.runtime.batch.launches import by_bags
from daedal.runtime.batch.members import Call, Join, Member, bind, can_share, is_in_list, is_of_model, kind_of
from daedal.runtime.batch.plan import Plan, check_fits
from daedal.runtime.batch.same_sizes import SameSizes
from daedal.runtime.batch.strands import chain_of
from daedal.runtime.copies import CopiedRows, made_of
from daedal.runtime.diagnostics import check_row_0, named, say_where, warning_of
from daedal.runtime.explanation import Explanation
from daedal.runtime.futures import Pending, Submitted, wait_for
from daedal.runtime.host_program import HostProgram, Work
from daedal.runtime.kernel import Kernel
from daedal.runtime.operations import Bag, Lookup, Operation, with_other_blocks
from daedal.runtime.request import Request, exact_counts
from daedal.runtime.saved.contents import OperationKernel, SavedPlan, operations_of
from daedal.runtime.saved.files import Writer
from daedal.runtime.saved.operations import SavedPooledLookup
from daedal.runtime.single_path import SinglePath
from daedal.runtime.staged_runs import StagedRuns
from daedal.runtime.tensors import is_parameter, needs_gradients, number_of, result_of, zeros

if TYPE_CHECKING:
    from torch import Tensor, fx


def _no_warning(record: Record) -> None:
    """There is nothing to warn of."""


def _filled(request: Request) -> Callable[[Mapping[str, Any]], None]:
    """What the host does with what a launch gave for a request."""

    def filled(outputs: Mapping[str, Any]) -> None:
        if request.finish is not None:
            request.finish(outputs["out"])

    return filled


def _request_alone(member: Member) -> Request:
    """The request for an operation that is a launch of its own."""
    return (chain_of(member) if is_in_list(member) else None) or member.request


Compile = Callable[[Operation, bool], Kernel]
"""The kernel of an operation; the second says whether bags are long. UnsupportedOperation if there is none."""


class Executable(Handle):
    """A model for one device: call it with the model's inputs.

    Made by ``daedal.compile``. It serves every batch size, bag length and index. Inputs of other kinds than the
    examples (types, numbers of dimensions, layouts, other numbers) lead to another trace of the module when it meets
    them, and these, like bags of about one row, to other programs. So does another tensor in the place of a parameter,
    another part, mode (``eval()``) or plain attribute of the module: each call works as the module does at the time.
    ``stats`` are the figures of the last call, summed over its launches. ``bounds`` is what an index outside its
    table does, ``opt`` the optimisation level that was asked for.

    Parameters
    ----------
    program
        The model on the host, which hands over its operations.
    compile
        Makes the kernel of an operation when a call needs it first.
    """

    hint = "compile a copy of the module"

    def __init__(self, program: HostProgram, device: Device, compile: Compile, bounds: str, opt: int) -> None:
        self.device, self.bounds, self.opt = device, bounds, opt
        self._program, self._compile = program, compile
        self._kernels: dict[tuple[Operation, bool], Kernel | UnsupportedOperation] = {}
        self._seen: dict[Operation, None] = {}
        """Operations of groups, each by itself."""
        self._current: dict[str, Kernel] = {}
        self._runs: dict[str, StagedRuns] = {}
        self._watched: dict[str, tuple[Watch, Table]] = {}
        """Of single operations, by name: what runs their kernels, and their tables."""
        self._left: dict[str, str] = {}
        """What the last call left to PyTorch, and why."""
        self._launched: list[list[str]] = []
        """The operations of each launch of the last call, or of its rehearsal."""
        self._last: Submitted | None = None

    @property
    def stats(self) -> Stats:
        """The figures of the last call, summed over its launches; of a submitted one, see ``Submitted.stats``."""
        return Stats() if self._last is None else self._last.stats

    # ------------------------------------------------------------------ running

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """The module's result for these inputs, by position or by name as the module takes them.

        Raises IndexOutOfRange, InvalidOffsets, UnsupportedOperation for inputs that the operations cannot
        take, and what the device raises. Issues a BoundsWarning for each launch that there is to warn of.
        """
        with self.device.turn:
            _ = self.device.target
            wait_for(self.device)
            given = self._program.by_position(inputs, named)
            self._last = submitted = Submitted(self.device.finish)
            result = self._program.run(given, self._work(submitted, at_once=True))
        for warning in submitted.warnings:
            warnings.warn(warning, stacklevel=2)
        return result

    def submit(self, *inputs: Any, **named: Any) -> Submitted:
        """A future of the module's result for these inputs: its launches are queued, and run after those queued before.

        What PyTorch runs itself on a result of the device has to wait for it, here and now; so most is gained with
        modules of embedding operations alone. Raises what is wrong with the inputs' types and shapes; all else comes
        with ``result()``, for this call only. Tables are read as they are now, whatever becomes of them later.
        """
        with self.device.turn:
            _ = self.device.target
            wait_for(self.device)
            submitted = Submitted(Launch.result)
            given = self._program.by_position(inputs, named)
            submitted.value = self._program.run(given, self._work(submitted, at_once=False))
        return submitted

    def _work(self, submitted: Submitted, *, at_once: bool) -> Work:
        """Who does the operations: launches that are waited for at once, or where their results are needed."""
        self._left, self._launched = {}, []

        def call(call: Call, request: Request) -> "Tensor":
            result, pending = self._start(call, request)
            self._launched.append([call.name])
            submitted.add(pending)
            if at_once or request.empty:
                submitted.settle()
            if request.empty:
                none = np.diff(request.buffers["offsets"]) == 0
                result[result_of(none, none.shape, "bool", request.table)] = number_of(request.empty, result)
            return result

        def single(member: Member) -> "Tensor":
            try:
                return call(member.call, _request_alone(member))
            except UnsupportedOperation as error:
                return self._refuse(member.call, member.sources, error)

        def group(members: Sequence[Member], joins: Sequence[Join]) -> "Mapping[fx.Node, Tensor]":
            values: dict[fx.Node, Tensor] = {}
            for plan, kernel in self._plans(members, joins):
                if kernel is None:
                    values |= {member.node: single(member) for member in plan.members}
                    continue
                try:
                    results, pending = self._start_plan(plan, kernel)
                except OutOfDeviceMemory:
                    if len(plan.members) == 1:
                        raise
                    pending = None
                if pending is None:  # one by one they may fit
                    for member in plan.members:
                        submitted.settle()
                        values[member.node] = single(member)
                    continue
                submitted.add(pending)
                self._launched.append([member.call.name for member in plan.members])
                if at_once:
                    submitted.settle()
                values |= plan.with_parts(results, submitted.settle)
            return values

        def again(
            prepared: FastPath | SameSizes, sources: Sequence[Any], known: bool
        ) -> "Mapping[fx.Node, Tensor] | None":
            started = None if needs_gradients() else prepared.start(sources, are_known=known)
            if started is None:
                return None
            results, launch = started
            submitted.add(Pending(launch, lambda error: named(error, prepared.members(sources)), _no_warning))
            if at_once:
                submitted.settle()
            self._current |= prepared.kernels
            self._launched.append(list(prepared.kernels))
            return prepared.with_parts(results, submitted.settle)

        def once_more(prepared: SinglePath, sources: Sequence[Any]) -> "Tensor | None":
            started = None if needs_gradients() else prepared.start(sources)
            if started is None:
                return None
            result, launch = started
            submitted.add(Pending(launch, lambda error: self._explained(error, prepared, sources), _no_warning))
            if at_once:
                submitted.settle()
            self._current[prepared.call.name] = prepared.kernel
            self._launched.append([prepared.call.name])
            return result

        return Work(
            call, group, submitted.settle, self._refuse, self._prepare, again, self._attempt, self._leave_all,
            False, self._prepare_one, once_more,
        )  # fmt: skip

    def take_kernels(self, kernels: Mapping[tuple[Operation, bool], Kernel]) -> None:
        """Programs that there are: for an operation with short bags, or with long ones."""
        self._kernels.update(kernels)

    def prepare(self, inputs: Sequence[Any]) -> None:
        """Compile what a call with inputs like these needs, without running it on the device.

        What PyTorch runs between the device's operations is run, on zeros; what it changes is changed back.
        """
        work = Work(
            self._dry_run,
            self._dry_run_group,
            lambda: None,
            self._refuse,
            attempt=self._attempt,
            leave_all=self._leave_all,
            rehearses=True,
        )
        self._program.run(inputs, work)

    def _refuse(self, call: Call, sources: Sequence[Any], error: UnsupportedOperation) -> "Tensor":
        """What becomes of an operation that the machine cannot do: PyTorch does it, if the program says so."""
        if not self._program.can_leave(call, error):
            raise error
        self._left[call.name] = str(error).removeprefix(f"{call.label}: ")
        return call.in_torch(*sources)

    def _leave_all(self, calls: Iterable[Call], reason: str) -> None:
        self._left, self._launched = dict.fromkeys((call.name for call in calls), reason), []

    def _attempt(self, run: Callable[[], Any]) -> Any:
        """Run a trace of the model. ``kernels`` are those of this run; of the one before if nothing comes of it."""
        before, self._current, self._launched = self._current, {}, []
        try:
            return run()
        except AssertionError:
            self._current = before
            raise
        except BaseException:
            self._current = self._current or before
            raise

    def _kernel(self, calls: Sequence[Call], operation: Operation, has_long_bags: bool) -> Kernel:
        key = operation, has_long_bags
        kernel = self._kernels.get(key)
        if kernel is None:
            try:
                kernel = self._compile(operation, has_long_bags)
            except UnsupportedOperation as error:
                kernel = error
            self._kernels[key] = kernel
        if isinstance(kernel, UnsupportedOperation):
            raise UnsupportedOperation(f"{calls[0].label}: {kernel}") from kernel
        for call in calls:
            self._current[call.name] = kernel
        return kernel

    def _dry_run(self, call: Call, request: Request) -> "Tensor":
        self._kernel([call], request.operation, request.has_long_bags)
        self._launched.append([call.name])
        return zeros(request.shape, request.dtype)

    def _start(self, call: Call, request: Request) -> "tuple[Tensor, Pending]":
        """Submit one operation; the tensor that its result will be in."""
        kernel = self._kernel([call], request.operation, request.has_long_bags)
        self._check_tables([(call.label, request)])
        rows = len(request.table)
        copied = CopiedRows(request) if isinstance(request.operation, Lookup) else None
        table: Any = request.table
        with self.device.preparing():
            if getattr(call.table, "op", "get_attr") in ("placeholder", "get_attr"):
                table = self._table(call, request)  # what another node gives is used once
            elif request.form is not None:
                table = request.form.pack(array_of(request.table))
            if copied is not None:
                element = request.operation.element
                table = table.made_of(element) if isinstance(table, Table) else made_of(table, element)
            buffers = {**request.buffers, "table": table, "out": request.out}
            for number, (name, other) in enumerate(request.others, 1):
                use = Use.PARAMETER if is_parameter(other) else Use.INPUT
                buffers[f"table{number}"] = self.device.bind_table(name, other, use=use)
            runs = self._runs.get(call.name)
            if runs is None or runs.kernel is not kernel:
                runs = self._runs[call.name] = StagedRuns(self.device, kernel)
            filled = copied.filled if copied is not None else _filled(request)
            launch, arrays = runs.submit(buffers, request.values, filled)

        def explain(error: IndexOutOfRange | InvalidOffsets) -> DaedalError:
            say_where(error, call.label, request, rows)
            return error

        pending = Pending(launch, explain, self._warns([(call.label, request)]))
        array = arrays["out"]
        if copied is not None:
            return copied.result(array), pending
        return result_of(array, request.shape, request.dtype, request.table), pending

    def _table(self, call: Call, request: Request) -> Table:
        """The resident table of an operation; of the same tensor again with one look at it."""
        source = request.table
        if request.form is not None:
            return bind(self.device, call, source, request.form)
        watched = self._watched.get(call.name)
        if watched is not None and watched[0].is_of([source]) and self.device.are_current(watched[0]):
            return watched[1]
        self._watched.pop(call.name, None)
        table = bind(self.device, call, source)
        watch = self.device.watch_tables([source]) if is_of_model(call, source) else None  # others may go any time
        if watch is not None:
            self._watched[call.name] = watch, table
        return table

    def _plans(self, members: Sequence[Member], joins: Sequence[Join]) -> list[tuple[Plan, Kernel | None]]:
        """The members in as few launches as their programs fit into; no kernel for one that is on its own."""
        alone = [member for member in members if len(members) > 1 and not can_share(member)]
        if alone:
            others = [member for member in members if member not in alone]
            plans = self._plans(others, joins) if others else []
            return [*plans, *(plan for member in alone for plan in self._plans([member], joins))]
        self._seen |= dict.fromkeys(member.request.operation for member in members if not is_in_list(member))
        if (apart := self._apart(members, joins)) is not None:
            return apart
        present = {member.node for member in members}
        plan = Plan(members, [join for join in joins if present.issuperset(join.parts)], self.device.config)
        if len(members) == 1 and (not is_in_list(members[0]) or chain_of(members[0]) is not None):
            return [(plan, None)]
        try:
            check_fits(plan)
            return [(plan, self._kernel([member.call for member in members], plan.operation, plan.has_long_bags))]
        except UnsupportedOperation as error:
            if len(members) == 1:
                request = members[0].request
                self._kernels[request.operation, request.has_long_bags] = error
                return [(plan, None)]
            members, half = members if joins else sorted(members, key=kind_of), len(members) // 2
            return [*self._plans(members[:half], joins), *self._plans(members[half:], joins)]

    def _apart(self, members: Sequence[Member], joins: Sequence[Join]) -> list[tuple[Plan, Kernel | None]] | None:
        """Those with about as many bags in launches of their own; None where that is one, or programs are missing, as
        they may be to an executable of a file.
        """
        launches = by_bags(members, self.device.config)
        if len(launches) == 1:
            return None
        try:
            plans = [plan for each in launches for plan in self._plans(each, joins)]
            for member in (plan.members[0] for plan, kernel in plans if kernel is None):
                self._kernel([member.call], member.request.operation, member.request.has_long_bags)
        except UnsupportedOperation:
            return None
        return plans

    def _prepare(self, members: Sequence[Member], joins: Sequence[Join]) -> FastPath | SameSizes | None:
        """These operations made ready for other batches, if they are one launch that needs no looking at."""
        if self.bounds in ("warn", "ignore") or needs_gradients():
            return None
        (plan, kernel), *others = self._plans(members, joins)
        if others or kernel is None:
            return None
        given = self.device, kernel, self._program.request_of
        try:
            return plan.fast_path(*given) or plan.same_sizes(*given)
        except OutOfDeviceMemory:  # they were done one by one
            return None

    def _prepare_one(self, call: Call, request: Request, sources: Sequence[Any]) -> SinglePath | None:
        """An operation, which was just started, made ready for others like it."""
        watched, runs = self._watched.get(call.name), self._runs.get(call.name)
        if watched is None or runs is None or runs.form is None or not runs.form.is_repeated:
            return None
        operation = request.operation
        if request.empty or request.finish is not None or needs_gradients():
            return None
        if (
            isinstance(operation, Bag)
            and operation.mode == "mean"
            and request.lookups > exact_counts(operation.element)
        ):
            return None  # how long each bag is has to be looked at
        is_copied = not isinstance(request.operation, Lookup) or CopiedRows(request).is_whole
        if self.bounds in ("warn", "ignore") or not is_copied or not SinglePath.can_be_of(sources):
            return None
        return SinglePath(self.device, call, request, sources, watched[0], runs, runs.form)

    def _explained(
        self, error: IndexOutOfRange | InvalidOffsets, prepared: SinglePath, sources: Sequence[Any]
    ) -> DaedalError:
        """The error of a launch with these sources, in words of theirs."""
        say_where(error, prepared.call.label, self._program.request_of(prepared.call, sources), prepared.rows)
        return error

    def _dry_run_group(self, members: Sequence[Member], joins: Sequence[Join]) -> "dict[fx.Node, Tensor]":
        values: dict[fx.Node, Tensor] = {}
        for plan, kernel in self._plans(members, joins):
            if kernel is None:
                values |= {member.node: self._dry_run(member.call, _request_alone(member)) for member in plan.members}
            else:
                self._launched.append([member.call.name for member in plan.members])
                empty = {result.node: zeros(*plan.form_of(result)) for result in plan.results}
                values |= plan.with_parts(empty, lambda: None)
        return values

    def _start_plan(self, plan: Plan, kernel: Kernel) -> "tuple[dict[fx.Node, Tensor], Pending]":
        """Submit operations that run together; the tensors that their results will be in."""
        members = plan.members
        self._check_tables([(member.call.label, member.request) for member in members])
        with self.device.preparing():
            results, launch = plan.submit(self.device, kernel)
        warn = self._warns([(member.call.label, member.request) for member in members])
        return results, Pending(launch, lambda error: named(error, members), warn)

    def _check_tables(self, requests: Sequence[tuple[str, Request]]) -> None:
        if self.bounds in ("warn", "ignore"):
            for name, request in requests:
                check_row_0(name, request)

    def _warns(self, operations: Sequence[tuple[str, Request]]) -> Callable[[Record], BoundsWarning | None]:
        """What there is to warn of after a launch of these operations, if that is wanted."""
        if self.bounds != "warn":
            return _no_warning
        return lambda record: warning_of(operations, record.counters[Counter.BOUNDS_WARNINGS], [record.signed_value])

    # ------------------------------------------------------------------ saving it

    def save(self, path: Path | str) -> None:
        """Write a file that ``daedal.load`` makes this executable of, without PyTorch and the compiler (docs/files.md).

        It is for inputs of the kinds that the executable has had by now, of any sizes; its tables are not in it.
        UnsupportedOperation, with what to do instead, for what a file cannot hold, as what PyTorch computes between
        launches; FileError if it cannot be written.
        """
        writer = Writer()
        content = self._program.saved(writer)
        adds_in_blocks = any(isinstance(each, SavedPooledLookup) for each in operations_of(content))
        operations = tuple(
            OperationKernel(operation, has_long_bags, writer.kernel(kernel))
            for (operation, has_long_bags), kernel in self.programs(adds_in_blocks=adds_in_blocks).items()
        )
        content = replace(content, operations=operations, plan=self._saved_plan())
        writer.write(Path(path), self.device.config, self.bounds, self.opt, content)

    def tables(self) -> dict[str, Any]:
        """The module's tensors that ``daedal.load`` is to be given, by name: most have it in ``state_dict``, but those
        of quantised modules are rows of bytes here.
        """
        return dict(self._program.tables())

    def programs(self, *, adds_in_blocks: bool) -> dict[tuple[Operation, bool], Kernel]:
        """The programs that there are by now, those of the operations of lists alone, as a system shares them out, and
        of all these with bags of other lengths; ``adds_in_blocks``: some add up rows in blocks, where there are many.
        """
        wanted = dict.fromkeys(operation for operation, _ in self._kernels) | self._seen
        if adds_in_blocks:
            wanted |= {each: None for operation in list(wanted) for each in with_other_blocks(operation)}
        for key in [(operation, is_long) for operation in wanted for is_long in (False, True)]:
            if key not in self._kernels:
                try:
                    self._kernels[key] = self._compile(*key)
                except UnsupportedOperation as error:
                    self._kernels[key] = error
        return {key: kernel for key, kernel in self._kernels.items() if isinstance(kernel, Kernel)}

    def _saved_plan(self) -> SavedPlan | None:
        """Who does what; nothing to say of one device."""
        return None

    # ------------------------------------------------------------------ looking at it

    @property
    def kernels(self) -> dict[str, Kernel]:
        """The kernel of each offloaded node, as used last."""
        return dict(self._current)

    @property
    def fewest_launches(self) -> int:
        """The most operations of which each needs the result of the one before: no call can have fewer launches, if all
        are done on the device.
        """
        return self._program.fewest_launches

    @property
    def offloaded(self) -> tuple[str, ...]:
        """The nodes that run on the device."""
        return tuple(call.name for call in self._program.calls if call.name not in self._left)

    @property
    def program(self) -> bytes:
        """The bytes that the machine executes; of several programs, one after the other."""
        return b"".join(self._programs())

    def _programs(self) -> list[bytes]:
        return list(dict.fromkeys(kernel.program for kernel in self._current.values()))

    def asm(self) -> str:
        """The program as text; ``daedal.assemble`` gives the bytes back."""
        return "".join(disassemble(program) for program in self._programs())

    def ir(self, level: str, node: str | None = None) -> str:
        """The IR of a level (``emb``, ``scf``, ``slc``, ``slcv``, ``dlc``) of an offloaded node, by default
        the first.

        DaedalError names the levels and nodes that there are.
        """
        if not self._current:
            raise DaedalError(
                f"there is no program to show: the last call left everything to {self._program.framework}, as "
                "explain() says"
            )
        node = next(iter(self._current)) if node is None else node
        if node not in self._current:
            raise DaedalError(f"node must be one of {', '.join(self._current)}, not {node!r}")
        return self._current[node].ir(level)

    @property
    def code(self) -> str:
        """The module's code: launches, and what PyTorch runs between them."""
        return self._program.code

    def explain(self, *, passes: bool = False) -> str:
        """A summary of at most ten lines: what runs on the device, in how many launches, what stays in the framework,
        and why. Then a line for each operation, and what code generation chose; with ``passes``, what each pass of the
        compiler did, too. It is of the last call, or of the compilation if there was none.
        """
        program = self._program
        labels = {call.name: call.label for call in program.calls if call.name not in self._left}
        left = {call.label: self._left[call.name] for call in program.calls if call.name in self._left}
        return Explanation(
            labels,
            self._launched,
            {**program.reasons, **left},
            program.remarks,
            self._current,
            program.eager,
            framework=program.framework,
        ).text(passes=passes)
