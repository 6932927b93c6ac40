"""The loader: words come out in order with arguments added, whatever order bursts return in; bad words stop
it.
"""

import random
from collections import deque
from dataclasses import replace

import pytest
from amaranth.sim import Simulator

from daedal.hw.config.core import PRESETS, Config
from daedal.hw.control.launch_controller import QUIET_CYCLES
from daedal.hw.control.loader import Loader
from daedal.hw.control.word_legality import STEP_OPERANDS, WordLegality
from daedal.hw.interfaces import Client
from daedal.hw.isa.address_mapping import CLASSES, class_of, granule_bytes, in_class, place_of
from daedal.hw.isa.launch import LaunchFlags, StoreWindow
from daedal.hw.isa.program import Program, Word, pack
from daedal.hw.isa.words import (
    AluOp,
    CallbackField,
    ControlField,
    EventField,
    InstructionField,
    LengthField,
    LevelField,
    StepField,
)
from tests.unit.harness import ODD

CONFIGS = {**PRESETS, "narrow": Config(bus_bytes=8, lanes=2, ports=1)}
RUN = Word(ControlField.RUN)
WINDOW = pack(StoreWindow, {"first": 0x12345, "last": 0x54321})


class Memory:
    """Answers read requests from bytes; bursts overtake one another, beats of one do not."""

    def __init__(self, dut, config, contents, seed):
        self.dut, self.config, self.contents = dut, config, contents
        self.random = random.Random(seed)
        self.bursts: list[deque] = []

    async def run(self, ctx):
        bus = self.config.bus_bytes
        dut = self.dut
        while True:
            ctx.set(dut.requests.ready, self.random.random() < 0.7)
            if self.bursts and self.random.random() < 0.8:
                burst = self.random.choice(self.bursts)
                slot, address = burst.popleft()
                if not burst:
                    self.bursts.remove(burst)
                line = self.contents[address : address + bus].ljust(bus, b"\xee")
                ctx.set(dut.returns.valid, 1)
                ctx.set(dut.returns.beat.client, Client.LOADER)
                ctx.set(dut.returns.beat.slot, slot)
                ctx.set(dut.returns.beat.data, int.from_bytes(line, "little"))
            else:
                ctx.set(dut.returns.valid, 0)
                ctx.set(dut.returns.beat.client, Client.VECTOR0)
            _, _, valid, ready, payload = await ctx.tick().sample(
                dut.requests.valid, dut.requests.ready, dut.requests.payload
            )
            if valid and ready:
                assert payload.address % bus == 0
                granule = min(4096, granule_bytes(class_of(payload.address, self.config), self.config))
                assert payload.address // granule == (payload.address + payload.beats * bus - 1) // granule
                assert 1 <= payload.beats <= 16
                place = place_of(payload.address, self.config)
                self.bursts.append(deque((payload.tag.slot, place + k * bus) for k in range(payload.beats)))


def launch(
    config: Config, raw: bytes, arguments: list[int], *, at: int, seed: int = 1, flags: int = 0, wait: int = 0,
    classes: tuple[int, int] = (0, 0),
) -> dict:  # fmt: skip
    """Carry out one launch; the events on the bus in order and how it ended.

    The access unit takes words now and then. It is busy with nests for a while after each ``run``; an earlier launch
    is over after ``wait`` cycles. ``classes``: the mapping classes of launch block and program.
    """
    block = [in_class(at, classes[1], config), 0x1240, 77, flags, WINDOW, *arguments]
    block += [0] * (config.arguments - len(arguments))
    contents = bytearray(at + len(raw))
    contents[: 8 * len(block)] = b"".join(word.to_bytes(8, "little") for word in block)
    contents[at:] = raw
    dut = Loader(config)
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    memory = Memory(dut, config, bytes(contents), seed)
    events: list = []
    result: dict = {"events": events}

    async def access_unit(ctx):
        busy, chance, cycle = 0, random.Random(seed), 0
        while True:
            ctx.set(dut.nests_done, busy == 0)
            ctx.set(dut.room, chance.random() < 0.8)
            ctx.set(dut.wait, cycle < wait)
            _, _, run = await ctx.tick().sample(dut.run)
            if run:
                result.setdefault("first_run", cycle)
            busy, cycle = 20 if run else max(busy - 1, 0), cycle + 1

    async def watch(ctx):
        bus = dut.config_bus
        ctx.set(dut.launch.payload, in_class(0, classes[0], config))
        ctx.set(dut.launch.valid, 1)
        for _ in range(20_000):
            _, _, ready, valid, word, clear, run, done, illegal = await ctx.tick().sample(
                dut.launch.ready, bus.valid, bus.word, bus.clear, dut.run, dut.report.done, dut.report.illegal
            )
            if ready:
                ctx.set(dut.launch.valid, 0)
            assert not (valid and clear)
            if clear:
                events.append("clear")
            if valid:
                events.append((word.unit, word.index, word.field, word.value))
            if run:
                events.append("run")
            if done:  # the last values are still to be judged, and a fault waits for the nests
                for _ in range(QUIET_CYCLES + 30):
                    _, _, illegal = await ctx.tick().sample(dut.report.illegal)
                    if illegal:
                        break
            if done or illegal:
                result["done"] = bool(done)
                assert not illegal or ctx.get(dut.nests_done)
                result["number"] = ctx.get(dut.report.number)
                result["window"] = ctx.get(dut.report.window.first), ctx.get(dut.report.window.last)
                result["record"] = ctx.get(dut.report.record)
                result["illegal"] = ctx.get(dut.report.word_number) if illegal else None
                result["nest"] = ctx.get(dut.nest)
                result["side"] = ctx.get(dut.report.side)
                return

    simulator.add_process(memory.run)
    simulator.add_process(access_unit)
    simulator.add_testbench(watch)
    simulator.run()
    assert "illegal" in result, "the program must come to an end"
    return result


