"""Programs that follow their launch blocks: read in one go, with fewer arguments, and found wrong as others are."""

import random
from dataclasses import dataclass, field

import pytest
from amaranth.sim import Simulator

from daedal.hw.config.core import PRESETS, Config
from daedal.hw.control.loader import Loader
from daedal.hw.control.word_reader import BURSTS
from daedal.hw.interfaces import Client
from daedal.hw.isa.launch import BLOCK_REGION, LAUNCH_HEADER_WORDS, LEAST_FOLLOWING, LaunchFlags
from daedal.hw.isa.program import Program, Word, pack
from daedal.hw.isa.words import LevelField
from tests.unit.control.test_loader import CONFIGS, RUN, WINDOW, Memory, expected, random_body
from tests.unit.harness import ODD

ALL = {**CONFIGS, "odd": ODD}
RECORD = 0x1240
PROGRAM_ELSEWHERE = 0x4000


@dataclass
class Seen:
    """What one launch has done, and when: cycles."""

    events: list = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    first_beat: int | None = None
    first_word: int | None = None
    opened: bool = False
    misaligned: bool = False
    done: bool = False
    illegal: int | None = None


def block_of(program: int, flags: dict[str, int], arguments: list[int], *, record: int = RECORD) -> bytes:
    words = [program, record, 77, pack(LaunchFlags, flags), WINDOW, *arguments]
    return b"".join(word.to_bytes(8, "little") for word in words)


class Prompt(Memory):
    """Takes each request at once and answers a line in every cycle, ``LATENCY`` cycles later at the earliest."""

    LATENCY = 20

    async def run(self, ctx):
        bus, dut, queue, cycle = self.config.bus_bytes, self.dut, [], 0
        ctx.set(dut.requests.ready, 1)
        while True:
            there = bool(queue) and queue[0][0] <= cycle
            ctx.set(dut.returns.valid, there)
            if there:
                _, slot, address = queue.pop(0)
                line = self.contents[address : address + bus].ljust(bus, b"\xee")
                ctx.set(dut.returns.beat.client, Client.LOADER)
                ctx.set(dut.returns.beat.slot, slot)
                ctx.set(dut.returns.beat.data, int.from_bytes(line, "little"))
            _, _, valid, payload = await ctx.tick().sample(dut.requests.valid, dut.requests.payload)
            cycle += 1
            if valid:
                queue += [
                    (cycle + self.LATENCY, payload.tag.slot, payload.address + k * bus) for k in range(payload.beats)
                ]


def run(
    config: Config, contents: bytes, at: int = 0, *, seed: int = 1, memory: type[Memory] = Memory,
    cancel: bool = False, cycles: int = 20_000,
) -> Seen:  # fmt: skip
    """Let the launch whose block is at ``at`` come to its end, one way or the other."""
    dut, seen = Loader(config), Seen()
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_process(memory(dut, config, contents, seed).run)

    async def watch(ctx):
        bus, report = dut.config_bus, dut.report
        ctx.set(dut.launch.payload, at)
        ctx.set(dut.launch.valid, 1)
        ctx.set(dut.cancel, cancel)
        ctx.set(dut.room, 1)
        ctx.set(dut.nests_done, 1)
        for cycle in range(cycles):
            _, _, ready, valid, word, clear, begins, asks, beat, opened, misaligned, done, illegal = (
                await ctx.tick().sample(
                    dut.launch.ready, bus.valid, bus.word, bus.clear, dut.run,
                    dut.requests.valid & dut.requests.ready, dut.returns.valid, report.opened, report.misaligned,
                    report.done, report.illegal,
                )
            )  # fmt: skip
            if ready:
                ctx.set(dut.launch.valid, 0)
            seen.requests += [cycle] * asks
            seen.events += ["clear"] * clear + ["run"] * begins
            if valid:
                seen.events.append((word.unit, word.index, word.field, word.value))
            seen.first_beat = cycle if beat and seen.first_beat is None else seen.first_beat
            seen.first_word = cycle if valid and seen.first_word is None else seen.first_word
            seen.opened, seen.misaligned = seen.opened or bool(opened), seen.misaligned or bool(misaligned)
            if done or illegal or misaligned:
                seen.done, seen.illegal = bool(done), ctx.get(dut.report.word_number) if illegal else None
                return
        raise AssertionError("the launch must come to an end")

    simulator.add_testbench(watch)
    simulator.run()
    return seen


