"""cocotb bench of ReadFabric."""

import random
from collections import deque
from typing import Any

import cocotb
from cocotb.triggers import RisingEdge

from daedal.hw.config.core import Config
from daedal.hw.interfaces import Client, read_request_layout, return_layout, row_granules, slot_bits
from daedal.hw.isa.address_mapping import (
    CLASSES,
    COPIED,
    HASHED,
    PLAIN,
    class_of,
    granule_bytes,
    in_class,
    memory_address,
)
from daedal.hw.isa.address_mapping import copies as copies_of
from tests.unit.harness import bench_config
from tests.unit.memories import FastReadPort, Target, read_slave
from tests.unit.streams import Source, count_cycles, decode
from tests.unit.streams import start as reset

SIZE = 1 << 16
BEAT = ("side", "client", "slot", "data", "own", "follows", "bytes", "last")


async def start(dut: Any) -> None:
    """Reset, and wait until ports with groups take requests for rows."""
    await reset(dut)
    config = bench_config()
    if config.row_groups > 1:
        for _ in range(1 << (max(config.port_requests, config.row_groups) - 1).bit_length()):
            await RisingEdge(dut.clk)


def port_of(address: int, config: Config) -> int:
    """The port of a memory address: its bank modulo the ports."""
    return address // config.page_bytes % config.ports


class SteeredTarget(Target):
    """Memory behind one port; asserts that the port is the right one."""

    def __init__(self, config: Config, port: int, *, seed: int = 0) -> None:
        super().__init__(SIZE, seed=seed)
        self.config, self.port = config, port

    async def read(self, address: int, length: int) -> bytes:
        if port_of(address, self.config) != self.port:
            raise AssertionError(f"{address:#x} came to port {self.port}")
        return await super().read(address, length)


