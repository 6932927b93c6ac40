"""Queues and ports over time, out of a waveform of the RTL: means over some cycles each."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from daedal.cosim.waveform.samples import sample
from daedal.cosim.waveform.signals import Signals, read_signals
from daedal.cosim.waveform.view import CORE
from daedal.cosim.waveform.waveform_verilog import traced_verilog
from daedal.hw.config.core import Config
from daedal.hw.verilog import core_verilog

POINTS = 300
"""Points of a line, about."""

Line = tuple[Sequence[float], Sequence[float]]
"""Cycles, and the value at each."""


@dataclass
class _Probe:
    """A line of a panel: a value that comes of some signals in a cycle. ``depth`` - value if there is a depth, the
    product of valid and ready (two signals) for a channel, else the value itself.
    """

    panel: str
    name: str
    signals: tuple[str, ...]
    depth: int | None = None
    sums: list[float] = field(default_factory=list)

    def value(self, values: Sequence[int]) -> int:
        if self.depth is not None:
            return self.depth - values[0]
        return values[0] if len(values) == 1 else values[0] & values[1]


def probes(config: Config, signals: Signals) -> list[_Probe]:
    """What is shown: how full queues are, reads in flight, and lines that move on each port."""

    def path(unit: str, name: str) -> str:
        module = f"{CORE}.{unit}" if unit else CORE
        return f"{module}.{signals.own(module)[name]}"

    vectors, others, flying, moved = (
        "vector queues, lines reserved or held",
        "other queues, entries",
        "read bursts in flight",
        "lines per cycle",
    )
    found = [
        _Probe(vectors, name, (path(f"vectors.queue{number}", "free"),), config.vector_beats)
        for number, name in enumerate(("vector 0", "vector 1", "store stream"))
    ]
    units = {
        "tokens": "tokens",
        "scalars": "scalars",
        "store addresses": "addresses",
        "store data": "execute.store.queue",
    }
    found += [_Probe(others, name, (path(unit, "level"),)) for name, unit in units.items()]
    for port in range(config.ports):
        found.append(_Probe(flying, f"port {port}", (path(f"fabric.port{port}.flying", "level"),)))
    for port in range(config.ports):
        channel = tuple(path("", f"read{port}__{name}") for name in ("rvalid", "rready"))
        found.append(_Probe(moved, f"read {port}", channel))
    found.append(_Probe(moved, "write", (path("", "write__wvalid"), path("", "write__wready"))))
    return found


def read_timeline(wave: Path, config: Config, first: int, cycles: int) -> dict[str, dict[str, Line]]:
    """Panel -> line -> cycles since ``first`` and the means of its values, over ``cycles`` cycles from there."""
    shown = probes(config, read_signals(traced_verilog(core_verilog(config))))
    step = max(1, cycles // POINTS)
    names = [name for probe in shown for name in probe.signals]
    counts: list[int] = []
    for cycle, values in sample(wave, names):
        if not first <= cycle < first + cycles:
            continue
        place = (cycle - first) // step
        if place == len(counts):
            counts.append(0)
            for probe in shown:
                probe.sums.append(0.0)
        counts[place] += 1
        start = 0
        for probe in shown:
            end = start + len(probe.signals)
            probe.sums[place] += probe.value(values[start:end])
            start = end
    times = [float(step * place) for place in range(len(counts))]
    panels: dict[str, dict[str, Line]] = {}
    for probe in shown:
        means = [total / count for total, count in zip(probe.sums, counts, strict=True)]
        panels.setdefault(probe.panel, {})[probe.name] = (times, means)
    return panels
