"""What lies outside of Python (a simulated machine, a line) and belongs to the process that opened it."""

import os
import threading
from collections.abc import Callable
from weakref import WeakSet

from daedal.errors import DeviceClosed, DeviceForked


class Owned:
    """Says who may use such a thing: one thread at a time, until it is closed, and no process that was forked.

    Every use holds ``lock``, and calls :meth:`check` once it has it::

        with owned.lock:
            owned.check()
            library.use(it)

    One thread may take the lock several times. In a forked process it is free, whichever thread held it.

    Parameters
    ----------
    what
        What it is, for messages, as "the emulator".
    """

    def __init__(self, what: str) -> None:
        self.lock = threading.RLock()
        self._what, self._process = what, os.getpid()
        self._is_closed = self._is_gone = False
        self.forked = False
        """Whether it belongs to another process, of which this one is a fork; Python says so to each child, for asking
        the system in every use takes time.
        """
        self.usable = True
        """Whether :meth:`check` raises nothing."""
        _all.add(self)

    @property
    def closed(self) -> bool:
        """Whether it was closed, or is being closed."""
        return self._is_closed

    def check(self) -> None:
        """Raise DeviceForked or DeviceClosed unless it can be used here and now."""
        if self._is_closed:
            raise DeviceClosed(f"{self._what} must be open to be used; it was closed")
        if self.forked:
            raise DeviceForked(
                f"{self._what} belongs to process {self._process}, which opened it, and cannot be used in process "
                f"{os.getpid()}, which was forked from it: open a device in here"
            )

    def close(self, give_back: Callable[[], None]) -> None:
        """Call ``give_back``, once, as soon as it is unused; later uses get DeviceClosed.

        Waits for the use that there is now. In a forked process nothing is given back.
        """
        self._is_closed, self.usable = True, False
        if self.forked:
            return
        with self.lock:
            if not self._is_gone:
                give_back()
                self._is_gone = True

    def leave_process(self) -> None:
        """It is in a fork of the process that it belongs to: forget who holds the lock, a thread that is not there."""
        self.lock, self.forked, self.usable = threading.RLock(), True, False


class Turn:
    """A lock of what is made in large numbers and closed by nobody. In a forked process it is free, whoever held it."""

    def __init__(self) -> None:
        self._lock, self._forks = threading.RLock(), _forks[0]

    @property
    def lock(self) -> "threading.RLock":
        """The lock; one thread may take it several times."""
        if self._forks != _forks[0]:
            self._lock, self._forks = threading.RLock(), _forks[0]
        return self._lock


_all: "WeakSet[Owned]" = WeakSet()
_forks = [0]
"""How many forks away the process is that began."""


def _in_child() -> None:
    _forks[0] += 1
    for owned in list(_all):
        owned.leave_process()


os.register_at_fork(after_in_child=_in_child)
