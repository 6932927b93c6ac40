"""Different programs on the tiles at the same time, against as many emulators with the same bytes."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import with_timeout

from daedal.cosim.emulator import EmulatorTarget
from daedal.hw.isa.elements import BINARY32
from daedal.hw.isa.launch import Cause, State
from daedal.hw.isa.program import Program
from daedal.hw.isa.registers import Register
from tests.unit.core.bench_core import MEMORY_BYTES, Case, Machine, layers
from tests.unit.emulator.programs import Bench, gather, place_table
from tests.unit.emulator.test_bags import place_bag
from tests.unit.harness import bench_config, parameters
from tests.unit.streams import start

PAUSES = (0.2, 0.6)
"""How often each memory makes a channel wait: answers come after random times, later ones on the second tile."""


async def machines(dut: Any) -> list[Machine]:
    """All tiles, out of reset."""
    made = [Machine(dut, bench_config(), PAUSES[n], f"tile{n}__", 0) for n in range(parameters()["tiles"])]
    await start(dut)
    return made


async def at_once(tiles: Sequence[Machine], blocks: Sequence[list[int]], completed: Sequence[int]) -> None:
    """Ring for these launch blocks on all tiles, and wait until each of them has ended as many."""
    rings = [cocotb.start_soon(each.ring(*its)) for each, *its in zip(tiles, blocks, completed, strict=True)]
    for ring in rings:
        await with_timeout(ring, 2, "ms")


def bags(benches: tuple[Bench, Bench], rng: np.random.Generator, dim: int) -> list[Case]:
    """A layer of each kind."""
    cases = []
    for layer in layers(rng, dim):
        placed = [place_bag(bench, layer) for bench in benches]
        assert placed[0] == placed[1]
        size = placed[0].bags * dim * BINARY32.bytes
        cases.append(Case(*benches, placed[0].words(benches[0].config), (placed[0].out, size)))
    return cases


def gathers(benches: tuple[Bench, Bench], rng: np.random.Generator, dim: int) -> list[Case]:
    """Rows of a table, in some lists of different lengths."""
    cases = []
    for count in (9, 40, 17, 5, 23):
        table = rng.standard_normal((11, 64)).astype(np.float32)
        indices = rng.integers(0, 11, count).astype(np.int32)
        size = count * dim * BINARY32.bytes
        ((at, listed, out),) = {(b.place(table), b.place(indices), b.reserve(size)) for b in benches}
        cases.append(Case(*benches, gather(benches[0].config, at, 11, dim, listed, count, out), (out, size)))
    return cases


@cocotb.test()
async def each_tile_gives_its_emulators_bytes(dut):
    """Bags on one of them, gathers on the other, queued up, and the other way round; gathers only without lanes."""
    tiles, rng = await machines(dut), np.random.default_rng(8)
    other = bags if bench_config().executes else gathers
    with ExitStack() as stack:
        targets = [stack.enter_context(EmulatorTarget(tile.config, MEMORY_BYTES)) for tile in tiles]
        benches = [
            (Bench(tile.image, tile.config), Bench(target, tile.config))
            for tile, target in zip(tiles, targets, strict=True)
        ]
        ended = 0
        for turn, kinds in enumerate(((other, gathers), (gathers, other))):
            cases = [kind(its, rng, 3 + 5 * turn) for kind, its in zip(kinds, benches, strict=True)]
            ended += len(cases[0])
            blocks = [tile.image.blocks[-len(cases[0]) :] for tile in tiles]
            await at_once(tiles, blocks, [ended] * len(tiles))
            for case in (*cases[0], *cases[1]):
                assert case.check().state is State.DONE


@cocotb.test()
async def a_fault_is_one_tiles(dut):
    """The other one goes on, and what is queued there is carried out."""
    tiles = await machines(dut)
    config, records, outs = tiles[0].config, [], []
    rows = np.random.default_rng(9).random((11, 4), dtype=np.float32)
    bad = np.arange(30, dtype=np.int32) % 11
    good = bad.copy()
    bad[3] = -5
    for tile, lists in zip(tiles, ((bad, good), (good, good)), strict=True):
        bench = Bench(tile.image, config)
        table, out = place_table(bench, rows), bench.reserve(30 * 16)
        outs.append(out)
        for indices in lists:
            words = gather(config, table, 11, 4, bench.place(indices), 30, out)
            records.append((bench, bench.queue(Program(config.hash, words).to_bytes())))
    await at_once(tiles, [tile.image.blocks for tile in tiles], [2, 2])
    heads = [bench.read_record(record) for bench, record in records]
    assert [head.state for head in heads] == [State.FAULTED, State.CANCELLED, State.DONE, State.DONE]
    assert [await tile.read(Register.FAULT) for tile in tiles] == [Cause.INDEX.value, Cause.NONE.value]
    assert tiles[1].image.mem_read(outs[1], 30 * 16) == rows[good].tobytes()
