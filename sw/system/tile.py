"""One tile's part of a call: launches on its device, and where their results go."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast

from daedal.driver.device import Device
from daedal.driver.launch.launch import Launch, LaunchTimeout
from daedal.driver.launch.record import Record
from daedal.errors import (
    BoundsWarning,
    DaedalError,
    IndexOutOfRange,
    InvalidOffsets,
    LaunchCancelled,
    UnsupportedOperation,
)
from daedal.hw.isa.launch import Counter
from daedal.runtime.batch.members import Call, Member, PoolingCall
from daedal.runtime.diagnostics import warning_of
from daedal.runtime.executable import Compile, Executable
from daedal.runtime.futures import Pending, Submitted
from daedal.runtime.request import Array, Request
from daedal.runtime.tensors import array_of
from daedal.system.cuts import PieceCall

if TYPE_CHECKING:
    from torch import fx

SLICE_SECONDS = 0.05
"""How long a tile works before it looks whether its call was cancelled."""

Explain = Callable[[IndexOutOfRange | InvalidOffsets], DaedalError]


@dataclass(frozen=True, eq=False)
class Part:
    """A piece of an operation: the call, what is asked of the tile, and the part of the result that it fills.

    ``place`` has the piece's bags and columns.
    """

    call: PieceCall
    request: Request
    place: Array


@dataclass(frozen=True)
class Unit:
    """What a tile is to do at a time: pieces of operations that run together, if they can, or of a single one.

    ``explain`` says in terms of the whole operations what a launch failed of, ``lookups`` what all tiles met of them.
    """

    parts: Sequence[Part]
    is_group: bool
    explain: Explain
    lookups: "Lookups"


class Lookups:
    """Look-ups of whole operations, of which tiles do parts: what there is to warn of.

    Parameters
    ----------
    operations
        Each with what it is called in messages.
    """

    def __init__(self, operations: Sequence[tuple[str, Request]]) -> None:
        self._operations = operations
        self._met: list[tuple[int, int]] = []
        """Of launches: how many look-ups were out of range, and the first index of these."""

    def note(self, record: Record) -> None:
        """What a launch met; any thread may say it."""
        count = record.counters[Counter.BOUNDS_WARNINGS]
        if count:
            self._met.append((count, record.signed_value))

    @property
    def warning(self) -> BoundsWarning | None:
        """What there is to warn of by now: each look-up once, in however many slices it was made."""
        return warning_of(self._operations, sum(count for count, _ in self._met), {value for _, value in self._met})


class TileCall(Submitted):
    """What one tile does for a call.

    Parameters
    ----------
    device
        The tile.
    cancelled
        Set when the call is given up: then its launches here are withdrawn.
    """

    def __init__(self, device: Device, cancelled: threading.Event) -> None:
        super().__init__(self._in_slices)
        self.device, self._cancelled = device, cancelled
        self._unit: Unit | None = None
        self._fills: list[tuple[Any, Array]] = []
        self._end: float | None = None
        self.error: DaedalError | None = None
        """What was wrong with its own launches."""
        self.was_stopped = False
        """Its launches were withdrawn, for the sake of another tile or an interrupt."""

    @property
    def has_work(self) -> bool:
        """Whether there are launches to wait for, or results to put into their places."""
        return bool(self._pending or self._fills)

    def add(self, pending: Pending) -> None:
        """A launch; what it fails of is explained in terms of the whole operation."""
        unit = self._unit
        super().add(pending if unit is None else Pending(pending.launch, unit.explain, unit.lookups.note))

    def begin(self, unit: Unit, executable: "TileExecutable") -> None:
        """Submit a unit's launches."""
        with self.device.turn:
            _ = self.device.target
            self._unit = unit
            try:
                self._fills += executable.begin(unit, self)
            finally:
                self._unit = None

    def finish(self, end: float | None) -> None:
        """Wait for all launches, at most until ``end`` of the monotonic clock, and put the results into their places.

        TimeoutError if that passes. ``error`` and ``was_stopped`` tell of all else that ends them.
        """
        if self.error is not None or self.was_stopped:
            return
        self._end = end
        try:
            self.settle()
            for tensor, place in self._fills:
                place[...] = array_of(tensor).reshape(place.shape)
        except LaunchCancelled as error:
            if not self.was_stopped:
                self.error = error
                self._cancelled.set()
        except DaedalError as error:
            self.error = error
            self._cancelled.set()
        self._fills.clear()

    def mark(self) -> tuple[int, int]:
        """Where its launches and results stand; for :meth:`forget`."""
        return len(self._pending), len(self._fills)

    def forget(self, mark: tuple[int, int]) -> None:
        """Withdraw what was submitted since then: the operation is done elsewhere."""
        launches = [pending.launch for pending in self._pending[mark[0] :]]
        del self._pending[mark[0] :], self._fills[mark[1] :]
        if launches:
            self.device.withdraw(launches, "the framework does the operation that it is of")

    def drop(self) -> None:
        """Withdraw all launches that have not ended."""
        self.was_stopped = True
        self._fills.clear()
        launches = [pending.launch for pending in self._pending]
        if launches and not self.device.closed:
            self.device.withdraw(launches, "the call that it is of was given up")

    def _in_slices(self, launch: Launch) -> Record:
        while True:
            if self._cancelled.is_set() and not launch.done():
                self.drop()
            now = time.monotonic()
            try:
                return launch.result(
                    SLICE_SECONDS if self._end is None else max(0.0, min(SLICE_SECONDS, self._end - now))
                )
            except LaunchTimeout:
                if self._end is not None and time.monotonic() >= self._end:
                    raise


