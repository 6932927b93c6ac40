"""Dialect ``check``: conditions on values that the machine checks while it runs."""

from xdsl.dialects.builtin import IndexType, StringAttr
from xdsl.ir import Dialect, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, prop_def
from xdsl.utils.exceptions import VerifyException

from daedal.compiler.bounds import CHECKS

KINDS = ("index", "offset")
"""What a checked value can be; it decides which error the user sees."""

MODES = CHECKS
"""What a value outside its bounds does: the launch stops, or the value is 0 instead, with or without a warning."""


def verify_mode(mode: StringAttr | None) -> None:
    """Raise VerifyException unless ``mode`` is one of ``MODES``, or None, which is "fatal"."""
    if mode is not None and mode.data not in MODES:
        raise VerifyException(f"mode must be one of {', '.join(MODES)}, not {mode.data!r}")


def verify_kind(kind: StringAttr) -> None:
    """Raise VerifyException unless ``kind`` is one of ``KINDS``."""
    if kind.data not in KINDS:
        raise VerifyException(f"kind must be one of {', '.join(KINDS)}, not {kind.data!r}")


@irdl_op_definition
class BoundsOp(IRDLOperation):
    """Stops the launch with an error unless ``0 <= value < limit``; in other modes than "fatal", the load gives 0 then.

    ``value`` is what a load gave (through casts); all 64 bits of the loaded element take part. That it is 0 holds
    wherever it is used.
    """

    name = "check.bounds"

    value = operand_def(IndexType())
    limit = operand_def(IndexType())
    kind = prop_def(StringAttr)
    mode = opt_prop_def(StringAttr)

    assembly_format = "$kind $value `,` $limit (`mode` $mode^)? attr-dict"

    def __init__(
        self, kind: str, value: SSAValue | Operation, limit: SSAValue | Operation, mode: StringAttr | None = None
    ) -> None:
        super().__init__(operands=[value, limit], properties={"kind": StringAttr(kind), "mode": mode})

    def verify_(self) -> None:
        verify_kind(self.kind)
        verify_mode(self.mode)


CHECK = Dialect("check", [BoundsOp], [])
