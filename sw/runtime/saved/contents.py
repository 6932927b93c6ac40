"""What a saved executable says: plain data, which ``codec.py`` writes as JSON. A new field needs a new ``VERSION``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from daedal.runtime.kernel import BufferSpec
from daedal.runtime.launch_arguments import Expression
from daedal.runtime.loops.bounds import Bounds
from daedal.runtime.loops.rounds import Rounds
from daedal.runtime.loops.signature import Signature
from daedal.runtime.operations import Operation
from daedal.runtime.saved.operations import SavedOperation


@dataclass(frozen=True)
class Blob:
    """Bytes of the file behind its text: from ``first`` on, counted from there; of an array also type and shape."""

    first: int
    size: int
    dtype: str = ""
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class SavedKernel:
    """A program; fields as those of ``Kernel``, whose IR and passes a file does not have."""

    program: Blob
    arguments: tuple[Expression, ...]
    buffers: tuple[BufferSpec, ...]
    values: tuple[str, ...]
    opt: int
    lacking: str
    choices: tuple[str, ...]


# ---- what runs on the host between launches


@dataclass(frozen=True)
class Value:
    """A value of the graph by its number: inputs come first, then tables, constants, and what steps give."""

    number: int


@dataclass(frozen=True)
class Slice:
    """A slice of Python's."""

    start: "Argument"
    stop: "Argument"
    step: "Argument"


@dataclass(frozen=True)
class Dots:
    """Python's ``...``."""


@dataclass(frozen=True)
class Items:
    """A tuple, a list or, with ``keys``, a dictionary."""

    kind: str
    parts: "tuple[Argument, ...]"
    keys: tuple[str | int, ...] = ()


Argument: TypeAlias = Value | Slice | Dots | Items | bool | int | float | str | None
"""What a step is given."""


@dataclass(frozen=True)
class HostStep:
    """A move of data, or arithmetic on integers: ``moves.py`` has them by name. ``dtype`` is the result's, if it is an
    array.
    """

    name: str
    arguments: tuple[Argument, ...]
    dtype: str = ""


# ---- what runs on the device


@dataclass(frozen=True)
class SavedCall:
    """An operation of a graph; ``table`` is the value that its rows are in, and ``table_name`` what it is called."""

    name: str
    label: str
    table_name: str
    table: Argument
    operation: SavedOperation
    sources: tuple[Argument, ...]


@dataclass(frozen=True)
class SavedJoin:
    """A concatenation of results of calls, by their numbers, along a dimension; ``private``: those that nothing else
    uses.
    """

    dim: int
    parts: tuple[int, ...]
    private: tuple[int, ...]


@dataclass(frozen=True)
class LaunchStep:
    """Calls that can be one launch; it gives a value for each, then one for each join."""

    calls: tuple[SavedCall, ...]
    joins: tuple[SavedJoin, ...]


# ---- a model


@dataclass(frozen=True)
class SavedInput:
    """A leaf of the inputs. Of an array type and dimensions; ``kind`` is ``array``, ``any`` (an array of any kind),
    or ``constant``: the trace is for this value only.
    """

    name: str
    kind: str
    dtype: str = ""
    dims: int = 0
    constant: Argument = None


@dataclass(frozen=True)
class SavedSlot:
    """What a call is given in one place: ``nest`` has its leaves by number; by this name; ``is_optional``: may be left
    out, and is None then.
    """

    name: str
    nest: Argument
    by_name: bool
    is_optional: bool = False


@dataclass(frozen=True)
class SavedGraph:
    """A trace: what a call does for inputs of some kinds. ``tables`` are numbers of the file's tables."""

    slots: tuple[SavedSlot, ...]
    inputs: tuple[SavedInput, ...]
    tables: tuple[int, ...]
    constants: tuple[Blob, ...]
    steps: tuple[HostStep | LaunchStep, ...]
    results: Argument


@dataclass(frozen=True)
class SavedTable:
    """A tensor of the module that a call reads, which is given when the file is loaded."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class OperationKernel:
    """The program for an operation, with short or long bags."""

    operation: Operation
    has_long_bags: bool
    kernel: int


@dataclass(frozen=True)
class SavedPlan:
    """Who does what in a system: ``text`` is what ``Plan.save`` writes. ``is_given``: the user gave it, so a table that
    is not as in the plan is an error.
    """

    text: str
    is_given: bool


@dataclass(frozen=True)
class SavedModel:
    """An executable of a module: its tables, its traces, which program is for what, and, of a system, the plan."""

    tables: tuple[SavedTable, ...]
    graphs: tuple[SavedGraph, ...]
    operations: tuple[OperationKernel, ...]
    plan: SavedPlan | None = None


def operations_of(model: SavedModel) -> list[SavedOperation]:
    """The operations of all traces."""
    launches = [step for graph in model.graphs for step in graph.steps if isinstance(step, LaunchStep)]
    return [call.operation for launch in launches for call in launch.calls]


# ---- a kernel of loops


@dataclass(frozen=True)
class SavedLoops:
    """The program for some sizes of rows, and who checks what."""

    fixed: tuple[tuple[str, int], ...]
    bounds: Bounds
    notes: tuple[tuple[int, str], ...]
    kernel: int


@dataclass(frozen=True)
class SavedFunction:
    """An executable of a ``daedal.kernel``. ``lines`` are the lines of its source that messages name."""

    name: str
    file: str
    first_line: int
    lines: Mapping[int, str]
    signature: Signature
    fixed: tuple[str, ...]
    written: tuple[str, ...]
    rounds: Rounds
    loops: tuple[SavedLoops, ...]


@dataclass(frozen=True)
class SavedExecutable:
    """All of a file: what made it, the machine that it is for, options, programs, and what they are for."""

    daedal: str
    config_name: str
    config_hash: int
    bounds: str
    opt: int
    kernels: tuple[SavedKernel, ...]
    content: SavedModel | SavedFunction
