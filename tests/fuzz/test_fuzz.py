"""Random programs, legal and illegal, on event contract, emulator and RTL; and those that failed once."""

from collections import deque
from collections.abc import Iterator

import numpy as np
import pytest

from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.launch import Counter
from daedal.hw.isa.spec import execute
from daedal.hw.isa.spec.binary32 import Floats
from tests.fuzz.campaign import KEPT, MEMORIES, Campaign, parse, run
from tests.fuzz.configs import BUILT, KNOWN, RTL, random_config
from tests.fuzz.judge import Failure
from tests.fuzz.machines import SHORT
from tests.fuzz.programs.case import Case
from tests.fuzz.programs.generator import legal_case
from tests.fuzz.programs.mutations import MUTATIONS
from tests.fuzz.residue import outcome_of
from tests.fuzz.shrink import shrink

PROGRAMS = {"ddr3": 256, "edge": 256, "small": 256, "gatherer": 256}
"""How many programs each RTL runs: over a thousand in all."""

PARTS = 2
RANDOM_CONFIGS = 40
PER_CONFIG = 10


def numbers(part: int, of: int, count: int) -> Iterator[int]:
    return iter(range(part * count // of, (part + 1) * count // of))


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", PROGRAMS)
def test_random_programs(name: str, part: int, seed: int) -> None:
    with Campaign(RTL[name], MEMORIES, KEPT) as campaign:
        done = [kind for _, kind in run(campaign, seed, numbers(part, PARTS, PROGRAMS[name]))]
    assert {done.count(kind) > 15 for kind in ("legal", "illegal", "queued")} == {True}


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "memory", "count"),
    [
        ("ddr3", "litedram-ddr3-x16", 24),
        pytest.param("ddr3", "litedram-ddr3-x16:stall=0.2,seed=5,checks=1", 400, marks=pytest.mark.full),
        pytest.param("edge", "litedram-ddr3-x16", 400, marks=pytest.mark.full),
        pytest.param("wide", "litedram-ddr3-x64", 400, marks=pytest.mark.full),
        pytest.param("wide", "litedram-ddr4-x64:stall=0.1,seed=3", 400, marks=pytest.mark.full),
    ],
)
def test_random_programs_on_a_dram(name: str, memory: str, count: int, seed: int) -> None:
    """Registers are read all the time while they run."""
    with Campaign(BUILT[name], [memory], KEPT, accesses=True) as campaign:
        assert len(list(run(campaign, seed + 1, iter(range(count))))) == count


@pytest.mark.rtl
@pytest.mark.slow
def test_every_mutation(seed: int) -> None:
    """Also those that the thousand programs have only in one configuration."""
    with Campaign(RTL["small"], MEMORIES, KEPT) as campaign:
        for number in range(len(MUTATIONS)):
            campaign.illegal([seed, number, 3], number)
        assert len(campaign.mutations) >= len(MUTATIONS) - 1


@pytest.mark.parametrize("name", KNOWN)
def test_the_emulator_keeps_the_contract(name: str, seed: int) -> None:
    pushed = 0
    with Campaign(KNOWN[name], keep=KEPT) as campaign:
        for number in range(60):
            case = legal_case([seed, number, 1], KNOWN[name])
            pushed += len(campaign.compare([case], None).outcome.trace)
    assert pushed > 300


@pytest.mark.parametrize("op", [VectorOp.FMA, VectorOp.MULTIPLY, VectorOp.SELECT, None])
def test_wrong_results_reach_memory(op: VectorOp | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the specification computes an operation (None: reductions) wrongly, some program does not agree with it."""
    right = execute.reduce if op is None else execute.compute

    def wrong(which: VectorOp, *operands: Floats, **changes: bool) -> Floats:
        result = right(which, *operands, **changes)
        return np.full_like(result, 12345) if op in (None, which) else result

    monkeypatch.setattr(execute, "reduce" if op is None else "compute", wrong)
    cases = [[legal_case([5, number, 1], KNOWN["edge"])] for number in range(100)]
    with Campaign(KNOWN["edge"]) as campaign, pytest.raises(Failure):
        deque((campaign.compare(case, None) for case in cases), 0)


def test_random_configurations(seed: int) -> None:
    for number in range(RANDOM_CONFIGS):
        config = random_config(np.random.default_rng([seed, number]))
        with Campaign(config) as campaign:
            for k in range(PER_CONFIG):
                campaign.legal([seed, number, k])


def failing(name: str, *, rtl: bool) -> dict[str, str]:
    """Which kept programs for the configuration fail, and how."""
    failed = {}
    for path in sorted(KEPT.glob("*.txt")):
        cases = parse(path.read_text(encoding="utf-8"), KNOWN)
        if cases[0].config.name == name:
            with Campaign(cases[0].config, [cases[0].memory or "ideal"] if rtl else []) as campaign:
                try:
                    campaign.check(cases)
                except Failure as failure:
                    failed[path.name] = str(failure)
    return failed


@pytest.mark.parametrize("name", KNOWN)
def test_kept_on_the_emulator(name: str) -> None:
    assert not failing(name, rtl=False)


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("name", RTL)
def test_kept_on_the_rtl(name: str) -> None:
    assert not failing(name, rtl=True)


@pytest.mark.parametrize("name", KNOWN)
def test_text_keeps_everything(name: str, seed: int) -> None:
    config = KNOWN[name]
    with Campaign(config) as campaign:
        for number in range(6):
            for case in (legal_case([seed, number], config), campaign.faulting([seed, number], number)):
                assert Case.parse(case.text("a note"), KNOWN) == case


def test_equal_seeds_make_equal_programs(seed: int) -> None:
    one, other, third = (legal_case([k, 5], RTL["edge"]) for k in (seed, seed, seed + 1))
    assert one == other != third


def test_shrinking_finds_what_matters(seed: int) -> None:
    """Of a program that stores something, what is needed to store anything at all."""
    config = RTL["small"]
    with Campaign(config) as campaign:
        campaign.emulator.seconds = SHORT  # without its bounds a loop goes round for ever

        def stores(case: Case) -> bool:
            outcome = outcome_of(case, campaign.emulator)
            record = outcome.records[0] if outcome else None
            return record is not None and not record.cause.value and record.counter(Counter.BYTES_WRITTEN) > 0

        case = next(one for k in range(100) if stores(one := legal_case([seed, k], config)) and len(one.body) > 60)
        small = shrink(case, stores)
    assert stores(small)
    assert len(small.body) <= 30