def random_body(config: Config, rng: random.Random) -> list[Word]:
    body = [
        Word(InstructionField.CODE, rng.randrange(config.instructions), rng.getrandbits(40))
        for _ in range(rng.randrange(40))
    ]
    body += [Word(LengthField.ELEMENTS, 0, 64), Word(CallbackField.START, 1, 0, argument=rng.randrange(16))]
    for _ in range(rng.randrange(1, 4)):
        for _ in range(rng.randrange(60)):
            field = rng.choice([LevelField.LOWER, LevelField.LOAD0_BASE, StepField.TOKEN, LevelField.CHECK_LIMIT])
            index = rng.randrange(2)
            argument = rng.randrange(16) if rng.random() < 0.5 else None
            body.append(Word(field, index, rng.getrandbits(40), argument))
        body.append(RUN)
    return body


def expected(body: list[Word], arguments: list[int]) -> list:
    events: list = ["clear"]
    for word in body:
        if word is RUN:
            events += ["run", "clear"]
        else:
            value = word.value + (0 if word.argument is None else arguments[word.argument])
            events.append((word.unit, word.index, word.field.value, value % (1 << 40)))
    return events


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("seed", range(3))
def test_words_come_in_order_with_arguments_added(name, seed):
    config, rng = CONFIGS[name], random.Random(seed)
    arguments = [rng.getrandbits(40) for _ in range(16)]
    body = random_body(config, rng)
    raw = Program(config.hash, body).to_bytes()
    got = launch(config, raw, arguments, at=1024 + 64 * rng.randrange(64), seed=seed)
    assert got["illegal"] is None
    assert list(got["events"]) == expected(body, arguments)
    assert (got["number"], got["record"], got["window"]) == (77, 0x1240, (0x12345, 0x54321))
    assert got["nest"] == body.count(RUN)


@pytest.mark.parametrize(("fence", "first_run"), [(0, range(0, 900)), (1, range(900, 2000))])
def test_a_fenced_launch_runs_when_the_one_before_is_over(fence, first_run):
    config = PRESETS["ddr3"]
    raw = Program(config.hash, [Word(LevelField.LOWER), RUN]).to_bytes()
    got = launch(config, raw, [], at=1024, flags=pack(LaunchFlags, {"fence": fence}), wait=900)
    assert got["first_run"] in first_run
    assert got["illegal"] is None


def test_launches_are_on_either_side_in_turn():
    config = PRESETS["edge"]
    raw = Program(config.hash, [RUN]).to_bytes()
    got = launch(config, raw, [], at=1024)
    assert got["side"] == 0


