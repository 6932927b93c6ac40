"""Launches on the core with cocotbext-axi memories on its ports, against the emulator with the same bytes."""

import logging
import random
from collections.abc import Iterator
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiRamRead, AxiRamWrite, AxiReadBus, AxiWriteBus

from daedal.cosim.emulator import EmulatorTarget
from daedal.hw.config.core import Config
from daedal.hw.isa.elements import BINARY32
from daedal.hw.isa.launch import RECORD_WORDS, Cause, Counter, State
from daedal.hw.isa.program import Program, Word
from daedal.hw.isa.registers import IDENTITY, Control, Register
from tests.reference.layers import Layer, random_values
from tests.unit.core.completed import COMPLETED_AT_FIRST, after
from tests.unit.emulator.programs import Bench, Record, gather, place_table
from tests.unit.emulator.test_bags import place_bag
from tests.unit.harness import bench_config, parameters
from tests.unit.streams import reset, start

MEMORY_BYTES = 1 << 18
REGISTERS = 6
"""What the programs of layers take here; machines that have fewer run layers in ``tests/system``."""

EXACT = [Counter.ROWS, Counter.LOOKUPS, Counter.BUNDLES, Counter.TOKENS, Counter.BYTES_WRITTEN, Counter.BOUNDS_WARNINGS]
"""Counters that do not depend on time."""


class Image:
    """A target that only has memory, and remembers what was rung."""

    def __init__(self) -> None:
        self.memory = bytearray(MEMORY_BYTES)
        self.blocks: list[int] = []
        self._low = 0

    def mem_write(self, address: int, data: bytes) -> None:
        self.memory[address : address + len(data)] = data

    def mem_read(self, address: int, size: int) -> bytes:
        return bytes(self.memory[address : address + size])

    def csr_write(self, address: int, value: int) -> None:
        if address == Register.LAUNCH_LOW.value:
            self._low = value
        elif address == Register.DOORBELL.value:
            self.blocks.append(self._low)

    def csr_read(self, address: int) -> int:
        raise AssertionError("an image has no registers")

    def wait(self, timeout_s: float | None = None) -> bool:
        raise AssertionError("an image does not run")


class Machine:
    """A tile with memories on its ports, whose names begin with ``prefix``, and with what COMPLETED begins with."""

    def __init__(
        self, dut: Any, config: Config, pause: float, prefix: str = "", completed: int = COMPLETED_AT_FIRST
    ) -> None:
        self.dut, self.config, self.image, self._completed = dut, config, Image(), completed
        logging.getLogger("cocotb").setLevel(logging.WARNING)
        self._random = random.Random(f"{prefix}7")
        self.control = AxiLiteMaster(AxiLiteBus.from_prefix(dut, f"{prefix}control_"), dut.clk, dut.rst)
        self.rams: list[Any] = []
        for k in range(config.ports):
            bus = AxiReadBus.from_prefix(dut, f"{prefix}read{k}_")
            ram = AxiRamRead(bus, dut.clk, dut.rst, size=MEMORY_BYTES, mem=self.image.memory)
            self._pause(pause, ram.ar_channel, ram.r_channel)
            self.rams.append(ram)
        bus = AxiWriteBus.from_prefix(dut, f"{prefix}write_")
        ram = AxiRamWrite(bus, dut.clk, dut.rst, size=MEMORY_BYTES, mem=self.image.memory)
        self._pause(pause, ram.aw_channel, ram.w_channel, ram.b_channel)
        self.rams.append(ram)
        for ram in self.rams:
            ram.log.setLevel(logging.WARNING)

    def _pause(self, probability: float, *channels: Any) -> None:
        def pattern() -> Iterator[bool]:
            while True:
                yield self._random.random() < probability

        if probability:
            for channel in channels:
                channel.set_pause_generator(pattern())

    async def write(self, register: Register, value: int) -> None:
        await self.control.write_dword(register.value, value)

    async def read(self, register: Register) -> int:
        return int(await self.control.read_dword(register.value))

    async def ring(self, blocks: list[int], completed: int) -> None:
        """Ring for all ``blocks`` and wait until COMPLETED says that so many launches have ended."""
        for block in blocks:
            await self.write(Register.LAUNCH_LOW, block)
            await self.write(Register.LAUNCH_HIGH, 0)
            await self.write(Register.DOORBELL, 1)
        for _ in range(4000):
            if await self.read(Register.COMPLETED) == after(completed, self._completed):
                return
            for _ in range(20):
                await RisingEdge(self.dut.clk)
        wanted = after(completed, self._completed)
        raise AssertionError(f"COMPLETED is {await self.read(Register.COMPLETED)}, not {wanted}")

    async def bursts(self, count: int) -> None:
        """Wait until so many bursts have been asked for at the read ports."""
        ports = [(getattr(self.dut, f"read{k}__arvalid"), getattr(self.dut, f"read{k}__arready"))
                 for k in range(self.config.ports)]  # fmt: skip
        while count > 0:
            await RisingEdge(self.dut.clk)
            count -= sum(int(valid.value) & int(ready.value) for valid, ready in ports)