def following(raw: bytes, arguments: list[int], *, words: int | None = None, program: int = 1, **told: int) -> bytes:
    """A launch block with its program. ``program``: what PROGRAM says, which is of no use."""
    flags = {"last_word": (len(raw) // 8 if words is None else words) - 1, "last_argument": len(arguments) - 1}
    return block_of(program, flags, arguments, **told) + raw


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("seed", range(4))
def test_words_come_in_order_with_arguments_added(name, seed):
    """Wherever the block is: also where the region that is read at once ends with its first words."""
    config, rng = ALL[name], random.Random(seed)
    arguments = [rng.getrandbits(40) for _ in range(rng.randrange(16, config.arguments + 1))]
    body = random_body(config, rng)
    raw = Program(config.hash, body).to_bytes()
    at = BLOCK_REGION - 64 if seed == 0 else 64 * rng.randrange(64)
    seen = run(config, bytes(at) + following(raw, arguments), at, seed=seed)
    assert seen.illegal is None
    assert seen.done
    assert seen.events == expected(body, arguments)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("count", [1, 7, 16])
def test_the_first_word_comes_as_soon_as_those_before_it_were_read(name, count):
    """A word in each cycle from the first beat on: four registers of the reader, three of the loader, and one cycle to
    look at the record.
    """
    config = PRESETS[name]
    raw = Program(config.hash, [Word(LevelField.LOWER), RUN]).to_bytes()
    seen = run(config, following(raw, list(range(count))), memory=Prompt)
    before = LAUNCH_HEADER_WORDS + count + len(("CONFIG", "LENGTH"))
    assert seen.first_word - seen.first_beat - before == 4 + 3 + 1
    assert max(seen.requests) < seen.first_beat, "block and program are asked for together"
    assert len(seen.requests) < BURSTS


@pytest.mark.parametrize("last_word", range(LEAST_FOLLOWING - 1))
def test_no_program_is_so_short_that_it_follows(last_word):
    config = PRESETS["edge"]
    raw = Program(config.hash, [Word(LevelField.LOWER, 0, 5, argument=31), RUN]).to_bytes()
    flags = {"last_word": last_word, "last_argument": 1}
    block = block_of(PROGRAM_ELSEWHERE, flags, list(range(config.arguments)))
    seen = run(config, block.ljust(PROGRAM_ELSEWHERE, b"\0") + raw)
    assert seen.events == expected([Word(LevelField.LOWER, 0, 36), RUN], [])


@pytest.mark.parametrize("name", ["edge", "minimum", "odd"])
def test_an_argument_that_the_block_does_not_have_is_refused(name):
    config = ALL[name]
    for argument, count in ((2, 3), (3, 3), (config.arguments - 1, 32), (min(config.arguments, 31), 32)):
        word = Word(LevelField.LOWER, 0, 1, argument=argument)
        raw = Program(config.hash, [Word(LevelField.LOWER), word, RUN]).to_bytes()
        seen = run(config, following(raw, [10 * k for k in range(count)]))
        good = argument < min(count, config.arguments)
        assert (seen.illegal, seen.done) == ((None, True) if good else (3, False)), (argument, count)
        if good:
            assert seen.events[2][3] == 10 * argument + 1


@pytest.mark.parametrize(("words", "illegal"), [(4, 3), (5, 4), (6, None), (7, 5), (8, 5), (200, 5)])
def test_the_program_ends_where_the_block_says(words, illegal):
    config = PRESETS["ddr3"]
    raw = Program(config.hash, [Word(LevelField.LOWER), RUN, Word(LevelField.LOWER)]).to_bytes()
    assert run(config, following(raw, [0, 0], words=words)).illegal == illegal


def test_programs_for_another_machine_are_refused():
    raw = Program(PRESETS["ddr3"].hash, [RUN]).to_bytes()
    assert run(PRESETS["edge"], following(raw, [0])).illegal == 0


@pytest.mark.parametrize("record", [RECORD + 8, 4])
def test_a_record_that_is_not_where_it_can_be(record):
    config = PRESETS["edge"]
    raw = Program(config.hash, [RUN]).to_bytes()
    seen = run(config, following(raw, [0], record=record))
    assert (seen.misaligned, seen.opened, seen.done) == (True, False, False)
    assert seen.events == ["clear"]


def test_nothing_of_a_cancelled_launch_is_carried_out():
    config = PRESETS["edge"]
    raw = Program(config.hash, [Word(LevelField.LOWER), RUN]).to_bytes()
    seen = run(config, following(raw, [0]), cancel=True)
    assert (seen.opened, seen.done, seen.misaligned) == (True, True, False)
    assert seen.events == ["clear"]
