"""The record writer: every word of every record in its place, whatever the store unit makes it wait."""

import random

import pytest
from amaranth.sim import Simulator

from daedal.hw.config.core import Config
from daedal.hw.control.records.record_writer import RecordWriter
from daedal.hw.isa.launch import RECORD_WORDS
from daedal.hw.isa.program import WORD_BYTES
from tests.unit.harness import CONFIGS

RECORDS, PATIENCE = 3, 4000
"""Records that are written one after the other, and the cycles in which one must be done."""


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)
@pytest.mark.parametrize("pause", [0.0, 0.7])
def test_records(config: Config, pause: float) -> None:
    dut, rng = RecordWriter(config), random.Random(3)
    records = [[rng.getrandbits(64) for _ in range(RECORD_WORDS)] for _ in range(RECORDS)]
    addresses = [64 * rng.randrange(1 << 20) for _ in records]
    rows: list[tuple[int, int]] = []
    beats: list[tuple[int, int, int]] = []
    done = []

    async def words(ctx):
        """A word is there two cycles after it was asked for, and no longer."""
        late = [None, None]
        async for _, _, ask, number in ctx.tick().sample(dut.ask, dut.number):
            late = [late[1], number if ask else None]
            record = records[min(len(done), RECORDS - 1)]
            ctx.set(dut.word, rng.getrandbits(64) if late[0] is None else record[late[0]])

    async def rows_taken(ctx):
        async for _, _, valid, ready, row in ctx.tick().sample(
            dut.store_address.valid, dut.store_address.ready, dut.store_address.payload
        ):
            if valid and ready:
                rows.append((row.address, row.size))
            ctx.set(dut.store_address.ready, rng.random() >= pause)

    async def beats_taken(ctx):
        async for _, _, valid, ready, beat in ctx.tick().sample(
            dut.store_data.valid, dut.store_data.ready, dut.store_data.payload
        ):
            if valid and ready:
                beats.append((beat.data, beat.bytes, beat.last))
            ctx.set(dut.store_data.ready, rng.random() >= pause)

    async def bench(ctx):
        for address in addresses:
            ctx.set(dut.address, address)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            for _ in range(PATIENCE):
                _, _, over = await ctx.tick().sample(dut.done)
                if over:
                    break
            done.append(over)
            await ctx.tick().repeat(rng.randrange(1, 4))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    for background in (words, rows_taken, beats_taken):
        simulator.add_testbench(background, background=True)
    simulator.add_testbench(bench)
    simulator.run()
    assert done == [1] * RECORDS
    size, bus = RECORD_WORDS * WORD_BYTES, config.bus_bytes
    assert rows == [(address, size) for address in addresses]
    assert beats == [
        (int.from_bytes(raw[at : at + bus], "little"), bus, at + bus == size)
        for raw in (b"".join(word.to_bytes(WORD_BYTES, "little") for word in record) for record in records)
        for at in range(0, size, bus)
    ]
