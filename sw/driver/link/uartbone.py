"""LiteX's bridge on a serial line: command, number of words, address of a word, and words, highest byte first.

The bridge has no checksum and no marks: after a lost byte it takes data for commands. :meth:`UartBridge.recover` brings
it back whatever it makes of them. As many zeros as a burst has bytes end whatever it waits for, and zeros after that
are commands that do nothing, of six bytes each. So it may be anywhere in those six. A command that reads the link's
registers is sent, then a zero, and again, until one is answered: at most six times. What is left of a command whose
first bytes ended one of those before begins with none of 1, 2, 3, 4, so it does nothing either.
"""

import struct

from daedal.base.handle import Handle
from daedal.driver.link.transport import Transport
from daedal.driver.link.words import swapped
from daedal.errors import LinkLost
from daedal.hw.isa.link import LINK_BASE, MAGIC, REGISTERS, LinkRegister

WRITE, READ = 1, 2
"""Commands: a burst to, or from, consecutive addresses."""

HEAD_BYTES = 6
"""Command, number of words, address."""

MOST_WORDS = 255

BRIDGE_SECONDS = 0.08
"""Time that a burst may take: the bridge forgets a command after 0.1 s."""

RECOVERIES = 3
"""How often the bridge is called before the link is given up: it may be reading from where nothing answers."""

PROBE_WORDS = len(LinkRegister)


def command(kind: int, address: int, count: int) -> bytes:
    """The head of a burst."""
    return struct.pack(">BBI", kind, count, address >> 2)


PROBE = command(READ, LINK_BASE + REGISTERS, PROBE_WORDS)


class UartBridge(Handle):
    """Bursts over a serial line.

    Parameters
    ----------
    transport
        The line.
    window
        Exchanges under way at a time: as many as cover the time that a USB adapter holds bytes back.
    """

    def __init__(self, transport: Transport, *, window: int = 4) -> None:
        self._transport, self.window, self.name = transport, window, transport.name
        self.words = min(MOST_WORDS, int(BRIDGE_SECONDS / transport.byte_seconds - HEAD_BYTES) // 4)
        self._asked: list[int] = []
        self._unanswered = 0
        """Bytes sent since the last answer, all of which may still be on their way."""

    def write(self, address: int, words: bytes) -> None:
        """Send a burst."""
        self._send(command(WRITE, address, len(words) // 4) + swapped(words))

    def read(self, address: int, count: int) -> None:
        """Ask for a burst."""
        self._asked.append(4 * count)
        self._send(command(READ, address, count))

    def answer(self) -> bytes | None:
        """The oldest burst asked for, or None."""
        size = self._asked.pop(0)
        got = self._transport.receive(size, self._patience())
        if len(got) < size:
            return None
        if not self._asked:
            self._unanswered = 0
        return swapped(got)

    def recover(self) -> None:
        """Bring the bridge to where it takes commands."""
        for attempt in range(1 + RECOVERIES):
            self._asked.clear()
            if attempt:
                self._send(bytes(4 * MOST_WORDS + HEAD_BYTES))
                self._drain()
            for _ in range(HEAD_BYTES if attempt else 1):  # most often it waits for a command already
                self._send(PROBE)
                got = self._drain()
                if len(got) >= 4 * PROBE_WORDS and got[-4 * PROBE_WORDS :][:4] == MAGIC.to_bytes(4, "big"):
                    return
                self._send(bytes(1))
        raise LinkLost(
            f"the board on {self.name} does not answer: check that it is powered, that its bitstream is loaded, and "
            "that port and baud rate are those of the bitstream; then open the device again"
        )

    def pause(self, seconds: float) -> None:
        """Let time go by on the board."""
        self._transport.pause(seconds)

    def close(self) -> None:
        """Give the line back."""
        self._transport.close()

    def _send(self, data: bytes) -> None:
        self._unanswered += len(data)
        self._transport.send(data)

    def _patience(self) -> float:
        return self._transport.slack + self._unanswered * self._transport.byte_seconds

    def _drain(self) -> bytes:
        """All that comes until the line is quiet."""
        got = b""
        while part := self._transport.receive(4 * MOST_WORDS, self._patience()):
            got = (got + part)[-4 * MOST_WORDS :]
            self._unanswered = 0
        self._unanswered = 0
        return got
