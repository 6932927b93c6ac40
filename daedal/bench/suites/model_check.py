"""The suite ``model``: what the target ``model`` predicts, beside what the RTL takes."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from daedal.bench.report.table import column
from daedal.bench.suite import Machine, Order, Row, Say, Suite, machines_of, one_thread
from daedal.bench.suites import shapes
from daedal.bench.workloads.runner import first_difference
from daedal.bench.workloads.shapes import LONG_LINES, MadeShape
from daedal.compiler.api import compile
from daedal.driver.device import Device
from daedal.driver.launch.record import Stats
from daedal.errors import DaedalError

NAME = "model"

LONG_CYCLES, LONG_ERROR = 10_000, 0.05
"""Launches of so many cycles are to be predicted with no more than this error."""

SHORT_ERROR, SHORT_CYCLES = 0.08, 60
"""Shorter ones with this one, or so many cycles."""


def run(order: Order, say: Say) -> Iterator[Row]:
    """A row for each shape of the suite ``shapes`` and machine."""
    with one_thread():
        for machine in machines_of(order):
            for shape in shapes.chosen(order):
                if shapes.is_for(shape, machine):
                    say(f"{NAME}: {shape.name} on {machine.memory}")
                    made = (shape.smaller if machine.quick else shape.sized)(machine.config).make(machine.seed)
                    yield {"workload": shape.name, "group": shape.group, **compared(made, machine)}


def compared(made: MadeShape, machine: Machine) -> Row:
    """One launch on the RTL and on the model."""
    row: Row = {"config": machine.config.name, "memory": machine.memory, "seed": machine.seed}
    try:
        (rtl, ports), (predicted, predicted_ports) = (figures(made, machine, each) for each in ("verilator", "model"))
    except DaedalError as error:
        return {**row, "bit_exact": False, "verdict": f"{type(error).__name__}: {error}"}
    found = {"cycles": rtl.cycles, "predicted_cycles": predicted.cycles, "bit_exact": True, "verdict": ""}
    for name in ("lines_read", "lines_written", "stalls", "marks"):
        found |= {name: rtl[name], f"predicted_{name}": predicted[name]}
    found |= {"main_stall": rtl.main_stall, "predicted_stall": predicted.main_stall}
    found |= {"port_lines": ports, "predicted_port_lines": predicted_ports}
    off = predicted.cycles / rtl.cycles - 1
    return {**row, **found, "error": off, "within": is_within(rtl.cycles, predicted.cycles)}


class Figures(NamedTuple):
    """What a launch did: its stats, and the lines that it read at each memory port."""

    stats: Stats
    port_lines: tuple[int, ...]


def launch(made: MadeShape, machine: Machine, target: str) -> Stats:
    """Stats of a launch on this target; DaedalError if the result is not PyTorch's."""
    return figures(made, machine, target).stats


def figures(made: MadeShape, machine: Machine, target: str) -> Figures:
    """Figures of a launch on this target; DaedalError if the result is not PyTorch's."""
    with Device.open(target, config=machine.config, memory=machine.memory) as device:
        executable = compile(made.module, made.inputs, device=device)
        executable.prepare(made.inputs)
        for name, weight in made.module.named_parameters():
            device.bind_table(name, weight)
        if made.needed_lines(machine.config) < LONG_LINES // 2:
            executable(*made.inputs)  # the first launch of a machine has a start of its own
        port_lines = _port_lines(device)
        result = executable(*made.inputs)
        stats: Stats = executable.stats
        lines = port_lines()
    difference = first_difference(result, made.module(*made.inputs))
    if difference:
        raise DaedalError(f"the result on target {target} must be PyTorch's: {difference}")
    return Figures(stats, lines)


def _port_lines(device: Device) -> Callable[[], tuple[int, ...]]:
    """From now on: what tells how many lines were read at each port."""
    target: Any = device.target
    if hasattr(target, "lines_by_port"):
        before = target.lines_by_port()
        return lambda: tuple(now - then for now, then in zip(target.lines_by_port(), before, strict=True))
    target.record()

    def counted() -> tuple[int, ...]:
        bursts = target.recorded()
        return tuple(int(bursts["beats"][bursts["port"] == port].sum()) for port in range(device.config.ports))

    return counted


def is_within(cycles: int, predicted: int) -> bool:
    """Whether a prediction is as near to the RTL's cycles as is wanted."""
    off = abs(predicted - cycles)
    if cycles >= LONG_CYCLES:
        return off <= LONG_ERROR * cycles
    return off <= max(SHORT_ERROR * cycles, SHORT_CYCLES)


def summary(rows: Iterable[Row]) -> str:
    """In words, how large the errors of these rows are."""
    found: list[Any] = [row for row in rows if "error" in row]
    if not found:
        return "nothing was compared"
    errors = sorted(abs(row["error"]) for row in found)
    median, most = errors[len(errors) // 2], errors[-1]
    within = sum(row["within"] for row in found)
    return (
        f"{len(found)} launches compared with the RTL: error {median:.1%} in the median, {most:.0%} at most; {within} "
        f"within {LONG_ERROR:.0%} ({SHORT_ERROR:.0%} or {SHORT_CYCLES} cycles below {LONG_CYCLES:,} cycles)"
    )


SUITE = Suite(
    NAME,
    "The target model: predicted cycles beside those of the RTL",
    (
        column("shape", "workload"), column("memory", "memory"), column("cycles", "cycles", ",d"),
        column("predicted", "predicted_cycles", ",d"), column("error", "error", "+.3f"),
        column("main stall", "main_stall"), column("predicted", "predicted_stall"), column("near enough", "within"),
    ),
    run,
)  # fmt: skip
