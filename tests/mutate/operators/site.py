"""A place in a source file at which an operator applies."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Site:
    """A piece of a file, and what an operator makes of it.

    Attributes
    ----------
    operator
        Name of the operator.
    line
        The line of the piece, counted from 1.
    start, end
        Where the piece begins and ends, in bytes of UTF-8.
    new
        What stands there instead.
    """

    operator: str
    line: int
    start: int
    end: int
    new: str


OFF_BY_ONE, NEGATED, DROPPED, FLIPPED = "off by one", "negated condition", "dropped statement", "flipped constant"
COMPARISON, ARITHMETIC, LOGIC, NOT = "comparison", "arithmetic", "and for or", "dropped not"
EXTREME, RETURN = "min for max", "returns nothing"

COMPARISONS: Mapping[str, str] = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}

ARITHMETICS: Mapping[str, str] = {
    "+": "-", "-": "+", "*": "+", "/": "*", "//": "*", "%": "*", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "&",
}  # fmt: skip
