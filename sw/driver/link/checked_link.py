"""Reads and writes of a board's bus that arrive whole and once, over a bridge that may lose or change anything."""

import struct
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from daedal.base.handle import Handle
from daedal.driver.link.bridge import Bridge
from daedal.driver.link.frames import HEAD_WORDS, Piece, pieces, read_crc
from daedal.errors import ConfigMismatch, LinkLost
from daedal.hw.isa.link import (
    LINK_BASE,
    MAGIC,
    MOST_DATA,
    REGISTERS,
    REVISION,
    SEQUENCE_MODULUS,
    LinkRegister,
    LinkStatus,
)
from daedal.hw.isa.program import unpack

ATTEMPTS = 12
"""How often the same thing is tried, without anything getting through, before the link is given up."""

PART_BYTES = 1 << 20
"""Bytes that are cut into frames at a time; far fewer frames than there are numbers."""

BUSY_SECONDS = 5.0
"""Seconds for a board to copy its frames."""

STATUS_ADDRESS = LINK_BASE + REGISTERS + 4 * LinkRegister.STATUS.value
CRC_ADDRESS = LINK_BASE + REGISTERS + 4 * LinkRegister.READ_CRC.value

STATUS_WORDS = 2
"""STATUS and the READ_CRC after it are one burst, so every answer comes with its checksum."""


