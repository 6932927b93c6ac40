"""What ``daedal.compile`` gives: a module whose embedding operations run on a device."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx, nn
from torch.utils import _pytree as pytree

from daedal.base.handle import Handle
from daedal.compiler import array_promises
from daedal.compiler.batch_fast_path import Prepared, can_prepare
from daedal.compiler.batch_plan import Member, Plan, bind, check_fits
from daedal.compiler.bounds_diagnostics import check_row_0, warning_of, warning_of_list
from daedal.compiler.fault_diagnostics import named
from daedal.compiler.frontends.requests.bag_list import BagList
from daedal.compiler.frontends.requests.emb_builder import Bag, Lookup
from daedal.compiler.frontends.torch.device_suitability import LeftToPyTorch, is_transformed, why_no_type, why_not_here
from daedal.compiler.frontends.torch.fusion import Join, find_groups
from daedal.compiler.frontends.torch.match import BagCall, Call, LookupCall, find_calls
from daedal.compiler.frontends.torch.partition import Schedule, Work
from daedal.compiler.frontends.torch.requests import Request
from daedal.compiler.frontends.torch.segments import SegmentCall, SparseCall
from daedal.compiler.frontends.torch.trace.input_kinds import OtherInputs, check_inputs
from daedal.compiler.frontends.torch.trace.module_snapshot import Followed
from daedal.compiler.frontends.torch.trace.module_trace import trace
from daedal.compiler.futures import Pending, Submitted
from daedal.compiler.kernel import BEST, Kernel
from daedal.compiler.kernel_launch import submit_kernel, tensor_of
from daedal.compiler.pipeline import compile_emb
from daedal.driver.device import Device
from daedal.driver.launcher import Launch
from daedal.driver.record import Record, Stats
from daedal.errors import BoundsWarning, DaedalError, IndexOutOfRange, InvalidOffsets, UnsupportedOperation
from daedal.hw.isa.launch import Cause
from daedal.hw.isa.tools.assembler import disassemble

KEPT_TRACES = 8
"""Traces of a module, for inputs of other kinds, that an executable keeps."""


class _Traced(NamedTuple):
    """A trace of the module, what of it is offloaded, why other operations are not, and how it runs."""

    graph: fx.GraphModule
    calls: Mapping[fx.Node, Call]
    reasons: Mapping[str, str]
    schedule: Schedule
    followed: Followed | None
    """The module that it is a trace of, as it was then; None for a program that was exported."""

    @property
    def is_current(self) -> bool:
        """Whether the module is still as it was."""
        return self.followed is None or self.followed.is_current()


class Executable(Handle):
    """A module for one device: call it with the module's inputs.

    Made by ``daedal.compile``. It serves every batch size, bag length and index. Inputs of other kinds than the
    examples (types, numbers of dimensions, layouts, other numbers) lead to another trace of the module when it meets
    them, and these, like bags of about one row, to other programs. So does another tensor in the place of a parameter,
    another part, mode (``eval()``) or plain attribute of the module: each call works as the module does at the time.
    ``stats`` are the figures of the last call, summed over its launches. ``bounds`` is what an index outside its
    table does, ``opt`` the optimisation level that was asked for.
    """

    hint = "compile a copy of the module"

    def __init__(
        self,
        graph: fx.GraphModule,
        device: Device,
        module: nn.Module | None,
        bounds: str = "fatal",
        opt: int = BEST,
    ) -> None:
        self.device, self._module, self.bounds, self.opt = device, module, bounds, opt
        self._kernels: dict[tuple[Bag | Lookup | BagList, bool], Kernel | UnsupportedOperation] = {}
        self._current: dict[str, Kernel] = {}
        self._left: dict[str, str] = {}
        """What the last call left to PyTorch, and why."""
        self._last: Submitted | None = None
        self._traces: list[_Traced] = []
        self._set_graph(graph)

    @property
    def stats(self) -> Stats:
        """The figures of the last call, summed over its launches; of a submitted one, see ``Submitted.stats``."""
        return Stats() if self._last is None else self._last.stats

    def _set_graph(self, graph: fx.GraphModule) -> None:
        graph = _copy(graph)
        calls, reasons = self._find(graph)
        if not calls:
            why = [f"{name}: {reason}" for name, reason in reasons.items()]
            raise UnsupportedOperation("; ".join(why) or _nothing(graph))
        followed = None if self._module is None else Followed(self._module)
        self._use(_Traced(graph, calls, reasons, self._schedule_of(graph, calls), followed))

    def _use(self, traced: "_Traced") -> None:
        """Work with this trace, which is now the latest of those that are kept."""
        self._traces = [traced, *(other for other in self._traces if other is not traced)][:KEPT_TRACES]
        self._graph, self._calls, self._reasons, self._schedule, _ = traced

    def _find(self, graph: fx.GraphModule) -> tuple[dict[fx.Node, Call], dict[str, str]]:
        """The operations to offload, and the reasons against others."""
        return find_calls(graph.graph)

    def _schedule_of(self, graph: fx.GraphModule, calls: Mapping[fx.Node, Call]) -> Schedule:
        return Schedule(graph, calls, find_groups(graph.graph, calls))

    # ------------------------------------------------------------------ running

    def __call__(self, *inputs: Any) -> Any:
        """The module's result for these inputs.

        Raises IndexOutOfRange, InvalidOffsets, UnsupportedOperation for inputs that the operations cannot
        take, and what the device raises. Issues a BoundsWarning for each launch that there is to warn of.
        """
        with self.device.turn:
            _ = self.device.target
            array_promises.wait_for(self.device)
            self._last = submitted = Submitted(self.device.finish)
            result = self._evaluate(inputs, self._work(submitted, at_once=True))
        for warning in submitted.warnings:
            warnings.warn(warning, stacklevel=2)
        return result

    def submit(self, *inputs: Any) -> Submitted:
        """A future of the module's result for these inputs: its launches are queued, and run after those queued before.

        What PyTorch runs itself on a result of the device has to wait for it, here and now; so most is gained with
        modules of embedding operations alone. Raises what is wrong with the inputs' types and shapes; all else comes
        with ``result()``, for this call only. Tables are read as they are now, whatever becomes of them later.
        """
        with self.device.turn:
            _ = self.device.target
            array_promises.wait_for(self.device)
            submitted = Submitted(Launch.result)
            submitted.value = self._evaluate(inputs, self._work(submitted, at_once=False))
        return submitted

    def _work(self, submitted: Submitted, *, at_once: bool) -> Work:
        """Who does the operations: launches that are waited for at once, or where their results are needed."""
        self._left = {}

        def call(call: Call, request: Request) -> Tensor:
            result, pending = self._start(call, request)
            submitted.add(pending)
            if at_once or request.empty:
                submitted.settle()
            if request.empty:
                result[request.buffers["offsets"].diff() == 0] = request.empty
            return result

        def single(member: Member) -> Tensor:
            try:
                return call(member.call, member.request)
            except UnsupportedOperation as error:
                return self._refuse(member.call, member.sources, error)

        def group(members: Sequence[Member], joins: Sequence[Join]) -> Mapping[fx.Node, Tensor]:
            values: dict[fx.Node, Tensor] = {}
            for plan, kernel in self._plans(members, joins):
                if kernel is None:
                    values |= {member.node: single(member) for member in plan.members}
                    continue
                results, pending = self._start_plan(plan, kernel)
                submitted.add(pending)
                if at_once:
                    submitted.settle()
                values |= _with_parts(plan, results, submitted.settle)
            return values

        def again(prepared: Prepared, sources: Sequence[Any]) -> Mapping[fx.Node, Tensor] | None:
            started = None if torch.is_grad_enabled() else prepared.start(sources)
            if started is None:
                return None
            results, launch = started
            submitted.add(Pending(launch, lambda error: named(error, prepared.members(sources)), lambda record: None))
            if at_once:
                submitted.settle()
            self._current |= prepared.kernels
            return _with_parts(prepared.plan, results, submitted.settle)

        return Work(call, group, submitted.settle, self._refuse, self._prepare, again)

    def prepare(self, inputs: Sequence[Any]) -> None:
        """Compile what a call with inputs like these needs, without running it on the device.

        What PyTorch runs between the device's operations is run, on zeros; what it changes is changed back.
        """
        work = Work(self._dry_run, self._dry_run_group, lambda: None, self._refuse, rehearses=True)
        self._evaluate(inputs, work)

    def _refuse(self, call: Call, sources: Sequence[Any], error: UnsupportedOperation) -> Tensor:
        """What becomes of an operation that the machine cannot do: embeddings give no result, others are PyTorch's."""
        if isinstance(error, LeftToPyTorch):
            return self._leave(call, sources, error)
        if isinstance(call, BagCall) or (isinstance(call, LookupCall) and not (call.is_gather or call.wraps)):
            raise error
        return self._leave(call, sources, error)

    def _leave(self, call: Call, sources: Sequence[Any], error: UnsupportedOperation) -> Tensor:
        """Let PyTorch do it, and say why."""
        self._left[call.name] = str(error).removeprefix(f"{call.name}: ")
        return call.in_torch(*sources)

    def _evaluate(self, inputs: Sequence[Any], work: Work) -> Any:
        reason = why_not_here() or why_no_type(pytree.tree_leaves(inputs))
        if reason is not None and self._module is not None:
            self._left = dict.fromkeys((call.name for call in self._calls.values()), reason)
            # Without gradients, as below; torch.func would take that for gradients of 0.
            with nullcontext() if is_transformed() else torch.no_grad():
                return self._module(*inputs)
        with torch.no_grad():
            for number, traced in enumerate(list(self._traces)):
                if not traced.is_current:
                    continue
                if number:
                    self._use(traced)
                try:
                    return self._interpret(inputs, work)
                except OtherInputs:
                    if self._module is None:
                        raise
            assert self._module is not None
            graph = trace(self._module, inputs)
            self._traces = [each for each in self._traces if each.followed is None or each.followed.has_its_parts()]
            self._set_graph(graph)
            return self._interpret(inputs, work)

    def _interpret(self, inputs: Sequence[Any], work: Work) -> Any:
        check_inputs(self._graph, inputs)
        before, self._current = self._current, {}
        try:
            return self._schedule.run(inputs, work)
        except AssertionError as error:
            self._current = before
            reason = str(error).strip().splitlines()
            raise OtherInputs(
                f"the inputs must be as the program was exported for: {reason[0] if reason else error!r}; "
                "export it with dynamic shapes"
            ) from error
        except BaseException:
            self._current = self._current or before
            raise

    def _kernel(self, calls: Sequence[Call], operation: Bag | Lookup | BagList, takes_turns: bool) -> Kernel:
        key = operation, takes_turns
        if key not in self._kernels:
            config, module = self.device.config, operation.build()
            try:
                self._kernels[key] = compile_emb(module, config, self.bounds, self.opt, interleaves=takes_turns)
            except UnsupportedOperation as error:
                self._kernels[key] = error
        kernel = self._kernels[key]
        if isinstance(kernel, UnsupportedOperation):
            raise UnsupportedOperation(f"{calls[0].name}: {kernel}") from kernel
        self._current |= {call.name: kernel for call in calls}
        return kernel

    def _dry_run(self, call: Call, request: Request) -> Tensor:
        self._kernel([call], request.operation, request.takes_turns)
        return torch.zeros(request.shape, dtype=torch.float32, device="cpu")

    def _start(self, call: Call, request: Request) -> tuple[Tensor, Pending]:
        """Submit one operation; the tensor that its result will be in."""
        kernel = self._kernel([call], request.operation, request.takes_turns)
        self._check_tables([(call.name, request)])
        rows, width = request.table.shape
        table: Any = request.table
        with self.device.preparing():
            if not isinstance(call.table, fx.Node) or call.table.op in ("placeholder", "get_attr"):
                table = bind(self.device, call, request.table)  # what another node gives is used once
            buffers = {**request.buffers, "table": table, "out": (request.rows, width)}
            run = submit_kernel(self.device, kernel, buffers, request.values)

        def explain(error: IndexOutOfRange | InvalidOffsets) -> DaedalError:
            _say_where(error, call.name, request, rows)
            return error

        pending = Pending(run.launch, explain, self._warns(lambda record: warning_of(call.name, rows, record)))
        result = tensor_of(run.outputs["out"], request.shape)
        return result, pending

    def _plans(self, members: Sequence[Member], joins: Sequence[Join]) -> list[tuple[Plan, Kernel | None]]:
        """The members in as few launches as their programs fit into; no kernel for one that is on its own."""
        present = {member.node for member in members}
        plan = Plan(members, [join for join in joins if present.issuperset(join.parts)], self.device.config)
        if len(members) == 1:
            return [(plan, None)]
        try:
            check_fits(plan)
            return [(plan, self._kernel([member.call for member in members], plan.operation, plan.takes_turns))]
        except UnsupportedOperation:
            half = len(members) // 2
            return [*self._plans(members[:half], joins), *self._plans(members[half:], joins)]

    def _prepare(self, members: Sequence[Member], joins: Sequence[Join]) -> Prepared | None:
        """These operations made ready for other batches, if they are one launch that needs no looking at."""
        if self.bounds in ("warn", "ignore") or torch.is_grad_enabled():
            return None
        (plan, kernel), *others = self._plans(members, joins)
        if others or kernel is None or not can_prepare(plan):
            return None
        return Prepared(plan, kernel, self.device)

    def _dry_run_group(self, members: Sequence[Member], joins: Sequence[Join]) -> dict[fx.Node, Tensor]:
        values: dict[fx.Node, Tensor] = {}
        for plan, kernel in self._plans(members, joins):
            if kernel is None:
                values |= {member.node: self._dry_run(member.call, member.request) for member in plan.members}
            else:
                zeros = {
                    result.node: torch.zeros(result.shape, dtype=torch.float32, device="cpu") for result in plan.results
                }
                values |= _with_parts(plan, zeros, lambda: None)
        return values

    def _start_plan(self, plan: Plan, kernel: Kernel) -> tuple[dict[fx.Node, Tensor], Pending]:
        """Submit operations that run together; the tensors that their results will be in."""
        members = plan.members
        self._check_tables([(member.call.name, member.request) for member in members])
        with self.device.preparing():
            results, launch = plan.submit(self.device, kernel)
        warn = self._warns(lambda record: warning_of_list(members, record))
        return results, Pending(launch, lambda error: named(error, members), warn)

    def _check_tables(self, requests: Sequence[tuple[str, Request]]) -> None:
        if self.bounds in ("warn", "ignore"):
            for name, request in requests:
                check_row_0(name, request)

    def _warns(self, of: Callable[[Record], BoundsWarning | None]) -> Callable[[Record], BoundsWarning | None]:
        """What there is to warn of, if that is wanted."""
        return of if self.bounds == "warn" else lambda record: None

    # ------------------------------------------------------------------ looking at it

    @property
    def kernels(self) -> dict[str, Kernel]:
        """The kernel of each offloaded node, as used last."""
        return dict(self._current)

    @property
    def offloaded(self) -> tuple[str, ...]:
        """The nodes that run on the device."""
        return tuple(call.name for call in self._calls.values() if call.name not in self._left)

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
                "there is no program to show: the last call left everything to PyTorch, as explain() says"
            )
        node = next(iter(self._current)) if node is None else node
        if node not in self._current:
            raise DaedalError(f"node must be one of {', '.join(self._current)}, not {node!r}")
        return self._current[node].ir(level)

    @property
    def code(self) -> str:
        """The module's code: launches, and what PyTorch runs between them."""
        return self._schedule.code

    def explain(self) -> str:
        """Which embedding operations run on the device, and why others do not; all else runs in PyTorch. Then, of each
        program, what each pass did, and what code generation chose.
        """
        remarks = {
            call.name: call.remark for call in self._calls.values() if isinstance(call, SegmentCall | SparseCall)
        }
        lines = []
        for name in self.offloaded:
            line = f"{name}: on the device" + (f"; {remarks[name]}" if name in remarks else "")
            kernel = self._current.get(name)
            lines.append(line if kernel is None else f"{line}; optimisation level {kernel.optimisation}")
        lines += [f"{name}: in PyTorch, because {reason}" for name, reason in {**self._reasons, **self._left}.items()]
        eager = self._schedule.eager.items()
        lines += [f"{name} and what follows: not compiled by PyTorch, because {why}" for name, why in eager]
        programs = {id(kernel): (name, kernel) for name, kernel in reversed(self._current.items())}
        for name, kernel in reversed(programs.values()):
            lines += [f"{name}: {line}" for line in kernel.account]
        return "\n".join(lines)


