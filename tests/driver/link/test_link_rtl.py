"""The board in Python that other tests talk to is LiteX's bridge and the link gate: it answers as their RTL does."""

import random
import struct
import zlib
from collections.abc import Iterator

import pytest

from daedal.cosim.board import SimulatedLine
from daedal.driver.link.checked_link import CheckedLink
from daedal.driver.link.frames import Piece
from daedal.driver.link.uartbone import READ, WRITE, UartBridge, command
from daedal.driver.link.words import swapped
from daedal.errors import LinkLost
from daedal.hw.isa.link import LINK_BASE, LINK_BYTES, MOST_DATA, REGISTERS, SLOT_WORDS, SLOTS, LinkRegister
from tests.driver.link.link_peer import Faults, GateModel, UartModel
from tests.driver.link.link_rtl import DESIGN, MEMORY_BASE, MEMORY_BYTES, open_line

pytestmark = [pytest.mark.rtl]

COPY_CYCLES = 2000
"""The RTL is given so many to copy a frame, which the model does at once."""


@pytest.fixture
def line() -> Iterator[SimulatedLine]:
    found = open_line()
    yield found
    found.close()


class Both:
    """A model and RTL that get the same bytes."""

    def __init__(self, line: SimulatedLine) -> None:
        self.line = line
        self.gate = GateModel(base=MEMORY_BASE, size=MEMORY_BYTES, design=DESIGN)
        self.model = UartModel(self.gate)

    def say(self, data: bytes) -> bytes:
        """The answer, which is the same; the gate is idle afterwards."""
        wanted = b"".join(self.model.take(byte) for byte in data)
        self.line.send(data)
        found = self.line.receive(len(wanted) + 1, self.line.slack + len(data) * self.line.byte_seconds)
        assert found == wanted
        self.line.clock(COPY_CYCLES)
        return found

    def read(self, address: int, count: int) -> bytes:
        return swapped(self.say(command(READ, address, count)))


