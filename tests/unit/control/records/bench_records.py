"""cocotb bench of Records: launches one behind the other, with stores of their own before each record."""

import random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge, with_timeout
from cocotb.utils import get_sim_time

from daedal.hw.control.launch_controller import SETTLE_CYCLES
from daedal.hw.control.records.records import QUEUE_MARKS
from daedal.hw.control.records.statistics import COUNTED, Stage, stage_of
from daedal.hw.interfaces import beat_layout, store_address_layout
from daedal.hw.isa.launch import RECORD_WORDS, Cause, Counter, Queue, RecordHead, RecordWord, State
from daedal.hw.isa.program import WORD_BYTES, unpack
from daedal.hw.reports import ACCESS_STALLS, EXECUTE_STALLS
from tests.unit.harness import bench_config
from tests.unit.streams import PERIOD, Sink, Source, start

LAUNCHES = 4
TOLD = 0x5A00
"""A word that the fault has is this and its number."""

STROBES = {
    Counter.ROWS: "access__row", Counter.LOOKUPS: "access__lookup", Counter.BUNDLES: "access__bundle",
    Counter.TOKENS: "access__token", Counter.LINES_READ: "fabric__beat", Counter.LINES_WRITTEN: "store__line",
    Counter.BYTES_WRITTEN: "store__bytes", Counter.LANE_BEATS: "execute__lane_beat",
    Counter.BOUNDS_WARNINGS: "access__replaced",
    **{Counter[name.upper()]: f"access__{name}" for name in ACCESS_STALLS},
    **{Counter[name.upper()]: f"execute__{name}" for name in EXECUTE_STALLS},
}  # fmt: skip
"""Counter -> the signal that says how much is to be counted."""


