"""Memories for cocotb benches: what stands behind cocotbext-axi slaves, and a fast read port."""

import random
from collections import deque
from collections.abc import Iterator
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiReadBus, AxiSlaveRead, AxiSlaveWrite, AxiWriteBus


class Target:
    """Bytes behind an AXI slave; accesses that touch ``bad`` addresses are answered with an error.

    ``reads`` and ``writes`` list the addresses of all lines accessed.
    """

    def __init__(self, size: int, *, seed: int = 0) -> None:
        self.bytes = bytearray(random.Random(seed).randbytes(size))
        self.bad: set[int] = set()
        self.reads: list[int] = []
        self.writes: list[int] = []

    async def read(self, address: int, length: int) -> bytes:
        self.reads.append(address)
        self._check(address)
        return bytes(self.bytes[address : address + length])

    async def write(self, address: int, data: bytes) -> None:
        self.writes.append(address)
        self._check(address)
        assert address + len(data) <= len(self.bytes), f"write outside memory: {address:#x}"
        self.bytes[address : address + len(data)] = data

    def _check(self, address: int) -> None:
        if address in self.bad:
            raise ValueError("bad address")


def sometimes(probability: float, seed: int) -> Iterator[bool]:
    """True with ``probability``, for ever."""
    rng = random.Random(seed)
    while True:
        yield rng.random() < probability


def read_slave(dut: Any, name: str, target: Target, *, pause: float = 0.0, seed: int = 0) -> AxiSlaveRead:
    """A slave on read port ``name`` that pauses both channels."""
    slave = AxiSlaveRead(AxiReadBus.from_prefix(dut, f"{name}_"), dut.clk, dut.rst, target=target)
    if pause:
        slave.ar_channel.set_pause_generator(sometimes(pause, seed))
        slave.r_channel.set_pause_generator(sometimes(pause, seed + 1))
    return slave


def write_slave(dut: Any, name: str, target: Target, *, pause: float = 0.0, seed: int = 0) -> AxiSlaveWrite:
    """A slave on write port ``name`` that pauses all channels."""
    slave = AxiSlaveWrite(AxiWriteBus.from_prefix(dut, f"{name}_"), dut.clk, dut.rst, target=target)
    if pause:
        for number, channel in enumerate((slave.aw_channel, slave.w_channel, slave.b_channel)):
            channel.set_pause_generator(sometimes(pause, seed + number))
    return slave


class FastReadPort:
    """Read port ``name`` answered at full rate, ``latency`` cycles after the address."""

    def __init__(self, dut: Any, name: str, target: Target, *, bus_bytes: int, latency: int = 20) -> None:
        self.signals = {s: getattr(dut, f"{name}__{s}") for s in (
            "arvalid", "arready", "araddr", "arlen", "rvalid", "rready", "rdata", "rlast", "rresp", "rid")}  # fmt: skip
        self.clk, self.target, self.bus, self.latency = dut.clk, target, bus_bytes, latency
        self.pending: deque[tuple[int, int, bool]] = deque()
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        s, cycle, showing = self.signals, 0, False
        s["arready"].value, s["rvalid"].value, s["rid"].value, s["rresp"].value = 1, 0, 0, 0
        while True:
            await RisingEdge(self.clk)
            cycle += 1
            if s["arvalid"].value:
                address, length = int(s["araddr"].value), int(s["arlen"].value)
                for n in range(length + 1):
                    self.pending.append((cycle + self.latency, address + n * self.bus, n == length))
            if showing and s["rready"].value:
                self.pending.popleft()
                showing = False
            if not showing and self.pending and self.pending[0][0] <= cycle:
                _, address, last = self.pending[0]
                s["rdata"].value = int.from_bytes(self.target.bytes[address : address + self.bus], "little")
                s["rlast"].value = last
                showing = True
            s["rvalid"].value = showing
