"""Dialect ``slc``, structured lookup-compute: a nest of loops over streams, with compute in callbacks.

What a loop's iterations need to find their data (bounds, loads of indices, integer arithmetic, checks) are
*streams*, made by the access unit. What is done with the data is in *callbacks*, which run at an event of the
loop in whose body they stand.
"""

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    IndexType,
    IntegerType,
    MemRefType,
    StringAttr,
    i1,
)
from xdsl.ir import (
    Attribute,
    Block,
    BlockArgument,
    Dialect,
    Operation,
    ParametrizedAttribute,
    Region,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from daedal.compiler.dialects.check import verify_kind, verify_mode
from daedal.compiler.dialects.elements import LANE

EVENTS = ("begin", "iteration", "end")
"""When a callback runs: before the first iteration, in each one before the inner loop, after the last one."""

ARITHMETIC = ("add", "sub", "mul", "and", "min", "max", "shift_left", "shift_right")
COMPARISONS = ("equal", "not_equal", "less")
"""Operations of ``slc.alu``; comparisons (signed) give a stream of i1."""


@irdl_attr_definition
class StreamType(ParametrizedAttribute, TypeAttribute):
    """What changes with the iterations of the loops around it: an index, a condition, or a number for the lanes."""

    name = "slc.stream"

    element_type: Attribute

    def verify(self) -> None:
        if not isinstance(self.element_type, IndexType) and self.element_type not in (i1, LANE):
            raise VerifyException(f"a stream must be of index, i1 or {LANE}, not {self.element_type}")


INDEX_STREAM = StreamType(IndexType())
CONDITION_STREAM = StreamType(i1)
FLOAT_STREAM = StreamType(LANE)


def element_of(kind: Attribute) -> Attribute:
    """The type of a stream's elements; of a value that never changes, its own type."""
    return kind.element_type if isinstance(kind, StreamType) else kind


def verify_index(name: str, value: SSAValue) -> None:
    """Raise VerifyException unless ``value`` is an index or a stream of them."""
    if not isinstance(element_of(value.type), IndexType | IntegerType):
        raise VerifyException(f"{name} must be an index or a stream of them, not {value.type}")


@irdl_op_definition
class ForOp(IRDLOperation):
    """A level of the nest: its stream runs from ``lower`` in steps of ``step`` while below ``upper``."""

    name = "slc.for"

    lower = operand_def()
    upper = operand_def()
    step = operand_def(IndexType())
    body = region_def("single_block")

    traits = traits_def(NoTerminator())

    def __init__(
        self,
        lower: SSAValue,
        upper: SSAValue,
        step: SSAValue,
        body: Region | None = None,
        name: str | None = None,
    ) -> None:
        if body is None:
            body = Region(Block(arg_types=[INDEX_STREAM]))
            body.block.args[0].name_hint = name
        super().__init__(operands=[lower, upper, step], regions=[body])

    @property
    def induction(self) -> SSAValue:
        """The stream of the loop's own values."""
        return self.body.block.args[0]

    @property
    def inner(self) -> "ForOp | None":
        """The loop in this one's body."""
        return next((op for op in self.body.block.ops if isinstance(op, ForOp)), None)

    def verify_(self) -> None:
        if [arg.type for arg in self.body.block.args] != [INDEX_STREAM]:
            raise VerifyException(f"the body must take one {INDEX_STREAM}")
        for name, value in (("lower", self.lower), ("upper", self.upper)):
            verify_index(name, value)
        if sum(isinstance(op, ForOp) for op in self.body.block.ops) > 1:
            raise VerifyException("a loop must have at most one loop in its body")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.induction)
        for word, value in (("=", self.lower), ("to", self.upper), ("step", self.step)):
            printer.print_string(f" {word} ")
            printer.print_ssa_value(value)
        printer.print_string(" : ")
        printer.print_attribute(self.lower.type)
        printer.print_string(", ")
        printer.print_attribute(self.upper.type)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> "ForOp":
        argument = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        lower = parser.parse_unresolved_operand()
        parser.parse_keyword("to")
        upper = parser.parse_unresolved_operand()
        parser.parse_keyword("step")
        step = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        lower_type = parser.parse_type()
        parser.parse_punctuation(",")
        upper_type = parser.parse_type()
        return cls(
            parser.resolve_operand(lower, lower_type),
            parser.resolve_operand(upper, upper_type),
            parser.resolve_operand(step, IndexType()),
            parser.parse_region((argument.resolve(INDEX_STREAM),)),
        )


@irdl_op_definition
class LoadOp(IRDLOperation):
    """A scalar load in every iteration; integers are sign-extended to an index."""

    name = "slc.load"

    memref = operand_def(MemRefType)
    indices = var_operand_def()
    result = result_def(StreamType)

    traits = traits_def(Pure())
    assembly_format = "$memref `[` $indices `]` attr-dict `:` type($memref) `,` type($indices) `->` type($result)"

    def __init__(self, memref: SSAValue, indices: Sequence[SSAValue]) -> None:
        kind = memref.type
        assert isinstance(kind, MemRefType)
        result = FLOAT_STREAM if kind.element_type == LANE else INDEX_STREAM
        super().__init__(operands=[memref, indices], result_types=[result])

    def verify_(self) -> None:
        kind = self.memref.type
        assert isinstance(kind, MemRefType)
        if len(self.indices) != kind.get_num_dims():
            raise VerifyException(f"there must be {kind.get_num_dims()} indices, not {len(self.indices)}")
        for value in self.indices:
            verify_index("an index", value)
        is_float = kind.element_type == LANE
        if self.result.type != (FLOAT_STREAM if is_float else INDEX_STREAM):
            raise VerifyException(f"a load from {kind} must not give {self.result.type}")