class Machine:
    """Launch control, the loader, the other units and the store unit, as the component sees them."""

    def __init__(self, dut: Any, idle: float, pause: float) -> None:
        self.dut, self.config, self.rng = dut, bench_config(), random.Random(9)
        addresses, beats = store_address_layout(self.config), beat_layout(self.config)
        self.sources = Source(dut, "addresses", addresses, idle=idle), Source(dut, "data", beats, idle=idle)
        self.sinks = (
            Sink(dut, "store_addresses", addresses, pause=pause), Sink(dut, "store_data", beats, pause=pause),
        )  # fmt: skip
        self.sent: list[int] = []
        self.rows: list[int] = []
        self.counts = dict.fromkeys(COUNTED, 0)
        for signal in (*STROBES.values(), "reset", "ahead", "rung", "loader__begin", "loader__opened", "launch__take"):
            getattr(dut, signal).value = 0
        for signal in ("running", "draining", "record_start", "record_phase", "flip", "cancel", "cancelling", "side"):
            getattr(dut, f"launch__{signal}").value = 0
        dut.loader__side.value = 1
        dut.fabric__error.value = 0
        dut.store__acknowledged.value = dut.store__idle.value = 0
        cocotb.start_soon(self._tell())

    async def _tell(self) -> None:
        """Words of the fault, as they are asked for."""
        while True:
            await RisingEdge(self.dut.clk)
            self.dut.fault__told.value = TOLD + int(self.dut.fault__asked.value)

    @property
    def cycle(self) -> int:
        return int(get_sim_time("ns")) // PERIOD

    async def cycles(self, count: int = 1) -> None:
        for _ in range(count):
            await RisingEdge(self.dut.clk)

    async def strobe(self, name: str) -> None:
        signal = getattr(self.dut, name)
        signal.value = 1
        await self.cycles()
        signal.value = 0

    async def count(self, cycles: int, side: int) -> None:
        """All stages count for this side or the other one, at random."""
        sides = {
            Stage.READ: "fabric__beat_side", Stage.ACCESS: "access__side", Stage.EXECUTE: "launch__execute_side",
        }  # fmt: skip
        for _ in range(cycles):
            at = {stage: self.rng.randrange(2) for stage in sides}
            for stage, name in sides.items():
                getattr(self.dut, name).value = at[stage]
            for counter, name in STROBES.items():
                signal = getattr(self.dut, name)
                step = self.rng.randrange(min(2 ** len(signal), self.step(counter) + 1))
                signal.value = step
                if at.get(stage_of(counter), side) == side:
                    self.counts[counter] += step
            await self.cycles()
        for name in STROBES.values():
            getattr(self.dut, name).value = 0

    def step(self, counter: Counter) -> int:
        """The most that is counted in a cycle."""
        steps = {Counter.BYTES_WRITTEN: self.config.bus_bytes, Counter.BOUNDS_WARNINGS: self.config.levels}
        return steps.get(counter, 1)

    async def begin(self, number: int, *, opens: bool = True) -> None:
        """The loader reads a launch block, and the launch becomes the present one."""
        dut, side = self.dut, number % 2
        self.counts = dict.fromkeys(COUNTED, 0)
        dut.launch__idle.value = 1
        await self.strobe("rung")
        self.rung = self.cycle
        await self.strobe("loader__begin")
        dut.loader__side.value, dut.ahead.value = side, 1
        dut.loader__record.value, dut.loader__number.value = self.record_address(number), 100 + number
        dut.loader__window.value = 5 + number
        if opens:
            await self.strobe("loader__opened")
        await self.cycles(self.rng.randrange(1, 5))
        await self.strobe("launch__take")
        dut.ahead.value, dut.launch__side.value, dut.launch__idle.value, dut.launch__running.value = 0, side, 0, 1
        await self.cycles(3)
        assert dut.status__known.value == opens
        assert dut.guard.value, "what a launch writes is not held to its window"
        assert int(dut.window.value) == (5 + number if opens or number else 5)

    def record_address(self, number: int) -> int:
        return 0x1000 * (number + 1)

    async def store(self, rows: int) -> None:
        """Rows of the present launch, a beat each, all of which get to the store unit."""
        addresses = [self.rng.randrange(1 << 10) for _ in range(rows)]
        beats = [self.rng.getrandbits(8 * self.config.bus_bytes) for _ in range(rows)]
        tasks = (
            self.sources[0].start({"address": at, "size": self.config.bus_bytes} for at in addresses),
            self.sources[1].start({"data": data, "bytes": self.config.bus_bytes, "last": 1} for data in beats),
        )
        for task in tasks:
            await task
        self.rows += addresses
        self.sent += beats
        assert [row.address for row in self.sinks[0].got] == self.rows, "other rows than were sent"
        assert [beat.data for beat in self.sinks[1].got] == self.sent, "other data than were sent"

    async def acknowledge(self) -> int:
        """The last write of the present launch is acknowledged; in which cycle."""
        await self.strobe("store__acknowledged")
        return self.cycle

    async def record(self, number: int, state: State, cause: Cause) -> None:
        """The launch is over; its record is written. All queues and units are silent meanwhile."""
        dut = self.dut
        for name in ("cause", "level", "queue", "nest"):
            getattr(dut, f"fault__{name}").value = {"cause": cause.value, "queue": Queue.SCALAR.value}.get(name, 2)
        for place, name in enumerate(QUEUE_MARKS):
            getattr(dut, f"marks__{name}").value = 40 * number + place
        dut.execute__mark_store_data.value = number + 1
        await self.strobe("launch__flip")
        dut.execute__mark_store_data.value = 0
        dut.launch__running.value, dut.launch__state.value = 0, state.value
        await self.cycles(SETTLE_CYCLES + 1)
        dut.launch__record_phase.value = 1
        await self.strobe("launch__record_start")

    async def end(self, number: int) -> list[int]:
        """The words of the record, when all of it was taken."""
        dut, beats = self.dut, RECORD_WORDS * WORD_BYTES // self.config.bus_bytes
        while not dut.status__done.value:
            await self.cycles()
            assert dut.launch__record_phase.value and not dut.addresses__ready.value, "rows while a record is written"
        assert not dut.guard.value, "a record must lie in the window"
        dut.launch__record_phase.value = 0
        await self.cycles(2)
        assert self.sinks[0].got[-1].address == self.record_address(number)
        assert self.sinks[0].got[-1].size == RECORD_WORDS * WORD_BYTES
        written = [beat.data for beat in self.sinks[1].got[-beats:]]
        assert [beat.last for beat in self.sinks[1].got[-beats:]] == [0] * (beats - 1) + [1]
        self.rows.append(self.record_address(number))
        self.sent += written
        raw = b"".join(data.to_bytes(self.config.bus_bytes, "little") for data in written)
        return [int.from_bytes(raw[at : at + WORD_BYTES], "little") for at in range(0, len(raw), WORD_BYTES)]

    def check(self, words: list[int], number: int, state: State, cause: Cause, cycles: int) -> None:
        """The record says what happened."""
        head = unpack(RecordHead, words[RecordWord.HEAD.value])
        shown = Cause.NONE if state is State.CANCELLED else cause
        assert head == {"state": state.value, "cause": shown.value, "nest": 2, "level": 2,
                        "queue": Queue.SCALAR.value, "launch": 100 + number}  # fmt: skip
        for place in range(RecordWord.VALUE.value, RecordWord.COUNTERS.value):
            assert words[place] == TOLD + place
        got = {counter: words[RecordWord.COUNTERS.value + counter.value] for counter in Counter}
        assert {counter: got[counter] for counter in COUNTED} == self.counts
        marks = {Counter[f"MARK_{name.upper()}"]: 40 * number + place for place, name in enumerate(QUEUE_MARKS)}
        assert {mark: got[mark] for mark in marks} == marks
        assert got[Counter.MARK_STORE_DATA] == number + 1
        assert got[Counter.CYCLES] == cycles


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.6], pause=[0.0, 0.6])
async def a_record_follows_what_its_launch_has_stored(dut, idle, pause):
    """Words, counts and marks are those of the launch, and nothing of one is lost or comes twice."""
    await start(dut)
    machine = Machine(dut, idle, pause)
    ends = [(State.DONE, Cause.NONE), (State.FAULTED, Cause.INDEX), (State.CANCELLED, Cause.INDEX)]
    for number in range(LAUNCHES):
        state, cause = ends[number % len(ends)]
        await machine.begin(number)
        counting = cocotb.start_soon(machine.count(90, number % 2))
        await machine.store(12)
        await counting
        acknowledged = await machine.acknowledge()
        await machine.record(number, state, cause)
        words = await with_timeout(machine.end(number), 50, "us")
        machine.check(words, number, state, cause, acknowledged - machine.rung)