async def machine(dut: Any) -> Machine:
    given = parameters()
    made = Machine(dut, bench_config(), given["pause"])
    await start(dut)
    return made


def layers(rng: np.random.Generator, dim: int) -> list[Layer]:
    """A layer of each kind, with empty bags and padding, over a small table."""
    table = random_values(rng, (19, dim), special=False)
    indices = rng.integers(0, 19, 23).astype(np.int32)
    offsets = np.array([0, 0, 5, 6, 6, 16], dtype=np.int64)
    weights = rng.standard_normal(23).astype(np.float32)
    return [
        Layer(table, indices, offsets, "sum", None, None, False),
        Layer(table, indices.astype(np.int64), offsets.astype(np.int32), "mean", None, 3, False),
        Layer(table, indices, offsets, "sum", weights, None, False),
        Layer(table, indices, offsets, "sum", weights, 4, False),
        Layer(table, indices, offsets, "max", None, None, False),
    ]


class Case:
    """One launch, placed twice: for the core and for the emulator."""

    def __init__(self, core: Bench, emulator: Bench, words: list[Word], out: tuple[int, int]) -> None:
        raw = Program(core.config.hash, words).to_bytes()
        self.records = core.queue(raw), emulator.queue(raw)
        self.out = out
        self.core, self.emulator = core, emulator
        assert emulator.target.wait(60)

    def check(self) -> Record:
        got, wanted = self.core.read_record(self.records[0]), self.emulator.read_record(self.records[1])
        assert got.head == wanted.head, (got.head, wanted.head)
        for counter in EXACT:
            assert got.counter(counter) == wanted.counter(counter), counter
        assert self.core.target.mem_read(*self.out) == self.emulator.target.mem_read(*self.out)
        return got


@cocotb.test()
async def registers_say_what_it_is(dut):
    core = await machine(dut)
    assert await core.read(Register.IDENTITY) == IDENTITY
    assert await core.read(Register.CONFIG_HASH) == core.config.hash
    assert await core.read(Register.STATUS) == 0


@cocotb.test(skip=bench_config().registers < REGISTERS)
async def layers_give_the_emulators_bytes(dut):
    core, rng = await machine(dut), np.random.default_rng(5)
    config = core.config
    with EmulatorTarget(config, MEMORY_BYTES) as target:
        benches = Bench(core.image, config), Bench(target, config)
        completed = 0
        for dim in (1, 2, 7, 16, 40):
            for layer in layers(rng, dim):
                placed = [place_bag(bench, layer) for bench in benches]
                assert placed[0] == placed[1]
                case = Case(*benches, placed[0].words(config), (placed[0].out, placed[0].bags * dim * BINARY32.bytes))
                completed += 1
                await with_timeout(core.ring([core.image.blocks[-1]], completed), 2, "ms")
                record = case.check()
                assert record.state is State.DONE
                assert record.counter(Counter.CYCLES) > 0


