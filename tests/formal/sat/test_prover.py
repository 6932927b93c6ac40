"""The prover itself: what it says of machines that are easily understood."""

from pathlib import Path

import pytest
from amaranth import Module, Signal
from amaranth.hdl import Assert, Elaboratable
from amaranth.lib.memory import Memory

from tests.formal.sat import prover
from tests.formal.sat.prover import examine, holds, within


class Counter(Elaboratable):
    """Counts cycles, up to 15; asserted to stay below ``bound``, and above 0 once it has been there."""

    def __init__(self, bound: int) -> None:
        self.bound, self.full = bound, Signal(name="full")

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        count, begun = Signal(4, name="count"), Signal(reset_less=True)
        with m.If(count != 15):
            m.d.sync += count.eq(count + 1)
        m.d.sync += begun.eq(1)
        m.d.comb += [Assert(count < self.bound), Assert(~begun | (count > 0)), self.full.eq(count == 15)]
        return m


def test_a_bound_says_nothing_of_later_cycles():
    assert holds(Counter(8), [], 8)
    assert not holds(Counter(8), [], 9)


def test_an_induction_holds_for_ever_or_is_not_proved():
    assert examine(Counter(16), [], 4, induction=1).holds
    result = examine(Counter(8), [], 4, induction=4)  # no counterexample of 4 cycles, and no proof
    assert not result.holds
    assert not (result.log / "counterexample.vcd").exists()
    assert not examine(Counter(3), [], 2, induction=4).holds


def test_there_is_no_reset_after_the_first():
    assert holds(Counter(16), [], 3)  # a reset would make it 0 once more


def test_a_goal_is_reached_in_the_cycles_or_missed():
    spec = Counter(16)
    assert examine(spec, [spec.full], 16, goals=["full"])
    result = examine(spec, [spec.full], 15, goals=["full"])
    assert result.holds
    assert result.missed == ("full",)
    assert not result
    assert result.log.exists()


def test_what_failed_is_kept():
    assert not examine(Counter(16), [], 3).log.exists()
    log = examine(Counter(2), [], 6).log
    assert {"top.il", "run.ys", "top.aag"} < {file.name for file in log.iterdir()}
    text = (log / "counterexample.vcd").read_text()
    name = next(line.split()[3] for line in text.splitlines() if " count " in line)
    values = [line.split()[0] for line in text.splitlines() if line.endswith(f" {name}")]
    assert values == [f"b{count:04b}" for count in range(6)]


class Stored(Elaboratable):
    """Gives what was written in the cycle before: ``same`` asserts it."""

    def __init__(self) -> None:
        self.given = Signal(2, name="given")

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.memory = memory = Memory(shape=2, depth=2, init=[])
        write, read, before, begun = memory.write_port(), memory.read_port(domain="comb"), Signal(2), Signal()
        m.d.comb += [write.data.eq(self.given), write.en.eq(1)]
        m.d.sync += [before.eq(self.given), begun.eq(1)]
        m.d.comb += Assert(~begun | (read.data == before))
        return m


def test_memories_give_what_was_written_or_anything():
    spec = Stored()
    assert examine(spec, [spec.given], 4).holds
    assert not examine(spec, [spec.given], 4, abstract=True).holds


class Waits(Elaboratable):
    """``within`` of something that lasts for as long as it likes, but for ``cycles`` cycles at most."""

    def __init__(self, cycles: int) -> None:
        self.cycles, self.asks = cycles, Signal(name="asks")

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        lasted = Signal(2)
        with m.If(self.asks):
            m.d.sync += lasted.eq(lasted + 1)
        with m.If(~self.asks | (lasted == 3)):
            m.d.sync += lasted.eq(0)
        within(m, self.asks, lasted == 3, self.cycles)
        return m


@pytest.mark.parametrize(("cycles", "expected"), [(2, False), (3, True)])
def test_within(cycles: int, expected: bool):
    spec = Waits(cycles)
    assert holds(spec, [spec.asks], 9) is expected


def test_a_tool_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(prover, "SCRIPT", "{cut}no_such_command\n")
    with pytest.raises(RuntimeError, match=r"Yosys failed, see .*No such command: no_such_command"):
        holds(Counter(16), [], 2)