class Bench:
    """Requests, and what must come back of them on each port."""

    def __init__(self, dut: Any, *, idle: float = 0.0, seed: int = 3) -> None:
        self.dut, self.config, self.random = dut, bench_config(), random.Random(seed)
        self.targets = [SteeredTarget(self.config, port) for port in range(self.config.ports)]
        self.source = Source(dut, "requests", read_request_layout(self.config), idle=idle)
        self.expected: list[list[deque[dict[str, int]]]] = [[] for _ in self.targets]  # the beats of each request
        self.beats = self.latency = 0
        self.turn = 0  # the port to which the next row goes if it has a copy at each
        cocotb.start_soon(self._check())

    def slaves(self, *, pause: float = 0.0) -> list[Any]:
        return [read_slave(self.dut, f"read{n}", target, pause=pause, seed=n) for n, target in enumerate(self.targets)]

    def fast(self, *, latency: int = 20) -> None:
        self.latency = latency
        for number, target in enumerate(self.targets):
            FastReadPort(self.dut, f"read{number}", target, bus_bytes=self.config.bus_bytes, latency=latency)

    def request(
        self, *, address: int | None = None, beats: int | None = None, side: int | None = None,
        client: Client | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """A random request, of any mapping class, which it remembers."""
        config, rng = self.config, self.random
        bus = config.bus_bytes
        if address is None:
            address = in_class(rng.randrange(SIZE // bus) * bus, rng.randrange(CLASSES), config)
        granule = granule_bytes(class_of(address, config), config)
        most = min(16, (granule - address % granule) // bus)
        beats = rng.randint(1, most) if beats is None else beats
        assert beats <= most
        shift = 4 * rng.randrange(row_granules(config))
        tag = {
            "client": rng.choice(list(Client)) if client is None else client,
            "slot": rng.randrange(1 << slot_bits(config)), "shift": shift,
            "last_bytes": 4 * rng.randint(1, (bus - shift) // 4), "row_last": rng.randint(0, 1),
            "row_first": rng.randint(0, 1),
            "side": rng.randint(0, 1) if side is None else side,
        }  # fmt: skip
        if tag["client"].value < 3:
            tag["slot"] %= config.vector_beats
        self._remember(address, beats, tag)
        return {"address": address, "beats": beats, "tag": tag}

    def _remember(self, address: int, beats: int, tag: dict[str, Any]) -> None:
        config, bus = self.config, self.config.bus_bytes
        memory = self._taken_from(address, tag["client"])
        port = port_of(memory, config)
        self.expected[port].append(deque())
        for n in range(beats):
            line = self.targets[port].bytes[memory + n * bus : memory + (n + 1) * bus]
            line = line[tag["shift"] :] + line[: tag["shift"]]
            end = n == beats - 1 and tag["row_last"]
            vector = tag["client"] not in (Client.LOAD, Client.LOADER)
            self.expected[port][-1].append({
                "side": tag["side"],
                "client": tag["client"].value,
                "slot": (tag["slot"] + n) % config.vector_beats if vector else tag["slot"],
                "data": int.from_bytes(line, "little"),
                "own": (1 << row_granules(config) - tag["shift"] // 4) - 1,
                "follows": int(n > 0 or not tag["row_first"]),
                "bytes": tag["last_bytes"] if end else bus,
                "last": int(end),
            })  # fmt: skip

    def _taken_from(self, address: int, client: Client) -> int:
        """The memory address that the next request is for: rows of class COPIED go to the ports in turn."""
        config, memory = self.config, memory_address(address, self.config)
        turn, self.turn = self.turn, (self.turn + 1) % config.ports
        if class_of(address, config) != COPIED or client in (Client.LOAD, Client.LOADER):
            return memory
        return memory + (turn - port_of(memory, config)) * config.page_bytes

    async def _check(self) -> None:
        layout = return_layout(self.config)
        while True:
            await RisingEdge(self.dut.clk)
            assert self.dut.report__beat.value == self.dut.returns__valid.value
            if not self.dut.returns__valid.value:
                continue
            self.beats += 1
            beat = decode(layout, int(self.dut.returns__beat.value))
            got = {name: int(getattr(beat, name)) if name != "client" else beat.client.value for name in BEAT}
            # In order, unless requests to one DRAM row may go together.
            next_ones = slice(1) if self.config.row_groups == 1 else slice(None)
            found = [(port, request) for port in self.expected for request in port[next_ones] if request[0] == got]
            assert found, f"unexpected {got}"
            port, request = found[0]
            request.popleft()
            if not request:
                port[:] = [other for other in port if other]

    async def finish(self, *, cycles: int = 20_000) -> None:
        """Wait for everything; then the fabric must be idle and stay silent."""
        await RisingEdge(self.dut.clk)
        for _ in range(cycles):
            if not any(self.expected):
                break
            for side in range(2):
                to_come = any(request[0]["side"] == side for port in self.expected for request in port)
                assert not (to_come and int(self.dut.report__idle.value) >> side & 1), "idle with beats to come"
            await RisingEdge(self.dut.clk)
        assert not any(self.expected), f"{sum(map(len, self.expected))} requests without their beats"
        for _ in range(10):
            await RisingEdge(self.dut.clk)
        assert int(self.dut.report__idle.value) == 3, "nothing is left on either side"


@cocotb.test()
@cocotb.parametrize(idle=[0.0, 0.6], pause=[0.0, 0.5])
async def everything_returns(dut, idle, pause):
    bench = Bench(dut, idle=idle)
    bench.slaves(pause=pause)
    await start(dut)
    await bench.source.send(bench.request() for _ in range(80))
    await bench.finish()
    assert not dut.report__error.value


@cocotb.test()
async def reads_are_held_back(dut):
    """While ``hold`` is on no burst is begun; what was asked for before comes back, and the rest afterwards."""
    bench = Bench(dut)
    bench.slaves(pause=0.5)
    await start(dut)
    task = bench.source.start(bench.request() for _ in range(80))
    offered = [False] * bench.config.ports
    while not task.done() or any(bench.expected):
        held = bench.random.random() < 0.3
        dut.hold.value = held
        for _ in range(bench.random.randrange(1, 40)):
            await RisingEdge(dut.clk)
            for port in range(bench.config.ports):
                valid, ready = (bool(getattr(dut, f"read{port}__ar{name}").value) for name in ("valid", "ready"))
                assert offered[port] or not (held and valid), f"port {port} begins a burst while reads are held back"
                assert valid or not offered[port], f"port {port} takes a burst back"
                offered[port] = valid and not ready
    dut.hold.value = 0
    await bench.finish()


async def rate(dut, requests: list[dict[str, Any]], bench: Bench) -> float:
    """Beats per cycle over all requests, without the latency."""
    latency = bench.latency + 10
    beats = sum(request["beats"] for request in requests)
    cycles = await count_cycles(dut, cocotb.start_soon(_all(bench, requests)))
    return beats / (cycles - latency)


async def _all(bench: Bench, requests: list[dict[str, Any]]) -> None:
    await bench.source.send(requests)
    while any(bench.expected):
        await RisingEdge(bench.dut.clk)


@cocotb.test()
@cocotb.parametrize(mapping=[PLAIN, 1, 3, HASHED[-1]])
async def full_rate_of_long_bursts(dut, mapping):
    """Rows of a granule each, one after the other (neighbours are at different ports)."""
    bench = Bench(dut)
    granule = granule_bytes(mapping, bench.config)
    beats = min(16, granule // bench.config.bus_bytes)
    bench.fast(latency=min(20, bench.config.ports * bench.config.port_outstanding * beats // 4))
    await start(dut)
    places = [in_class(n * granule % SIZE, mapping, bench.config) for n in range(640 // beats)]
    requests = [bench.request(address=place, beats=beats) for place in places]
    assert await rate(dut, requests, bench) >= 0.97


@cocotb.test()
@cocotb.parametrize(mapping=[PLAIN, 1, 3])
async def full_rate_of_single_lines(dut, mapping):
    """One line per request, at all ports in turn, and at a single port, whose ``outstanding`` limits the latency."""
    bench = Bench(dut)
    bench.fast(latency=bench.config.ports * bench.config.port_outstanding // 4)
    await start(dut)
    bus, granule = bench.config.bus_bytes, granule_bytes(mapping, bench.config)
    places = [in_class(n * granule % SIZE + bus, mapping, bench.config) for n in range(640)]
    requests = [bench.request(address=place, beats=1) for place in places]
    if bench.config.ports > 1:
        assert await rate(dut, requests, bench) >= 0.97
    else:
        assert await rate(dut, requests, bench) >= 0.9 * bench.config.port_outstanding / 6


@cocotb.test()
async def full_rate_of_one_line_with_copies(dut):
    """All ports work for a row that each of them has, far more lines in flight than one port can have."""
    bench = Bench(dut)
    bench.fast(latency=bench.config.ports * bench.config.port_outstanding // 4)
    await start(dut)
    places = [in_class(bench.config.bus_bytes * (n % 3), COPIED, bench.config) for n in range(640)]
    requests = [bench.request(address=place, beats=1, client=Client.VECTOR1) for place in places]
    if bench.config.ports > 1:
        assert await rate(dut, requests, bench) >= 0.97
    else:
        assert await rate(dut, requests, bench) >= 0.9 * bench.config.port_outstanding / 6


@cocotb.test()
async def a_single_port_is_never_idle(dut):
    """Bursts that all go to one port."""
    bench = Bench(dut)
    bench.fast(latency=4)
    await start(dut)
    requests = [bench.request(address=0, beats=min(16, bench.config.page_bytes // bench.config.bus_bytes))
                for _ in range(40)]  # fmt: skip
    assert await rate(dut, requests, bench) >= 0.97


@cocotb.test()
async def outstanding_is_limited(dut):
    """With no answers a port takes what it may have in flight and queued, then requests stop."""
    bench = Bench(dut)
    await start(dut)
    config = bench.config
    for port in range(config.ports):
        getattr(dut, f"read{port}__arready").value = 1
        getattr(dut, f"read{port}__rvalid").value = 0
    issued = 0
    task = bench.source.start(bench.request(address=0, beats=1, client=Client.VECTOR0) for _ in range(200))
    for _ in range(300):
        await RisingEdge(dut.clk)
        issued += int(dut.read0__arvalid.value)
    assert not task.done()
    assert issued == config.port_outstanding
    assert bench.source.sent == config.port_outstanding + config.port_requests + 2  # the front's registers
    task.cancel()


async def addresses_asked_for(dut: Any, bench: Bench, requests: list[dict[str, Any]]) -> list[int]:
    """What port 0 asks for, in order, if all these requests wait for it."""
    dut.hold.value = 1
    await bench.source.send(requests)
    for _ in range(6):
        await RisingEdge(dut.clk)
    dut.hold.value = 0
    asked: list[int] = []
    for _ in range(200):
        await RisingEdge(dut.clk)
        if dut.read0__arvalid.value:
            asked.append(int(dut.read0__araddr.value))
    return asked


@cocotb.test()
async def requests_to_a_dram_row_go_together(dut):
    """The first one, whose turn had come; loads; rows by DRAM row. All in order without groups."""
    bench, bus = Bench(dut), bench_config().bus_bytes
    config = bench.config
    bench.fast()
    await start(dut)
    row = config.ports * config.page_bytes  # from one DRAM row of port 0 to the next, or to the port's next bank
    rows = [(0, 0), (1, 0), (2, 0), (1, 1), (0, 1), (2, 1), (1, 2)][: config.port_requests]
    load = (3, 0)
    in_order = [*rows[:-1], load, *rows[-1:]]
    requests = [bench.request(address=n * row + line * bus, beats=1, side=0,
                              client=Client.LOAD if (n, line) == load else Client.VECTOR0)
                for n, line in in_order]  # fmt: skip
    asked = await addresses_asked_for(dut, bench, requests)
    if config.row_groups == 1:
        expected = in_order
    else:
        assert config.row_groups >= 4 and len(rows) == 7
        expected = [(0, 0), load, (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (0, 1)]
    assert asked == [n * row + line * bus for n, line in expected]
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(mapping=[PLAIN, 1, HASHED[-1], COPIED], before=[1, 2])
async def errors_stick(dut, mapping, before):
    """The first error's burst is named as the program does, whichever port's copy it was and however many requests were
    ``before``; the beats come all the same, others go on; the older launch's comes first.
    """
    bench = Bench(dut)
    dut.older.value = 0
    bench.slaves()
    await start(dut)
    bus, granule = bench.config.bus_bytes, granule_bytes(mapping, bench.config)
    good, first = (in_class(place, mapping, bench.config) for place in (granule, SIZE - 3 * granule))
    bad = memory_address(first + bus, bench.config)
    if mapping == COPIED:
        bad -= port_of(bad, bench.config) * bench.config.page_bytes
    copies = {bad + copy for copy in copies_of(mapping, bench.config)}
    for target in bench.targets:
        for copy in copies:
            target.bytes[copy : copy + bus] = bytes(bus)  # what the slave returns with an error
        target.bad = copies
    await bench.source.send([bench.request(address=good, beats=2) for _ in range(before)])
    await bench.finish()
    assert not dut.report__error.value
    second = first + bus
    for side, burst, named in ((1, first, first), (1, second, first), (0, second, second),
                               (1, first, second), (0, first, second)):  # fmt: skip
        await bench.source.send([bench.request(address=burst, beats=1 if burst == second else 3, side=side)])
        await bench.finish()
        assert dut.report__error.value
        assert int(dut.report__error_address.value) == named
        assert int(dut.report__error_side.value) == int(named != second)
