"""Program words of the execute unit: vector lengths, callbacks, instructions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from daedal.compiler.codegen.selection import CallbackSelection
from daedal.compiler.dialects import dlc, slc, slcv
from daedal.compiler.transforms.rows import loop_name
from daedal.errors import UnsupportedOperation
from daedal.hw.config import Config
from daedal.hw.isa.execute import Mode
from daedal.hw.isa.program import Word
from daedal.hw.isa.program_words import CallbackField, InstructionField, LengthField

Code = list[dict[str, object]]
"""The members of each instruction of a callback."""


@dataclass
class ExecuteCode:
    """Generates the words of the execute program.

    Parameters
    ----------
    program
        The callbacks.
    config
        The machine.
    nests, loops
        Token of a callback -> number of the nest, and the loop, that starts it.
    tokens
        Filled by ``run``: token of a callback -> that of the machine's callback. Callbacks with the same
        instructions are one.
    """

    program: dlc.ExecuteOp
    config: Config
    nests: Mapping[int, int]
    loops: Mapping[int, slc.ForOp]
    tokens: dict[int, int] = field(default_factory=dict)
    _lengths: list[int] = field(default_factory=list)

    def run(self) -> list[Word]:
        """The words; UnsupportedOperation says what there is too little of."""
        accumulators, constants = self._accumulators(), self._constants()
        codes: list[Code] = []
        for op in self._callbacks():
            code = self._select(op, accumulators, constants)
            if code not in codes:
                codes.append(code)
            self.tokens[op.token.value.data] = codes.index(code)
        instructions = [members for code in codes for members in code]
        self._limit("callbacks", len(codes), self.config.callbacks)
        self._limit("instructions", len(instructions), self.config.instructions)
        lengths = [Word(LengthField.ELEMENTS, n, width) for n, width in enumerate(self._lengths)]
        starts = [sum(map(len, codes[:token])) for token in range(len(codes))]
        callbacks = [Word(CallbackField.START, token, start) for token, start in enumerate(starts)]
        return (
            lengths + callbacks + [Word.packed(InstructionField.CODE, n, **code) for n, code in enumerate(instructions)]
        )

    def _select(
        self, op: dlc.CallbackOp, accumulators: Mapping[SSAValue, int], constants: Mapping[SSAValue, int]
    ) -> Code:
        try:
            code = CallbackSelection(op, accumulators, constants, self.config, self._length).run()
        except UnsupportedOperation as error:
            loop = loop_name(self.loops[op.token.value.data])
            raise UnsupportedOperation(f"{loop}, configuration {self.config.name}: {error}") from error
        if len(constants) <= self.config.scalars - self.config.rotating_scalars:
            _rotate(code)
        return code

    def _constants(self) -> dict[SSAValue, int]:
        """Constant -> scalar register."""
        values = [op.result for op in self.program.body.block.ops if isinstance(op, dlc.ScalarOp)]
        self._limit("scalar registers for constants", len(values), self.config.scalars)
        return {value: self.config.scalars - 1 - n for n, value in enumerate(values)}

    def _callbacks(self) -> list[dlc.CallbackOp]:
        return [op for op in self.program.body.block.ops if isinstance(op, dlc.CallbackOp)]

    def _accumulators(self) -> dict[SSAValue, int]:
        """Accumulator -> vector register.

        Those that are cleared by their last read are empty before and after their nest, so that those of
        another nest can be in the same registers.
        """
        nests: dict[SSAValue, set[int]] = {}
        cleared: set[SSAValue] = set()
        for op in self.program.body.block.ops:
            if isinstance(op, slcv.AccumulatorOp):
                nests[op.result] = set()
        for callback in self._callbacks():
            for access in callback.body.block.ops:
                if isinstance(access, slcv.GetOp | slcv.SetOp):
                    nests[access.accumulator].add(self.nests[callback.token.value.data])
                if isinstance(access, slcv.GetOp) and access.clear is not None:
                    cleared.add(access.accumulator)
        shared = {value for value, used in nests.items() if value in cleared and len(used) == 1}
        registers = {value: n for n, value in enumerate(value for value in nests if value not in shared)}
        first = len(registers)
        taken: dict[int, int] = {}
        for value in (value for value in nests if value in shared):
            (nest,) = nests[value]
            registers[value] = first + taken.setdefault(nest, 0)
            taken[nest] += 1
        self._limit("vector registers", first + max(taken.values(), default=0), self.config.vector_registers)
        return registers

    def _length(self, width: int) -> int:
        """The length register for rows of ``width`` elements."""
        if width > self.config.vl_max:
            raise UnsupportedOperation(
                f"a row of {width} elements must fit a vector register of {self.config.vl_max}: run tile-columns first"
            )
        if width not in self._lengths:
            self._limit("lengths of rows", len(self._lengths) + 1, self.config.lengths)
            self._lengths.append(width)
        return self._lengths.index(width)

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
