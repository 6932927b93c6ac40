"""What the simulator's own time goes to: units of the RTL, the harness, the memory, and the process around them.

With the environment variable ``DAEDAL_PROFILE``, models are built whose functions are named for the line of the Verilog
that they come from (in cache entries of their own), and a simulation notes where the processor is as long as it works.
"""

import os
import re
import subprocess
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import dropwhile
from pathlib import Path
from typing import Any

from daedal.cosim.builder.initial_words import loops_over_words
from daedal.cosim.builder.latched_inputs import latch_inputs
from daedal.cosim.builder.toolchain import find_tool
from daedal.cosim.harness_library import Harness
from daedal.hw.verilog import TOP

VARIABLE = "DAEDAL_PROFILE"

EVALUATION, CLOCK, MEMORY = "simulator: evaluation", "harness: clock and bus", "harness: memory"
WAVEFORM, HOST = "simulator: waveform", "host: Python"
"""Parts that are no units: Verilator's loops around them; the harness; its memory, or the DRAM with its controller;
what writes a waveform; and Python with the driver, the compiler and PyTorch.
"""

SMALL = 0.01
"""Share below which a part has no line of its own in a table."""

UNIT_DEPTH = 2
"""Parts of a module's name below the core or the tile that tell a unit: ``access.level1``."""

_JOINING = ("", "tile", "core")
"""Modules that join units."""

_IN_CORE, _IN_DRAM = "daedal_cycle", "daedal_create_dram"
"""A function of the core's library, and of a DRAM's."""

_MODULE = re.compile(r"^module \\?(?P<name>[\w.$]+)", re.MULTILINE)
_LINE = re.compile(r"__PROF__\w*?__l?(?P<line>\d+)\b")
_MEMORY = re.compile(r"daedal::(?:\w*Memory|Storage|Counts)\b")


def is_wanted() -> bool:
    """Whether models are built and simulations run so that :func:`parts_of` can tell."""
    return os.environ.get(VARIABLE, "0") not in ("", "0")


@dataclass(frozen=True)
class Part:
    """Something that the simulator's time goes to.

    Attributes
    ----------
    name
        A unit of the RTL, by its module's name below core or tile (``core`` for what joins them), or one of
        ``EVALUATION``, ``CLOCK``, ``MEMORY``, ``WAVEFORM``, ``HOST``.
    rtl
        Whether it is a unit.
    samples
        How often the processor was found there.
    share
        ``samples`` of all samples.
    """

    name: str
    rtl: bool
    samples: int
    share: float


class Symbols:
    """The functions of a loaded library by address.

    Parameters
    ----------
    library
        The file.
    anchor, address
        One of its functions, and where that is in this process.
    """

    def __init__(self, library: Path, anchor: str, address: int) -> None:
        command = [str(find_tool("nm")), "--defined-only", "--demangle", str(library)]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        rows = [line.split(" ", 2) for line in listed.splitlines()]
        found = sorted((int(row[0], 16), row[2]) for row in rows if len(row) == 3 and row[1] in "tTwW")
        base = address - next(place for place, name in found if name == anchor)
        self._places = [base + place for place, _ in found]
        self._names = [name for _, name in found]

    def name_at(self, address: int) -> str:
        """The function that has this address, if one of the library's has."""
        return self._names[bisect_right(self._places, address) - 1]

    def __contains__(self, address: int) -> bool:
        return self._places[0] <= address <= self._places[-1]


class Units:
    """Units by the lines of a core's Verilog, whose top module is ``top``."""

    def __init__(self, verilog: str, top: str) -> None:
        starts = [(match.start(), match["name"]) for match in _MODULE.finditer(verilog)]
        self._lines = [verilog.count("\n", 0, start) + 1 for start, _ in starts]
        self._names = [_unit(name, top) for _, name in starts]

    def name_at(self, line: int) -> str:
        """The unit that has this line."""
        return self._names[max(0, bisect_right(self._lines, line) - 1)]


def _unit(module: str, top: str) -> str:
    """``access.level1`` of ``daedal_core.tile.core.access.level1.queue``."""
    parts = list(dropwhile(_JOINING.__contains__, module.removeprefix(top).strip(".").split(".")))
    return ".".join(parts[:UNIT_DEPTH]) or "core"


def parts_of(samples: Iterable[int], model: Symbols, memory: Symbols | None, units: Units) -> list[Part]:
    """What the samples, addresses, fall to; the largest first.

    ``model`` is the library of the core with its harness, ``memory`` that of a DRAM.
    """
    found: Counter[tuple[str, bool]] = Counter()
    for address in samples:
        if address in model:
            found[_part(model.name_at(address), units)] += 1
        else:
            found[MEMORY if memory is not None and address in memory else HOST, False] += 1
    total = found.total() or 1
    return [Part(name, rtl, count, count / total) for (name, rtl), count in found.most_common()]


def _part(function: str, units: Units) -> tuple[str, bool]:
    """The part that a function of the core's library belongs to, and whether it is a unit."""
    if line := _LINE.search(function):
        return units.name_at(int(line["line"])), True
    if ("trace" in function and "Vmodel" in function) or "VerilatedVcd" in function:
        return WAVEFORM, False
    if "Vmodel" in function or "Verilated" in function or function.startswith("Vl"):
        return EVALUATION, False
    return MEMORY if _MEMORY.search(function) else CLOCK, False


@dataclass(frozen=True)
class Profile:
    """Where the simulator's time went.

    Attributes
    ----------
    parts
        What took time, the largest first.
    seconds
        Of the processor, in all.
    samples
        How often it was looked at.
    """

    parts: list[Part]
    seconds: float
    samples: int

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it: each part with its ``seconds``."""
        parts = [{**asdict(part), "seconds": round(part.share * self.seconds, 3)} for part in self.parts]
        return {"seconds": round(self.seconds, 3), "samples": self.samples, "parts": parts}

    def text(self) -> str:
        """As a table of the parts that are not ``SMALL``, with two sums."""
        rows = [(part.name, part.share) for part in self.parts if part.share >= SMALL]
        rows += [
            ("smaller parts", sum(part.share for part in self.parts if part.share < SMALL)),
            ("all units of the RTL", sum(part.share for part in self.parts if part.rtl)),
        ]
        lines = [f"{name:24} {share * self.seconds:8.2f} s {share:7.1%}" for name, share in rows]
        return "\n".join([f"the simulator's own time, {self.samples:,} samples:", *lines])


class SimulatorTime:
    """Notes where the processor is while a machine is simulated, from when it is made.

    Parameters
    ----------
    harness, library
        The simulation, and the file of its library, which was built with names of lines.
    dram
        The library of the DRAM, if there is one.
    verilog
        The core's, as the harness was built with.

    Raises OSError if another simulation is being looked at.
    """

    def __init__(self, harness: Harness, library: Path, dram: Path | None, verilog: str) -> None:
        harness.start_samples()
        self._harness, self._library, self._dram, self._verilog = harness, library, dram, verilog
        self._start = time.process_time()
        self._profile: Profile | None = None

    def stop(self) -> Profile:
        """Look no more; what was seen."""
        if self._profile is None:
            samples, seconds = self._harness.stop_samples(), time.process_time() - self._start
            model = Symbols(self._library, _IN_CORE, self._harness.place_of(_IN_CORE))
            memory = None if self._dram is None else Symbols(self._dram, _IN_DRAM, self._harness.place_of(_IN_DRAM))
            units = Units(loops_over_words(latch_inputs(self._verilog, TOP)), TOP)
            self._profile = Profile(parts_of(samples.tolist(), model, memory, units), seconds, len(samples))
        return self._profile