def sent(where: tuple[int, bytes]) -> bytes:
    return command(WRITE, where[0], len(where[1]) // 4) + swapped(where[1])


def random_frame(rng: random.Random, sequence: int) -> bytes:
    count = rng.choice([1, 1, 2, 3, 5, 30])
    at = MEMORY_BASE + 4 * rng.randrange(MEMORY_BYTES // 4 - count)
    return sent(Piece(at, rng.randbytes(4 * count), rng.randrange(16), rng.randrange(16)).frame(sequence))


def test_frames_good_and_bad(line: SimulatedLine, seed: int) -> None:
    """Those whose CRC is wrong, whose number is not the next, with any bytes of the first and last word."""
    rng, both = random.Random(seed), Both(line)
    for _ in range(40):
        sequence = both.gate.sequence + rng.choice([1, 1, 1, 0, 2])
        frame = bytearray(random_frame(rng, sequence))
        if rng.randrange(4) == 0:
            frame[rng.randrange(6, len(frame))] ^= 1 << rng.randrange(8)
        both.say(bytes(frame))
        both.read(LINK_BASE + REGISTERS, len(LinkRegister))
    assert both.gate.sequence > 10 and both.gate.refused > 10
    for at in range(0, MEMORY_BYTES, 1020):
        both.read(MEMORY_BASE + at, min(255, (MEMORY_BYTES - at) // 4))
    both.read(LINK_BASE + REGISTERS, len(LinkRegister))


def test_a_frame_with_any_wrong_bit_of_its_checksum_is_refused(line: SimulatedLine) -> None:
    both = Both(line)
    where, data = Piece(MEMORY_BASE, b"abcd", 15, 15).frame(1)
    for bit in range(32):
        crc = int.from_bytes(data[-4:], "little") ^ 1 << bit
        both.say(sent((where, data[:-4] + crc.to_bytes(4, "little"))))
        both.read(LINK_BASE + REGISTERS, len(LinkRegister))
        assert (both.gate.sequence, both.gate.refused) == (0, bit + 1)
    both.say(sent((where, data)))
    assert both.gate.sequence == 1
    assert both.read(MEMORY_BASE, 1) == b"abcd"


@pytest.mark.parametrize("count", [0, MOST_DATA, MOST_DATA + 1, 255])
def test_frames_of_any_length(line: SimulatedLine, count: int) -> None:
    """One that says that it has more data than a slot is refused, with a CRC of what is there: of the slot's first word
    as well, which is 0, or of the head alone.
    """
    both = Both(line)
    words = [7 * n for n in range(min(count, MOST_DATA))] + [MEMORY_BASE, count | 0xFF00 | 1 << 16]
    body = struct.pack(f"<{len(words)}I", *words)
    crc = zlib.crc32({MOST_DATA + 1: bytes(4) + body, 255: body[-4:]}.get(count, body))
    both.say(sent((LINK_BASE + 4 * (SLOT_WORDS - 1 - len(words) + SLOT_WORDS), body + struct.pack("<I", crc))))
    assert both.gate.sequence == (count <= MOST_DATA)
    both.read(MEMORY_BASE, 10)
    both.read(LINK_BASE + REGISTERS, len(LinkRegister))


def test_commands_of_every_kind(line: SimulatedLine, seed: int) -> None:
    """Bursts to one address, unknown commands, writes outside of the slots, reads of what is not there."""
    rng, both = random.Random(seed), Both(line)
    places = [MEMORY_BASE, LINK_BASE, LINK_BASE + REGISTERS, LINK_BASE + 0x1FF0, 0x8000_0000, 0, LINK_BASE + 0x1000]
    for _ in range(60):
        kind, count = rng.choice([0, 1, 1, 2, 2, 3, 4, 5, 255]), rng.randrange(1, 8)
        at = rng.choice(places) + 4 * rng.randrange(64)
        both.say(command(kind, at, count) + (rng.randbytes(4 * count) if kind in (1, 3) else b""))
    assert both.gate.written == []


@pytest.mark.parametrize("base", [MEMORY_BASE, LINK_BASE + 4 * SLOTS * SLOT_WORDS, LINK_BASE - LINK_BYTES])
def test_a_frame_that_is_written_elsewhere_is_none(line: SimulatedLine, base: int) -> None:
    both = Both(line)
    where, data = Piece(MEMORY_BASE, b"abcd", 15, 15).frame(1)
    both.say(sent((where - LINK_BASE + base, data)))
    both.read(LINK_BASE + REGISTERS, len(LinkRegister))
    assert (both.gate.sequence, both.gate.refused) == (0, 0)
    both.say(sent((where, data)))
    assert both.read(MEMORY_BASE, 1) == b"abcd"


def test_noise(line: SimulatedLine, seed: int) -> None:
    rng, both = random.Random(seed), Both(line)
    for _ in range(20):
        both.say(bytes(rng.choice([0, 1, 2, 3, 4, 9, 200]) for _ in range(rng.randrange(40))))


def test_a_frame_in_the_slot_of_one_before_does_no_harm(line: SimulatedLine) -> None:
    """The host numbers slots so that this does not happen; if it does, nothing of the frame is done."""
    words = bytes(range(64)) * 15
    line.send(sent(Piece(MEMORY_BASE, words, 15, 15).frame(1)))
    line.send(sent(Piece(MEMORY_BASE, bytes(4), 15, 15).frame(3)))
    link = CheckedLink(UartBridge(line))
    assert link.read(MEMORY_BASE, len(words)) == words
    assert link.status()["sequence"] == 1


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_bad_line(line: SimulatedLine, way: str, seed: int) -> None:
    rng, faults = random.Random(seed), Faults()
    link = CheckedLink(UartBridge(line))
    setattr(line, way, faults.pass_on)
    for _ in range(4):
        data = rng.randbytes(2500)
        reach = 2500 if way == "up" else 20
        faults.drop, faults.flip = {faults.count + rng.randrange(reach)}, {faults.count + rng.randrange(reach): 8}
        link.write(MEMORY_BASE + 5, data)
        faults.drop, faults.flip = {faults.count + rng.randrange(2500 - reach + 20)}, {}
        assert link.read(MEMORY_BASE + 5, 2500) == data
    assert link.retries >= 8


def test_a_silent_line(line: SimulatedLine) -> None:
    link = CheckedLink(UartBridge(line))
    line.down = lambda data: b""
    with pytest.raises(LinkLost, match="does not answer"):
        link.write(MEMORY_BASE, b"1234")
    line.down = lambda data: data
    link.write(MEMORY_BASE, b"5678")
    assert link.read(MEMORY_BASE, 4) == b"5678"