@cocotb.test()
async def a_reset_ends_a_record_in_its_middle(dut):
    """As when memory refuses it: the next launch's record is whole, though one was begun."""
    await start(dut)
    machine = Machine(dut, 0.0, 0.5)
    await machine.begin(0)
    await machine.record(0, State.FAULTED, Cause.MEMORY_ERROR)
    await machine.cycles(30)
    dut.launch__record_phase.value = 0
    await machine.strobe("reset")
    await machine.cycles(3)
    assert dut.status__known.value, "a reset forgets where the present launch's record goes"
    taken = [len(sink.got) for sink in machine.sinks]
    await machine.cycles(200)
    assert taken == [len(sink.got) for sink in machine.sinks], "a record that was ended goes on"
    machine.rows = [row.address for row in machine.sinks[0].got]
    machine.sent = [beat.data for beat in machine.sinks[1].got]
    await machine.begin(1)
    acknowledged = await machine.acknowledge()
    await machine.record(1, State.DONE, Cause.NONE)
    machine.check(await machine.end(1), 1, State.DONE, Cause.NONE, acknowledged - machine.rung)


@cocotb.test()
async def a_launch_block_that_was_not_read_has_no_record(dut):
    """The line that it is in came with an error, or it was never opened; a later launch has one again."""
    await start(dut)
    machine = Machine(dut, 0.0, 0.0)
    await machine.begin(0, opens=False)
    dut.launch__running.value = 0
    dut.fabric__error.value, dut.fabric__error_side.value = 1, 1
    await machine.begin(1, opens=False)
    await machine.strobe("loader__opened")
    await machine.cycles(2)
    assert not dut.status__known.value, "the block that was refused says where the record goes"
    dut.fabric__error_side.value = 0
    await machine.strobe("loader__opened")
    await machine.cycles(2)
    assert dut.status__known.value, "an error of the other launch"