@irdl_op_definition
class AluOp(IRDLOperation):
    """Integer arithmetic or a comparison in every iteration; one of ``ARITHMETIC`` or ``COMPARISONS``."""

    name = "slc.alu"

    kind = prop_def(StringAttr)
    a = operand_def()
    b = operand_def()
    result = result_def(StreamType)

    traits = traits_def(Pure())
    assembly_format = "$kind $a `,` $b attr-dict `:` type($a) `,` type($b) `->` type($result)"

    def __init__(self, kind: str, a: SSAValue | Operation, b: SSAValue | Operation) -> None:
        a, b = SSAValue.get(a), SSAValue.get(b)
        is_condition = kind in COMPARISONS or (kind == "and" and element_of(a.type) == i1)
        super().__init__(
            operands=[a, b],
            properties={"kind": StringAttr(kind)},
            result_types=[CONDITION_STREAM if is_condition else INDEX_STREAM],
        )

    def verify_(self) -> None:
        if self.kind.data not in ARITHMETIC + COMPARISONS:
            known = ", ".join(ARITHMETIC + COMPARISONS)
            raise VerifyException(f"kind must be one of {known}, not {self.kind.data!r}")
        verify_index("a", self.a)
        verify_index("b", self.b)


@irdl_op_definition
class CheckOp(IRDLOperation):
    """Stops the launch unless ``0 <= value < limit``, or has 0 loaded; see ``check.bounds``."""

    name = "slc.check"

    kind = prop_def(StringAttr)
    mode = opt_prop_def(StringAttr)
    value = operand_def(StreamType)
    limit = operand_def()

    assembly_format = "$kind $value `,` $limit (`mode` $mode^)? attr-dict `:` type($value) `,` type($limit)"

    def __init__(self, kind: str, value: SSAValue, limit: SSAValue, mode: StringAttr | None = None) -> None:
        super().__init__(operands=[value, limit], properties={"kind": StringAttr(kind), "mode": mode})

    def verify_(self) -> None:
        verify_kind(self.kind)
        verify_mode(self.mode)
        verify_index("limit", self.limit)


@irdl_op_definition
class CountOp(IRDLOperation):
    """The number of iterations so far, this one included, in which ``condition`` held; for ``end``
    callbacks.
    """

    name = "slc.count"

    condition = opt_operand_def(CONDITION_STREAM)
    result = result_def(INDEX_STREAM)

    traits = traits_def(HasParent(ForOp))
    assembly_format = "(`when` $condition^)? attr-dict"

    def __init__(self, condition: SSAValue | None) -> None:
        super().__init__(operands=[condition], result_types=[INDEX_STREAM])


@irdl_op_definition
class FirstOp(IRDLOperation):
    """Whether this is the first iteration in which ``condition`` holds; for ``iteration`` callbacks."""

    name = "slc.first"

    condition = opt_operand_def(CONDITION_STREAM)
    result = result_def(CONDITION_STREAM)

    traits = traits_def(HasParent(ForOp))
    assembly_format = "(`when` $condition^)? attr-dict"

    def __init__(self, condition: SSAValue | None) -> None:
        super().__init__(operands=[condition], result_types=[CONDITION_STREAM])


@irdl_op_definition
class CallbackOp(IRDLOperation):
    """Compute that runs at an event of the loop around it, if ``condition`` holds.

    The region's arguments are the present elements of the streams in ``inputs``. At ``begin`` and ``end``
    there may have been no iteration: only streams from outside of the loop, and counts at ``end``, can be
    used.
    """

    name = "slc.callback"

    event = prop_def(StringAttr)
    condition = opt_operand_def(CONDITION_STREAM)
    inputs = var_operand_def(StreamType)
    body = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(NoTerminator(), HasParent(ForOp))
    assembly_format = "$event (`when` $condition^)? `(` ($inputs^ `:` type($inputs))? `)` $body attr-dict"

    def __init__(
        self,
        event: str,
        condition: SSAValue | None,
        inputs: Sequence[SSAValue],
        body: Region | Sequence[Block],
    ) -> None:
        super().__init__(operands=[condition, inputs], properties={"event": StringAttr(event)}, regions=[body])

    def source(self, value: SSAValue) -> SSAValue:
        """The stream whose elements ``value`` is, if it is an argument of the region; any other value itself."""
        if isinstance(value, BlockArgument) and value.block is self.body.block:
            return self.inputs[value.index]
        return value

    def verify_(self) -> None:
        if self.event.data not in EVENTS:
            raise VerifyException(f"event must be one of {', '.join(EVENTS)}, not {self.event.data!r}")
        expected = [element_of(value.type) for value in self.inputs]
        if [arg.type for arg in self.body.block.args] != expected:
            shown = ", ".join(map(str, expected))
            raise VerifyException(f"the region must take ({shown}), the elements of the inputs")
        if self.event.data != "iteration":
            self._verify_outside()

    def _verify_outside(self) -> None:
        used = [*self.inputs, *([self.condition] if self.condition else [])]
        for value in used:
            owner = value.owner
            block = owner if isinstance(owner, Block) else owner.parent
            is_count = self.event.data == "end" and isinstance(owner, CountOp)
            if block is self.parent and not is_count:
                raise VerifyException(
                    f"a callback at {self.event.data} must use streams from outside of its loop or, at end, counts"
                )


SLC = Dialect("slc", [ForOp, LoadOp, AluOp, CheckOp, CountOp, FirstOp, CallbackOp], [StreamType])
