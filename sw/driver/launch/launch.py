"""A launch as a future."""

import asyncio
from collections.abc import Callable, Generator
from typing import Any, Protocol

from daedal.base.handle import Handle
from daedal.driver.launch.launch_block import Task
from daedal.driver.launch.record import Record

POLL_SECONDS = 0.003
"""How long an awaited launch keeps the event loop at a time."""


class LaunchTimeout(TimeoutError):
    """A launch did not end in the time that it was given; it goes on, and nothing is wrong with it."""


class LaunchQueue(Protocol):
    """Where a launch was submitted."""

    def record_of(self, slot: int, /) -> int:
        """Where the completion record of a launch in this slot is written."""
        ...

    def collect(self) -> None:
        """Settle the launches that have ended."""
        ...

    def wait_for(self, launch: "Launch", timeout: float | None, /) -> None:
        """Let the machine work until the launch has ended; TimeoutError after so many seconds."""
        ...


class Launch(Handle):
    """A launch that was submitted, as a future: it ends after those submitted before it.

    Also works with ``await``. The machine works while somebody waits; a simulated one does so only then.
    """

    def __init__(
        self, launcher: LaunchQueue, number: int, task: Task, ended: Callable[[Record | None], None] | None
    ) -> None:
        self.launcher, self.number, self.task, self._ended = launcher, number, task, ended
        self.mended = False
        """It had a fault because its program was damaged in device memory, and was submitted again."""
        self._result: Record | None = None
        self._error: BaseException | None = None

    def __repr__(self) -> str:
        state = "in work" if not self.over else "done" if self._error is None else type(self._error).__name__
        return f"<Launch {self.number}, {state}>"

    @property
    def over(self) -> bool:
        """Whether it has ended, as far as is known."""
        return self._result is not None or self._error is not None

    @property
    def failed(self) -> bool:
        """Whether it has ended, and not well."""
        return self._error is not None

    @property
    def record_address(self) -> int:
        """Where the machine writes its completion record."""
        return self.launcher.record_of(self.task.slot)

    def done(self) -> bool:
        """Whether it has ended, in whatever way; does not wait."""
        if not self.over:
            self.launcher.collect()
        return self.over

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for its end; what :meth:`result` would raise, or None."""
        if not self.over:
            self.launcher.wait_for(self, timeout)
        return self._error

    def result(self, timeout: float | None = None) -> Record:
        """Wait for its end and return its completion record.

        Raises the exception that belongs to a fault, with the record as ``.record``; the machine was reset then and
        can be used again. LaunchCancelled if the device was reset, or it may read what a launch before it, which had a
        fault, was to write: it may be submitted again. TimeoutError if ``timeout`` seconds pass: the launch goes on,
        and so it does after an interrupt from the keyboard (``Device.reset`` stops it).
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        assert self._result is not None
        return self._result

    def __await__(self) -> Generator[Any, None, Record]:
        while not self.over:
            try:
                self.launcher.wait_for(self, POLL_SECONDS)
            except TimeoutError:
                yield from asyncio.sleep(0).__await__()
        return self.result()

    def settle(self, record: Record | None, error: BaseException | None) -> None:
        """It has ended: so. For the launcher; only the first time counts."""
        if self.over:
            return
        try:
            if self._ended is not None:
                self._ended(record if error is None else None)
        except Exception as later:
            error = error or later
        self._result, self._error = (record, None) if error is None else (None, error)
        self._ended = None