class TileExecutable(Executable):
    """Runs pieces of a model's operations on one tile.

    Parameters
    ----------
    device
        The tile.
    compile
        Makes kernels; may be called from several threads.
    """

    def __init__(self, device: Device, compile: Compile, bounds: str, opt: int) -> None:
        super().__init__(_Pieces(), device, compile, bounds, opt)

    @property
    def launched(self) -> list[list[str]]:
        """The operations of each launch of the last unit."""
        return list(self._launched)

    def rehearse(self, unit: Unit) -> None:
        """Compile what the unit needs."""
        self._launched = []
        if unit.is_group:
            self._dry_run_group(_members(unit.parts), ())
            return
        for part in unit.parts:
            self._dry_run(cast(Call, part.call), part.request)

    def begin(self, unit: Unit, call: TileCall) -> list[tuple[Any, Array]]:
        """Submit a unit's launches; the tensors that they will fill, and the places of the whole results."""
        work = self._work(call, at_once=False)
        if not unit.is_group:
            return [(work.call(cast(Call, part.call), part.request), part.place) for part in unit.parts]
        members = _members(unit.parts)
        found = work.group(members, ())
        return [(found[member.node], part.place) for member, part in zip(members, unit.parts, strict=True)]


def _members(parts: Sequence[Part]) -> list[Member]:
    """Members of a group; a piece stands for its node, as an operation may have several on a tile."""
    return [Member(cast("fx.Node", part), cast(PoolingCall, part.call), part.request, ()) for part in parts]


class _Pieces:
    """The program of a tile: none, as the system's has what runs on the host (``host_program.HostProgram``)."""

    calls: Sequence[Call] = ()
    reasons: Mapping[str, str] = {}
    framework = "PyTorch"
    remarks: Mapping[str, str] = {}
    eager: Mapping[str, str] = {}
    code = ""
    fewest_launches = 0

    def by_position(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """Nothing."""
        raise NotImplementedError

    def run(self, inputs: Sequence[Any], work: Any) -> Any:
        """Nothing."""
        raise NotImplementedError

    def can_leave(self, call: Call, error: UnsupportedOperation) -> bool:
        """What a tile cannot do is the system's to decide."""
        return False

    def saved(self, writer: Any) -> NoReturn:
        """A file is of one device."""
        raise UnsupportedOperation("a tile has parts of operations, which no file holds")

    def tables(self) -> NoReturn:
        """As for files."""
        raise UnsupportedOperation("a tile has parts of operations, which no file holds")

    def request_of(self, call: Call, sources: Sequence[Any]) -> Request:
        """Nothing: pieces come as requests."""
        raise NotImplementedError
