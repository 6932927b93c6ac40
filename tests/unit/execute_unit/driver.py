"""Drives an execute unit in a cocotb bench."""

import random
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from daedal.hw.config.core import Config
from daedal.hw.interfaces import ConfigWord, fault_layout, lane_beat_layout, scalar_layout, token_layout
from daedal.hw.isa.program import Word, pack
from tests.unit.execute_unit.model import Model, Row
from tests.unit.execute_unit.programs import Token, placed, run_model, words
from tests.unit.harness import bench_config
from tests.unit.streams import Sink, Source, decode, start

STROBES = ("lane_beat", "stall_token_empty", "stall_vector_empty", "stall_scalar_empty", "stall_store_full",
           "stall_hazard")  # fmt: skip


class Driver:
    """The unit under test with sources, a sink, and counts of its strobes."""

    def __init__(self, dut: Any, config: Config, *, idle: float = 0.0, pause: float = 0.0, seed: int = 0) -> None:
        self.dut, self.config = dut, config
        self._idle, self._pause, self._seed = idle, pause, seed
        self.counts = dict.fromkeys(STROBES, 0)
        self.first_beat = self.last_beat = -1
        self.cycle = 0

    async def begin(self, words: list[Word]) -> None:
        """Reset, launch and load the program."""
        dut, beat = self.dut, lane_beat_layout(self.config)
        for name in ("halt", "launch", "side"):
            getattr(dut, name).value = 0
        for name in ("valid", "clear", "word", "begin", "side"):
            getattr(dut, f"config_bus__{name}").value = 0
        self._side = 0
        sources = {"tokens": token_layout(), "scalars": scalar_layout(self.config), "vector0": beat, "vector1": beat}
        self.sources = {
            name: Source(dut, name, layout, idle=self._idle, seed=self._seed) for name, layout in sources.items()
        }
        await start(dut)
        self.sink = Sink(dut, "stores", beat, pause=self._pause, seed=self._seed)
        await self.load(words)
        cocotb.start_soon(self._watch())

    async def load(self, words: list[Word]) -> None:
        """Start a launch with these words, on the other side than the one before."""
        dut = self.dut
        self._side ^= 1
        dut.launch.value = dut.config_bus__begin.value = 1
        dut.side.value = dut.config_bus__side.value = self._side
        await RisingEdge(dut.clk)
        dut.launch.value = dut.config_bus__begin.value = 0
        for word in words:
            bits = {"value": word.value, "unit": word.unit, "index": word.index, "field": word.field.value}
            dut.config_bus__word.value = pack(ConfigWord, bits)
            dut.config_bus__valid.value = 1
            await RisingEdge(dut.clk)
        dut.config_bus__valid.value = 0

    def feed(self, tokens: list[Token], model: Model) -> None:
        """Send the tokens and all that the model was given."""
        both = [placed(token) for token in tokens]
        self.sources["tokens"].start([{"callback": token, "context": context} for token, context in both])
        self.sources["scalars"].start([{"value": value} for value in model.scalars])
        for n in range(2):
            self.feed_rows(n, model.rows[n])

    def feed_rows(self, queue: int, rows: list[Row]) -> None:
        beats = [beat for one in rows for beat in one.beats(self.config)]
        self.sources[f"vector{queue}"].start(beats)

    async def check(self, model: Model) -> None:
        """Wait for all that the model stored, compare it, and see the unit become idle."""
        expected = [beat for one in model.stores for beat in one.beats(self.config)]
        got = await self.sink.wait(len(expected))
        for n, (have, want) in enumerate(zip(got, expected, strict=True)):
            mask = (1 << 8 * want["bytes"]) - 1
            assert (have.bytes, have.last) == (want["bytes"], want["last"]), f"beat {n} of {len(expected)}: framing"
            assert have.data & mask == want["data"], f"beat {n}: {have.data & mask:#x} is not {want['data']:#x}"
        await self.idle()
        assert len(self.sink.got) == len(expected)
        assert not self.dut.fault__valid.value
        assert self.counts["lane_beat"] == model.beats

    async def idle(self, cycles: int = 20_000) -> None:
        """Wait until tokens are sent and the unit is idle, and a little more."""
        for _ in range(cycles):
            await RisingEdge(self.dut.clk)
            if self.dut.idle.value and not self.dut.tokens__valid.value:
                break
        else:
            raise AssertionError(f"not idle after {cycles} cycles")
        for _ in range(4):
            await RisingEdge(self.dut.clk)

    async def fault(self, cycles: int = 500) -> Any:
        """Wait for a fault and return it; it must stay."""
        for _ in range(cycles):
            await RisingEdge(self.dut.clk)
            if self.dut.fault__valid.value:
                break
        else:
            raise AssertionError(f"no fault after {cycles} cycles")
        first = int(self.dut.fault__fault.value)
        for _ in range(50):
            await RisingEdge(self.dut.clk)
            assert self.dut.fault__valid.value
            assert int(self.dut.fault__fault.value) == first
        return decode(fault_layout(self.config), first)

    async def _watch(self) -> None:
        strobes, beat = {name: getattr(self.dut, f"report__{name}") for name in STROBES}, self.dut.report__lane_beat
        while True:
            await RisingEdge(self.dut.clk)
            self.cycle += 1
            for name, strobe in strobes.items():
                self.counts[name] += int(strobe.value)
            if beat.value:
                self.first_beat = self.cycle if self.first_beat < 0 else self.first_beat
                self.last_beat = self.cycle


async def run(dut, lengths, callbacks, tokens, kinds=None, **options) -> Driver:
    """Run the tokens and compare with the model."""
    config, rng = bench_config(), random.Random(5)
    model = run_model(config, lengths, callbacks, tokens, rng, kinds)
    driver = Driver(dut, config, **options)
    await driver.begin(words(lengths, callbacks, kinds))
    driver.feed(tokens, model)
    await driver.check(model)
    return driver
