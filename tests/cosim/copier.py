"""A stand-in for the core that the harness can drive: on a doorbell it copies lines, then writes a record."""

from pathlib import Path

import pytest
from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.back import verilog
from amaranth.hdl import Elaboratable
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import Out, connect, flipped

from daedal.cosim.harness_library import build_harness
from daedal.hw.config.core import LAUNCH_QUEUE_DEPTH, MAX_BURST, Config
from daedal.hw.control.csr import ControlRegisters
from daedal.hw.isa.launch import RECORD_WORDS, LaunchWord
from daedal.hw.isa.registers import Register
from daedal.hw.memory.axi import LiteSlave, ReadMaster, WriteMaster, beat_size
from daedal.hw.queues.fifo import Fifo

LINES = 48
SOURCE, TARGET, RECORD = 0x1000, 0x2000, 0x3000
"""Offsets from the launch block, bytes."""

FLOOD_CYCLES = 4000

BLOCK = 0x10000
"""Where a launch block is."""


class Mistake(enum.Enum, shape=6):
    """What the copier does wrong."""

    NONE = 0
    LONG = 1
    NARROW = 2
    UNSTABLE = 3
    NOT_LAST = 4
    FLOOD = 5
    """No mistake: all ports ask for as much as they can for FLOOD_CYCLES, and nothing is copied."""