def _with_parts(plan: Plan, results: Mapping[fx.Node, Tensor], settle: Callable[[], None]) -> dict[fx.Node, Tensor]:
    """The results by node, and copies, once they are there, of parts of concatenations that others use as well."""
    values = dict(results)
    for result in plan.results:
        if result.join is not None and len(result.join.private) < len(result.parts):
            settle()
            for part, column in zip(result.parts, result.columns, strict=True):
                if part.node not in result.join.private:
                    values[part.node] = results[result.node][:, column : column + part.operation.width].clone(
                        memory_format=torch.contiguous_format
                    )
    return values


def _copy(graph: fx.GraphModule) -> fx.GraphModule:
    """The same graph again, over the same parameters: what is given stays as it is."""
    copied, nodes = fx.Graph(), dict[fx.Node, fx.Node]()
    copied.set_codegen(graph.graph._codegen)
    copied.output(copied.graph_copy(graph.graph, nodes))
    return fx.GraphModule(graph, copied)


def _nothing(graph: fx.GraphModule) -> str:
    nodes = [n.name for n in graph.graph.nodes if n.op.startswith("call_") and "guards" not in str(n.target)]
    shown = ", ".join(nodes[:5]) or "no operations at all"
    return f"the module must have an embedding operation to offload, but has only: {shown}"


def _say_where(error: IndexOutOfRange | InvalidOffsets, node: str, request: Request, rows: int) -> None:
    """Say in which operation it was and at which position, and how many rows the table has.

    The machine stops at the first bad value, so this is where the value is first; among offsets, where it
    comes after a greater one.
    """
    record = error.record
    message = f"{node}: {error}"
    if isinstance(error, IndexOutOfRange):
        message += f" (the table has {rows} rows)"
    name = "indices" if isinstance(error, IndexOutOfRange) else "offsets"
    if record is not None and name in request.buffers:
        values = request.buffers[name]
        found = values == record.signed_value
        if record.cause is Cause.BOUNDS_ORDER:
            found[1:] &= values[:-1] > values[1:]
            found[:1] = False
        position = int(found.int().argmax())
        if found[position]:
            message += f"; it is number {position} of the {name}, counted from 0"
            if position and name == "offsets":
                message += f", after {int(values[position - 1])}"
    error.args = (message,)
