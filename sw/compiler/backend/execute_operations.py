"""Operations of ``mach`` for the execute program: lengths of rows, and callbacks with their instructions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from daedal.compiler.analysis.row_loops import is_within, loop_name, root_of
from daedal.compiler.backend.accumulator_registers import registers_of
from daedal.compiler.backend.callback_operations import callback_of
from daedal.compiler.backend.joined_runs import JoinedRuns
from daedal.compiler.backend.operands import Code, number
from daedal.compiler.backend.rotate_quotients import rotated
from daedal.compiler.backend.row_pipelining import KeptRows, Parts
from daedal.compiler.backend.row_stages import vectors_of
from daedal.compiler.backend.select_instructions import CallbackSelection
from daedal.compiler.backend.software_pipelining import Overlap
from daedal.compiler.backend.staged_nests import StagedRows
from daedal.compiler.dialects import dlc, slc
from daedal.compiler.dialects.elements import why_not_converted
from daedal.compiler.dialects.mach_execute import LengthOp
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.hw.isa.elements import LENGTH_ELEMENTS
from daedal.hw.isa.instructions import Mode
from daedal.hw.isa.words import LengthField


@dataclass
class ExecuteCode:
    """Generates the operations of the execute program.

    Parameters
    ----------
    program
        The callbacks.
    config
        The machine.
    nests, events
        Token of a callback -> number of the nest, and the event, that starts it.
    overlaps, joins
        Sums along rows may be computed while later iterations go on; and the end of a loop's run may come behind the
        beginning of its next one, which changes the ``events``.
    stages
        What a row ends with may be done some rows later, which changes nests.
    tokens
        Filled by ``run``: token of a callback -> that of the machine's, mostly one for all with the same instructions.
    choices
        Filled by ``run``, as in ``Generated``.
    overlapped
        Filled by ``run``: nests in which iterations overlap. Their bags must follow each other.
    """

    program: dlc.ExecuteOp
    config: Config
    nests: Mapping[int, int]
    events: Mapping[int, dlc.EventOp]
    overlaps: bool
    joins: bool
    stages: bool
    tokens: dict[int, int] = field(default_factory=dict)
    choices: list[str] = field(default_factory=list)
    overlapped: list[slc.ForOp] = field(default_factory=list)
    _lengths: list[tuple[int, LengthField]] = field(default_factory=list)
    _first: tuple[int, ...] = ()

    def run(self) -> list[Operation]:
        """Lengths and callbacks; UnsupportedOperation says what there is too little of."""
        if not self.config.executes and self._callbacks():
            loop = loop_name(self._loop(self._callbacks()[0].token.value.data))
            raise UnsupportedOperation(
                f"{loop}: configuration {self.config.name} has no execute unit (its instructions are 0): it gathers "
                "rows as they are; for anything else choose a configuration that has one"
            )
        accumulators, constants = self._accumulators(), self._constants()
        codes: list[Code] = []
        selected = {op.token.value.data: self._select(op, accumulators, constants) for op in self._callbacks()}
        if self.overlaps:
            selected = self._overlapped(selected, len({*accumulators.values()}), constants)
        if self.stages and not self.overlapped:
            selected = self._staged(selected, len(constants))
        for token, code in rotated(selected, self.config).items():
            is_new = token in self._first or code not in codes
            self.tokens[token] = len(codes) if is_new else codes.index(code)
            codes += [code] if is_new else []
        self._limit("callbacks", len(codes), self.config.callbacks)
        self._limit("instructions", sum(map(len, codes)), self.config.instructions)
        lengths = [LengthOp(n, *each) for n, each in enumerate(self._lengths)]
        return [*lengths, *(callback_of(token, code) for token, code in enumerate(codes))]

    def _select(
        self, op: dlc.CallbackOp, accumulators: Mapping[SSAValue, int], constants: Mapping[SSAValue, int]
    ) -> Code:
        try:
            code = CallbackSelection(op, accumulators, constants, self.config, self._length).run()
        except UnsupportedOperation as error:
            loop = loop_name(self._loop(op.token.value.data))
            raise UnsupportedOperation(f"{loop}, configuration {self.config.name}: {error}") from error
        if len(constants) <= self.config.scalars - self.config.rotating_scalars:
            _rotate(code)
        return code

    def _loop(self, token: int) -> slc.ForOp:
        loop = self.events[token].parent_op()
        assert isinstance(loop, slc.ForOp)
        return loop

    def _overlapped(
        self, codes: dict[int, Code], accumulators: int, constants: Mapping[SSAValue, int]
    ) -> dict[int, Code]:
        """The callbacks, those of one loop taken apart if they can be (see ``overlap``)."""
        finite = self._finite(constants)
        kept = KeptRows(self.config, len(constants), lambda n: self._lengths[n][0])
        overlap = Overlap(
            self.config, accumulators, len(constants), lambda n: self._lengths[n][0], lambda n: n in finite
        )
        for token, code in codes.items():
            loop = self._loop(token)
            ends = [other for other, event in self.events.items()
                    if event.parent_op() is loop and event.event.data == "end" and event.condition is None]  # fmt: skip
            nest = root_of(loop)
            if self.events[token].event.data != "iteration" or len(ends) != 1:
                continue
            apart = kept.parts(code) if self._is_alone(token, ends[0]) else None
            if apart is not None and (new := self._kept(loop, apart, codes, (token, ends[0]), len(constants))):
                self.overlapped.append(nest)
                return new
            parts = overlap.parts(code, codes[ends[0]])
            others = [other for number, other in codes.items() if number not in (token, ends[0])]
            if parts is not None and overlap.leaves_alone(parts, others):
                new = {number: overlap.moved(other) for number, other in codes.items()}
                new |= {token: overlap.iteration(parts), ends[0]: overlap.end(parts, codes[ends[0]])}
                if not self._fits(new):
                    return codes
                self.overlapped.append(nest)
                self._delays(loop, "in registers that rotate", parts.distance)
                return new
        return codes

    def _kept(
        self, loop: slc.ForOp, apart: Parts, codes: dict[int, Code], tokens: tuple[int, int], constants: int
    ) -> dict[int, Code] | None:
        """The callbacks where the machine keeps rows, joined runs if they can be; ``tokens`` of iteration and end."""
        joined = JoinedRuns(self.config, constants, self.events).joined(loop, apart, codes) if self.joins else None
        if joined is not None:
            self._delays(loop, "the machine keeps them", joined.distance)
            self.choices.append(joined.choice(loop))
            self._first = tuple(joined.joint)
            return joined.joint | joined.others
        for distance in range(apart.distance, 0, -1):
            new = codes | {tokens[0]: apart.iteration(distance), tokens[1]: apart.end(codes[tokens[1]], distance)}
            if self._fits(new):
                self._delays(loop, "the machine keeps them", distance)
                return new
        return None

    def _staged(self, codes: dict[int, Code], constants: int) -> dict[int, Code]:
        """The callbacks, what a row of the only nest with rows ends with in stages if it can be: ``staged_nests``."""
        roots = {token: root_of(self._loop(token)) for token in codes}
        with_rows = {roots[token] for token, code in codes.items() if vectors_of([code])}
        if len(with_rows) != 1:
            return codes  # rows that wait would be in registers of other nests
        rows = StagedRows(self.config, constants, lambda code: self._lengths[number(code, "length")][0], self.events)
        (nest,) = with_rows
        made = rows.staged(nest, {token: code for token, code in codes.items() if roots[token] is nest}, codes)
        if made is None:
            return codes
        self.overlapped.append(nest)
        self.choices.append(made[1])
        return codes | made[0]

    def _delays(self, loop: slc.ForOp, where: str, distance: int) -> None:
        """Note that rows of a loop that are reduced wait for their second use."""
        iterations = "1 iteration" if distance == 1 else f"{distance} iterations"
        self.choices.append(
            f"{loop_name(loop)}: rows wait for the sum along them, {where}; their second use is {iterations} later"
        )

    def _is_alone(self, token: int, end: int) -> bool:
        """Whether nothing runs between the iterations of a callback's loop, and between the last one and its end."""
        loop = self._loop(token)
        others = [event for number, event in self.events.items() if number not in (token, end)]
        return not any(
            is_within(event, loop.body.block) and (event.parent_op() is not loop or event.event.data != "begin")
            for event in others
        )

    def _fits(self, codes: dict[int, Code]) -> bool:
        """Whether the machine has so many instructions."""
        return sum(map(len, codes.values())) <= self.config.instructions

    def _finite(self, constants: Mapping[SSAValue, int]) -> set[int]:
        """The scalar registers of constants that are neither infinite nor NaN."""
        found = set()
        for callback in self._callbacks():
            kept = [op for op in callback.body.block.ops if isinstance(op, dlc.KeepOp)]
            sent = [op for op in self.events[callback.token.value.data].body.block.ops
                    if isinstance(op, dlc.PushScalarOp)]  # fmt: skip
            for keep, push in zip(kept, sent, strict=False):
                constant = push.value.owner
                number = constant.value if isinstance(constant, arith.ConstantOp) else None
                if isinstance(number, FloatAttr) and isfinite(number.value.data):
                    found.add(constants[keep.scalar])
        return found

    def _constants(self) -> dict[SSAValue, int]:
        """Constant -> scalar register."""
        values = [op.result for op in self.program.body.block.ops if isinstance(op, dlc.ScalarOp)]
        self._limit("scalar registers for constants", len(values), self.config.scalars)
        return {value: self.config.scalars - 1 - n for n, value in enumerate(values)}

    def _callbacks(self) -> list[dlc.CallbackOp]:
        return [op for op in self.program.body.block.ops if isinstance(op, dlc.CallbackOp)]

    def _accumulators(self) -> dict[SSAValue, int]:
        """Accumulator -> vector register."""
        registers = registers_of(self.program, self.events)
        self._limit("vector registers", len(set(registers.values())), self.config.vector_registers)
        return registers

    def _length(self, width: int, kind: LengthField) -> int:
        """The length register for rows of ``width`` elements of this type."""
        if kind not in self.config.length_fields:
            raise UnsupportedOperation(why_not_converted(LENGTH_ELEMENTS[kind]))
        if width > self.config.vl_max:
            raise UnsupportedOperation(
                f"a row of {width} elements must fit a vector register of {self.config.vl_max}: run tile-columns first"
            )
        if (width, kind) not in self._lengths:
            self._limit("lengths of rows", len(self._lengths) + 1, self.config.lengths)
            self._lengths.append((width, kind))
        return self._lengths.index((width, kind))

    def _limit(self, what: str, needed: int, there: int) -> None:
        if needed > there:
            raise UnsupportedOperation(
                f"the callbacks need {needed} {what}; configuration {self.config.name} has {there}"
            )


def _rotate(code: Code) -> None:
    """After a reduction the scalar registers rotate, so that the next one's result has another place and need not wait
    until all is done with this one's.
    """
    if any(members.get("mode") is Mode.REDUCE for members in code):
        code[-1]["rotate_scalars"] = 1
