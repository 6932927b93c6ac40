"""The suite ``overhead``: what Daedal costs the host: an import, a compilation, each launch of a compiled program."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

import daedal
from daedal.bench.report.table import column
from daedal.bench.suite import NOT_EQUAL, Machine, Order, Row, Say, Suite, at_most, machines_of, one_thread
from daedal.bench.workloads.runner import same_bits
from daedal.compiler.pipeline import forget_kernels

TABLES, DIM, BAGS, POOLING = 26, 16, 4, 2
"""The recommender: its tables, their columns, and a batch with as little work as shows what the host does."""

IMPORT_SECONDS, EXPORTED_SECONDS, LOOK_MICROSECONDS = 0.3, 0.5, 1000
COMPILE_SECONDS = {26: 0.5, 104: 2.0, 416: 8.0}
"""Of a module, by tables."""

CALL_MICROSECONDS = {1: 120, 26: 250}
"""Of a call, by tables, without the machine's time. All of these are the most that is wanted."""

CALLED_ROWS = 500
"""Rows of each table of the calls: 26 of them are less than a megabyte."""

LOOKED_AT = 10_000_000
"""Bytes of tables that are compared with what was uploaded."""

REPEATS = 7
"""Runs of each measurement; their median counts. Launches are measured 20 times as often."""


class Tables(nn.Module):
    """The embedding tables of a recommender, their results side by side."""

    def __init__(self, count: int, rows: int | None = None) -> None:
        super().__init__()
        sizes = [1000 + 100 * n if rows is None else rows for n in range(count)]
        self.tables = nn.ModuleList(nn.EmbeddingBag(size, DIM, mode="sum") for size in sizes)

    def forward(self, indices: list[Tensor], offsets: list[Tensor]) -> Tensor:
        """A row for each bag."""
        return torch.cat([table(i, o) for table, i, o in zip(self.tables, indices, offsets, strict=True)], 1)


class Interaction(Tables):
    """Reads sizes, as recommenders do: the products of all pairs of results."""

    def forward(self, indices: list[Tensor], offsets: list[Tensor]) -> Tensor:
        """A row for each bag."""
        results = torch.stack([table(i, o) for table, i, o in zip(self.tables, indices, offsets, strict=True)], 1)
        bags, count, _ = results.shape
        return torch.bmm(results, results.transpose(1, 2)).view(bags, count * count)


def batch(count: int) -> tuple[list[Tensor], list[Tensor]]:
    """Indices and offsets for each table."""
    indices = [torch.randint(0, CALLED_ROWS, (BAGS * POOLING,)) for _ in range(count)]
    return indices, [torch.arange(0, BAGS * POOLING, POOLING) for _ in range(count)]


def run(order: Order, say: Say) -> Iterator[Row]:
    """A row for each thing that is measured, all on the emulator."""
    torch.manual_seed(order.seed)
    repeats = 2 if order.quick else REPEATS
    with one_thread():
        for machine in machines_of(order):
            say("overhead: import")
            yield _row("import daedal", "s", [_import() for _ in range(repeats)], IMPORT_SECONDS, True, machine)
            say(f"overhead: {TABLES} tables, compilation")
            yield _exported(repeats, machine)
            for count, goal in COMPILE_SECONDS.items():
                for module in (Tables(count, CALLED_ROWS), Interaction(count, CALLED_ROWS)):
                    say(f"overhead: {count} tables, compilation")
                    yield _compilation(module, count, goal, repeats, machine)
            for count in CALL_MICROSECONDS:
                say(f"overhead: {count} tables, calls")
                yield _calls(count, 40 * repeats, machine)
                yield _launches(count, 40 * repeats, machine)
            say(f"overhead: {LOOKED_AT // 10**6} MB of tables, a look at their contents")
            yield _look(20 * repeats, machine)


def _compilation(module: Tables, count: int, goal: float, repeats: int, machine: Machine) -> Row:
    """Seconds of the compilation of a module with so many tables, its trace included."""
    inputs, times = batch(count), []
    with daedal.Device.open("emulator", config=machine.config) as device:
        for _ in range(repeats):
            forget_kernels()
            times.append(_timed(lambda: daedal.compile(module, inputs, device=device)))
    what = f"compile a module of {count} tables" + (" that reads sizes" if isinstance(module, Interaction) else "")
    return _row(what, "s", times, goal, True, machine)


def _exported(repeats: int, machine: Machine) -> Row:
    """Seconds of the compilation of an exported module."""
    module, inputs = Tables(TABLES), batch(TABLES)
    program = torch.export.export(module, inputs)
    times = []
    with daedal.Device.open("emulator", config=machine.config) as device:
        for _ in range(repeats):
            forget_kernels()
            times.append(_timed(lambda: daedal.compile(program, inputs, device=device)))
    return _row(f"compile {TABLES} exported tables", "s", times, EXPORTED_SECONDS, True, machine)


