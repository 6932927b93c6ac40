"""Etherbone over UDP as LiteEth speaks it: one record per packet, 32-bit addresses and words, highest byte first.

The network drops, repeats and reorders packets, so each read carries a number as the address to which its answer goes.
"""

import socket
import struct
import time

from daedal.base.handle import Handle
from daedal.driver.link.words import swapped
from daedal.errors import LinkLost
from daedal.hw.isa.link import LINK_BASE, REGISTERS

MAGIC, VERSION, SIZES = 0x4E6F, 0x10, 0x44
"""First bytes of a packet: magic, version 1, addresses and words of 4 bytes."""

PACKET = struct.Struct(">HBB4x")
RECORD = struct.Struct(">BBBB")
"""Flags, bytes of a word that count, number of writes, number of reads."""

ALL_BYTES = 0x0F

PORT = 1234

MOST_WORDS = 255
"""LiteEth must have a buffer of 256 words for this (``buffer_depth``): address and words of a record."""

SLACK = 0.1
"""Seconds after which an answer is given up."""

PROBES = 5
"""How often a board is called that does not answer."""


def packet(record: bytes) -> bytes:
    """A packet of one record."""
    return PACKET.pack(MAGIC, VERSION, SIZES) + record


def write_packet(address: int, words: bytes) -> bytes:
    """A packet that writes words to consecutive addresses."""
    return packet(RECORD.pack(0, ALL_BYTES, len(words) // 4, 0) + struct.pack(">I", address) + swapped(words))


def read_packet(address: int, count: int, tag: int) -> bytes:
    """A packet that reads consecutive words; its answer is a write to the address ``tag``."""
    addresses = range(address, address + 4 * count, 4)
    return packet(RECORD.pack(0, ALL_BYTES, 0, count) + struct.pack(f">{count + 1}I", tag, *addresses))


def parse_answer(raw: bytes) -> tuple[int, bytes] | None:
    """Tag and words of an answer; None if it is no such packet."""
    start = PACKET.size + RECORD.size + 4
    if len(raw) < start or PACKET.unpack_from(raw)[:2] != (MAGIC, VERSION):
        return None
    _, _, writes, reads = RECORD.unpack_from(raw, PACKET.size)
    if reads or len(raw) < start + 4 * writes:
        return None
    return int.from_bytes(raw[start - 4 : start], "big"), swapped(raw[start : start + 4 * writes])


class EtherboneBridge(Handle):
    """Bursts over UDP.

    Parameters
    ----------
    host, port
        The board's address; LiteEth answers to the same port, so it must be free on this host.
    local
        Address of this host to answer to; all of its own by default.

    Raises LinkLost if the address is none or the port is taken.
    """

    def __init__(self, host: str, port: int = PORT, *, local: str = "", slack: float = SLACK) -> None:
        self.words, self.window, self.name = MOST_WORDS, 2, f"{host}:{port}"
        self._slack, self._tag = slack, 0
        self._asked: list[int] = []
        self._arrived: dict[int, bytes] = {}
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind((local, port))
            self._socket.connect((host, port))
        except OSError as error:
            self._socket.close()
            raise LinkLost(
                f"{self.name} cannot be reached: {error}; check the board's address, and that no other program "
                f"uses port {port} of this host"
            ) from error

    def write(self, address: int, words: bytes) -> None:
        """Send a burst."""
        self._send(write_packet(address, words))

    def read(self, address: int, count: int) -> None:
        """Ask for a burst."""
        self._tag = (self._tag + 4) % (1 << 32)
        self._asked.append(self._tag)
        self._send(read_packet(address, count, self._tag))

    def answer(self) -> bytes | None:
        """The oldest burst asked for, or None."""
        tag = self._asked.pop(0)
        self._socket.settimeout(self._slack)
        while tag not in self._arrived:
            try:
                found = parse_answer(self._socket.recv(2048))
            except ConnectionRefusedError:
                continue  # nobody was at that port when a packet came before; the next one may be answered
            except OSError:
                return None
            if found is not None and found[0] in (tag, *self._asked):
                self._arrived[found[0]] = found[1]
        return self._arrived.pop(tag)

    def recover(self) -> None:
        """Wait for a board that answers."""
        for _ in range(PROBES):
            self._asked.clear()
            self._arrived.clear()
            self.read(LINK_BASE + REGISTERS, 1)
            if self.answer() is not None:
                return
        raise LinkLost(
            f"the board at {self.name} does not answer: check that it is powered, that its bitstream is loaded, and "
            "that this host is in its network; then open the device again"
        )

    def pause(self, seconds: float) -> None:
        """Let time go by on the board."""
        time.sleep(seconds)

    def close(self) -> None:
        """Give the port back."""
        self._socket.close()

    def _send(self, raw: bytes) -> None:
        try:
            self._socket.send(raw)
        except OSError:
            return  # as if the network had lost it: the answer will be missed