class CheckedLink(Handle):
    """A board's bus, behind its link gate (``daedal.hw.isa.link``).

    Raises LinkLost if the board does not answer, ConfigMismatch if what answers is no board of this version.
    """

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._attempts = 0
        self._clean = True
        """Nothing is under way on the line: the last access came to its end."""
        self.retries = 0
        """How often something had to be sent or asked for again."""
        self.design = 0
        """The board's register DESIGN."""
        self._data_words = min(MOST_DATA, bridge.words - HEAD_WORDS)
        self._recover()
        self._identify()
        self._sequence = self._settled()["sequence"]

    @property
    def name(self) -> str:
        """The line, in messages."""
        return self._bridge.name

    def status(self) -> dict[str, Any]:
        """The members of the board's LinkStatus."""
        with self._access():
            return self._status()

    def read(self, address: int, size: int) -> bytes:
        """``size`` bytes from this byte address of the bus on."""
        first = address // 4 * 4
        count = (address + size + 3) // 4 - first // 4
        most = self._data_words
        waiting = deque((first + 4 * at, min(most, count - at)) for at in range(0, count, most))
        asked: deque[tuple[int, int]] = deque()
        result = bytearray(4 * count)
        with self._access():
            while waiting or asked:
                while waiting and len(asked) < self._bridge.window:
                    asked.append(waiting.popleft())
                    self._bridge.read(*asked[-1])
                    self._ask_status()
                words = self._take(asked[0][0])
                if words is None:
                    waiting.extendleft(reversed(asked))
                    asked.clear()
                    self._again()
                    continue
                at = asked.popleft()[0] - first
                result[at : at + len(words)] = words
                self._attempts = 0
        return bytes(result[address - first : address - first + size])

    def write(self, address: int, data: bytes | memoryview) -> None:
        """Write bytes from this byte address of the bus on; they are there when this returns."""
        for start in range(0, len(data), PART_BYTES):
            self.write_all([(address + start, data[start : start + PART_BYTES])])

    def write_all(self, writes: Sequence[tuple[int, bytes | memoryview]]) -> None:
        """Bytes for several addresses, written in this order; they are there when this returns."""
        frames = [piece for where, data in writes for piece in pieces(where, data, self._data_words)]
        with self._access():
            self._write_frames(frames)

    def pause(self, seconds: float) -> None:
        """Let time go by on the board."""
        self._bridge.pause(seconds)

    @contextmanager
    def _access(self) -> Iterator[None]:
        """Around each access. If the one before was broken off, by an error or Ctrl-C, the line is cleared first."""
        self._attempts = 0
        if not self._clean:
            self._recover()
            sequence = self._settled()["sequence"]
            if (sequence - self._sequence) % SEQUENCE_MODULUS > self._bridge.window:
                raise LinkLost(
                    f"the board on {self.name} was restarted, or another program used it: what was on it is gone; "
                    "open the device again"
                )
            self._sequence = sequence
        self._clean = False
        yield
        self._clean = True

    def _write_frames(self, frames: list[Piece]) -> None:
        """Send frames, some ahead of what is known to be copied, and go back to the first that was not."""
        base = self._sequence
        done = sent = 0
        asked: deque[int] = deque()
        while done < len(frames):
            while sent < len(frames) and len(asked) < self._bridge.window:
                self._bridge.write(*frames[sent].frame((base + 1 + sent) % SEQUENCE_MODULUS))
                self._ask_status()
                sent += 1
                asked.append(sent)
            found, reached = (self._take_status(), asked.popleft()) if asked else (self._settled(), sent)
            if found is not None:
                done = self._progress(found, base, done, len(frames))
            if found is None or (done < reached and not found["busy"]):
                asked.clear()
                self._again()
                done = sent = self._progress(self._settled(), base, done, len(frames))

    def close(self) -> None:
        """Give the line back."""
        self._bridge.close()

    def _progress(self, status: dict[str, Any], base: int, done: int, most: int) -> int:
        """How many frames were copied, after this status."""
        copied: int = (status["sequence"] - base) % SEQUENCE_MODULUS
        if copied > most:
            raise LinkLost(
                f"the board on {self.name} counts frames that were not sent from here: it was restarted, or another "
                "program uses it; see to that and open the device again"
            )
        if copied > done:
            self._attempts = 0
            self._sequence = status["sequence"]
        return max(done, copied)

    def _status(self) -> dict[str, Any]:
        while True:
            self._ask_status()
            found = self._take_status()
            if found is not None:
                return found
            self._again()

    def _settled(self) -> dict[str, Any]:
        """The status once no frame is in work."""
        end = time.monotonic() + BUSY_SECONDS
        while (found := self._status())["busy"]:
            if time.monotonic() > end:
                raise LinkLost(
                    f"the board on {self.name} does not finish a write: its bus hangs; load its bitstream again and "
                    "open the device again"
                )
        return found

    def _ask_status(self) -> None:
        self._bridge.read(STATUS_ADDRESS, STATUS_WORDS)

    def _take_status(self) -> dict[str, Any] | None:
        """The status asked for, or None if it did not come whole."""
        raw = self._bridge.answer()
        if raw is None or read_crc((STATUS_ADDRESS, raw[:4])) != int.from_bytes(raw[4:], "little"):
            return None
        return unpack(LinkStatus, int.from_bytes(raw[:4], "little"))

    def _take(self, address: int) -> bytes | None:
        """The words asked for from this address on, or None if they or the status after them did not come whole."""
        words = self._bridge.answer()
        tail = None if words is None else self._bridge.answer()
        if words is None or tail is None:
            return None
        crc = read_crc((address, words), (STATUS_ADDRESS, tail[:4]))
        return words if crc == int.from_bytes(tail[4:], "little") else None

    def _count(self) -> None:
        """One more attempt was in vain."""
        self.retries += 1
        self._attempts += 1
        if self._attempts > ATTEMPTS:
            raise LinkLost(
                f"nothing got through to the board on {self.name} in {ATTEMPTS} attempts: check cable and connectors, "
                "or take a lower baud rate; then open the device again"
            )

    def _again(self) -> None:
        """Something did not come: start over from a known state."""
        self._count()
        self._recover()

    def _recover(self) -> None:
        """Bring the bridge to a known state, and the board's CRC of reads to its start."""
        while True:
            self._bridge.recover()
            self._bridge.read(CRC_ADDRESS, 1)
            if self._bridge.answer() is not None:
                return
            self._count()

    def _identify(self) -> None:
        """Check that this is a link gate of ours."""
        start, count = LINK_BASE + REGISTERS, len(LinkRegister)
        while True:
            self._bridge.read(start, count)
            raw = self._bridge.answer()
            if raw is not None and read_crc((start, raw[:-4])) == int.from_bytes(raw[-4:], "little"):
                break
            self._again()
        words = struct.unpack(f"<{count}I", raw)
        found = words[LinkRegister.MAGIC.value], words[LinkRegister.REVISION.value]
        if found != (MAGIC, REVISION):
            raise ConfigMismatch(
                f"the link of {self.name} must identify itself as {MAGIC:#010x} revision {REVISION}, not "
                f"{found[0]:#010x} revision {found[1]}: load a bitstream made with this version of Daedal"
            )
        self.design = words[LinkRegister.DESIGN.value]
