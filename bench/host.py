"""The suite ``host``: what Daedal costs the host: an import, a compilation, and each launch of a compiled program."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import daedal
from bench.options import Options
from bench.report import Row, Suite, column, say
from daedal.compiler.pipeline import forget_kernels
from daedal.workloads.runner import same_bits

TABLES, DIM, BAGS, POOLING = 26, 16, 4, 2
"""The recommender: its tables, their columns, and a batch with as little work as shows what the host does."""

IMPORT_SECONDS, COMPILE_SECONDS, LAUNCH_MICROSECONDS = 0.3, 0.5, 300
"""Most that is wanted."""

REPEATS = 7
"""Runs of each measurement; their median counts. Launches are measured 20 times as often."""


class Tables(nn.Module):
    """The embedding tables of a recommender, their results side by side."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(1000 + 100 * n, DIM, mode="sum") for n in range(count))

    def forward(self, indices: list[Tensor], offsets: list[Tensor]) -> Tensor:
        """A row for each bag."""
        return torch.cat([table(i, o) for table, i, o in zip(self.tables, indices, offsets, strict=True)], 1)


def batch(count: int) -> tuple[list[Tensor], list[Tensor]]:
    """Indices and offsets for each table."""
    indices = [torch.randint(0, 1000, (BAGS * POOLING,)) for _ in range(count)]
    return indices, [torch.arange(0, BAGS * POOLING, POOLING) for _ in range(count)]


def run(options: Options) -> list[Row]:
    """A row for each thing that is measured, all on the emulator."""
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    repeats = 2 if options.quick else REPEATS
    say("host: import")
    rows = [_row("import daedal", "s", [_import() for _ in range(repeats)], IMPORT_SECONDS, True, options)]
    say(f"host: {TABLES} tables, compilation")
    module, inputs = Tables(TABLES), batch(TABLES)
    program = torch.export.export(module, inputs)
    with daedal.Device.open("emulator", config=options.config) as device:
        times = []
        for _ in range(repeats):
            forget_kernels()
            times.append(_timed(lambda: daedal.compile(program, inputs, device=device)))
        rows.append(_row(f"compile {TABLES} tables", "s", times, COMPILE_SECONDS, True, options))
    for count in (TABLES, 1):
        say(f"host: {count} tables, launches")
        rows.append(_launches(count, 20 * repeats, options))
    return rows


def _import() -> float:
    """Seconds of an import in a process of its own."""
    code = "import time; t = time.perf_counter(); import daedal; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def _timed(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _launches(count: int, repeats: int, options: Options) -> Row:
    """Microseconds of calls of a graph that ``torch.compile`` made, without Dynamo's guards and the machine's time."""
    module, inputs = Tables(count), batch(count)
    with daedal.Device.open("emulator", config=options.config) as device, torch.no_grad():
        given_options: dict[str, Any] = {"device": device}
        fast = torch.compile(module, backend="daedal", dynamic=True, options=given_options)
        exact = same_bits(fast(*inputs), module(*inputs))
        (graph,) = daedal.graphs(device)
        given: list[Any] = []
        graph.on_call = given.append  # the inputs as Dynamo hands them over
        fast(*inputs)
        graph.on_call = None
        machine = _clock(device.target)
        times = []
        for _ in range(repeats):
            before = machine[0]
            wall = _timed(lambda: graph(*given[0]))
            times.append(1e6 * (wall - (machine[0] - before)))
        exact &= graph.stats.launches == 1
    return _row(f"launch of {count} table{'s' * (count > 1)}", "µs", times, LAUNCH_MICROSECONDS, exact, options)


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


def _row(what: str, unit: str, times: list[float], goal: float, exact: bool, options: Options) -> Row:
    value = statistics.median(times)
    digits = 1 if unit == "µs" else 3
    row: Row = {
        "what": what, "unit": unit, "value": round(value, digits), "least": round(min(times), digits),
        "most": round(max(times), digits), "goal": goal, "config": options.config.name, "bit_exact": exact,
    }  # fmt: skip
    verdict = f"goal at most {goal:g}: {'reached' if value <= goal else 'missed'}"
    return {**row, "verdict": verdict if exact else "NOT EQUAL to PyTorch"}


SUITE = Suite(
    name="host",
    title="What Daedal costs the host",
    columns=(
        column("what", "what"), column("median", "value", ",.3f"), column("least", "least", ",.3f"),
        column("most", "most", ",.3f"), column("unit", "unit"), column("equal", "bit_exact"), column("", "verdict"),
    ),
    run=run,
    is_broken=lambda row: not row["bit_exact"],
)  # fmt: skip
