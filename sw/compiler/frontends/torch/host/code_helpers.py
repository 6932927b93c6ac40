"""Functions that generated code calls."""

from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


def named(name: str, function: Callable[..., Result]) -> Callable[..., Result]:
    """The function under a name that generated code can use."""

    def run(*arguments: Any) -> Result:
        return function(*arguments)

    run.__name__ = run.__qualname__ = name
    run.__module__ = "daedal"
    return run
