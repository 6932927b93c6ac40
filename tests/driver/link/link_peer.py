"""A board as its link sees it, in Python: LiteX's bridges, the link gate, a memory. ``test_link_rtl`` checks it against
the RTL of both.
"""

import os
import pty
import select
import socket
import struct
import threading
import tty
import zlib
from collections.abc import Callable

from daedal.driver.link.etherbone import PACKET, RECORD, packet
from daedal.hw.isa.link import (
    LINK_BASE,
    LINK_BYTES,
    MAGIC,
    MOST_DATA,
    REGISTERS,
    REVISION,
    SLOT_ADDRESS,
    SLOT_CRC,
    SLOT_HEAD,
    SLOT_WORDS,
    SLOTS,
    FrameHead,
    LinkRegister,
)
from daedal.hw.isa.program import unpack


class GateModel:
    """The link gate with a memory behind it; frames are copied at once."""

    def __init__(self, *, base: int = 0x4000_0000, size: int = 1 << 16, design: int = 7) -> None:
        self.base, self.memory, self.design = base, bytearray(size), design
        self.slots = [[0] * SLOT_WORDS for _ in range(SLOTS)]
        self.sequence = self.refused = 0
        self.interrupt = False
        self.busy = False
        self.crc = 0
        self.spoiled: dict[int, int] = {}
        """What to change, by XOR, in READ_CRC when it is read for this time, counted from now on."""
        self.written: list[tuple[int, int]] = []
        """Address and mask of each word that reached the bus."""
        self.registers: dict[int, int] = {}
        self.on_write: Callable[[int, int], None] = lambda address, value: None

    def bus_write(self, address: int, value: int, lanes: int) -> None:
        self.written.append((address, lanes))
        at = address - self.base
        if 0 <= at < len(self.memory):
            for byte in range(4):
                if lanes >> byte & 1:
                    self.memory[at + byte] = value >> 8 * byte & 0xFF
        else:
            self.registers[address] = value
            self.on_write(address, value)

    def bus_read(self, address: int) -> int:
        at = address - self.base
        if 0 <= at < len(self.memory):
            return int.from_bytes(self.memory[at : at + 4], "little")
        return self.registers.get(address, 0)

    def write(self, address: int, word: int) -> None:
        """A write by the bridge."""
        offset = address - LINK_BASE
        if not 0 <= offset < 4 * SLOTS * SLOT_WORDS:
            return
        slot, position = divmod(offset // 4, SLOT_WORDS)
        self.slots[slot][position] = word
        if position == SLOT_CRC:
            self._frame(self.slots[slot])

    def read(self, address: int) -> int:
        """A read by the bridge."""
        offset = address - LINK_BASE
        if not 0 <= offset < LINK_BYTES:
            word = self.bus_read(address)
        elif offset < REGISTERS:
            word = 0
        else:
            word = self._register(offset // 4 % 8)
            if offset // 4 % 8 == LinkRegister.READ_CRC.value:
                self.crc = 0
                spoiled = self.spoiled.pop(0, 0)
                self.spoiled = {time - 1: change for time, change in self.spoiled.items()}
                return word ^ spoiled
        self.crc = zlib.crc32(struct.pack("<II", address, word), self.crc)
        return word

    def _register(self, number: int) -> int:
        status = self.sequence | self.refused << 16 | self.busy << 24 | self.interrupt << 25
        return {0: MAGIC, 1: REVISION, 2: self.design, 3: status, 4: self.crc}.get(number, 0)

    def _frame(self, words: list[int]) -> None:
        head = unpack(FrameHead, words[SLOT_HEAD])
        count, following = head["count"], (self.sequence + 1) % (1 << 16)
        good = count <= MOST_DATA
        if good:
            body = words[SLOT_ADDRESS - count : SLOT_CRC]
            good = zlib.crc32(struct.pack(f"<{len(body)}I", *body)) == words[SLOT_CRC] and head["sequence"] == following
        if not good:
            self.refused = (self.refused + 1) % 256
            return
        for index in range(count):
            lanes = head["first"] if index == 0 else 0xF
            lanes &= head["last"] if index == count - 1 else 0xF
            at = words[SLOT_ADDRESS] // 4 * 4 + 4 * index
            self.bus_write(at % (1 << 32), words[SLOT_ADDRESS - count + index], lanes)
        self.sequence = following


class UartModel:
    """LiteX's bridge on a serial line: takes bytes, gives bytes."""

    def __init__(self, gate: GateModel) -> None:
        self.gate, self._bytes = gate, bytearray()

    def take(self, byte: int) -> bytes:
        """What the bridge answers to one more byte."""
        self._bytes.append(byte)
        held = self._bytes
        if len(held) < 6:
            return b""
        kind, count = held[0], held[1] or 256
        address = int.from_bytes(held[2:6], "big") * 4 % (1 << 32)
        step = 4 if kind in (1, 2) else 0
        if kind in (2, 4):
            held.clear()
            return b"".join(self.gate.read((address + step * n) % (1 << 32)).to_bytes(4, "big") for n in range(count))
        if kind in (1, 3) and len(held) < 6 + 4 * count:
            if len(held) > 6 and len(held) % 4 == 2:
                self._store(address, step)
            return b""
        if kind in (1, 3):
            self._store(address, step)
        held.clear()
        return b""

    def _store(self, address: int, step: int) -> None:
        held = self._bytes
        index = (len(held) - 10) // 4
        self.gate.write((address + step * index) % (1 << 32), int.from_bytes(held[-4:], "big"))


class Faults:
    """What a bad line does to bytes, by their number, each once. ``silent_after`` ends it for good."""

    def __init__(self) -> None:
        self.flip: dict[int, int] = {}
        self.drop: set[int] = set()
        self.insert: dict[int, bytes] = {}
        self.silent_after: int | None = None
        self.count = 0

    def pass_on(self, data: bytes) -> bytes:
        """The bytes that come out of the line."""
        result = bytearray()
        for byte in data:
            number, self.count = self.count, self.count + 1
            if self.silent_after is not None and number >= self.silent_after:
                continue
            result += self.insert.pop(number, b"")
            if number in self.drop:
                self.drop.discard(number)
                continue
            result.append(byte ^ self.flip.pop(number, 0))
        return bytes(result)


class Peer:
    """A thread with a board at one end of a line, to be used in a ``with`` block. ``up`` goes to the board."""

    def __init__(self, gate: GateModel, step: Callable[[bytes], bytes], *, over_pty: bool = False) -> None:
        self.gate, self._step = gate, step
        self.up, self.down = Faults(), Faults()
        self._over = threading.Event()
        if over_pty:
            self._file, self._other = pty.openpty()
            tty.setraw(self._other)
            self.device = os.ttyname(self._other)
        else:
            self.socket, self._end = socket.socketpair()
            self._file = self._end.fileno()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Peer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if hasattr(self, "device"):
            os.close(self._file)
            os.close(self._other)
        else:
            self._end.close()
            self.socket.close()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                if not select.select([self._file], [], [], 0.02)[0]:
                    continue
                data = os.read(self._file, 4096)
            except OSError:  # a test has closed it, perhaps between the two
                return
            if not data:
                return
            answer = self.down.pass_on(self._step(self.up.pass_on(data)))
            if answer:
                os.write(self._file, answer)


def uart_peer(gate: GateModel, *, over_pty: bool = False) -> Peer:
    """A board behind LiteX's bridge on a serial line."""
    bridge = UartModel(gate)
    return Peer(gate, lambda data: b"".join(bridge.take(byte) for byte in data), over_pty=over_pty)


def etherbone_answer(gate: GateModel, raw: bytes) -> bytes | None:
    """What LiteEth's Etherbone answers to a packet."""
    _, _, writes, reads = RECORD.unpack_from(raw, PACKET.size)
    words = struct.unpack_from(f">{(len(raw) - PACKET.size - RECORD.size) // 4}I", raw, PACKET.size + RECORD.size)
    if writes:
        for index in range(writes):
            gate.write(words[0] + 4 * index, words[1 + index])
        words = words[1 + writes :]
    if not reads:
        return None
    values = [gate.read(address) for address in words[1 : 1 + reads]]
    return packet(RECORD.pack(0, 0xF, reads, 0) + struct.pack(f">{reads + 1}I", words[0], *values))


class EtherbonePeer:
    """A board behind Etherbone at a loopback address, in a ``with`` block. ``lose`` has numbers of packets to drop."""

    def __init__(self, gate: GateModel, address: str, port: int) -> None:
        self.gate, self.lose, self.repeat, self.packets = gate, set[int](), set[int](), 0
        self.silent = False
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, port))
        self._socket.settimeout(0.02)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "EtherbonePeer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                raw, sender = self._socket.recvfrom(2048)
            except OSError:
                continue
            number, self.packets = self.packets, self.packets + 1
            if self.silent or number in self.lose:
                continue
            for _ in range(2 if number in self.repeat else 1):
                answer = etherbone_answer(self.gate, raw)
                if answer is not None:
                    self._socket.sendto(answer, sender)
