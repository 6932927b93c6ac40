"""What ``daedal.compile`` gives for a system: a model whose operations are shared out to tiles."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from daedal.driver.device import Device
from daedal.errors import (
    DaedalError,
    IndexOutOfRange,
    InvalidOffsets,
    UnsupportedOperation,
)
from daedal.runtime.batch.members import Call, Join, Member, Result, can_share, has_strands, results_of, with_parts
from daedal.runtime.diagnostics import named, say_where
from daedal.runtime.executable import Compile, Executable
from daedal.runtime.futures import wait_for
from daedal.runtime.host_program import HostProgram, Work
from daedal.runtime.kernel import Kernel
from daedal.runtime.operations import Operation
from daedal.runtime.request import Array, Request
from daedal.runtime.saved.contents import SavedPlan
from daedal.runtime.tensors import array_of, empty_like, number_of, result_of, zeros_like
from daedal.system.cuts import columns_in
from daedal.system.demand import Demands
from daedal.system.futures import SystemSubmitted
from daedal.system.plan import Plan
from daedal.system.sharing import Sharing, shared
from daedal.system.stats import SystemStats
from daedal.system.system import System
from daedal.system.tile import Lookups, Part, TileExecutable, Unit

if TYPE_CHECKING:
    from torch import Tensor, fx

Planner = Callable[[Demands, System], Plan]
"""Makes a plan from what a sample asks for."""


def _shared_of(members: Sequence[Member], joins: Sequence[Join]) -> tuple[list[Member], list[Member], list[Join]]:
    """The operations among these that tiles do together; all others, one by one; and concatenations of the former."""
    together = [member for member in members if can_share(member) and not has_strands(member)]
    nodes = {member.node for member in together}
    others = [member for member in members if member.node not in nodes]
    return together, others, [join for join in joins if nodes.issuperset(join.parts)]


def _forms_of(results: Sequence[Result]) -> "Iterator[tuple[fx.Node, tuple[int, ...], str]]":
    """The shape and type of the tensor of each result."""
    for result in results:
        yield result.node, result.dimensions, result.parts[0].request.dtype


def _zeros(request: Request) -> "Tensor":
    """What a request gives where nothing is done in earnest."""
    found: Tensor = zeros_like(request.shape, request.dtype, request.table)
    return found


class SystemExecutable(Executable):
    """A model for a system: call it with the model's inputs.

    It is an ``Executable``, of which ``device`` is the system and ``stats`` have ``per_tile``. Results have the same
    bits for every plan. A fault is one tile's: the launches of that call on the others are cancelled, and the call
    raises the first fault of the lowest tile that had one, with that tile's number as ``.tile``.

    Parameters
    ----------
    program
        The model on the host, which hands over its operations.
    system
        Where they run.
    compile
        Makes the kernel of an operation.
    planner
        Makes the plan from the first inputs, if there is none.
    plan
        Who does what.
    is_given
        Whether a table that is not as in this plan is an error.
    """

    def __init__(
        self,
        program: HostProgram,
        system: System,
        compile: Compile,
        bounds: str,
        opt: int,
        planner: Planner,
        plan: Plan | None = None,
        *,
        is_given: bool = True,
    ) -> None:
        super().__init__(program, cast(Device, system), compile, bounds, opt)
        self.system, self._planner = system, planner
        self._sharing = None if plan is None else Sharing(plan, is_given=is_given)
        one = shared(compile)
        self._tiles = [TileExecutable(tile, one, bounds, opt) for tile in system.tiles]
        self._done: SystemSubmitted | None = None
        if plan is not None:
            plan.check_system((system.config.name, system.config.hash), system.memory, len(system.tiles))

    @property
    def plan(self) -> Plan | None:
        """Who does what; None before the first call if it was not compiled for inputs."""
        return None if self._sharing is None else self._sharing.plan

    @property
    def stats(self) -> SystemStats:
        """The figures of the last call, all tiles together and ``per_tile``; ``cycles`` are the longest tile's."""
        return SystemStats(per_tile=()) if self._done is None else self._done.stats

    def take_kernels(self, kernels: Mapping[tuple[Operation, bool], Kernel]) -> None:
        """Programs that there are, for any tile."""
        for tile in self._tiles:
            tile.take_kernels(kernels)

    def programs(self, *, adds_in_blocks: bool) -> dict[tuple[Operation, bool], Kernel]:
        """Those of all tiles."""
        found: dict[tuple[Operation, bool], Kernel] = {}
        for tile in self._tiles:
            found |= tile.programs(adds_in_blocks=adds_in_blocks)
        return found

    def _saved_plan(self) -> SavedPlan | None:
        sharing = self._sharing
        if sharing is None:
            return None
        return SavedPlan(json.dumps(sharing.plan.document(), separators=(",", ":")), sharing.is_given)

    # ------------------------------------------------------------------ running

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """The module's result for these inputs; raises, and warns, as ``Executable`` does."""
        with self.system.turn:
            submitted = self._begin(self._program.by_position(inputs, named))
            self._done = submitted
            submitted.settle_or_cancel()
        submitted.warn()
        return submitted.value

    def submit(self, *inputs: Any, **named: Any) -> Any:
        """A future of the module's result for these inputs, whose launches are queued on all tiles."""
        with self.system.turn:
            return self._begin(self._program.by_position(inputs, named))

    def _begin(self, inputs: Sequence[Any]) -> SystemSubmitted:
        self.system.check_open()
        for device in (self.system, *self.system.tiles):
            wait_for(device)
        self._make_plan(inputs)
        submitted = SystemSubmitted(self.system.tiles, self.system.in_threads)
        try:
            submitted.value = self._program.run(inputs, self._system_work(submitted))
        except BaseException:
            submitted.cancel()
            raise
        return submitted

    def _system_work(self, submitted: SystemSubmitted) -> Work:
        """Who does the operations: the tiles; their results are waited for where they are needed."""
        self._left, self._launched = {}, []

        def call(call: Call, request: Request) -> "Tensor":
            return self._single(call, request, partial(self._start_unit, submitted), submitted.then)

        def single(member: Member) -> "Tensor":
            try:
                return call(member.call, member.request)
            except UnsupportedOperation as error:
                return self._refuse(member.call, member.sources, error)

        def group(members: Sequence[Member], joins: Sequence[Join]) -> "Mapping[fx.Node, Tensor]":
            shared, others, joined = _shared_of(members, joins)
            values = {member.node: single(member) for member in others}
            if not shared:
                return values
            start = partial(self._start_unit, submitted)
            try:
                return {**values, **self._group(shared, joined, start, submitted.then, submitted.settle)}
            except UnsupportedOperation as error:
                if len(shared) == 1:
                    return values | {each.node: self._refuse(each.call, each.sources, error) for each in shared}
                return values | {each.node: single(each) for each in shared}

        return Work(call, group, submitted.settle, self._refuse, attempt=self._attempt, leave_all=self._leave_all)

    def _start_unit(self, submitted: SystemSubmitted, units: Mapping[int, Unit]) -> None:
        """Submit the launches of what each tile has to do; none stays if one of them cannot: UnsupportedOperation."""
        numbers = sorted(units)
        before = [call.mark() for call in submitted.calls]
        works = [partial(submitted.calls[n].begin, units[n], self._tiles[n]) for n in numbers]
        errors = self.system.in_threads(works)
        for number, error in zip(numbers, errors, strict=True):
            if error is None:
                continue
            if isinstance(error, UnsupportedOperation):
                for call, mark in zip(submitted.calls, before, strict=True):
                    call.forget(mark)
            elif isinstance(error, DaedalError):
                error.tile = number
            raise error
        if self.bounds == "warn" and numbers:
            submitted.watch(units[numbers[0]].lookups)
        self._note_launches(numbers)

    def _note_launches(self, tiles: Iterable[int]) -> None:
        """Of what these tiles were asked for last."""
        for tile in map(self._tiles.__getitem__, tiles):
            self._launched += tile.launched
            self._current |= {name: kernel for name, kernel in tile.kernels.items() if name not in self._current}

    # ------------------------------------------------------------------ cutting

    def _single(
        self,
        call: Call,
        request: Request,
        start: Callable[[Mapping[int, Unit]], None],
        then: Callable[[Callable[[], None]], None],
    ) -> "Tensor":
        result: Tensor = empty_like(request.shape, request.dtype, request.table)
        whole = array_of(result).reshape(request.rows, columns_in(request))

        def explain(error: IndexOutOfRange | InvalidOffsets) -> DaedalError:
            say_where(error, call.label, request, len(request.table))
            return error

        parts = self._shares(call, request, whole)
        lookups = Lookups([(call.label, request)])
        start({tile: Unit(each, is_group=False, explain=explain, lookups=lookups) for tile, each in parts.items()})
        if request.empty:
            none = np.diff(request.buffers["offsets"]) == 0
            chosen, value = result_of(none, none.shape, "bool", request.table), number_of(request.empty, result)
            then(lambda: result.__setitem__(chosen, value))
        return result

    def _group(
        self,
        members: Sequence[Member],
        joins: Sequence[Join],
        start: Callable[[Mapping[int, Unit]], None],
        then: Callable[[Callable[[], None]], None],
        settle: Callable[[], None],
    ) -> "Mapping[fx.Node, Tensor]":

        def explain(error: IndexOutOfRange | InvalidOffsets) -> DaedalError:
            return named(error, members)

        results = results_of(members, joins)
        found: dict[Any, Tensor] = {}
        parts: dict[int, list[Part]] = {}
        filled: list[tuple[Array, Array, float]] = []
        for result, (node, shape, dtype) in zip(results, _forms_of(results), strict=True):
            found[node] = tensor = empty_like(shape, dtype, result.parts[0].request.table)
            widths = [columns_in(member.request) for member in result.parts]
            whole, first = array_of(tensor).reshape(result.parts[0].request.rows, sum(widths)), 0
            for member, width in zip(result.parts, widths, strict=True):
                place, first = whole[:, first : first + width], first + width
                for tile, each in self._shares(member.call, member.request, place).items():
                    parts.setdefault(tile, []).extend(each)
                if member.request.empty:
                    filled.append((place, np.diff(member.offsets) == 0, member.request.empty))
        lookups = Lookups([(member.call.label, member.request) for member in members])
        start({tile: Unit(each, is_group=True, explain=explain, lookups=lookups) for tile, each in parts.items()})
        for place, are_empty, value in filled:
            then(partial(place.__setitem__, are_empty, value))
        return with_parts(results, found, settle)

    def _shares(self, call: Call, request: Request, whole: Array) -> dict[int, list[Part]]:
        assert self._sharing is not None
        return self._sharing.parts(call, request, whole)

    # ------------------------------------------------------------------ preparing

    def prepare(self, inputs: Sequence[Any]) -> None:
        """Plan, if there is no plan, and compile what a call with inputs like these needs, without running it."""
        self._make_plan(inputs)
        super().prepare(inputs)

    def _make_plan(self, inputs: Sequence[Any]) -> None:
        if self._sharing is None:
            self._sharing = Sharing(self._planner(self.demands(inputs), self.system), is_given=False)

    def demands(self, inputs: Sequence[Any]) -> Demands:
        """What a call with these inputs asks of the tiles."""
        demands = Demands()

        def call(call: Call, request: Request) -> "Tensor":
            demands.add(call, request)
            return _zeros(request)

        def group(members: Sequence[Member], joins: Sequence[Join]) -> "Mapping[fx.Node, Tensor]":
            for member in members:
                demands.add(member.call, member.request, is_listed=len(members) > 1)
            shared, others, joined = _shared_of(members, joins)
            results = results_of(shared, joined)
            values = {
                node: zeros_like(shape, dtype, each.parts[0].request.table)
                for each, (node, shape, dtype) in zip(results, _forms_of(results), strict=True)
            }
            values = with_parts(results, values, lambda: None)
            return values | {each.node: _zeros(each.request) for each in others}

        work = Work(
            call, group, lambda: None, self._refuse, attempt=self._attempt, leave_all=self._leave_all, rehearses=True
        )
        self._program.run(inputs, work)
        return demands

    def _rehearse(self, units: Mapping[int, Unit]) -> None:
        for tile, unit in units.items():
            self._tiles[tile].rehearse(unit)
        self._note_launches(units)

    def _dry_run(self, call: Call, request: Request) -> "Tensor":
        self._single(call, request, self._rehearse, lambda complete: None)
        return _zeros(request)

    def _dry_run_group(self, members: Sequence[Member], joins: Sequence[Join]) -> "dict[fx.Node, Tensor]":
        shared, others, joined = _shared_of(members, joins)
        found = self._group(shared, joined, self._rehearse, lambda _: None, lambda: None) if shared else {}
        values = {node: tensor.zero_() for node, tensor in found.items()}
        return values | {member.node: self._dry_run(member.call, member.request) for member in others}

    # ------------------------------------------------------------------ looking at it

    def explain(self, **options: Any) -> str:
        """What ``Executable.explain`` says, and then the plan: the load of each tile, and who does what."""
        text = super().explain(**options)
        return text if self.plan is None else f"{text}\n{self.plan.explain()}"
