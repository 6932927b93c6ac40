"""A DRAM behind the ports of a machine that copies lines: what it gives, checks, counts and refuses."""

from dataclasses import replace

import pytest

from daedal.cosim.harness_library import BusError, Harness
from daedal.cosim.litedram.fit import check_fit
from daedal.cosim.litedram.memories import MEMORIES
from daedal.cosim.litedram.model import build_dram
from daedal.cosim.litedram.text import generate
from daedal.cosim.memory_spec import MemorySpec
from daedal.hw.config.core import PRESETS
from daedal.hw.isa.registers import Register
from tests.cosim.copier import BLOCK, CONFIG, FLOOD_CYCLES, LINES, RECORD, SOURCE, Mistake, copy, library, ring

__all__ = ["library"]

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

NAME = "litedram-ddr3-x16"
DRAM = MEMORIES[NAME]
MEMORY_BYTES = 1 << 20
LINE = CONFIG.bus_bytes


@pytest.fixture
def start(library):
    opened = []

    def make(options="", **build):
        harness = Harness(
            library, MEMORY_BYTES, MemorySpec.parse(NAME + options), build_dram(DRAM, CONFIG.ports, **build)
        )
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
        counts = harness.counts(BLOCK + RECORD)
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
    assert 0.9 * FLOOD_CYCLES <= harness.counts(BLOCK + RECORD)["LINES_READ"] <= 1.05 * FLOOD_CYCLES
    assert harness.dram_counts().refreshes == harness.cycle // description.timing["tREFI"]


def test_a_wrong_byte_is_found(start):
    harness = start()
    harness.memory[BLOCK + SOURCE + 5 * LINE + 3] ^= 1
    ring(harness)
    address = BLOCK + SOURCE + 5 * LINE
    with pytest.raises(BusError, match=f"gave other bytes for address {address:#x} than were stored there"):
        harness.run(1_000_000, 60)


@pytest.mark.full
def test_the_controller_keeps_the_timing_of_the_dram(start, rng):
    """With as much traffic as there can be; `make test` has the core's, with as many ports as it has."""
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


def test_memory_beyond_the_end_answers_with_an_error(start):
    """The copier pays no attention to errors; the lines before the end are read and checked as always."""
    harness = start()
    ring(harness, block=MEMORY_BYTES - SOURCE - 8 * LINE)
    assert harness.run(1_000_000, 60)
    assert harness.dram_counts().checked == 8
    assert not any(harness.memory[: MEMORY_BYTES - SOURCE - 8 * LINE])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"page_bytes": 1024}, "page_bytes of configuration edge must be 2048 for memory litedram-ddr3-x16, not 1024"),
        ({"banks": 4}, "banks of configuration edge must be 8 for memory litedram-ddr3-x16, not 4"),
        ({"bus_bytes": 32}, "bus_bytes of configuration edge must be 16 for memory litedram-ddr3-x16, not 32"),
    ],
)
def test_a_core_for_another_dram_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        check_fit(replace(CONFIG, **change), generate(DRAM, CONFIG.ports).description)


@pytest.mark.parametrize(("name", "config"), list(zip(MEMORIES, ("ddr3", "wide", "wide"), strict=True)))
def test_which_preset_is_for_which_dram(name, config):
    check_fit(PRESETS[config], generate(MEMORIES[name], PRESETS[config].ports).description)


def test_a_description_says_what_shapes_the_timing():
    text = generate(DRAM, 8).description.text()
    for part in ("DDR3 MT41K64M16 ×16 at 100 MHz, 8 banks of 2048-byte pages", "tRCD 3", "cmd_buffer_depth 8",
                 "read_latency 8", "litedram 2024.12"):  # fmt: skip
        assert part in text


def test_generated_text_is_the_same_each_time(tmp_path, monkeypatch):
    first = generate(DRAM, 2)
    monkeypatch.setenv("DAEDAL_CACHE", str(tmp_path))
    assert generate(DRAM, 2) == first
    assert generate(DRAM, 2) == first  # out of the cache


@pytest.mark.parametrize("ports", [0, 17])
def test_as_many_ports_as_there_can_be(ports):
    with pytest.raises(ValueError, match=f"ports must be from 1 to 16, not {ports}"):
        generate(DRAM, ports)


def test_an_unknown_timing_is_refused():
    with pytest.raises(ValueError, match=r"wrong must name timings among tRP, .* not 'tXYZ'"):
        generate(DRAM, 2, wrong={"tXYZ": 1})
