"""What ``daedal.compile`` gives for a kernel and a system: rounds of its outermost loops, shared out to tiles."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from daedal.driver.device import Device
from daedal.driver.launch.record import Record
from daedal.driver.tables.table_sources import is_tensor
from daedal.errors import BoundsWarning, DaedalError, UnsupportedOperation
from daedal.runtime.futures import Pending, promise
from daedal.runtime.loops.arrays import WhyNot
from daedal.runtime.loops.kernel_executable import KernelExecutable, LoopCall
from daedal.runtime.loops.kernel_function import LoopFunction
from daedal.runtime.loops.rounds import shares
from daedal.runtime.tensors import array_of, fill
from daedal.system.futures import SystemSubmitted
from daedal.system.stats import SystemStats
from daedal.system.system import System
from daedal.system.tile import TileCall


class SystemKernelExecutable(KernelExecutable):
    """A kernel for a system: call it with the kernel's arguments.

    It is a ``KernelExecutable``. Each tile does about as many rounds of the outermost loops as any other, with its part
    of the arrays that have one for each round, and with all of the others. Arrays are filled when all tiles are done,
    by ``result()`` where the call was submitted; after a fault on one of them they are as before.

    Parameters
    ----------
    function
        The kernel.
    system
        Where it runs.

    Raises UnsupportedOperation, with the reason, for a kernel whose rounds cannot be shared out.
    """

    def __init__(self, function: LoopFunction, system: System, why_not: WhyNot, bounds: str, opt: int) -> None:
        if function.rounds.why_not:
            raise function.source.refusal(
                function.source.tree,
                f"rounds cannot be shared out to tiles: {function.rounds.why_not}; compile it for system.tiles[0]",
            )
        super().__init__(function, system.tiles[0], why_not, bounds, opt)
        self.system = system
        self._done: SystemSubmitted | None = None

    def __copy__(self) -> "SystemKernelExecutable":
        """A copy works on the same system."""
        made = SystemKernelExecutable(self._function, self.system, self._why_not, self.bounds, self.opt)
        made._made, made._current = dict(self._made), self._current
        return made

    @property
    def stats(self) -> SystemStats:
        """The figures of the last call, all tiles together and ``per_tile``; ``cycles`` are the longest tile's."""
        return SystemStats(per_tile=()) if self._done is None else self._done.stats

    def __call__(self, *arguments: Any) -> None:
        """Run the kernel; raises, and warns, as ``KernelExecutable`` does."""
        with self.system.turn:
            self._done = None
            self._done = submitted = self._begin(arguments)[0]
            submitted.settle_or_cancel()
        submitted.warn()

    def submit(self, *arguments: Any) -> Any:
        """A future, whose result is None, of a call with these arguments: its launches are queued on all tiles.

        What the kernel writes is filled by ``result()``; calls on the system that are given it wait for that.
        """
        with self.system.turn:
            submitted, call = self._begin(arguments)
            promise(self.system, _Filling(submitted), self.written(call))
        return submitted

    def _begin(self, arguments: Sequence[Any]) -> tuple[SystemSubmitted, LoopCall]:
        self.system.check_open()
        tiles, rounds = self.system.tiles, self._function.rounds
        whole = self.checked(arguments, (self.system, *tiles))
        chains, written = whole.made.written.bounds.chains, sorted(self._function.shape.written & whole.arrays.keys())
        submitted = SystemSubmitted(tiles, self.system.in_threads)
        found = _Found(self, whole)
        submitted.watch(found)
        works, numbers = [], []
        for number, (first, end) in enumerate(shares(whole.sizes[rounds.size], len(tiles))):
            if first == end:
                continue
            arrays = rounds.parts(whole.arrays, chains, first, end)
            places = {name: arrays[name] for name in written}
            arrays |= {name: _copy(place) for name, place in places.items()}
            part = replace(whole, arrays=arrays, sizes={**whole.sizes, rounds.size: end - first})
            works.append(partial(self._launch, part, submitted.calls[number], found, first))
            numbers.append(number)
            for name, place in places.items():
                submitted.then(partial(self._fill, place, arrays[name]))
        for number, error in zip(numbers, self.system.in_threads(works), strict=True):
            if error is not None:
                submitted.cancel()
                if isinstance(error, DaedalError) and not isinstance(error, UnsupportedOperation):
                    error.tile = number
                raise error
        return submitted, whole

    def _launch(self, part: LoopCall, call: TileCall, found: "_Found", first: int) -> None:
        with call.device.turn:
            launch = self.launch(part, call.device)
            call.add(Pending(launch, lambda error: self.explained(error, found.whole), partial(found.note, first)))

    def _fill(self, place: Any, result: Any) -> None:
        fill(place, array_of(result))
        self.system.table_changed(place)

    def explain(self, *, passes: bool = False) -> str:
        """What ``KernelExecutable.explain`` says, and which rounds each tile does."""
        rounds = self._function.rounds
        shared = f"rounds of range({rounds.size}) are shared out to {len(self.system.tiles)} tiles, as many to each"
        return f"{super().explain(passes=passes)}\n{shared}"


def loops_on(
    function: LoopFunction, device: Device | System, why_not: WhyNot, bounds: str, opt: int
) -> KernelExecutable:
    """The executable of a kernel for a device, or for a system: UnsupportedOperation if that cannot share it."""
    if isinstance(device, System):
        return SystemKernelExecutable(function, device, why_not, bounds, opt)
    return KernelExecutable(function, device, why_not, bounds, opt)


class _Filling:
    """A call that fills arrays when it is waited for, ``futures.Promise``."""

    def __init__(self, submitted: SystemSubmitted) -> None:
        self._submitted = submitted

    def exception(self) -> BaseException | None:
        """Wait for it."""
        return self._submitted.exception()

    def done(self) -> bool:
        """Whether somebody has waited for it."""
        return self._submitted.is_settled


class _Found:
    """What the tiles of a call met of indices that are out of range."""

    def __init__(self, executable: SystemKernelExecutable, whole: LoopCall) -> None:
        self._executable, self.whole = executable, whole
        self._records: dict[int, Record] = {}

    def note(self, first: int, record: Record) -> None:
        """What the launch met that does rounds from this one on; any thread may say it."""
        self._records[first] = record

    @property
    def warning(self) -> BoundsWarning | None:
        """What there is to warn of by now."""
        return self._executable.warning(self.whole, [self._records[first] for first in sorted(self._records)])


def _copy(array: Any) -> Any:
    return array.detach().clone() if is_tensor(array) else np.array(array)
