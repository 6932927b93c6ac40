"""Program words of the execute unit: vector lengths, callbacks, instructions."""

from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from daedal.compiler.codegen.selection import CallbackSelection
from daedal.compiler.dialects import dlc, slcv
from daedal.errors import UnsupportedOperation
from daedal.hw.config import Config
from daedal.hw.isa.program import Word
from daedal.hw.isa.program_words import CallbackField, InstructionField, LengthField


@dataclass
class ExecuteCode:
    """Generates the words of the execute program."""

    program: dlc.ExecuteOp
    config: Config
    _lengths: list[int] = field(default_factory=list)

    def run(self) -> list[Word]:
        """The words; UnsupportedOperation says what there is too little of."""
        accumulators: dict[SSAValue, int] = {}
        instructions: list[dict[str, object]] = []
        callbacks: list[Word] = []
        for op in self.program.body.block.ops:
            if isinstance(op, slcv.AccumulatorOp):
                accumulators[op.result] = len(accumulators)
        self._limit("vector registers", len(accumulators), self.config.vector_registers)
        for op in self.program.body.block.ops:
            if isinstance(op, dlc.CallbackOp):
                token = op.token.value.data
                self._limit("callbacks", token + 1, self.config.callbacks)
                callbacks.append(Word(CallbackField.START, token, len(instructions)))
                instructions += CallbackSelection(op, accumulators, self.config, self._length).run()
        self._limit("instructions", len(instructions), self.config.instructions)
        lengths = [Word(LengthField.ELEMENTS, n, width) for n, width in enumerate(self._lengths)]
        code = [Word.packed(InstructionField.CODE, n, **members) for n, members in enumerate(instructions)]
        return lengths + callbacks + code

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
