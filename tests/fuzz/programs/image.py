"""What is in memory when a random program starts, made from a seed; and where.

Arrays come in every element size (1, 2, 4 and 8 bytes): small numbers, non-decreasing offsets, indices, addresses of
rows and of places for them (4 and 8 bytes only), values that are out of any bound, and bytes of any kind. Then there is
a table of binary32 numbers for rows, the output, and places for launches.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from tests.reference.layers import SPECIAL

SIZES = (1, 2, 4, 8)


@dataclass(frozen=True)
class Array:
    """``count`` elements of ``size`` bytes at ``base``; all lie in [low, high], if that is known."""

    name: str
    base: int
    size: int
    count: int
    low: int
    high: int
    align: int = 1

    @property
    def end(self) -> int:
        return self.base + self.size * self.count


COUNTS = {"small": 64, "offset": 40, "index": 128, "row": 32, "place": 32, "any": 128, "bad": 32, "falling": 16}
TABLE = 0x4000
TABLE_END = 0xA000
OUT = TABLE_END
OUT_END = 0x1A000
ROW_ALIGN, PLACE_ALIGN = 64, 4
BOUNDS = {
    "small": (0, 3), "offset": (0, 120), "index": (0, 15), "row": (TABLE, TABLE + 0x1000), "place": (OUT, OUT + 0x1000),
}  # fmt: skip
ALIGNS = {"row": ROW_ALIGN, "place": PLACE_ALIGN}
OFFSET_STEP = 4
"""Most by which one offset is above the one before."""

FIRST = 0x1000


def _arrays() -> dict[tuple[str, int], Array]:
    arrays, at = {}, FIRST
    for name, count in COUNTS.items():
        for size in SIZES:
            if name in ALIGNS and size < 4:
                continue
            low, high = BOUNDS.get(name, (0, 0))
            arrays[name, size] = Array(name, at, size, count, low, high, ALIGNS.get(name, 1))
            at += -(-count * size // 64) * 64
    return arrays


ARRAYS = _arrays()
PLACES = 4
PLACE = OUT_END
PLACE_BYTES = 0x3000
"""Each launch has room for its record, its block and its program, in this order."""

BLOCK = 0x200
PROGRAM = 0x400
MEMORY_BYTES = PLACE + PLACES * PLACE_BYTES

OFFSET_TOP = 120


@cache
def image(seed: int) -> bytes:
    """The first ``OUT_END`` bytes of memory; the output is full of a pattern."""
    rng = np.random.default_rng([1717, seed])
    memory = np.frombuffer(bytearray(rng.bytes(OUT_END)), dtype=np.uint8)
    for (name, size), array in ARRAYS.items():
        if name != "any":
            memory[array.base : array.end] = _values(rng, name, size, array.count).view(np.uint8)
    table = (rng.standard_normal((TABLE_END - TABLE) // 4) * 4).astype(np.float32)
    odd = rng.random(len(table))
    table[odd < 0.05] = rng.choice(np.array(SPECIAL, dtype=np.float32), int((odd < 0.05).sum()))
    bits = table.view(np.uint32)
    wild = (odd >= 0.05) & (odd < 0.15)
    bits[wild] = rng.integers(0, 1 << 32, int(wild.sum()), dtype=np.uint32)
    memory[TABLE:TABLE_END] = bits.view(np.uint8)
    return memory.tobytes()


def _values(rng: np.random.Generator, name: str, size: int, count: int) -> np.ndarray:
    kind = np.dtype(f"<u{size}")
    if name == "small":
        return rng.integers(0, 4, count).astype(kind)
    if name == "index":
        return rng.integers(0, 16, count).astype(kind)
    if name == "offset":
        return np.minimum(np.cumsum(rng.integers(0, OFFSET_STEP + 1, count)), OFFSET_TOP).astype(kind)
    if name in ALIGNS:
        low, high = BOUNDS[name]
        return (low + rng.integers(0, (high - low) // ALIGNS[name] + 1, count) * ALIGNS[name]).astype(kind)
    if name == "falling":
        return (100 - np.cumsum(rng.integers(1, 4, count))).astype(kind)
    bits = 8 * size
    values = [(1 << (bits - 1)) | int(rng.integers(1 << min(bits - 1, 62))) for _ in range(count)]
    if size == 8:  # small in the low 40 bits; minus one
        values[::3] = [int(rng.integers(1, 1 << 20)) << 40 | int(rng.integers(4)) for _ in values[::3]]
        values[1::3] = [(1 << 64) - 1 - int(rng.integers(4)) for _ in values[1::3]]
    return np.array(values, dtype=np.uint64).astype(kind)
