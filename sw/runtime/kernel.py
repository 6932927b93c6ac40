"""A compiled function: its program, what it needs to run, and the IR it came from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from daedal.errors import DaedalError, UnsupportedOperation
from daedal.hw.isa.words import PITCH_BITS
from daedal.runtime.launch_arguments import Buffer, Expression, evaluate, is_distance


@dataclass(frozen=True)
class BufferSpec:
    """A buffer that a kernel works on.

    Attributes
    ----------
    name
        The name of the function's argument.
    dtype
        ``float32``, ``int32`` or ``int64``.
    shape
        Its sizes; None for one that a run decides.
    is_output
        Whether the kernel writes it.
    is_table
        Whether whole rows of it are fetched: they must start at a line or lie within one.
    has_free_pitch
        Whether a run decides how far its rows are apart.
    is_distinct
        Whether no number may be in it twice: it chooses rows that are read and written, and reads run ahead of writes.
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    is_output: bool
    is_table: bool
    has_free_pitch: bool
    is_distinct: bool = False


@dataclass(frozen=True)
class Kernel:
    """What the compiler makes of one function; it holds no data and fits every run.

    Attributes
    ----------
    program
        The bytes that the machine executes.
    arguments
        What the launch arguments are.
    buffers, values
        The buffers and the numbers that a run must give; of an f32, its bits.
    opt
        The optimisation level that it was compiled at.
    lacking
        Why it was not at a lower one that was asked for, or nothing.
    levels
        Printed IR by level: ``emb`` (if it began there), ``scf``, ``slc``, ``slcv``, ``dlc``, ``mach``.
    passes
        What each pass did, in the order in which they ran: which operations there are more and fewer of since.
    choices
        How loops run otherwise than they are written: rows that wait for their second use, bags in turn.
    """

    program: bytes
    arguments: tuple[Expression, ...]
    buffers: tuple[BufferSpec, ...]
    values: tuple[str, ...]
    levels: Mapping[str, str] = field(repr=False)
    opt: int
    lacking: str = ""
    passes: Mapping[str, str] = field(default_factory=dict, repr=False)
    choices: tuple[str, ...] = ()

    def launch_arguments(self, buffers: Mapping[str, Buffer], values: Mapping[str, int]) -> list[int]:
        """The launch arguments for buffers in these places.

        UnsupportedOperation names a dimension whose elements are too far apart for the machine's multipliers.
        """
        given = [evaluate(expression, buffers, values) for expression in self.arguments]
        for expression, value in zip(self.arguments, given, strict=True):
            if is_distance(expression) and value >= 1 << PITCH_BITS:
                raise UnsupportedOperation(
                    f"{expression} is {value} bytes, but must be below {1 << PITCH_BITS}: what the elements of that "
                    "dimension hold is too long; split the array along a later dimension"
                )
        return given

    @property
    def optimisation(self) -> str:
        """In words, at which optimisation level it is, and why that is not the one that was asked for."""
        return f"O{self.opt}" + (f", because {self.lacking}" if self.lacking else "")

    def account(self, *, passes: bool) -> list[str]:
        """In words, a line each, what code generation chose and, before that, with ``passes``, what each pass did."""
        done = [f"pass {name}: {what}" for name, what in self.passes.items()] if passes else []
        return done + [f"code generation: {choice}" for choice in self.choices]

    def ir(self, level: str) -> str:
        """The printed IR of a level; DaedalError names those there are."""
        if not self.levels:
            raise DaedalError("a program from a file has no IR, only asm(): compile it to see its levels")
        if level not in self.levels:
            raise DaedalError(f"level must be one of {', '.join(self.levels)}, not {level!r}")
        return self.levels[level]
