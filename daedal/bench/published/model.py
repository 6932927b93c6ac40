"""A model of the list: how it is made, and how it is compiled."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from torch import nn

Made = tuple[nn.Module, tuple[Any, ...]]
"""A module and the inputs that it is called with."""


class Door(Enum):
    """How a model gets to the device."""

    DYNAMO = "torch.compile"
    EXPORT = "daedal.compile"


@dataclass(frozen=True)
class Published:
    """A model of other people's.

    Attributes
    ----------
    name
        Package and model.
    package
        What must be installed, as ``pip`` calls it.
    imported
        What is imported of it.
    make
        Makes the module, with random parameters, and inputs.
    door
        How it is compiled.
    stays
        Why less of it runs on the device than is wanted; empty if it should.
    """

    name: str
    package: str
    imported: str
    make: Callable[[], Made]
    door: Door = Door.DYNAMO
    stays: str = ""

    @property
    def is_here(self) -> bool:
        """Whether its package is installed."""
        return find_spec(self.imported) is not None


class Calls(nn.Module):
    """A method of a module as its ``forward``: packages call what gives a prediction by many names.

    Parameters
    ----------
    module
        Whose parameters are used.
    call
        Is called with the module and the inputs.
    """

    def __init__(self, module: nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.module, self._call = module, call

    def forward(self, *inputs: Any) -> Any:
        """What ``call`` gives."""
        return self._call(self.module, *inputs)


def of(name: str, *attributes: str) -> Any:
    """A module of an optional package, or something in it."""
    found: Any = import_module(name)
    for attribute in attributes:
        found = getattr(found, attribute)
    return found


def named(
    package: str, imported: str, models: Sequence[tuple[str, Callable[[], Made]]], **more: Any
) -> list[Published]:
    """Models of one package."""
    return [Published(f"{package}: {name}", package, imported, make, **more) for name, make in models]
