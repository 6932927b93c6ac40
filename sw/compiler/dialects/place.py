"""Dialect ``place``: memrefs whose address is a number, such as one that the access unit has loaded.

A list of buffers in device memory, of which a program knows only where the list is, is walked with it.
"""

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from daedal.compiler.dialects.slc import verify_index


@irdl_op_definition
class MemrefOp(IRDLOperation):
    """The memref whose first element is at byte ``address`` of the device's memory.

    Its strides are fixed. What a program writes through one of these must not overlap with what it reads or writes
    through another one, nor, if the address is an element of a list, with what it writes through other elements.
    """

    name = "place.memref"

    address = operand_def()
    result = result_def(MemRefType)

    traits = traits_def(Pure())
    assembly_format = "$address attr-dict `:` type($address) `->` type($result)"

    def __init__(self, address: SSAValue, result: Attribute) -> None:
        super().__init__(operands=[address], result_types=[result])

    def verify_(self) -> None:
        verify_index("address", self.address)
        kind = self.result.type
        assert isinstance(kind, MemRefType)
        strides = kind.get_strides()
        if strides is None or any(stride is None for stride in strides):
            raise VerifyException(f"the strides of a memref at an address must be fixed, not as in {kind}")


PLACE = Dialect("place", [MemrefOp], [])
