"""Tables in one nest: descriptors, offsets and indices are read ahead, and faults stay where they are."""

import random

import pytest

from daedal.hw.config.core import Config
from daedal.hw.isa.launch import Cause
from daedal.hw.isa.program import Program
from daedal.hw.isa.spec.access import NestTrace, run_contract
from daedal.hw.isa.tools.assembler import assemble
from tests.unit.access_unit.directed import TOKENS
from tests.unit.access_unit.machine import Behaviour, Machine, Sent
from tests.unit.access_unit.test_access_unit import BEHAVIOURS, compare, model_of
from tests.unit.harness import CONFIGS, SERIAL

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

TABLES, BAGS = 9, 3
ROWS, OFFSETS, INDICES = 0x1000, 0x2000, 0x4000
FAR = Behaviour(refuse=0.0, port_busy=0.0, latency=(150, 150), return_idle=0.0, shuffle=False)


def program(config: Config, *, first: int, indices: int) -> Program:
    """For each table its number of rows and its bags: tokens with the index, the rows and the bag.

    ``first`` table; ``indices`` in all.
    """
    tokens = "\n".join(
        f"step {n} control token_enable=1 scalar_enable=1 scalar={register}\nstep {n} token = {n}\nstep {n} scalar = 7"
        for n, register in enumerate(("r2", "r1", "r0"))
    )
    text = f"""
config {config.hash:#x}
level 0 control enable=1 induction=r0
level 0 lower = {first}
level 0 upper = {TABLES}
level 0 load0 enable=1 size=2 destination=r1
level 0 load0_base = {ROWS}
level 0 load0_limit = {ROWS + 4 * TABLES}
level 0 alu0 op=mul a=r0 destination=r0
level 0 alu0_b = {BAGS + 1}
level 0 alu1 op=add a=r0 destination=r4
level 0 alu1_b = {BAGS}
level 1 control enable=1 induction=r0 lower=r0 upper=r4
level 1 load0 enable=1 size=3 is_signed=1 destination=r3
level 1 load0_base = {OFFSETS}
level 1 load0_limit = {OFFSETS + 8 * TABLES * (BAGS + 1)}
level 1 load1 enable=1 size=3 is_signed=1 destination=r4
level 1 load1_base = {OFFSETS + 8}
level 1 load1_limit = {OFFSETS + 8 * TABLES * (BAGS + 1)}
level 1 check enable=1 load=1 kind=offset
level 1 check_limit = {indices + 1}
level 2 control enable=1 lower=r3 upper=r4
level 2 load0 enable=1 size=3 is_signed=1 destination=r2
level 2 load0_base = {INDICES}
level 2 load0_limit = {INDICES + 8 * indices}
level 2 check enable=1 load=0 kind=index limit=r1
event 9 control first=0 count=2
event 5 control first=2 count=1
{tokens}
control 0 run = 0
"""
    return Program.from_bytes(assemble(text))


class Data:
    """Memory with bags of ``longest`` rows at most; what is in it can be changed."""

    def __init__(self, seed: int, longest: int) -> None:
        self.random = random.Random(seed)
        self.rows = [self.random.randrange(1, 1 << 20) for _ in range(TABLES)]
        self.offsets: list[int] = []
        self.indices: list[int] = []
        for rows in self.rows:
            for bag in range(BAGS + 1):
                self.offsets.append(len(self.indices))
                if bag < BAGS:
                    self.indices += [self.random.randrange(rows) for _ in range(self.random.randint(1, longest))]

    def spoil(self, cause: Cause) -> int:
        """Make a table wrong, not the first; return its number."""
        table, bag = self.random.randrange(1, TABLES), self.random.randrange(BAGS)
        place = table * (BAGS + 1) + bag
        first, last = self.offsets[place : place + 2]
        if cause is Cause.INDEX:
            self.indices[self.random.randrange(first, last)] = self.random.choice([-1, self.rows[table], 1 << 40])
        elif cause is Cause.OFFSET:
            self.offsets[place + 1] = self.random.choice([-1, len(self.indices) + 1, 1 << 50])
        else:
            self.offsets[place + 1] = self.random.randrange(first)
        return table

    def image(self) -> bytearray:
        image = bytearray(1 << 16)
        for base, size, values in ((ROWS, 4, self.rows), (OFFSETS, 8, self.offsets), (INDICES, 8, self.indices)):
            for n, value in enumerate(values):
                image[base + n * size : base + (n + 1) * size] = (value % (1 << 8 * size)).to_bytes(size, "little")
        return image