@cocotb.test()
async def gathers_queue_up(dut):
    core, rng = await machine(dut), np.random.default_rng(6)
    config = core.config
    with EmulatorTarget(config, MEMORY_BYTES) as target:
        benches = Bench(core.image, config), Bench(target, config)
        cases = []
        for dim, count in ((1, 9), (3, 17), (8, 40), (33, 5)):
            table = rng.standard_normal((11, 64)).astype(np.float32)
            indices = rng.integers(0, 11, count).astype(np.int32)
            places = {(b.place(table), b.place(indices), b.reserve(count * dim * BINARY32.bytes)) for b in benches}
            ((at, listed, out),) = places
            words = gather(config, at, 11, dim, listed, count, out)
            cases.append(Case(*benches, words, (out, count * dim * BINARY32.bytes)))
        await with_timeout(core.ring(core.image.blocks, len(cases)), 2, "ms")
        for case in cases:
            assert case.check().state is State.DONE


@cocotb.test()
async def a_fault_is_precise_and_a_reset_brings_the_machine_back(dut):
    core = await machine(dut)
    config = core.config
    bench = Bench(core.image, config)
    table, out = bench.place(bytes(11 * 64)), bench.reserve(4096)
    good = np.arange(8, dtype=np.int32)
    bad = np.array([1, 2, 3, -5, 4, 5, 6, 7], dtype=np.int32)
    records = [
        bench.queue(Program(config.hash, gather(config, table, 11, 4, bench.place(indices), 8, out)).to_bytes())
        for indices in (good, bad, good)
    ]
    await with_timeout(core.ring(core.image.blocks, 3), 2, "ms")
    first, second, third = (bench.read_record(record) for record in records)
    assert first.state is State.DONE
    assert (second.state, second.cause, second.value) == (State.FAULTED, Cause.INDEX, (1 << 64) - 5)
    assert second.register(0) == 3, "the iteration that failed"
    assert (third.state, third.cause) == (State.CANCELLED, Cause.NONE)
    assert await core.read(Register.FAULT) == Cause.INDEX.value
    await core.write(Register.CONTROL, Control.const({"reset": 1}).as_value().value)
    for _ in range(1000):
        if await core.read(Register.CONTROL) == 0:
            break
    assert await core.read(Register.STATUS) == 0
    record = bench.queue(Program(config.hash, gather(config, table, 11, 4, bench.place(good), 8, out)).to_bytes())
    await with_timeout(core.ring(core.image.blocks[-1:], 4), 2, "ms")
    assert bench.read_record(record).state is State.DONE
    assert RECORD_WORDS * 8 % config.bus_bytes == 0


@cocotb.test()
async def the_reset_pin_ends_a_launch_in_its_middle(dut):
    core = await machine(dut)
    config = core.config
    bench = Bench(core.image, config)
    rows, count, size = np.random.default_rng(7).random((11, 4), dtype=np.float32), 200, 4 * BINARY32.bytes
    table, out = place_table(bench, rows), bench.reserve(count * size)
    words = gather(config, table, 11, 4, bench.place(np.arange(count, dtype=np.int32) % 11), count, out)
    bench.queue(Program(config.hash, words).to_bytes())
    await core.write(Register.LAUNCH_LOW, core.image.blocks[0])
    await core.write(Register.DOORBELL, 1)
    await with_timeout(core.bursts(count // 2), 1, "ms")
    await reset(dut)
    assert core.image.mem_read(out + (count - 1) * size, size) == bytes(size), "the launch was over before its reset"
    core.image.mem_write(out, bytes(count * size))
    assert await core.read(Register.STATUS) == 0
    few = np.arange(8, dtype=np.int32)
    record = bench.queue(Program(config.hash, gather(config, table, 11, 4, bench.place(few), 8, out)).to_bytes())
    await with_timeout(core.ring(core.image.blocks[-1:], 1), 2, "ms")
    assert bench.read_record(record).state is State.DONE
    written = core.image.mem_read(out, count * size)
    assert written == rows[few].tobytes() + bytes((count - 8) * size), "other rows: the first launch went on"
