"""The access unit does what the event contract says."""

from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge
from daedal.hw.config import Config
from daedal.hw.isa.contract import Fault, NestTrace

from tests.unit.access_unit.machine import Behaviour, Machine, Sent
from tests.unit.access_unit.programs import Case, random_case
from tests.unit.harness import bench_config, parameters

BEHAVIOURS = [
    Behaviour(),
    Behaviour(refuse=0.0, port_busy=0.0, latency=(1, 1), return_idle=0.0),
    Behaviour(refuse=0.7, port_busy=0.1, latency=(1, 60), return_idle=0.5),
    Behaviour(refuse=0.05, port_busy=0.6, latency=(20, 90), return_idle=0.0),
]


async def machine(dut: Any, config: Config, case: Case, behaviour: Behaviour, seed: int) -> Machine:
    made = Machine(dut, config, case.image, behaviour, seed)
    dut.rst.value = 1
    await FallingEdge(dut.clk)
    await made.reset()
    return made


def compare(sent: Sent, trace: NestTrace, config: Config, where: str) -> None:
    assert sent.tokens == trace.tokens, where
    assert sent.scalars == trace.scalars, where
    assert sent.stores == trace.stores, where
    assert sent.fetches == trace.fetches, where
    assert (sent.counts["token"], sent.counts["row"]) == (len(trace.tokens), len(trace.fetches)), where
    if trace.fault is None:
        assert sent.fault is None, where
        assert (sent.counts["bundle"], sent.counts["lookup"]) == (trace.bundles, trace.lookups), where
        return
    got = sent.fault
    assert got is not None, where
    registers = tuple(got.registers[n] for n in range(config.registers))
    assert Fault(got.cause, got.level, got.value, got.address, got.queue, registers) == trace.fault, where


async def run_cases(dut: Any, seeds: range, *, faulty: bool) -> None:
    config = bench_config()
    Clock(dut.clk, 10, unit="ns").start()
    for seed in seeds:
        case = random_case(config, seed, faulty=faulty)
        for number, behaviour in enumerate(BEHAVIOURS[seed % 2 :: 2]):
            where = f"seed {seed}, behaviour {number}"
            device = await machine(dut, config, case, behaviour, seed)
            results = await device.run(case.program, case.arguments)
            assert len(results) == len(case.traces), where
            for nest, (sent, trace) in enumerate(zip(results, case.traces, strict=True)):
                compare(sent, trace, config, f"{where}, nest {nest}")


@cocotb.test()
async def clean_programs(dut: Any) -> None:
    await run_cases(dut, range(parameters()["cases"]), faulty=False)


@cocotb.test()
async def faulty_programs(dut: Any) -> None:
    await run_cases(dut, range(1000, 1000 + parameters()["cases"]), faulty=True)
