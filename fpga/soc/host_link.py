"""What stands between a LiteX bridge and a board's bus: checked frames in, reads with a checksum out.

A serial line loses and changes bytes, LiteX's bridge takes what comes for commands, and a wrong one can write
anywhere. So a bridge here can write nothing but the slots of frames (:mod:`daedal.hw.isa.link`), and what is in a frame
reaches the bus only if its CRC is right and it is the next one: each is done once or not at all. Bridges read what
they like; the host gets a CRC of the addresses and words that the board itself has seen.
"""

from functools import reduce
from operator import xor
from typing import Any

from litex.gen import LiteXModule
from litex.soc.cores.uart import Stream2Wishbone
from litex.soc.interconnect import stream, wishbone
from migen import FSM, READ_FIRST, If, Memory, NextState, NextValue, Signal

from daedal.hw.isa.link import (
    CRC_POLYNOMIAL,
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
    LinkRegister,
)

CRC_START = 0xFFFF_FFFF

RECEIVE_BYTES = 64
"""Depth of the buffer in front of the serial bridge: requests that come while it answers those before."""


def crc_step(crc: Signal, word: Signal) -> list[Any]:
    """The CRC after one more word, both 32-bit signals, as a list of its bits."""
    images = []
    for bit in range(32):
        state = 1 << bit
        for _ in range(32):
            state = state >> 1 ^ (CRC_POLYNOMIAL if state & 1 else 0)
        images.append(state)
    return [reduce(xor, (crc[i] ^ word[i] for i in range(32) if images[i] >> bit & 1)) for bit in range(32)]


class WordCrc(LiteXModule):
    """A CRC-32 that takes the word ``word`` in each cycle with ``take`` and starts anew with ``start``."""

    def __init__(self) -> None:
        self.word, self.take, self.start = Signal(32), Signal(), Signal()
        self.value = Signal(32)
        state = Signal(32, reset=CRC_START)
        bits = crc_step(state, self.word)
        self.comb += self.value.eq(~state)
        self.sync += [
            If(self.take, *[state[i].eq(bits[i]) for i in range(32)]),
            If(self.start, state.eq(CRC_START)),
        ]


class FrameStore(LiteXModule):
    """The slots: a bridge writes, the engine reads two cycles after it gave the address, from a register.

    ``pending`` says which slots have a whole frame; what is written to one of these is dropped.

    The memory is no attribute: LiteX would put one on its bus of registers, which makes a third port, so that the
    memory becomes 16,384 flip-flops, and a way around the gate.
    """

    def __init__(self) -> None:
        depth = SLOTS * SLOT_WORDS
        self.write, self.position, self.word = Signal(), Signal(max=depth), Signal(32)
        self.read_position, self.read_word = Signal(max=depth), Signal(32)
        self.pending, self.done = Signal(SLOTS), Signal(SLOTS)
        memory = Memory(32, depth)
        put, get = memory.get_port(write_capable=True), memory.get_port(mode=READ_FIRST)
        self.specials += memory, put, get
        free = Signal()
        for slot in range(SLOTS):
            mine = self.position[8:] == slot
            self.comb += If(mine, free.eq(~self.pending[slot]))
            self.sync += [
                If(self.done[slot], self.pending[slot].eq(0)),
                If(put.we & mine & (self.position[:8] == SLOT_CRC), self.pending[slot].eq(1)),
            ]
        self.comb += [
            put.adr.eq(self.position), put.dat_w.eq(self.word), put.we.eq(self.write & free),
            get.adr.eq(self.read_position),
        ]  # fmt: skip
        self.sync += self.read_word.eq(get.dat_r)


