"""Whether a router still gets nearer to an end."""

import re
import time
from collections.abc import Callable
from pathlib import Path

ROUNDS, SECONDS = 60, 1200.0
"""Rounds, and seconds, without a new least number of overused wires after which a router is given up."""

_ROUND = re.compile(r"iter=(\d+) wires=\d+ overused=(\d+)")


class RouterProgress:
    """Reads the log of nextpnr's ``router2`` as it grows.

    Each round leaves a number of wires that several nets use. It falls to 0 when the design routes. When the design
    does not, it falls to some number, then rises again, and nextpnr goes on for 1,000 rounds.

    Parameters
    ----------
    rounds, seconds
        How long that number may stay above the least so far; either of them is enough.
    clock
        Gives the time, seconds.
    """

    def __init__(
        self, *, rounds: int = ROUNDS, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rounds, self._seconds, self._clock = rounds, seconds, clock
        self._least: tuple[int, int] | None = None
        self._since = 0.0

    def __call__(self, log: Path) -> str | None:
        """What to say of a router that gets no nearer; None if it does, or has not begun, or is done."""
        rounds = [(int(count), int(number)) for number, count in _ROUND.findall(log.read_text(errors="replace"))]
        if not rounds:
            return None
        least, (count, number) = min(rounds), rounds[-1]
        if least != self._least:
            self._least, self._since = least, self._clock()
        if least[0] == 0 or (number - least[1] < self._rounds and self._clock() - self._since < self._seconds):
            return None
        return (
            f"the router does not come to an end: {least[0]} wires in use twice after round {least[1]}, the least, and "
            f"{count} after round {number}. Give --seed another value, or --config a smaller core: fewer registers, "
            "loads, levels or ports"
        )