def _import() -> float:
    """Seconds of an import in a process of its own."""
    code = "import time; t = time.perf_counter(); import daedal; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def _timed(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _calls(count: int, repeats: int, machine: Machine) -> Row:
    """Microseconds of calls of an executable without the machine's time, contents of tables compared."""
    module, inputs = Tables(count, CALLED_ROWS), batch(count)
    with daedal.Device.open("emulator", config=machine.config) as device, torch.no_grad():
        executable = daedal.compile(module, inputs, device=device)
        exact = same_bits(executable(*inputs), module(*inputs))
        times = _without_machine(lambda: executable(*inputs), repeats, device)
        exact &= executable.stats.launches == 1
    return _row(f"call of {_tables(count)}", "µs", times, CALL_MICROSECONDS[count], exact, machine)


def _without_machine(call: Callable[[], Any], repeats: int, device: daedal.Device) -> list[float]:
    """Microseconds of calls, the first of which is not counted."""
    call()
    waited = _clock(device.target)
    times = []
    for _ in range(repeats):
        before = waited[0]
        wall = _timed(call)
        times.append(1e6 * (wall - (waited[0] - before)))
    return times


def _tables(count: int) -> str:
    return f"{count} table{'s' * (count > 1)}"


def _launches(count: int, repeats: int, machine: Machine) -> Row:
    """Microseconds of calls of a graph that ``torch.compile`` made, without Dynamo's guards and the machine's time.

    Changes of tables are counted, as on boards: what it costs to compare them depends on how large they are.
    """
    module, inputs = Tables(count), batch(count)
    opened = daedal.Device.open("emulator", config=machine.config, table_check="versions")
    with opened as device, torch.no_grad():
        given_options: dict[str, Any] = {"device": device}
        fast = torch.compile(module, backend="daedal", dynamic=True, options=given_options)
        exact = same_bits(fast(*inputs), module(*inputs))
        (graph,) = daedal.graphs(device)
        given: list[Any] = []
        graph.on_call = given.append  # the inputs as Dynamo hands them over
        fast(*inputs)
        graph.on_call = None
        times = _without_machine(lambda: graph(*given[0]), repeats, device)
        exact &= graph.stats.launches == 1
    return _row(f"launch of {_tables(count)}", "µs", times, CALL_MICROSECONDS[count], exact, machine)


def _look(repeats: int, machine: Machine) -> Row:
    """Microseconds in which tables are compared with what was uploaded, as each launch that reads them does."""
    tables = [torch.randn(LOOKED_AT // (4 * 4 * DIM), DIM) for _ in range(4)]
    with daedal.Device.open("emulator", config=machine.config, table_check="contents") as device:
        bound = [device.bind_table(f"table {number}", table) for number, table in enumerate(tables)]
        times = [1e6 * _timed(lambda: device.find_tables(tables)) for _ in range(repeats)]
        tables[-1].data[-1, -1] += 1
        exact = device.find_tables(tables) == bound and device.table_uploads == len(tables) + 1
    return _row(f"look at {LOOKED_AT // 10**6} MB of tables", "µs", times, LOOK_MICROSECONDS, exact, machine)


def _clock(target: Any) -> list[float]:
    """The seconds, from now on, that the target lets its machine work."""
    wait, spent = target.wait, [0.0]

    def timed(timeout: float | None = None) -> bool:
        start = time.perf_counter()
        try:
            return bool(wait(timeout))
        finally:
            spent[0] += time.perf_counter() - start

    target.wait = timed
    return spent


def _row(what: str, unit: str, times: list[float], goal: float, exact: bool, machine: Machine) -> Row:
    value = statistics.median(times)
    digits = 1 if unit == "µs" else 3
    return {
        "workload": what, "unit": unit, "value": round(value, digits), "least": round(min(times), digits),
        "most": round(max(times), digits), "goal": goal, "config": machine.config.name, "memory": machine.memory,
        "bit_exact": exact, "verdict": "" if exact else NOT_EQUAL, "outcome": at_most(value, goal),
    }  # fmt: skip


SUITE = Suite(
    name="overhead",
    title="What Daedal costs the host",
    columns=(
        column("what", "workload"), column("median", "value", ",.3f"), column("least", "least", ",.3f"),
        column("most", "most", ",.3f"), column("unit", "unit"), column("equal", "bit_exact"), column("goal", "outcome"),
    ),
    run=run,
)  # fmt: skip
