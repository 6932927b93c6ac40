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
        _all.add(self)

    @property
    def closed(self) -> bool:
        """Whether it was closed, or is being closed."""
        return self._is_closed

    @property
    def forked(self) -> bool:
        """Whether it belongs to another process, of which this one is a fork."""
        return self._process != os.getpid()

    def check(self) -> None:
        """Raise DeviceForked or DeviceClosed unless it can be used here and now."""
        if self._is_closed:
            raise DeviceClosed(f"{self._what} must be open to be used; it was closed")
        if self._process != os.getpid():
            raise DeviceForked(
                f"{self._what} belongs to process {self._process}, which opened it, and cannot be used in process "
                f"{os.getpid()}, which was forked from it: open a device in here"
            )

    def close(self, give_back: Callable[[], None]) -> None:
        """Call ``give_back``, once, as soon as it is unused; later uses get DeviceClosed.

        Waits for the use that there is now. In a forked process nothing is given back.
        """
        self._is_closed = True
        if self.forked:
            return
        with self.lock:
            if not self._is_gone:
                give_back()
                self._is_gone = True

    def free_lock(self) -> None:
        """Forget who holds the lock: a thread that is not there any more."""
        self.lock = threading.RLock()


_all: "WeakSet[Owned]" = WeakSet()


def _in_child() -> None:
    for owned in list(_all):
        owned.free_lock()


os.register_at_fork(after_in_child=_in_child)
