"""What the bench asks of a workload, and of one with its data, whatever is computed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, Self

from torch import Tensor

from daedal.driver.device import Device
from daedal.driver.launch.record import Stats
from daedal.hw.config.core import Config


class Program(Protocol):
    """An operation that is compiled for a device."""

    @property
    def stats(self) -> Stats:
        """What its last run did."""

    def asm(self) -> str:
        """The program's text."""


class Task(Protocol):
    """A workload with its data."""

    @property
    def workload(self) -> "Model":
        """What it is of."""

    @property
    def lookups(self) -> int:
        """Rows that are looked up. None is padding."""

    @property
    def bags(self) -> int:
        """Results: bags, nodes, triples or blocks."""

    @property
    def origin(self) -> str:
        """Where the indices come from."""

    @property
    def reference(self) -> str:
        """What the result is compared with, bit for bit."""

    @property
    def flops(self) -> int:
        """Additions and multiplications that the operation needs."""

    @property
    def row_bytes(self) -> int:
        """Bytes of all rows that are looked up."""

    @property
    def useful_bytes(self) -> int:
        """Bytes that the operation reads or writes once: rows, indices, offsets, weights, results."""

    def lines(self, bus_bytes: int) -> int:
        """Lines that the operation has to move, each part of an array once and each row for itself."""

    def lane_cycles(self, config: Config) -> int | None:
        """Least cycles that the lanes need for all of it; None where they are never what decides."""

    def fetched(self, config: Config) -> tuple[int, int]:
        """Row fetches of the machine, and lines that they read."""

    def launches(self, config: Config) -> int:
        """Most launches that it may take."""

    def compile(self, device: Device) -> tuple[Program, Callable[[], Any]]:
        """The operation on a device, its tables there already, and what runs it and gives its result."""

    def expected(self) -> Any:
        """The result that the machine must give, bit for bit."""

    def in_torch(self) -> Callable[[], Any]:
        """The same operation in PyTorch on this computer, to be timed."""


class Model(Protocol):
    """A workload of the bench."""

    @property
    def name(self) -> str:
        """What tables and JSON call it."""

    @property
    def what(self) -> str:
        """What it is, for people to read."""

    @property
    def mode(self) -> str:
        """The kind of operation."""

    @property
    def tables(self) -> tuple[int, ...]:
        """Rows of each table, 0 for what the data say."""

    @property
    def dim(self) -> int:
        """Columns of the tables, binary32."""

    @property
    def batch(self) -> int:
        """Results over each table, at most."""

    @property
    def source(self) -> str:
        """Where indices come from if they are the workload's own."""

    @property
    def row_bytes(self) -> int:
        """Useful bytes of a row."""

    @property
    def distributions(self) -> tuple[str, ...]:
        """Those that are measured unless told otherwise."""

    def smaller(self) -> Self:
        """The same with little work, to see that it runs."""

    def shortened(self, batch: int) -> Self:
        """The same with at most so many results over each table."""

    def make(self, distribution: str, seed: int, config: Config, data: Path | None = None) -> Task:
        """The workload with its data, equal for equal arguments; ``data`` is the folder with real data, if any."""


def bind_parameters(device: Device, module: Any) -> None:
    """Have a module's tables in front of all arrays, also if there are many launches."""
    for name, weight in module.named_parameters():
        device.bind_table(name, weight)


def run_of(program: Any, inputs: tuple[Any, ...]) -> Callable[[], Tensor]:
    """What calls a compiled module."""
    return lambda: program(*inputs)
