"""Dialect ``check``: conditions on values that the machine checks while it runs."""

from xdsl.dialects.builtin import IndexType, StringAttr
from xdsl.ir import Dialect, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def
from xdsl.utils.exceptions import VerifyException

KINDS = ("index", "offset")
"""What a checked value can be; it decides which error the user sees."""


def verify_kind(kind: StringAttr) -> None:
    """Raise VerifyException unless ``kind`` is one of ``KINDS``."""
    if kind.data not in KINDS:
        raise VerifyException(f"kind must be one of {', '.join(KINDS)}, not {kind.data!r}")


@irdl_op_definition
class BoundsOp(IRDLOperation):
    """Stops the launch with an error unless ``0 <= value < limit``.

    ``value`` is what a load gave (through casts); all 64 bits of the loaded element take part.
    """

    name = "check.bounds"

    value = operand_def(IndexType())
    limit = operand_def(IndexType())
    kind = prop_def(StringAttr)

    assembly_format = "$kind $value `,` $limit attr-dict"

    def __init__(self, kind: str, value: SSAValue | Operation, limit: SSAValue | Operation) -> None:
        super().__init__(operands=[value, limit], properties={"kind": StringAttr(kind)})

    def verify_(self) -> None:
        verify_kind(self.kind)


CHECK = Dialect("check", [BoundsOp], [])