class FrameEngine(LiteXModule):
    """Checks frames, and copies the data of the good ones to the bus. Three cycles a word to check, more to copy."""

    def __init__(self, store: FrameStore) -> None:
        self.bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.sequence, self.refused = Signal(16), Signal(8)
        self.crc = crc = WordCrc()
        slot, place = Signal(max=SLOTS), Signal(8)
        head, address, left = Signal(32), Signal(30), Signal(8)
        first = Signal()
        count, lanes_first, lanes_last = head[0:8], head[8:12], head[12:16]
        self.comb += [
            store.read_position[:8].eq(place),
            store.read_position[8:].eq(slot),
            crc.word.eq(store.read_word),
            self.bus.adr.eq(address),
            self.bus.dat_w.eq(store.read_word),
            self.bus.sel.eq(0xF),
            If(first, self.bus.sel.eq(lanes_first)),
            If(left == 1, self.bus.sel.eq(lanes_last)),
            If(first & (left == 1), self.bus.sel.eq(lanes_first & lanes_last)),
        ]
        following = Signal(16)
        self.comb += following.eq(self.sequence + 1)
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            crc.start.eq(1), NextValue(place, SLOT_HEAD), NextValue(slot, following[0]),
            If(store.pending != 0,
                If((store.pending >> following[0]) & 1 == 0, NextValue(slot, ~following[0])), NextState("LOOK"),
            ),
        )  # fmt: skip
        for state, following_state in (("LOOK", "HEAD"), ("READ", "CHECK"), ("FETCH", "COPY")):
            fsm.act(state, NextState(f"{state}_LATE"))
            fsm.act(f"{state}_LATE", NextState(following_state))
        fsm.act("HEAD",
            NextValue(head, store.read_word), NextValue(place, SLOT_ADDRESS - store.read_word[0:8]),
            If(store.read_word[0:8] > MOST_DATA, NextState("REFUSE")).Else(NextState("READ")),
        )  # fmt: skip
        fsm.act("CHECK",
            NextValue(place, place + 1), NextState("READ"),
            If(place == SLOT_ADDRESS, NextValue(address, store.read_word[2:])),
            crc.take.eq(place != SLOT_CRC),
            If(place == SLOT_CRC,
                NextState("REFUSE"),
                If((store.read_word == crc.value) & (head[16:32] == following), NextState("START")),
            ),
        )  # fmt: skip
        fsm.act("START",
            NextValue(place, SLOT_ADDRESS - count), NextValue(left, count), NextValue(first, 1),
            If(count == 0, NextState("ACCEPT")).Else(NextState("FETCH")),
        )  # fmt: skip
        fsm.act("COPY",
            self.bus.cyc.eq(1), self.bus.stb.eq(1), self.bus.we.eq(1),
            If(self.bus.ack,
                NextValue(place, place + 1), NextValue(address, address + 1),
                NextValue(left, left - 1), NextValue(first, 0),
                If(left == 1, NextState("ACCEPT")).Else(NextState("FETCH")),
            ),
        )  # fmt: skip
        fsm.act("ACCEPT", NextValue(self.sequence, following), store.done.eq(1 << slot), NextState("IDLE"))
        fsm.act("REFUSE", NextValue(self.refused, self.refused + 1), store.done.eq(1 << slot), NextState("IDLE"))


class RegisteredBus(LiteXModule):
    """A wishbone of registers only between ``master`` and ``slave``: two cycles more for each access.

    An error of the slave is answered as an access that is done; what it means is for the registers behind to say.
    A board's bus is long: on the ECPIX-5 the way from an access to the word that it reads took 15 ns, so that nothing
    else belongs in that cycle.
    """

    def __init__(self, master: wishbone.Interface, slave: wishbone.Interface) -> None:
        answer = Signal()
        self.comb += [slave.cyc.eq(slave.stb), master.ack.eq(answer)]
        self.sync += [
            answer.eq(slave.stb & (slave.ack | slave.err)),
            If(~slave.stb & ~answer,
                slave.stb.eq(master.cyc & master.stb),
                *[getattr(slave, name).eq(getattr(master, name)) for name in ("adr", "dat_w", "sel", "we")],
            ).Elif(slave.ack | slave.err,
                slave.stb.eq(0),
            ),
            If(slave.stb, master.dat_r.eq(slave.dat_r)),
        ]  # fmt: skip


