"""The C++ harness: memory, counts, register access and bus rules, on a machine that copies lines."""

import pytest

from daedal.cosim.harness_library import BusError, Harness
from daedal.cosim.memory_spec import MemorySpec
from daedal.errors import DeviceClosed
from daedal.hw.isa.registers import IDENTITY, Register
from tests.cosim.copier import BLOCK, CONFIG, FLOOD_CYCLES, LINES, RECORD, Mistake, copy, library, ring

__all__ = ["library"]

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

MEMORY_BYTES = 1 << 20
LINE = CONFIG.bus_bytes


@pytest.fixture
def start(library):
    opened = []

    def make(spec="ideal"):
        harness = Harness(library, MEMORY_BYTES, MemorySpec.parse(spec))
        opened.append(harness)
        return harness

    yield make
    for harness in opened:
        harness.close()


SPECS = ["ideal", "ideal:latency=1", "ideal:lines=0.3", "ideal:stall=0.5,seed=7", "ideal:latency=20,seed=2"]


@pytest.mark.parametrize("spec", SPECS)
def test_copy_under_every_memory(start, rng, spec):
    harness = start(spec)
    for _ in range(3):
        copy(harness, rng, LINE)
        counts = harness.counts(BLOCK + RECORD)
        assert counts["LINES_READ"] == counts["LINES_WRITTEN"] == LINES
        assert counts["BYTES_WRITTEN"] == LINES * LINE - LINES // 2
        harness.write_register(Register.INTERRUPT.value, 1)


@pytest.mark.parametrize("latency", [1, 10, 110])
def test_latency_is_what_was_asked_for(start, rng, latency):
    harness = start(f"ideal:latency={latency}")
    copy(harness, rng, LINE)
    # Two cycles through the launch queue; for each line one for AR, AW and W, and the latency up to R and B.
    assert harness.counts(BLOCK + RECORD)["CYCLES"] == 2 + LINES * (3 + 2 * latency)


@pytest.mark.parametrize(
    ("spec", "rate"), [("lines=1", 1.0), ("lines=0.25", 0.25), ("lines=2", 2.0), ("lines=1.5", 1.5)]
)
def test_rate_is_what_was_asked_for(start, spec, rate):
    harness = start(f"ideal:latency=10,{spec}")
    ring(harness, mistake=Mistake.FLOOD)
    assert harness.run(1_000_000, 60)
    # The record takes lines as well, and a few cycles in which readers go on.
    assert rate * FLOOD_CYCLES * 0.99 <= harness.counts(BLOCK + RECORD)["LINES_READ"] <= rate * FLOOD_CYCLES * 1.2


def test_a_pause_delays_everything_after_it(start, rng):
    harness = start("ideal:latency=10,pause_after=3,pause=5000")
    copy(harness, rng, LINE)
    without = 2 + LINES * (3 + 2 * 10)
    # The pause begins with the third line; of the wait for the next one some is hidden behind it.
    assert without + 5000 - 20 <= harness.counts(BLOCK + RECORD)["CYCLES"] <= without + 5000


def test_a_pause_without_end(start):
    harness = start("ideal:pause_after=3")
    ring(harness)
    assert not harness.run(20_000, 60)


def test_same_seed_same_cycles(start, rng):
    cycles = {}
    for seed in (1, 1, 2):
        harness = start(f"ideal:stall=0.4,seed={seed}")
        copy(harness, rng, LINE)
        cycles.setdefault(seed, set()).add(harness.counts(BLOCK + RECORD)["CYCLES"])
    assert len(cycles[1]) == 1
    assert cycles[1] != cycles[2]