@pytest.mark.parametrize(
    "name",
    ["ddr3", "minimum", "odd", *(pytest.param(name, marks=pytest.mark.full) for name in ("edge", "wide", "narrow"))],
)
@pytest.mark.parametrize("mapping", range(CLASSES))
def test_block_and_program_can_be_of_any_mapping_class(name, mapping):
    config, rng = CONFIGS.get(name, ODD), random.Random(mapping)
    arguments = [rng.getrandbits(40) for _ in range(16)]
    body = [Word(LevelField.LOWER, 0, rng.getrandbits(40), argument=rng.randrange(16)) for _ in range(150)]
    body += [RUN, *body[:20], RUN]
    raw, at = Program(config.hash, body).to_bytes(), 1024 + 64 * rng.randrange(64)
    got = launch(config, raw, arguments, at=at, seed=mapping, classes=(mapping, rng.randrange(CLASSES)))
    assert list(got["events"]) == expected(body, arguments)
    got = launch(config, raw, arguments, at=at, seed=mapping, classes=(0, mapping))
    assert list(got["events"]) == expected(body, arguments)


def replaced(raw: bytes, number: int, word: int) -> bytes:
    return raw[: 8 * number] + word.to_bytes(8, "little") + raw[8 * number + 8 :]


@pytest.mark.parametrize(
    "word",
    [
        Word(LevelField.LOWER, 6),
        Word(LevelField.LOAD3, 0),
        Word(LevelField.ALU2, 0),
        Word(EventField.CONTROL, 3),
        Word(EventField.CONTROL, 16),
        Word(StepField.CONTROL, 16),
        Word(LengthField.ELEMENTS, PRESETS["ddr3"].lengths),
        Word(CallbackField.START, 16),
        Word(ControlField.CONFIG),
        Word(ControlField.END),
    ],
    ids=str,
)
def test_a_word_that_the_machine_does_not_have_stops_it(word):
    config = PRESETS["ddr3"]
    raw = Program(config.hash, [Word(LengthField.ELEMENTS), word, RUN]).to_bytes()
    assert launch(config, raw, [], at=1024)["illegal"] == 3


def test_words_for_the_execute_unit_after_a_nest_stop_it():
    config = PRESETS["ddr3"]
    raw = Program(config.hash, [RUN, Word(LengthField.ELEMENTS)]).to_bytes()
    assert launch(config, raw, [], at=1024)["illegal"] == 3


NO_END = Word(LevelField.LOWER).encode()
TOO_SHORT = Word(ControlField.LENGTH, 0, 2).encode()
ALTERED = [(0, 1), (1, 1 << 40), (1, 0), (1, TOO_SHORT), (2, (1 << 64) - 1), (3, 0xF << 46), (4, NO_END)]


@pytest.mark.parametrize(("number", "word"), ALTERED)
def test_altered_words_stop_it(number, word):
    config = PRESETS["edge"]
    raw = Program(config.hash, [Word(LengthField.ELEMENTS), RUN]).to_bytes()
    assert launch(config, replaced(raw, number, word), [], at=1024)["illegal"] == number


END_BITS = [0, 7, 15, 16, 39, 40, 45]
"""Bits of END in its value, argument and ``substitute``: only the checksum tells."""


@pytest.mark.parametrize(
    ("number", "bit"),
    [(0, 44), (1, 5), (2, 0), (2, 39), (3, 17), (3, 41), (4, 20), (4, 45), (5, 31), *((6, bit) for bit in END_BITS)],
)
def test_a_wrong_bit_stops_it_at_the_end(number, bit):
    """The words before are carried out; END is to blame."""
    config = PRESETS["edge"]
    body = [Word(LengthField.ELEMENTS, 0, 64), Word(LevelField.LOWER, 0, 5), RUN, Word(LevelField.UPPER, 1, 7)]
    raw = Program(config.hash, body).to_bytes()
    word = int.from_bytes(raw[8 * number : 8 * number + 8], "little")
    got = launch(config, replaced(raw, number, word ^ 1 << bit), [], at=1024)
    assert (got["illegal"], got["nest"], got["done"]) == (6, 1, False)


def test_another_configuration_is_refused():
    config = PRESETS["edge"]
    raw = Program(PRESETS["ddr3"].hash, [RUN]).to_bytes()
    assert launch(config, raw, [], at=1024)["illegal"] == 0


