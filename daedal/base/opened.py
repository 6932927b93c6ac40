"""What is opened and closed: it ends with its ``with`` block, is its own copy, and cannot be pickled."""

from types import TracebackType
from typing import Any, NoReturn, Protocol, Self


class Opened(Protocol):
    """A base of machines: what was compiled for one hangs together with it."""

    def check_open(self) -> None:
        """Raise DeviceClosed if it was closed, DeviceForked in a forked process."""
        ...

    def close(self) -> None:
        """End it."""
        ...

    def __enter__(self) -> Self:
        self.check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A copy of what was compiled for it works on the same machine."""
        return self

    def __reduce__(self) -> NoReturn:
        kind = type(self).__name__
        raise TypeError(f"a {kind}, and what was compiled for it, cannot be pickled: compile the module again")
