"""``emb.score``: numbers made of rows that are looked up in several tables, and how its expressions read."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from xdsl.dialects.builtin import DYNAMIC_INDEX, I64, IndexType, IntegerAttr, IntegerType, StringAttr, TensorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from daedal.compiler.dialects.elements import LANE

REDUCTIONS = ("sum", "mean", "squares")
"""What becomes of the elements of an expression: their sum, mean, or the sum of their squares."""

BINARY, UNARY = ("add", "sub", "mul"), ("neg", "abs")

T = TypeVar("T")


def evaluate(
    expression: str, row: Callable[[int, int], T], number: Callable[[float], T], apply: Callable[[str, Sequence[T]], T]
) -> T:
    """The value of an expression, which is in postfix form: ``0.1`` is a row of table 0 that list 1 names, ``=2.0`` a
    number, and the others are operations. ValueError for anything else.
    """
    stack: list[T] = []
    for token in expression.split():
        if token in BINARY or token in UNARY:
            count = 2 if token in BINARY else 1
            if len(stack) < count:
                raise ValueError(f"{token} must have {count} operands in {expression!r}")
            operands = stack[-count:]
            stack[-count:] = [apply(token, operands)]
        elif token.startswith("="):
            stack.append(number(float(token[1:])))
        else:
            table, _, entries = token.partition(".")
            stack.append(row(int(table), int(entries)))
    if len(stack) != 1:
        raise ValueError(f"expression must give one row, not {len(stack)}: {expression!r}")
    return stack[0]


def rows_of(expression: str) -> list[tuple[int, int]]:
    """Table and list of each row of an expression."""
    found: dict[tuple[int, int], None] = {}

    def row(table: int, entries: int) -> None:
        found[table, entries] = None

    evaluate(expression, row, lambda number: None, lambda name, operands: None)
    return list(found)


@irdl_op_definition
class ScoreOp(IRDLOperation):
    """A number for each entry p of the lists: the ``reduction`` of ``expression``, a row made of looked-up rows, whose
    elements are added up in the machine's tree.

    The first ``outer`` lists have one entry for each ``length`` entries of the others.
    """

    name = "emb.score"

    tables = var_operand_def(TensorType)
    lists = var_operand_def(TensorType)
    length = operand_def(IndexType())
    result = result_def(TensorType)
    reduction = prop_def(StringAttr)
    expression = prop_def(StringAttr)
    outer = prop_def(IntegerAttr[I64])

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())
    assembly_format = (
        "$reduction $expression `of` $tables `[` $lists `]` `outer` $outer `by` $length attr-dict `:` type($tables) "
        "`lists` type($lists) `->` type($result)"
    )

    def __init__(
        self, reduction: str, expression: str, tables: Sequence[SSAValue], lists: Sequence[SSAValue], length: SSAValue,
        outer: int,
    ) -> None:  # fmt: skip
        super().__init__(
            operands=[tables, lists, length],
            properties={
                "reduction": StringAttr(reduction),
                "expression": StringAttr(expression),
                "outer": IntegerAttr(outer, i64),
            },
            result_types=[TensorType(LANE, [DYNAMIC_INDEX])],
        )

    @property
    def width(self) -> int:
        """Elements of a row."""
        kind = self.tables[0].type
        assert isinstance(kind, TensorType)
        return int(kind.get_shape()[1])

    def verify_(self) -> None:
        if self.reduction.data not in REDUCTIONS:
            raise VerifyException(f"reduction must be one of {', '.join(REDUCTIONS)}, not {self.reduction.data!r}")
        for table in self.tables:
            kind = table.type
            is_f32 = isinstance(kind, TensorType) and kind.element_type == LANE
            shape = kind.get_shape() if isinstance(kind, TensorType) and is_f32 else ()
            if len(shape) != 2 or shape[1] != self.width or self.width < 1:
                raise VerifyException(f"tables must be rows of f32 of one width of at least 1, not {kind}")
        for entries in self.lists:
            listed = entries.type
            of = listed.element_type if isinstance(listed, TensorType) and len(listed.get_shape()) == 1 else None
            if not isinstance(of, IntegerType):
                raise VerifyException(f"lists must be of integers, not {listed}")
        try:
            rows = rows_of(self.expression.data)
        except ValueError as error:
            raise VerifyException(str(error)) from error
        if not rows or any(a >= len(self.tables) or b >= len(self.lists) for a, b in rows):
            raise VerifyException(f"expression must have rows of the tables and lists, not {self.expression.data!r}")
        if not 0 <= self.outer.value.data < max(len(self.lists), 1):
            raise VerifyException(f"outer must be from 0 to {len(self.lists) - 1}, not {self.outer.value.data}")
        if self.result.type != TensorType(LANE, [DYNAMIC_INDEX]):
            raise VerifyException(f"result must be one f32 for each entry, not {self.result.type}")
