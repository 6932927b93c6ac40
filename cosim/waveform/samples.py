"""The values of signals in a waveform, clock cycle by clock cycle."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

CYCLE_TIME = 10
"""Time units of a waveform in a clock cycle; the clock rises in the middle of it."""


def sample(wave: Path, signals: Sequence[str]) -> Iterator[tuple[int, list[int]]]:
    """The values that the rising edge of each clock cycle sees, as ``(cycle, values)``, in the order of ``signals``.

    Reads what Verilator writes: one declaration or change a line, two states. A signal is named by its path
    (``daedal_core.tile.core.loader.fsm_state``); KeyError if the waveform has none of that name.
    """
    with wave.open(encoding="ascii") as lines:
        codes = _codes(lines)
        wanted = [codes[signal] for signal in signals]
        values = dict.fromkeys(wanted, 0)
        time = 1  # not a rising edge: nothing to give before the first time
        for line in lines:
            if line.startswith("#"):
                if time % CYCLE_TIME == 0:
                    yield time // CYCLE_TIME, [values[code] for code in wanted]
                time = int(line[1:])
            elif line[0] in "01" and line[1:-1] in values:
                values[line[1:-1]] = int(line[0])
            elif line[0] == "b":
                digits, code = line[1:].split()
                if code in values:
                    values[code] = int(digits, 2)
        if time % CYCLE_TIME == 0:
            yield time // CYCLE_TIME, [values[code] for code in wanted]


def _codes(lines: IO[str]) -> dict[str, str]:
    """Path of each signal -> its identifier in the body, from the header, which is read to its end."""
    path: list[str] = []
    codes: dict[str, str] = {}
    for line in lines:
        words = line.split()
        match words[:1]:
            case ["$scope"]:
                path.append(words[2])
            case ["$upscope"]:
                path.pop()
            case ["$var"]:
                codes[".".join([*path, words[4]])] = words[3]
            case ["$enddefinitions"]:
                break
    return codes
