"""Memory on the chip: several ports, each as if it had the memory alone."""

import random
from collections.abc import Generator
from typing import Any

from migen import run_simulation

from daedal.fpga.soc.on_chip_memory import ModelRam, OnChipMemory

BYTES, WIDTH, LINES = 512, 64, 64
LIMIT = 20000

Bench = Generator[Any, Any, None]


def user(port: Any, lines: range, dice: random.Random, log: list[int]) -> Bench:
    """Writes and reads lines that are its own, and remembers what they must hold."""
    content: dict[int, int] = {}
    for _ in range(60):
        line = dice.choice(lines)
        writes = line not in content or dice.random() < 0.5
        value, mask = dice.getrandbits(WIDTH), dice.getrandbits(WIDTH // 8) if line in content else 0xFF
        yield port.cmd.addr.eq(line)
        yield port.cmd.we.eq(writes)
        yield port.cmd.valid.eq(1)
        yield port.wdata.data.eq(value)
        yield port.wdata.we.eq(mask)
        yield port.wdata.valid.eq(writes)
        yield
        while not (yield port.cmd.ready):
            yield
        yield port.cmd.valid.eq(0)
        yield
        if writes:
            while not (yield port.wdata.ready):
                yield
            yield port.wdata.valid.eq(0)
            bits = sum(0xFF << 8 * byte for byte in range(WIDTH // 8) if mask >> byte & 1)
            content[line] = content.get(line, 0) & ~bits | value & bits
        else:
            while not (yield port.rdata.valid):
                yield
            assert (yield port.rdata.data) == content[line]
            log.append(line)
        for _ in range(dice.randint(0, 3)):
            yield


def test_ports_share_a_memory() -> None:
    dut = OnChipMemory(ModelRam, memory_bytes=BYTES, width=WIDTH)
    ports = [dut.get_port() for _ in range(3)]
    logs: list[list[int]] = [[] for _ in ports]
    users = [
        user(port, range(k * 20, k * 20 + 20), random.Random(k), log)
        for k, (port, log) in enumerate(zip(ports, logs, strict=True))
    ]
    run_simulation(dut, users)
    assert all(len(log) > 10 for log in logs)


def test_a_port_reads_a_line_every_cycle() -> None:
    dut = OnChipMemory(ModelRam, memory_bytes=BYTES, width=WIDTH)
    port = dut.get_port()
    seen: list[int] = []

    def bench() -> Bench:
        yield port.cmd.valid.eq(1)
        for cycle in range(30):
            yield
            if (yield port.rdata.valid):
                seen.append(cycle)

    run_simulation(dut, bench())
    assert seen == list(range(seen[0], 30))
    assert seen[0] <= 3
