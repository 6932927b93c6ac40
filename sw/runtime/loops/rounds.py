"""Rounds of a kernel's outermost loops, which several tiles can share: each round has parts of arrays of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from daedal.runtime.loops.chains import Chain


@dataclass(frozen=True)
class Rounds:
    """How the rounds of the outermost loops can be shared out.

    Attributes
    ----------
    size
        The size that says how many rounds there are.
    arrays
        Arrays of which round b has element b of the first dimension, and as many behind it as is said here; among them
        are all that are written. All others are there for all rounds.
    why_not
        Why they cannot be; nothing if they can.
    """

    size: str = ""
    arrays: Mapping[str, int] | None = None
    why_not: str = ""

    def parts(self, arrays: Mapping[str, Any], chains: Mapping[str, Chain], first: int, end: int) -> dict[str, Any]:
        """The arrays as rounds ``first`` to ``end`` - 1 have them, the ``chains`` that the host made too."""
        return {name: self._part(name, array, chains, first, end) for name, array in arrays.items()}

    def _part(self, name: str, array: Any, chains: Mapping[str, Chain], first: int, end: int) -> Any:
        while name in chains:
            name = chains[name].indices
        more = (self.arrays or {}).get(name)
        return array if more is None else array[first : end + more]


def shares(rounds: int, tiles: int) -> Sequence[tuple[int, int]]:
    """The rounds of each tile, from the first to the one behind the last: about as many for all."""
    ends = [rounds * tile // tiles for tile in range(tiles + 1)]
    return list(pairwise(ends))
