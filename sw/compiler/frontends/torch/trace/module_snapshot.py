"""What a trace takes from a module as it is at the time: its parts, tensors, mode and plain attributes."""

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import is_
from types import NoneType

import torch
from torch import Tensor, nn

from daedal.driver.tables.table_sources import same_memory

_MEMBERS = ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks")
"""Attributes of a module that hold what it consists of, and what is called around it."""

_PLAIN = (bool, int, float, complex, str, bytes, NoneType, torch.dtype, torch.Size)
"""Types of attributes of which the value counts, not which object it is: ``training`` is one of them."""

_END = object()
"""Behind all values: a list that begins as another one does is not the same."""


class Followed:
    """A module as it was when this was made.

    Looked at are the attributes of the module and of its parts, and what is in those of them that are lists, tuples
    or dicts. Fields of other objects, and what a forward takes from elsewhere, are not.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._look()

    def _look(self) -> None:
        self._members = [
            members
            for part in self._module.modules()
            for members in (part.__dict__, *(part.__dict__[name] for name in _MEMBERS), *_containers(part))
        ]
        self._now = [each.values() if isinstance(each, dict) else each for each in self._members]
        """Views of what is in them at any time."""
        self._filled, self._empty = [each for each in self._now if each], [each for each in self._members if not each]
        self._values = (*chain.from_iterable(self._filled), _END)
        """The objects themselves, so that no others get their places in memory."""

    def is_current(self) -> bool:
        """Whether the module is as it was. Some 10 µs for 40 parts."""
        if not any(self._empty) and _are_identical((*chain.from_iterable(self._filled), _END), self._values):
            return True
        now = (*chain.from_iterable(self._now), _END)
        if len(now) != len(self._values) or not all(map(_are_alike, now, self._values)):
            return False
        self._look()  # equal values are other objects, such as lists that a trace has put there
        return True

    def has_its_parts(self) -> bool:
        """Whether its tensors and parts are those that it had: it may be as it was again, in the same mode."""
        return _are_same(_parts(chain.from_iterable(self._now)), _parts(self._values))


def _containers(part: nn.Module) -> Iterator[dict[object, object] | list[object] | tuple[object, ...]]:
    """Lists, tuples and dicts that are attributes of a module, other than its own."""
    for name, value in part.__dict__.items():
        if isinstance(value, dict | list | tuple) and not name.startswith("_"):
            yield value


_OBJECTS = tuple.__basicsize__
"""Where in a tuple CPython has the addresses of the objects, one behind the other."""


def _are_identical(some: tuple[object, ...], others: tuple[object, ...]) -> bool:
    """Whether they are of the same objects; a tenth of the time of one comparison after the other."""
    size = tuple.__itemsize__ * len(others)
    return len(some) == len(others) and not same_memory(id(some) + _OBJECTS, id(others) + _OBJECTS, size)


def _parts(values: Iterable[object]) -> list[object]:
    return [value for value in values if isinstance(value, Tensor | nn.Module)]


def _are_same(some: list[object], others: list[object]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _are_alike(new: object, old: object) -> bool:
    if new is old:
        return True
    if type(new) is not type(old):
        return False
    if isinstance(new, dict) and isinstance(old, dict):
        return list(new) == list(old) and all(map(_are_alike, new.values(), old.values()))
    if isinstance(new, list | tuple) and isinstance(old, list | tuple):
        return len(new) == len(old) and all(map(_are_alike, new, old))
    return isinstance(new, _PLAIN) and repr(new) == repr(old)  # 0.0 and -0.0 are equal, but not alike
