"""What a bridge to a board's bus is to the rest: bursts of words, several of them under way at a time."""

from typing import Protocol


class Bridge(Protocol):
    """LiteX's bridge at the other end of a line. Words are bytes as in memory, lowest first."""

    words: int
    """Most words of a burst."""

    window: int
    """Exchanges that may be under way at a time."""

    name: str
    """What the line is called in messages."""

    def write(self, address: int, words: bytes, /) -> None:
        """Send a burst of words for consecutive addresses from this byte address on; nothing says that it arrived."""
        ...

    def read(self, address: int, count: int, /) -> None:
        """Ask for ``count`` words from this byte address on."""
        ...

    def answer(self) -> bytes | None:
        """The words of the oldest :meth:`read` that has no answer yet; None if they do not come whole and in time."""
        ...

    def recover(self) -> None:
        """Forget what was asked and bring the bridge to where it takes commands; LinkLost if it does not answer."""
        ...

    def pause(self, seconds: float, /) -> None:
        """Let time go by on the board."""
        ...

    def close(self) -> None:
        """Give the line back."""
        ...