def run(config: Config, data: Data, behaviour: Behaviour, *, first: int = 0) -> tuple[Sent, NestTrace]:
    """What the access unit sent, which is what the contract says, and the contract's trace."""
    image = data.image()
    machine = Machine(model_of(config), config, image, behaviour, 1)
    machine.reset()
    code = program(config, first=first, indices=len(data.indices))
    (sent,) = machine.run(code, [])
    (trace,) = run_contract(code.to_bytes(), config, lambda address, size: bytes(image[address : address + size]))
    compare(sent, trace, config)
    return sent, trace


@pytest.mark.parametrize("behaviour", ["mixed", "ideal", "slow memory"])
@pytest.mark.parametrize("cause", [Cause.INDEX, Cause.OFFSET, Cause.BOUNDS_ORDER], ids=lambda cause: cause.name.lower())
@pytest.mark.parametrize("config", [CONFIGS[0], SERIAL], ids=lambda config: config.name)
def test_a_fault_in_a_table_that_was_read_ahead_comes_in_its_turn(config: Config, cause: Cause, behaviour: str) -> None:
    for seed in range(4):
        data = Data(seed, longest=5)
        table = data.spoil(cause)
        sent, trace = run(config, data, BEHAVIOURS[behaviour])
        assert trace.fault is not None and trace.fault.cause == cause
        # All bags of the tables before it have ended, and no more than those before the bad one of its own.
        ends = sent.tokens.count(2)
        assert table * BAGS <= ends < (table + 1) * BAGS


@pytest.mark.parametrize("first", [0, 1, TABLES - 1])
@pytest.mark.parametrize("config", [CONFIGS[0], SERIAL], ids=lambda config: config.name)
def test_tables_after_the_first_ones_may_be_asked_for(config: Config, first: int) -> None:
    """What is at the start of the arrays is read all the same, and not used."""
    for seed in range(3):
        _, trace = run(config, Data(seed, longest=40), BEHAVIOURS["mixed"], first=first)
        assert trace.fault is None


def test_descriptors_offsets_and_indices_come_together() -> None:
    """One latency for all three, and few cycles for each table."""
    sent, _ = run(CONFIGS[0], Data(1, longest=2), FAR)
    assert sent.cycles < 150 + 100 + 30 * TABLES


@pytest.mark.parametrize("config", [CONFIGS[0], SERIAL], ids=lambda config: config.name)
def test_operands_that_were_just_written(config: Config) -> None:
    """An operation's second operand is what the load or the operation before it has written."""
    text = f"""
config {config.hash:#x}
level 0 control enable=1 induction=r0
level 0 lower = 0
level 0 upper = {TABLES}
level 0 load0 enable=1 size=2 destination=r1
level 0 load0_base = {ROWS}
level 0 load0_limit = {ROWS + 4 * TABLES}
level 0 alu0 op=sub a=r0 b=r1 destination=r2
level 0 alu1 op=add a=r0 b=r2 destination=r0
event 1 control first=0 count=3
{TOKENS}
control 0 run = 0
"""
    data = Data(1, longest=1)
    image, code = data.image(), Program.from_bytes(assemble(text))
    machine = Machine(model_of(config), config, image, BEHAVIOURS["ideal"], 1)
    machine.reset()
    (sent,) = machine.run(code, [])
    (trace,) = run_contract(code.to_bytes(), config, lambda address, size: bytes(image[address : address + size]))
    compare(sent, trace, config)
    assert len(sent.scalars) == 3 * TABLES