class Copier(wiring.Component):
    """Copies ``LINES`` lines from SOURCE to TARGET, line i through port i mod ports, one after the other.

    The low bits of the doorbell's address are not part of the block's address but choose a ``Mistake``, which
    the harness has to see.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "control": Out(LiteSlave()),
                **{f"read{k}": Out(ReadMaster(config)) for k in range(config.ports)},
                "write": Out(WriteMaster(config)),
                "interrupt": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config, bus = self.config, self.config.bus_bytes
        m.submodules.port = self.port = ControlRegisters(config)
        connect(m, flipped(self.control), self.port.bus)
        m.submodules.launches = launches = Fifo(config.address_bits, depth=LAUNCH_QUEUE_DEPTH)
        connect(m, self.port.doorbell, launches.i)
        m.d.comb += [self.interrupt.eq(self.port.interrupt), self.port.reset_done.eq(1)]
        self.block, self.line, self.data = Signal(config.address_bits), Signal(16), Signal(8 * bus)
        self.wobble, self.mistake = Signal(), Signal(Mistake)
        record_lines = 8 * RECORD_WORDS // bus
        flood = self.mistake == Mistake.FLOOD
        reads = [getattr(self, f"read{k}") for k in range(config.ports)]
        for read in reads:
            m.d.comb += [
                read.araddr.eq(self.block + SOURCE + (self.line + self.wobble) * bus),
                read.arlen.eq(Mux(self.mistake == Mistake.LONG, 16, Mux(flood, MAX_BURST - 1, 0))),
                read.arsize.eq(Mux(self.mistake == Mistake.NARROW, 0, beat_size(config))),
                read.arburst.eq(1),
                read.rready.eq(1),
            ]
            with m.If(read.rvalid & read.rready):
                m.d.sync += self.data.eq(read.rdata)
        self.turn = Signal(range(config.ports))
        arready = Array(read.arready for read in reads)[self.turn]
        rvalid = Array(read.rvalid for read in reads)[self.turn]
        left, waits = Signal(range(FLOOD_CYCLES)), Signal(config.ports)
        with m.If(self.mistake == Mistake.UNSTABLE):
            m.d.sync += self.wobble.eq(~self.wobble)
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += launches.o.ready.eq(1)
                with m.If(launches.o.valid):
                    m.d.sync += [
                        Cat(self.mistake, self.block[6:]).eq(launches.o.payload),
                        self.line.eq(0),
                        self.turn.eq(0),
                    ]
                    m.d.sync += left.eq(FLOOD_CYCLES - 1)
                    m.next = "AR"
            with m.State("FLOOD"):
                for k, read in enumerate(reads):
                    m.d.comb += read.arvalid.eq((left != 0) | waits[k])
                    m.d.sync += waits[k].eq(read.arvalid & ~read.arready)
                with m.If(left != 0):
                    m.d.sync += left.eq(left - 1)
                with m.Elif(~waits.any()):
                    m.next = "RECORD AW"
            with m.State("AR"):
                for k, read in enumerate(reads):
                    m.d.comb += read.arvalid.eq((self.turn == k) & ~flood)
                with m.If(flood):
                    m.next = "FLOOD"
                with m.Elif(arready):
                    m.next = "R"
            with m.State("R"):
                with m.If(rvalid):
                    m.next = "AW"
            self._writes(m, "", TARGET, LINES, "AR", "RECORD AW")
            self._writes(m, "RECORD ", RECORD, record_lines, "RECORD AW", "END")
            with m.State("END"):
                m.d.comb += self.port.ended.eq(1)
                m.d.sync += self.port.completed.eq(self.port.completed + 1)
                m.next = "IDLE"
        return m

    def _writes(self, m: Module, prefix: str, offset: int, lines: int, again: str, after: str) -> None:
        write, bus = self.write, self.config.bus_bytes
        with m.State(f"{prefix}AW"):
            m.d.comb += [
                write.awvalid.eq(1),
                write.awaddr.eq(self.block + offset + self.line * bus),
                write.awsize.eq(beat_size(self.config)),
                write.awburst.eq(1),
            ]
            with m.If(write.awready):
                m.next = f"{prefix}W"
        with m.State(f"{prefix}W"):
            # All bytes but the first of an odd line.
            m.d.comb += [
                write.wvalid.eq(1),
                write.wdata.eq(self.data),
                write.wstrb.eq(~self.line[0]),
                write.wstrb[1:].eq(~0),
                write.wlast.eq(self.mistake != Mistake.NOT_LAST),
            ]
            with m.If(write.wready):
                m.next = f"{prefix}B"
        with m.State(f"{prefix}B"):
            m.d.comb += write.bready.eq(1)
            with m.If(write.bvalid):
                m.d.sync += [self.line.eq(self.line + 1), self.turn.eq(self.turn + 1)]
                m.next = again
                with m.If(self.line == lines - 1):
                    m.d.sync += self.line.eq(0)
                    m.next = after


def ring(harness, block=BLOCK, mistake=Mistake.NONE, record=None):
    """Ring the doorbell for the launch block there."""
    # The harness takes the doorbell's address as it is, so the block must be found there as well.
    at = (block | mistake.value) + 8 * LaunchWord.RECORD.value
    if at + 8 <= len(harness.memory):
        harness.write(at, (record or block + RECORD).to_bytes(8, "little"))
    harness.write_register(Register.CONTROL.value, 2)
    harness.write_register(Register.LAUNCH_LOW.value, block | mistake.value)
    harness.write_register(Register.LAUNCH_HIGH.value, block >> 32)
    harness.write_register(Register.DOORBELL.value, 1)


def copy(harness, rng, line_bytes):
    """Have random lines copied, and check that they are there."""
    data = bytearray(rng.bytes(LINES * line_bytes))
    harness.write(BLOCK + SOURCE, data)
    harness.write(BLOCK + TARGET, b"\xee" * len(data))
    ring(harness)
    assert harness.run(1_000_000, 60)
    for line in range(1, LINES, 2):
        data[line * line_bytes] = 0xEE  # odd lines are written without their first byte
    assert bytes(harness.memory[BLOCK + TARGET : BLOCK + TARGET + len(data)]) == data


CONFIG = Config.preset("edge")


@pytest.fixture(scope="module")
def library() -> Path:
    """The copier with its harness."""
    text = verilog.convert(Copier(CONFIG), name="copier", emit_src=False)
    return build_harness(text, CONFIG, top="copier", trace=True)
