"""Results of calls of a system, as futures."""

import asyncio
import threading
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol

from daedal.base.handle import Handle
from daedal.base.process_resource import Turn
from daedal.driver.device import Device
from daedal.driver.launch.launch import POLL_SECONDS, LaunchTimeout
from daedal.errors import BoundsWarning, DaedalError, LaunchCancelled
from daedal.system.stats import SystemStats, together
from daedal.system.tile import TileCall

InThreads = Callable[[Sequence[Callable[[], None]]], Sequence[BaseException | None]]
"""Runs each of these in a thread, and waits for all; what each of them raised."""


class Warns(Protocol):
    """What tiles look up for a call."""

    @property
    def warning(self) -> BoundsWarning | None:
        """What there is to warn of by now."""
        ...


class SystemSubmitted(Handle):
    """The result of a call of a system, as a future; also works with ``await``.

    ``value`` is the result, whose tensors are filled when all tiles have been waited for.

    Parameters
    ----------
    tiles
        The system's tiles.
    in_threads
        Runs something for each tile.
    """

    def __init__(self, tiles: Sequence[Device], in_threads: InThreads) -> None:
        self._cancelled = threading.Event()
        self.calls = tuple(TileCall(tile, self._cancelled) for tile in tiles)
        """What each tile does."""
        self._in_threads, self._turn = in_threads, Turn()
        self._later: list[Callable[[], None]] = []
        self._error: DaedalError | None = None
        self._watched: list[Warns] = []
        self._warned = 0
        self.value: Any = None

    @property
    def stats(self) -> SystemStats:
        """The figures of the launches that have been waited for."""
        return together([call.stats for call in self.calls])

    @property
    def warnings(self) -> list[BoundsWarning]:
        """What there is to warn of by now, in the order of the operations."""
        return [warning for each in self._watched if (warning := each.warning) is not None]

    def watch(self, lookups: Warns) -> None:
        """Warn of these look-ups, if tiles find indices among them that are out of range."""
        self._watched.append(lookups)

    def then(self, complete: Callable[[], None]) -> None:
        """Do this when the tiles have filled their parts of the results."""
        self._later.append(complete)

    def settle(self) -> None:
        """Wait for all launches so far; raises the first fault of the lowest tile that had one, with its ``tile``."""
        self._settle(None)

    def settle_or_cancel(self) -> None:
        """The same; whatever is raised, an interrupt too, gives the call up."""
        try:
            self.settle()
        except BaseException:
            self.cancel()
            raise

    def _settle(self, end: float | None) -> None:
        with self._turn.lock:
            if self._error is None:
                self._wait(end)
            if self._error is not None:
                raise self._error
            while self._later:
                self._later.pop(0)()

    def _wait(self, end: float | None) -> None:
        waiting = [call for call in self.calls if call.has_work]
        if not waiting:
            return
        try:
            raised = self._in_threads([lambda call=call: call.finish(end) for call in waiting])  # type: ignore[misc]
        except BaseException:  # an interrupt: the threads see that, and stop their launches
            self.cancel()
            raise
        faults = [(number, call.error) for number, call in enumerate(self.calls) if call.error is not None]
        if faults:
            number, error = faults[0]
            error.tile = number
            self._error = error
            return
        if any(call.was_stopped for call in self.calls):
            self._error = _given_up()
            return
        other = next((each for each in raised if each is not None), None)
        if other is not None:
            raise other

    def cancel(self) -> None:
        """Give the call up: its launches that have not ended are withdrawn."""
        self._cancelled.set()
        self._in_threads([lambda call=call: call.drop() for call in self.calls if call.has_work])  # type: ignore[misc]
        self._error = self._error or _given_up()

    @property
    def is_settled(self) -> bool:
        """Whether all has been waited for, and results are in their places."""
        return self._error is not None or not (self._later or any(call.has_work for call in self.calls))

    def done(self) -> bool:
        """Whether all its launches have ended; does not wait."""
        return all(call.done() for call in self.calls)

    def exception(self, timeout: float | None = None) -> DaedalError | None:
        """Wait for the result; what ``result`` would raise for it, None if nothing. TimeoutError as there."""
        end = None if timeout is None else time.monotonic() + timeout
        try:
            self._settle(end)
        except LaunchTimeout:
            raise LaunchTimeout(f"the result was not there within {timeout} s") from None
        except DaedalError as error:
            return error
        return None

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the result. Raises what a call raises, and issues its warnings; TimeoutError after ``timeout``
        seconds: the launches go on then.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        self.warn()
        return self.value

    def warn(self) -> None:
        """Issue the warnings that have not been issued."""
        found = self.warnings[self._warned :]
        self._warned += len(found)
        for warning in found:
            warnings.warn(warning, stacklevel=3)

    def __await__(self) -> Generator[Any, None, Any]:
        while not self.done():
            try:
                self._settle(time.monotonic() + POLL_SECONDS)
            except LaunchTimeout:
                yield from asyncio.sleep(0).__await__()
            except DaedalError:
                break
        return self.result()

    def __repr__(self) -> str:
        state = type(self._error).__name__ if self._error is not None else "done" if self.done() else "in work"
        return f"<SystemSubmitted, {len(self.calls)} tiles, {state}>"


def _given_up() -> LaunchCancelled:
    return LaunchCancelled("the call was given up before its end: call again")
