"""A DRAM behind the ports of a machine that copies lines: what it gives, checks, counts and refuses."""

from dataclasses import replace

import pytest
from amaranth.back import verilog

from daedal.cosim.harness_library import BusError, Harness, build_harness
from daedal.cosim.litedram import MEMORIES, build_dram, generate
from daedal.cosim.litedram.fit import check_fit
from daedal.cosim.memory_spec import MemorySpec
from daedal.hw.config import PRESETS, Config
from daedal.hw.isa.registers import Register
from tests.system.copier import BLOCK, FLOOD_CYCLES, LINES, SOURCE, Copier, Mistake, copy, ring

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

CONFIG = Config.preset("edge")
NAME = "litedram-ddr3-x16"
DRAM = MEMORIES[NAME]
MEMORY_BYTES = 1 << 20
LINE = CONFIG.bus_bytes


@pytest.fixture(scope="module")
def library():
    text = verilog.convert(Copier(CONFIG), name="copier", emit_src=False)
    return build_harness(text, CONFIG, top="copier", trace=True)


@pytest.fixture
def start(library):
    opened = []

    def make(options="", **build):
        harness = Harness(library, MEMORY_BYTES, MemorySpec.parse(NAME + options), build_dram(DRAM, CONFIG.ports, **build))
        opened.append(harness)
        return harness

    yield make
    for harness in opened:
        harness.close()


@pytest.mark.parametrize("options", ["", ":stall=0.5,seed=7", ":stall=0.2"])
def test_copy(start, rng, options):
    harness = start(options)
    for _ in range(3):
        copy(harness, rng, LINE)
        counts = harness.counts()
        assert counts["LINES_READ"] == counts["LINES_WRITTEN"] == LINES
        assert counts["BYTES_WRITTEN"] == LINES * LINE - LINES // 2
        harness.write_register(Register.INTERRUPT.value, 1)
    dram = harness.dram_counts()
    assert dram.reads == dram.checked == 3 * LINES
    assert dram.writes > 3 * LINES  # records are written as well


def test_a_flood_of_reads_takes_the_bus_and_is_refreshed(start):
    harness = start()
    ring(harness, mistake=Mistake.FLOOD)
    assert harness.run(1_000_000, 60)
    description = generate(DRAM, CONFIG.ports).description
    # Both ports read the same few lines of one row: a line in every cycle but for refreshes, of 50 cycles at most.
    assert 0.9 * FLOOD_CYCLES <= harness.counts()["LINES_READ"] <= 1.05 * FLOOD_CYCLES
    assert harness.dram_counts().refreshes == harness.cycle // description.timing["tREFI"]


def test_a_wrong_byte_is_found(start):
    harness = start()
    harness.memory[BLOCK + SOURCE + 5 * LINE + 3] ^= 1
    ring(harness)
    address = BLOCK + SOURCE + 5 * LINE
    with pytest.raises(BusError, match=f"gave other bytes for address {address:#x} than were stored there"):
        harness.run(1_000_000, 60)


def test_the_controller_keeps_the_timing_of_the_dram(start, rng):
    harness = start(checks=True)
    copy(harness, rng, LINE)
    harness.write_register(Register.INTERRUPT.value, 1)
    ring(harness, mistake=Mistake.FLOOD)
    assert harness.run(1_000_000, 60)
    assert harness.dram_counts().refreshes


def test_a_wrong_timing_is_found(start, rng):
    """The controller gives a refresh a quarter of its time."""
    harness = start(checks=True, wrong={"tRFC": 8})
    with pytest.raises(BusError, match=r"the DRAM reports REF->ACT violation on bank \d at \d+ ps"):
        copy(harness, rng, LINE)
