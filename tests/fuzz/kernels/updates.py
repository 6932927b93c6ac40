"""Random kernels that change rows in place: sums of samples, numbers of rows read, changed and written, steps by them.

Rows are those that ``r`` has, none of them twice. The pieces are those of optimizers, put together at random.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

TYPES = {
    "w": "f32[N, D]", "z": "f32[N, D]", "h": "f32[N]", "g": "f32[N]", "y": "f32[P, D]", "q": "f32[R, D]",
    "wp": "f32[P]", "wr": "f32[R]", "r": "i64[R]", "seg": "i64[R + 1]", "alpha": "f32",
}  # fmt: skip
"""Name -> type. ``w``, ``z``, ``h`` and ``g`` are changed at rows ``r``; ``seg`` are offsets into P."""

SIZES = {"R": "wr", "D": "q", "P": "wp"}
"""Size -> an argument that has it."""


@dataclass
class Writer:
    """Writes one kernel; ``octets``: sums of eight partial sums too."""

    rng: np.random.Generator
    octets: bool
    lines: list[str] = field(default_factory=list)

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, values: Sequence[Any]) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def put(self, depth: int, *lines: str) -> None:
        self.lines += ["    " * (depth + place) + line for place, line in enumerate(lines)]

    def body(self) -> list[str]:
        if self.chance(0.3):
            self.put(1, "daedal.distinct(r)")
        self.put(1, "for j in range(R):")
        if self.chance(0.25):
            self.samples_in_place()
            return self.lines
        row = self.samples() if self.chance(0.6) else "q[j, d]"
        number = self.number(row) if self.chance(0.7) else None
        if number is None or self.chance(0.85):
            for table in self.pick((("w",), ("w",), ("w", "z"))):
                self.change(table, row, number)
        return self.lines

    def samples_in_place(self) -> None:
        """A row that takes its samples one by one."""
        sample = self.pick(("y[p, d]", "q[j, d]", "y[p, d] * wp[p]"))
        form = self.pick(
            (f"daedal.fma({sample}, alpha, w[r[j], d])", f"w[r[j], d] + {sample}", f"max(w[r[j], d], {sample})")
        )
        self.put(2, "for p in range(seg[j], seg[j + 1]):", "for d in range(D):", f"w[r[j], d] = {form}")

    def samples(self) -> str:
        """A row that is the sum of samples."""
        form = self.pick(("s[d] + y[p, d]", "daedal.fma(y[p, d], wp[p], s[d])", "s[d] + y[p, d] * wp[p]"))
        self.put(2, "s = daedal.zeros(D)")
        self.put(2, "for p in range(seg[j], seg[j + 1]):", "for d in range(D):", f"s[d] = {form}")
        return "s[d]"

    def number(self, row: str) -> str:
        """A number of the row that is changed, and what follows from it."""
        whole = "s" if row == "s[d]" else "q[j, :]"
        sums = [f"daedal.dot({whole}, {whole})"]
        sums += [f"daedal.dot({whole}, {whole}, partial_sums=8)"] * 3 * self.octets
        more = self.pick((*sums, *sums, "wr[j]", "wr[j] * alpha"))
        more = f"{more} / D" if "dot" in more and self.chance(0.5) else more
        self.put(
            2,
            self.pick(
                (
                    f"h[r[j]] += {more}",
                    f"h[r[j]] = daedal.fma({more}, 0.5, h[r[j]])",
                    f"h[r[j]] = h[r[j]] * 0.5 + {more}",
                )
            ),
        )
        if self.chance(0.3):
            self.put(2, f"g[r[j]] = {self.pick(('g[r[j]] - wr[j]', 'max(g[r[j]], h[r[j]])'))}")
        step = self.pick(
            ("alpha / (daedal.sqrt(abs(h[r[j]])) + 0.5)", "h[r[j]] * alpha", "1.0 / (abs(h[r[j]]) + 1.0)", "h[r[j]]")
        )
        self.put(2, f"step = {step}")
        return "step"

    def change(self, table: str, row: str, number: str | None) -> None:
        """A row of a table that is changed by this row."""
        factor, old = number or self.pick(("alpha", "wr[j]", "0.5")), f"{table}[r[j], d]"
        form = self.pick((
            f"{old} + {row} * {factor}", f"daedal.fma({row}, {factor}, {old})", f"{old} * {factor} + {row}",
            f"daedal.fma(daedal.fma({old}, 0.25, {row}), {factor}, {old})", f"({old} - {row}) * {factor}",
        ))  # fmt: skip
        self.put(2, "for d in range(D):", f"{old} = {form}")


def random_update(rng: np.random.Generator, *, octets: bool) -> str:
    """The source of a random kernel ``f`` that changes rows."""
    body = "\n".join(Writer(rng, octets).body())
    names = {word for word in TYPES if word in _words(body)} | {
        name for size, name in SIZES.items() if size in _words(body)
    }
    return f"def f({', '.join(f'{name}: {TYPES[name]}' for name in TYPES if name in names)}):\n{body}\n"


def _words(text: str) -> set[str]:
    return set("".join(each if each.isalnum() else " " for each in text).split())


def update_arrays(rng: np.random.Generator) -> dict[str, Any]:
    """A value for every argument."""
    n, p = int(rng.integers(5, 30)), int(rng.integers(1, 25))
    used, width = int(rng.integers(1, n + 1)), int(rng.choice([1, 3, 4, 8, 20, 33, 64]))
    sizes = {"N": n, "P": p, "R": used, "D": width}
    values: dict[str, Any] = {
        "r": rng.permutation(n)[:used],
        "seg": np.concatenate([[0], np.sort(rng.integers(0, p + 1, used - 1)), [p]]),
        "alpha": float(np.float32(rng.standard_normal())),
    }  # fmt: skip
    for name, kind in TYPES.items():
        if kind.startswith("f32["):
            shape = [sizes[size] for size in kind[4:-1].split(", ")]
            values[name] = (rng.standard_normal(shape) * np.exp2(rng.integers(-6, 6, shape))).astype(np.float32)
    return values
