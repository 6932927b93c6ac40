"""Random embedding bags with everything in them that the numeric contract speaks of."""

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.17549421e-38, 3.4e38, -3.4e38, 1.0, 1.0000001],
    dtype=np.float32,
)
"""Zeros, infinities, NaN, subnormals, the largest, neighbours."""


@dataclass(frozen=True)
class Layer:
    """An embedding bag: ``offsets`` has an entry per bag, and one more with ``include_last``."""

    table: Array
    indices: Array
    offsets: Array
    mode: str
    weights: Array | None
    padding: int | None
    include_last: bool

    @property
    def bags(self) -> int:
        return len(self.offsets) - self.include_last


def random_values(rng: np.random.Generator, shape: tuple[int, ...], special: bool) -> Array:
    """Normal values over a few orders of magnitude; with ``special``, one in eight is from ``SPECIAL``."""
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)
    values = values.astype(np.float32)
    return np.where(rng.random(shape) < 0.125, rng.choice(SPECIAL, shape), values) if special else values


def random_layer(
    rng: np.random.Generator, *, dim: int | None = None, longest: int = 200, special: bool | None = None
) -> Layer:
    """A layer with ``dim`` (1 … 257) columns and bags of 0 … ``longest`` rows."""
    dim = int(rng.integers(1, 258)) if dim is None else dim
    special = bool(rng.integers(2)) if special is None else special
    rows, bags = int(rng.integers(1, 60)), int(rng.integers(0, 9))
    lengths = rng.integers(0, longest + 1, bags) * (rng.random(bags) < 0.8)
    include_last = bool(rng.integers(2))
    limits = np.concatenate(([0], np.cumsum(lengths))).astype(rng.choice([np.int32, np.int64]))
    unused = int(rng.integers(0, 4)) if include_last else 0
    indices = rng.integers(0, rows, int(limits[-1]) + unused).astype(rng.choice([np.int32, np.int64]))
    mode = str(rng.choice(["sum", "mean", "max"]))
    weighted = mode == "sum" and bool(rng.integers(2))
    padding = int(rng.integers(-rows, rows)) if rng.integers(2) else None
    if not include_last and bags == 0:
        indices = indices[:0]
    return Layer(
        table=random_values(rng, (rows, dim), special),
        indices=indices,
        offsets=limits if include_last else limits[:-1],
        mode=mode,
        weights=random_values(rng, (len(indices),), special) if weighted else None,
        padding=padding,
        include_last=include_last,
    )
