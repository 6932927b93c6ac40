"""Types of dialect ``mach``: registers, which are numbered once they are allocated, and what is no register."""

from xdsl.backend.register_type import RegisterType
from xdsl.ir import ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition

from daedal.hw.isa.words import Destination

REGISTERS = 16
"""Vector or scalar registers that an instruction can name; a machine may have fewer."""


@irdl_attr_definition
class VectorRegister(RegisterType):
    """A vector register, ``v0`` to ``v15``."""

    name = "mach.vector"

    @classmethod
    def index_by_name(cls) -> dict[str, int]:
        """Name -> number."""
        return {f"v{number}": number for number in range(REGISTERS)}

    @classmethod
    def infinite_register_prefix(cls) -> str:
        """Names of what no machine has."""
        return "spilled_v"


@irdl_attr_definition
class ScalarRegister(RegisterType):
    """A scalar register of the execute unit, ``s0`` to ``s15``."""

    name = "mach.scalar"

    @classmethod
    def index_by_name(cls) -> dict[str, int]:
        """Name -> number."""
        return {f"s{number}": number for number in range(REGISTERS)}

    @classmethod
    def infinite_register_prefix(cls) -> str:
        """Names of what no machine has."""
        return "spilled_s"


@irdl_attr_definition
class StreamRegister(RegisterType):
    """A stream register, by its code in words: ``r0`` is 1. What nothing reads from a register has ``none``."""

    name = "mach.stream"

    @classmethod
    def index_by_name(cls) -> dict[str, int]:
        """Name -> code."""
        return {name.lower(): code.value for name, code in Destination.__members__.items()}

    @classmethod
    def infinite_register_prefix(cls) -> str:
        """Names of what no machine has."""
        return "spilled_r"


NO_REGISTER = StreamRegister.from_index(Destination.NONE.value)
"""The type of a stream that nothing reads from a register."""


@irdl_attr_definition
class ConstantType(ParametrizedAttribute, TypeAttribute):
    """A number in a program word."""

    name = "mach.constant"


@irdl_attr_definition
class PopType(ParametrizedAttribute, TypeAttribute):
    """What the instruction that uses it pops."""

    name = "mach.pop"


CONSTANT, POP = ConstantType(), PopType()


def named(value: SSAValue) -> str:
    """How messages call a value."""
    return f"%{value.name_hint}" if value.name_hint else "a value"