def test_launches_behind_each_other(start):
    """Reads are not told apart; the cycles of the second begin with the first one's last acknowledged write."""
    harness = start("ideal:latency=10")
    ring(harness)
    harness.write_register(Register.DOORBELL.value, 1)
    alone = 2 + LINES * (3 + 2 * 10)
    for least, most in ((alone, alone), (alone + 1, alone + LINES * (3 + 2 * 10))):
        assert harness.run(1_000_000, 60)
        harness.write_register(Register.INTERRUPT.value, 1)
        counts = harness.counts(BLOCK + RECORD)
        assert least <= counts["CYCLES"] <= most
        assert counts["LINES_READ"] == 0
        assert counts["LINES_WRITTEN"] == LINES
        assert counts["BYTES_WRITTEN"] == LINES * LINE - LINES // 2


def test_counts_are_those_of_the_launch_with_that_record(start):
    """Also when another one has ended since."""
    harness = start("ideal:latency=10")
    first, second = BLOCK, BLOCK + 0x8000
    ring(harness, first)
    harness.run(1_000_000, 60)
    alone = harness.counts(first + RECORD)
    assert alone["LINES_WRITTEN"] == LINES and harness.counts(second + RECORD) is None
    ring(harness, second, mistake=Mistake.FLOOD)
    harness.write_register(Register.INTERRUPT.value, 1)
    assert harness.run(1_000_000, 60)
    assert harness.counts(second + RECORD)["LINES_WRITTEN"] == 0
    assert harness.counts(first + RECORD) == alone


def test_registers(start):
    harness = start()
    assert harness.read_register(Register.IDENTITY.value) == IDENTITY
    assert harness.read_register(Register.CONFIG_HASH.value) == CONFIG.hash
    harness.write_register(Register.LAUNCH_LOW.value, 0xDEADBEEF)
    assert harness.read_register(Register.LAUNCH_LOW.value) == 0xDEADBEEF


def test_run_comes_back_without_an_interrupt(start):
    harness = start()
    before = harness.cycle
    assert not harness.run(5000, 60)
    assert harness.cycle - before == 5000
    assert not harness.run(1 << 60, 0.01)
    assert harness.counts(BLOCK + RECORD) is None


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (Mistake.LONG, "AR burst at 0x11000 with length 16, size 4, kind 1 is not whole lines in order"),
        (Mistake.NARROW, "AR burst at 0x11000 with length 0, size 0"),
        (Mistake.UNSTABLE, "AR changed while it waited at address 0x110"),
        (Mistake.NOT_LAST, "WLAST is 0 in beat 1 of 1"),
    ],
)
def test_broken_bus_rule(start, mistake, message):
    harness = start("ideal:stall=0.8,seed=1")

    def launches():
        for _ in range(50):
            ring(harness, mistake=mistake)
            harness.run(100_000, 10)
            harness.write_register(Register.INTERRUPT.value, 1)

    with pytest.raises(BusError, match=message):
        launches()


def test_memory_beyond_the_end_answers_with_an_error(start):
    harness = start()
    ring(harness, block=MEMORY_BYTES)
    # The copier pays no attention to errors, so the launch ends; nothing was hit.
    assert harness.run(1_000_000, 60)
    assert not any(harness.memory)


def test_waveform(start, rng, tmp_path):
    harness, path = start(), tmp_path / "wave.vcd"
    harness.trace(str(path))
    copy(harness, rng, LINE)
    harness.close()
    text = path.read_text()
    assert "$enddefinitions" in text
    assert "read0__arvalid" in text
    with pytest.raises(OSError, match="cannot be written"):
        start().trace(str(tmp_path / "missing" / "wave.vcd"))


def test_a_closed_harness_says_so(start):
    harness = start()
    harness.close()
    uses = (
        lambda: harness.read_register(0), lambda: harness.write_register(0, 0), lambda: harness.memory,
        lambda: harness.run(1, 1.0), lambda: harness.cycle, lambda: harness.counts(0), lambda: harness.trace("x.vcd"),
    )  # fmt: skip
    for use in uses:
        with pytest.raises(DeviceClosed, match="it was closed"):
            use()
    harness.close()