def values(config: Config) -> list[tuple[Word, bool]]:
    """Words whose value this machine can work with, or not."""
    beyond, last = config.registers + 1, config.levels - 1
    loads = config.sequential_loads[1] + config.random_loads[1]
    listed = [
        (Word(LevelField.STEP, 1, 0), False),
        (Word(LevelField.STEP, 1, 1 << (config.address_bits - 1)), True),
        (Word(LevelField.STEP, 1, 1 << 39), config.address_bits == 40),
        (Word.packed(LevelField.CHECK, 1, enable=1, load=loads - 1), True),
        (Word.packed(LevelField.CHECK, 1, enable=1, load=loads), loads == 4),
        (Word.packed(LevelField.CHECK, 1, load=loads, mode=3, limit=7), True),
        (Word.packed(LevelField.CHECK, 1, enable=1, kind=2), False),
        (Word.packed(LevelField.CHECK, 1, enable=1, mode=3), False),
        (Word.packed(LevelField.ALU0, last, op=15), False),
        (Word.packed(LevelField.ALU0, last, op=12), False),
        *((Word.packed(LevelField.ALU0, k, op=AluOp.SHIFT_RIGHT), able) for k, able in enumerate(config.shifters)),
        *(
            (Word.packed(LevelField[f"LOAD{slot}"], 0, index=1), slot >= config.sequential_loads[0])
            for slot in range(config.sequential_loads[0] + config.random_loads[0])
        ),
        (Word.packed(LevelField[f"LOAD{config.sequential_loads[0]}"], 0, index=beyond), False),
        (Word.packed(EventField.CONTROL, 1, first=config.steps - 2, count=2), True),
        (Word.packed(EventField.CONTROL, 1, first=config.steps - 1, count=2), False),
        (Word.packed(EventField.CONTROL, 1, first=31, predicate=7), True),
        *((Word.packed(LevelField.CONTROL, k, interleave=1), bool(count)) for k, count in enumerate(config.contexts)),
        *((Word.packed(LevelField.CONTROL, k, deal=1), bool(count and config.dealt_bundles))
          for k, count in enumerate(config.contexts)),
        *((Word.packed(LevelField.CONTROL, k, interleave=1, deal=1), False) for k in range(config.levels)),
        (Word.packed(StepField.CONTROL, 1, queue=3), False),
    ]  # fmt: skip
    named = {
        LevelField.CONTROL: ("induction", "lower", "upper"), LevelField.LOAD1: ("base", "destination"),
        LevelField.ALU0: ("a", "b", "destination"), LevelField.COUNT: ("predicate", "destination"),
        StepField.CONTROL: STEP_OPERANDS,
    }  # fmt: skip
    for field, members in named.items():
        listed += [(Word.packed(field, 0, **{name: beyond - 1}), True) for name in members]
        listed += [(Word.packed(field, 0, **{name: beyond}), False) for name in members]
    listed.append((Word.packed(LevelField.CHECK, 0, enable=1, limit=beyond), False))
    listed.append((Word.packed(EventField.CONTROL, 0, count=1, predicate=beyond), False))
    return listed


@pytest.mark.parametrize("name", CONFIGS)
def test_values_are_judged(name):
    config = CONFIGS[name]
    listed = [(word, good) for word, good in values(config) if config.registers < 7 or good]
    dut = WordLegality(config)
    simulator = Simulator(dut)

    async def bench(ctx):
        for word, good in listed:
            ctx.set(dut.early, unpack_word(word) | {"value": 0})
            await ctx.tick()
            ctx.set(dut.early, {})
            ctx.set(dut.value, word.value)
            assert ctx.get(dut.legal) == good, word
        ended.append(True)

    ended = []
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert ended


def unpack_word(word: Word) -> dict:
    return {"value": word.value, "unit": word.unit, "index": word.index, "field": word.field.value}


BAD_VALUE = Word(LevelField.STEP, 0, 1 << 39)
"""With an argument of 1 << 39 added it is 0."""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], []), ([], [RUN]), ([RUN], []), ([RUN], [Word(LevelField.LOWER)]), ([Word(LevelField.LOWER)], [BAD_VALUE]),
        ([], [Word(LevelField.LOWER, 9)]), ([], [Word(LevelField.LOWER), Word(LevelField.LOWER, 9)]),
        ([], [Word(ControlField.CONFIG)]), ([], [Word(LevelField.LOWER), RUN]),
    ],
)  # fmt: skip
def test_a_value_that_the_machine_cannot_work_with_stops_it(before, after):
    config = PRESETS["edge"]
    bad = replace(BAD_VALUE, argument=3)
    raw = Program(config.hash, [*before, bad, *after]).to_bytes()
    got = launch(config, raw, [0, 0, 0, 1 << 39], at=1024)
    assert got["illegal"] == 2 + len(before)
    assert got["events"].count("run") == before.count(RUN)