class LinkGate(LiteXModule):
    """The gate between a bridge and a board's bus.

    Parameters
    ----------
    design
        The number in the register DESIGN, 32 bits.

    Members
    -------
    bridge
        Wishbone, to be driven by LiteX's bridge. A write outside of the slots does nothing.
    bus
        Wishbone master of the board's bus.
    interrupt
        The core's interrupt, which the host polls with the state of its frames.
    """

    def __init__(self, *, design: int) -> None:
        if not 0 <= design < 1 << 32:
            raise ValueError(f"design must be a number of 32 bits, not {design!r}")
        self.bridge = bridge = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.interrupt = Signal()
        self.store = store = FrameStore()
        self.engine = engine = FrameEngine(store)
        self.reads = reads = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        either = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.arbiter = wishbone.Arbiter([reads, engine.bus], either)
        self.registered = RegisteredBus(either, self.bus)
        self.crc = crc = WordCrc()
        offset_bits = (LINK_BYTES // 4 - 1).bit_length()
        ours, register = Signal(), Signal(3)
        in_registers = bridge.adr[:offset_bits] >= REGISTERS // 4
        word, value = Signal(32), Signal(32)
        names = {
            LinkRegister.MAGIC: MAGIC, LinkRegister.REVISION: REVISION, LinkRegister.DESIGN: design,
            LinkRegister.READ_CRC: crc.value,
        }  # fmt: skip
        status = [engine.sequence, engine.refused, store.pending != 0, self.interrupt]
        self.comb += [
            ours.eq(bridge.adr[offset_bits:] == LINK_BASE // LINK_BYTES),
            register.eq(bridge.adr[:3]),
            store.position.eq(bridge.adr),
            store.word.eq(bridge.dat_w),
            reads.adr.eq(bridge.adr),
            reads.sel.eq(0xF),
            bridge.dat_r.eq(word),
            *[If(register == name.value, value.eq(content)) for name, content in names.items()],
            If(register == LinkRegister.STATUS.value,
                value[0:16].eq(status[0]), value[16:24].eq(status[1]), value[24].eq(status[2]), value[25].eq(status[3]),
            ),
        ]  # fmt: skip
        asked = bridge.cyc & bridge.stb
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            If(asked & bridge.we,
                store.write.eq(ours & (bridge.adr[:offset_bits] < SLOTS * SLOT_WORDS)), bridge.ack.eq(1),
            ).Elif(asked & ours,
                NextValue(word, value), NextState("ADDRESS"),
                If(~in_registers, NextValue(word, 0)),
                If(in_registers & (register == LinkRegister.READ_CRC.value), crc.start.eq(1), NextState("ANSWER")),
            ).Elif(asked, NextState("FETCH")),
        )  # fmt: skip
        fsm.act("FETCH",
            reads.cyc.eq(1), reads.stb.eq(1),
            If(reads.ack, NextValue(word, reads.dat_r), NextState("ADDRESS")),
        )  # fmt: skip
        fsm.act("ADDRESS", crc.word.eq(bridge.adr << 2), crc.take.eq(1), NextState("WORD"))
        fsm.act("WORD", crc.word.eq(word), crc.take.eq(1), NextState("ANSWER"))
        fsm.act("ANSWER", bridge.ack.eq(1), NextState("IDLE"))


class SerialLink(LiteXModule):
    """LiteX's bridge on a serial line, with a buffer for requests that come while it answers, and the gate.

    Parameters
    ----------
    phy
        A LiteX UART PHY (``RS232PHY`` or one like it), made by the caller.
    clk_freq
        The clock's frequency, Hz.
    design
        See :class:`LinkGate`.

    ``bus`` and ``interrupt`` are those of the gate.
    """

    def __init__(self, phy: Any, clk_freq: float, *, design: int) -> None:
        self.buffer = buffer = stream.SyncFIFO([("data", 8)], RECEIVE_BYTES, buffered=True)
        self.bridge = bridge = Stream2Wishbone(clk_freq=clk_freq)
        self.gate = gate = LinkGate(design=design)
        self.bus, self.interrupt = gate.bus, gate.interrupt
        self.comb += [
            phy.source.connect(buffer.sink),
            buffer.source.connect(bridge.sink),
            bridge.source.connect(phy.sink),
            bridge.wishbone.connect(gate.bridge),
        ]
