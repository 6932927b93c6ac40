"""The access unit does what the event contract says, whatever its surroundings do."""

from functools import cache

import pytest

from daedal.hw.access_unit.access_unit import AccessUnit
from daedal.hw.config.core import Config
from daedal.hw.isa.spec.access import Fault, NestTrace, run_contract
from tests.unit.access_unit.directed import DIRECTED, INDICES
from tests.unit.access_unit.machine import Behaviour, Machine, Sent
from tests.unit.access_unit.model import Model
from tests.unit.access_unit.programs import Case, random_case, reader
from tests.unit.harness import CONFIGS, ODD, SERIAL

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

CASES = 12
BEHAVIOURS = {
    "mixed": Behaviour(),
    "ideal": Behaviour(refuse=0.0, port_busy=0.0, latency=(1, 1), return_idle=0.0),
    "refusing": Behaviour(refuse=0.7, port_busy=0.1, latency=(1, 60), return_idle=0.5),
    "jammed": Behaviour(refuse=0.0, port_busy=0.98, latency=(1, 1), return_idle=0.0),
    "stuck": Behaviour(refuse=0.97, port_busy=0.0, latency=(1, 1), return_idle=0.0),
    "slow memory": Behaviour(refuse=0.05, port_busy=0.6, latency=(20, 90), return_idle=0.0),
}


@cache
def model_of(config: Config) -> Model:
    return Model(AccessUnit(config), "access_unit")


@cache
def case_of(config: Config, seed: int, faulty: bool) -> Case:
    return random_case(config, seed, faulty=faulty)


def compare(sent: Sent, trace: NestTrace, config: Config) -> None:
    assert sent.tokens == trace.tokens
    assert sent.contexts == trace.contexts
    assert sent.scalars == trace.scalars
    assert sent.stores == trace.stores
    assert sent.fetches == trace.fetches
    assert (sent.counts["token"], sent.counts["row"]) == (len(trace.tokens), len(trace.fetches))
    if trace.fault is None:
        assert sent.fault is None
        assert (sent.counts["bundle"], sent.counts["lookup"]) == (trace.bundles, trace.lookups)
        assert (sent.counts["replaced"], sent.warned) == (trace.replaced, trace.warned)
        return
    got = sent.fault
    assert got is not None
    registers = tuple(got.registers[n] for n in range(config.registers))
    assert Fault(got.cause, got.level, got.value, got.address, got.queue, registers) == trace.fault


def run_case(config: Config, case: Case, behaviour: Behaviour, seed: int) -> None:
    machine = Machine(model_of(config), config, case.image, behaviour, seed)
    machine.reset()
    results = machine.run(case.program, case.arguments, limit=60_000)
    assert len(results) == len(case.traces)
    for sent, trace in zip(results, case.traces, strict=True):
        compare(sent, trace, config)


@pytest.mark.parametrize("faulty", [False, True], ids=["clean", "faulty"])
@pytest.mark.parametrize(
    ("config", "behaviour"),
    [(config, behaviour) for config in (CONFIGS[0], ODD, SERIAL) for behaviour in BEHAVIOURS],
    ids=lambda value: getattr(value, "name", value),
)
def test_random_programs_do_what_the_contract_says(config: Config, behaviour: str, faulty: bool) -> None:
    for seed in range(CASES):
        case = case_of(config, seed + 1000 * faulty, faulty)
        try:
            run_case(config, case, BEHAVIOURS[behaviour], seed)
        except AssertionError as error:
            raise AssertionError(f"case {seed} of {config.name}, faulty={faulty}: {error}") from error


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (config, name) for config in (ODD, SERIAL, CONFIGS[0]) for name, directed in DIRECTED.items()
        if ("interleave" not in directed.text and "deal" not in directed.text) or config.contexts[1]
    ],
    ids=lambda value: getattr(value, "name", value),
)  # fmt: skip
def test_directed_programs(config: Config, name: str) -> None:
    directed = DIRECTED[name]
    program, image = directed.program(config), directed.image()
    traces = run_contract(program.to_bytes(), config, reader(image))
    run_case(config, Case(program, [0] * config.arguments, image, traces), BEHAVIOURS["mixed"], 1)


@pytest.mark.parametrize("config", [ODD, SERIAL, CONFIGS[0]], ids=lambda config: config.name)
def test_the_first_warning_is_reported_though_nothing_leaves_for_long(config: Config) -> None:
    directed = DIRECTED["warnings behind many rows"]
    program, image = directed.program(config), directed.image()
    traces = run_contract(program.to_bytes(), config, reader(image))
    run_case(config, Case(program, [0] * config.arguments, image, traces), Behaviour(refuse=0.98, port_busy=0.0), 1)


@pytest.mark.parametrize("config", [ODD, SERIAL, CONFIGS[0]], ids=lambda config: config.name)
def test_lines_of_the_nest_before_are_read_again(config: Config) -> None:
    directed = DIRECTED["bags, one of them empty"]
    program, image = directed.program(config), directed.image()
    machine = Machine(model_of(config), config, image, BEHAVIOURS["mixed"], 1)
    machine.reset()
    for _ in range(2):
        traces = run_contract(program.to_bytes(), config, reader(image))
        for sent, trace in zip(machine.run(program, [0] * config.arguments), traces, strict=True):
            compare(sent, trace, config)
        image[INDICES : INDICES + 32] = bytes(32)


def test_nothing_is_sent_while_halted() -> None:
    directed = DIRECTED["bags, one of them empty"]
    machine = Machine(model_of(ODD), ODD, directed.image(), BEHAVIOURS["ideal"], 1)
    machine.reset()
    machine.model.set("halt", 1)
    with pytest.raises(AssertionError, match="not done"):
        machine.run(directed.program(ODD), [], limit=500)
    machine.model.set("halt", 0)
    assert (machine.sent.tokens, machine.sent.scalars, machine.sent.load_lines) == ([], [], [])


def test_quiet_when_all_loads_have_come_back() -> None:
    directed = DIRECTED["bags, one of them empty"]
    machine = Machine(model_of(ODD), ODD, directed.image(), Behaviour(latency=(300, 300)), 1)
    machine.reset()
    machine.run(directed.program(ODD), [])
    machine.drain()
    machine.step(3)
    assert machine.model.get("quiet")
