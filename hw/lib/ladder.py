"""One of several values, chosen by registers, in one LUT of four inputs for a bit of each pair of them."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Mux, Value

from daedal.hw.lib.replicate import replicate


def rungs(marks: Sequence[Value]) -> Value:
    """What ``climb`` is to choose: whether none of the first pair, an odd one, and a bit for each other pair."""
    pairs = [Cat(marks[n : n + 2]).any() for n in range(2, len(marks), 2)]
    return Cat(~Cat(marks[:2]).any(), Cat(marks[1::2]).any(), *pairs)


def climb(choices: Sequence[Value], steps: Value) -> Value:
    """The one of ``choices`` that the marks of which ``steps`` are the ``rungs`` say.

    The first pair's LUT tells the second's what to choose when it has nothing to give itself, and so on. ``steps`` are
    to be a register: computed in the same cycle they are folded into each bit, and it takes more LUTs instead of fewer.
    """
    none, odd, *pairs = steps
    width = max(len(choice) for choice in choices)
    result: Any = Mux(none, replicate(odd, width), Mux(odd, choices[1] if len(choices) > 1 else 0, choices[0]))
    for number, pair in enumerate(pairs, 1):
        even_choice, *odd_choice = choices[2 * number : 2 * number + 2]
        chosen = (odd_choice[0] & result) | (even_choice & ~result) if odd_choice else even_choice
        result = Mux(pair, chosen, result)
    return result
