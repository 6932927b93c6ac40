"""LiteEth's Etherbone with the link gate behind it, in Migen's simulator: it answers to packets as the model does."""

import random
import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from daedal.driver.link.etherbone import parse_answer, read_packet, write_packet
from daedal.driver.link.frames import Piece, read_crc
from daedal.hw.isa.link import LINK_BASE, REGISTERS, LinkRegister
from tests.driver.link.link_peer import GateModel, etherbone_answer

MEMORY_BASE, MEMORY_BYTES = 0x4000_0000, 1 << 10

WORDS = 6

SETTLE_CYCLES = 80
"""In which the gate copies a frame and LiteEth sends an answer: the simulator is slow, so packets are short."""


def exchange(packets: list[bytes], design: int) -> list[bytes]:
    """What the RTL answers to these packets, each sent when the one before is done with."""
    from liteeth.common import eth_udp_user_description
    from liteeth.frontend.etherbone import LiteEthEtherbone
    from litex.gen import LiteXModule
    from litex.soc.interconnect import stream, wishbone
    from migen import run_simulation

    from daedal.fpga.soc.host_link import LinkGate
    from daedal.fpga.soc.soc import ETHERBONE_WORDS

    class Port:
        """A port of LiteEth's UDP core."""

        sink = stream.Endpoint(eth_udp_user_description(32))
        source = stream.Endpoint(eth_udp_user_description(32))

    def get_port(*arguments: Any, **options: Any) -> type[Port]:
        return Port

    udp = SimpleNamespace(crossbar=SimpleNamespace(dw=32, get_port=get_port))

    class Top(LiteXModule):
        def __init__(self) -> None:
            self.etherbone = LiteEthEtherbone(udp, 1234, buffer_depth=ETHERBONE_WORDS)
            self.gate = LinkGate(design=design)
            self.memory = wishbone.SRAM(MEMORY_BYTES)
            self.comb += [
                self.etherbone.wishbone.bus.connect(self.gate.bridge),
                self.gate.bus.connect(self.memory.bus),
            ]

    answers: list[bytes] = []

    def host() -> Iterator[Any]:
        for raw in packets:
            words = struct.unpack(f"<{len(raw) // 4}I", raw)
            yield Port.source.length.eq(len(raw))
            for position, word in enumerate(words):
                last = position == len(words) - 1
                yield Port.source.valid.eq(1)
                yield Port.source.data.eq(word)
                yield Port.source.last.eq(last)
                yield Port.source.last_be.eq(8 * last)
                yield
                while not (yield Port.source.ready):
                    yield
            yield Port.source.valid.eq(0)
            for _ in range(SETTLE_CYCLES):
                yield

    def network() -> Iterator[Any]:
        yield Port.sink.ready.eq(1)
        got = b""
        for _ in range(len(packets) * (2 * SETTLE_CYCLES)):
            yield
            if (yield Port.sink.valid):
                got += (yield Port.sink.data).to_bytes(4, "little")
                if (yield Port.sink.last):
                    answers.append(got)
                    got = b""
            if len(answers) == sum(packet[11] != 0 for packet in packets):
                return

    run_simulation(Top(), [host(), network()])
    return answers


def write(where: tuple[int, bytes]) -> bytes:
    return write_packet(*where)


@pytest.mark.slow
def test_packets_are_those_of_liteeth(seed: int) -> None:
    rng, design = random.Random(seed), 99
    registers, count = LINK_BASE + REGISTERS, len(LinkRegister)
    data = rng.randbytes(4 * WORDS)
    long = write(Piece(MEMORY_BASE, data, 0xF, 0x3).frame(2))
    packets = [
        read_packet(registers, count, 0x10),
        write(Piece(MEMORY_BASE + 8, b"abcdefgh", 0xE, 0xF).frame(1)),
        read_packet(MEMORY_BASE, 6, 0x20),
        write_packet(MEMORY_BASE, b"gone"),
        long,
        read_packet(MEMORY_BASE, WORDS, 0x30),
        write(Piece(MEMORY_BASE, b"late", 0xF, 0xF).frame(2)),
        read_packet(registers, count, 0x40),
    ]
    gate = GateModel(base=MEMORY_BASE, size=MEMORY_BYTES, design=design)
    wanted = [answer for packet in packets if (answer := etherbone_answer(gate, packet)) is not None]
    found = exchange(packets, design)
    assert [parse_answer(answer) for answer in found] == [parse_answer(answer) for answer in wanted]
    tag, words = parse_answer(found[-2]) or (0, b"")
    assert (tag, words[: 4 * WORDS - 2]) == (0x30, data[:-2])
    first = (parse_answer(found[1]) or (0, b""))[1]
    status = (parse_answer(found[-1]) or (0, b""))[1]
    crc = read_crc((MEMORY_BASE, first), (MEMORY_BASE, words), (registers, status[:16]))
    assert int.from_bytes(status[16:], "little") == crc
    assert struct.unpack_from("<I", status, 12)[0] == 2 | 1 << 16, "two frames copied, one refused"
