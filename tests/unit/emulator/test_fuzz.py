"""Whatever the bytes are, the emulator neither crashes nor loops: it ends the launch, or can be reset."""

import numpy as np
import pytest

from daedal.hw.isa.launch import LaunchWord, State
from daedal.hw.isa.program import WORD_BYTES, Program
from tests.reference.layers import Layer
from tests.unit.emulator.programs import Bench
from tests.unit.emulator.random_programs import DATA, Generator, data
from tests.unit.emulator.test_bags import place_bag
from tests.unit.emulator.test_faults import reset

HEADER_BYTES = 2 * WORD_BYTES


def launch(bench: Bench, raw: bytes, arguments: list[int]) -> None:
    """Run these bytes for a moment, then make sure that the machine is usable."""
    bench.next = 1 << 20
    bench.queue(raw, arguments)
    bench.target.wait(0.02)
    reset(bench)


def flip_bits(rng: np.random.Generator, raw: bytes, count: int) -> bytes:
    changed = bytearray(raw)
    for _ in range(count):
        changed[int(rng.integers(HEADER_BYTES, len(raw)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def check_alive(bench: Bench) -> None:
    ones = np.ones((4, 8), dtype=np.float32)
    layer = Layer(ones, np.array([0, 1, 2]), np.array([0]), "sum", None, None, False)
    bench.next = 1 << 20
    bag = place_bag(bench, layer)
    assert bench.run(bag.words(bench.config)).state is State.DONE
    assert bench.floats(bag.out, (8,)).tolist() == [3.0] * 8


def test_altered_random_programs(bench: Bench, rng: np.random.Generator) -> None:
    bench.target.mem_write(DATA, data(rng))
    generator = Generator(rng, bench.config, faults=True)
    for _ in range(15):
        raw = generator.program()
        for _ in range(6):
            launch(bench, flip_bits(rng, raw, int(rng.integers(1, 8))), generator.arguments)
    check_alive(bench)


def test_altered_bags(bench: Bench, rng: np.random.Generator) -> None:
    table, indices = rng.standard_normal((20, 12)).astype(np.float32), rng.integers(0, 20, 64)
    layer = Layer(table, indices, np.array([0, 5, 40]), "mean", None, 3, False)
    raw = Program(bench.config.hash, place_bag(bench, layer).words(bench.config)).to_bytes()
    for _ in range(150):
        launch(bench, flip_bits(rng, raw, int(rng.integers(1, 4))), [])
    check_alive(bench)


@pytest.mark.parametrize("size", [8, 24, 4096])
def test_random_bytes(bench: Bench, rng: np.random.Generator, size: int) -> None:
    good = Program(bench.config.hash, []).to_bytes()
    for _ in range(30):
        launch(bench, good[:HEADER_BYTES] + rng.bytes(size), [])
        launch(bench, rng.bytes(size), [])
    check_alive(bench)


def test_random_launch_blocks(bench: Bench, rng: np.random.Generator) -> None:
    for _ in range(50):
        block = bench.place(rng.bytes(1024))
        record = int(rng.integers(1 << 20)).to_bytes(WORD_BYTES, "little")
        bench.target.mem_write(block + WORD_BYTES * LaunchWord.RECORD.value, record)
        bench.ring(block)
        bench.target.wait(0.02)
        reset(bench)
    check_alive(bench)
