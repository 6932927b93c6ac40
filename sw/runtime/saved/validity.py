"""Whether what a file says fits together: every number of a value, a table, a program is that of one."""

from collections.abc import Iterator
from typing import Any

from daedal.errors import FileError
from daedal.runtime.saved.contents import (
    Argument,
    HostStep,
    Items,
    LaunchStep,
    SavedCall,
    SavedGraph,
    SavedModel,
    Slice,
    Value,
)
from daedal.runtime.saved.files import SavedFile

BOUNDS = ("fatal", "warn", "ignore", "none")
"""What an index outside of its table may do."""


def check_contents(file: SavedFile) -> None:
    """FileError for what refers to something that the file does not have."""
    saved = file.saved
    content = saved.content
    numbers = [each.kernel for each in (content.operations if isinstance(content, SavedModel) else content.loops)]
    is_right = saved.bounds in BOUNDS and 0 <= saved.opt <= 3 and all(0 <= each < len(file.kernels) for each in numbers)
    if isinstance(content, SavedModel):
        is_right = is_right and bool(content.graphs)
        is_right = is_right and all(_fits(each, len(content.tables)) for each in content.graphs)
    if not is_right:
        raise FileError(f"{file.name} cannot be used: it names what is not in it; save it again")


def _fits(graph: SavedGraph, tables: int) -> bool:
    leaves = sorted(each.number for slot in graph.slots for each in values_of(slot.nest))
    if leaves != list(range(len(graph.inputs))) or not all(0 <= each < tables for each in graph.tables):
        return False
    known = len(graph.inputs) + len(graph.tables) + len(graph.constants)
    for step in graph.steps:
        if any(not 0 <= each.number < known for each in values_of(step)):
            return False
        known += 1 if isinstance(step, HostStep) else len(step.calls) + len(step.joins)
        if isinstance(step, LaunchStep):
            count = len(step.calls)
            if not count or any(not 0 <= part < count for join in step.joins for part in (*join.parts, *join.private)):
                return False
    return all(0 <= each.number < known for each in values_of(graph.results))


def values_of(given: HostStep | LaunchStep | SavedCall | Argument) -> Iterator[Value]:
    """The values that a step or an argument has."""
    parts: Any = ()
    if isinstance(given, Value):
        yield given
    elif isinstance(given, HostStep):
        parts = given.arguments
    elif isinstance(given, LaunchStep):
        parts = given.calls
    elif isinstance(given, SavedCall):
        parts = (*given.sources, given.table)
    elif isinstance(given, Items):
        parts = given.parts
    elif isinstance(given, Slice):
        parts = (given.start, given.stop, given.step)
    for each in parts:
        yield from values_of(each)
