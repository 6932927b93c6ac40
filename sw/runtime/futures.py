"""Results of calls that were submitted: as futures, and as arrays that their launches will fill."""

import asyncio
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from functools import partial
from threading import TIMEOUT_MAX
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from daedal.base.handle import Handle
from daedal.base.process_resource import Turn
from daedal.driver.launch.launch import POLL_SECONDS, Launch, LaunchTimeout
from daedal.driver.launch.record import Record, Stats
from daedal.errors import BoundsWarning, DaedalError, IndexOutOfRange, InvalidOffsets


class Pending(NamedTuple):
    """A launch of a module, how to say what it failed of, and what there is to warn of."""

    launch: Launch
    explain: Callable[[IndexOutOfRange | InvalidOffsets], DaedalError]
    warning: Callable[[Record], BoundsWarning | None]


class Submitted(Handle):
    """The result of a call that was submitted, as a future; also works with ``await``.

    ``value`` is the result, whose tensors are filled when their launches end.

    Parameters
    ----------
    wait
        Waits for a launch and returns its record.
    """

    def __init__(self, wait: Callable[[Launch], Record]) -> None:
        self._wait = wait
        self._turn = Turn()
        """Its lock is held by the thread that waits for the launches."""
        self._pending: list[Pending] = []
        self._error: DaedalError | None = None
        self._records: list[Record] = []
        self.warnings = list[BoundsWarning]()
        self.value: Any = None

    @property
    def stats(self) -> Stats:
        """The figures of the launches that have been waited for; added up when somebody asks."""
        return sum((record.stats for record in self._records), Stats())

    def add(self, pending: Pending) -> None:
        """A launch that the result comes from."""
        self._pending.append(pending)

    def settle(self) -> None:
        """Wait for all launches so far; raises what was wrong with the first one that failed."""
        with self._turn.lock:
            while self._pending:
                self._settle_first(self._wait)

    def done(self) -> bool:
        """Whether all its launches have ended; does not wait."""
        return all(pending.launch.done() for pending in self._pending)

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the result. Raises what a call raises, and issues its warnings; see also ``Launch.result``."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        while (warning := self._next_warning()) is not None:
            warnings.warn(warning, stacklevel=2)
        return self.value

    def _next_warning(self) -> BoundsWarning | None:
        with self._turn.lock:
            return self.warnings.pop(0) if self.warnings else None

    def exception(self, timeout: float | None = None) -> DaedalError | None:
        """Wait for the result; what ``result`` would raise for it, None if nothing. TimeoutError as there."""
        end = None if timeout is None else time.monotonic() + timeout
        turn = self._turn.lock
        if not turn.acquire(timeout=-1 if timeout is None else min(max(0.0, timeout), TIMEOUT_MAX)):
            raise LaunchTimeout(f"the result was not there within {timeout} s")
        try:
            while self._pending and self._error is None:
                rest = None if end is None else max(0.0, end - time.monotonic())
                with suppress(DaedalError):  # which is kept
                    self._settle_first(partial(Launch.result, timeout=rest))
            return self._error
        finally:
            turn.release()

    def __repr__(self) -> str:
        state = type(self._error).__name__ if self._error is not None else "done" if self.done() else "in work"
        return f"<Submitted, {len(self._records) + len(self._pending)} launches, {state}>"

    def __await__(self) -> Generator[Any, None, Any]:
        while not self.done():
            try:
                for last in self._pending[-1:]:  # none if another thread has just waited for it
                    last.launch.exception(POLL_SECONDS)
            except TimeoutError:
                yield from asyncio.sleep(0).__await__()
        return self.result()

    def _settle_first(self, wait: Callable[[Launch], Record]) -> None:
        """Wait for the first launch. TimeoutError and an interrupt leave everything as it is."""
        pending = self._pending[0]
        try:
            record = wait(pending.launch)
        except DaedalError as error:
            self._error = pending.explain(error) if isinstance(error, IndexOutOfRange | InvalidOffsets) else error
            self._pending.clear()
            if self._error is error:
                raise
            raise self._error from error
        del self._pending[0]
        self._records.append(record)
        warning = pending.warning(record)
        if warning is not None:
            self.warnings.append(warning)


Array = NDArray[Any]


class Promise(Protocol):
    """What fills arrays when it has ended well: a launch."""

    def exception(self) -> BaseException | None:
        """Wait for its end; what has gone wrong."""
        ...

    def done(self) -> bool:
        """Whether it has ended, and arrays are filled."""
        ...


_promised: "WeakKeyDictionary[object, list[tuple[Promise, Sequence[Array]]]]" = WeakKeyDictionary()


def promise(device: object, launch: Promise, arrays: Sequence[Array]) -> None:
    """``launch``, on a device or a system, fills ``arrays`` when it has ended well."""
    _promised.setdefault(device, []).append((launch, arrays))


def wait_for(device: object, arrays: Iterable[Array] | None = None) -> None:
    """Wait for the launches that fill anything of ``arrays``, of all if left out.

    What has gone wrong with them comes with their own futures: their arrays are as before then.
    """
    waiting = _promised.get(device)
    if waiting is None:
        return
    taken = None if arrays is None else list(arrays)
    for pair in list(waiting):  # each is kept until it is over, whatever comes in between
        launch, filled = pair
        if taken is None or any(np.may_share_memory(a, b) for a in filled for b in taken):
            launch.exception()
        if launch.done():
            waiting.remove(pair)
