"""Random kernels as Python source: nests of up to four levels, indirect bounds, several streams, conditions, siblings.

They are run by Python on NumPy arrays, and by the compiler and a device; both must give the same bits. Constants are
such that Python's own f64 arithmetic between two of them is exact.
"""

import ast
import linecache
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import daedal
from daedal.compiler.frontends.python.function import KernelFunction
from daedal.compiler.interpreters import interpret
from daedal.errors import UnsupportedOperation
from tests.compiler.kernels.kernel_support import copied, same_bits
from tests.fuzz.kernels.reductions import tree_sum, with_trees

HEAD = "from __future__ import annotations\nimport daedal\nfrom daedal import f32, i32, i64\n\n@daedal.kernel\n"

ARGUMENTS = {
    "t": "f32[N, D]", "u": "f32[M, D]", "x": "f32[B, D]", "y": "f32[P, D]", "v": "f32[N]", "wb": "f32[B]",
    "wp": "f32[P]", "wq": "f32[Q]", "ib": "i64[B]", "ip": "i64[P]", "jp": "i32[P]", "iq": "i32[Q]",
    "off": "i64[B + 1]", "lo": "i32[Q]", "hi": "i32[Q]", "alpha": "f32", "k": "i64",
    "ob": "f32[B, D]", "op": "f32[P, D]", "oq": "f32[Q, D]", "oqb": "f32[Q, B, D]", "sb": "f32[B]", "sp": "f32[P]",
}  # fmt: skip
"""Name -> type. Indices ``i`` are into N, ``j`` into M; offsets and bounds into P."""

LEVELS = ("scf", "slc", "slcv", "dlc")
"""The levels of the IR that kernels have."""

SIZES = {"B": "wb", "P": "wp", "Q": "wq", "D": "t"}
"""Size -> an argument that has it."""

OUTPUTS = {"ob": "b", "op": "p", "oq": "q", "oqb": "qb", "sb": "b", "sp": "p"}
"""Array that is written -> the loops that index it; names in ``s`` have no columns."""

TERMS = {
    "b": ("x[b, d]", "t[ib[b], d]"),
    "p": ("t[ip[p], d]", "u[jp[p], d]", "y[p, d]", "t[ip[p], d]"),
    "q": ("t[iq[q], d]",),
    "": ("t[2, d]",),
}
"""Loop -> rows that it gives."""

NUMBERS = {"b": ("wb[b]",), "p": ("wp[p]", "v[ip[p]]"), "q": ("wq[q]",), "": ("alpha", "0.5", "-2.0", "3")}
"""Loop -> single f32 that it gives."""

CONDITIONS = {
    "b": ("ib[b] > 2", "b != k", "off[b + 1] - off[b] > 1"),
    "p": ("ip[p] != 3", "p < k", "jp[p] >= 2", "ip[p] == jp[p]", "ip[p] > 1 and p > 2", "jp[p] < 2 or p > k"),
    "q": ("iq[q] <= k", "q != 1"),
}


@dataclass
class Writer:
    """Writes one random kernel."""

    rng: np.random.Generator
    lines: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    locals: int = 0

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, values: Sequence[Any]) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def put(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def source(self) -> str:
        """The text of the function."""
        for _ in range(self.pick((1, 1, 1, 2, 2, 3))):
            self.nest()
        body = "\n".join(self.lines)
        found = {name for name in ARGUMENTS if re.search(rf"\b{name}\b", body)}
        found |= {name for size, name in SIZES.items() if re.search(rf"\b{size}\b", body)}
        used = [name for name in ARGUMENTS if name in found]
        return f"def f({', '.join(f'{name}: {ARGUMENTS[name]}' for name in used)}):\n{body}\n"

    def nest(self) -> None:
        self.loops(1, "", self.pick((1, 2, 2, 2, 3)), None)

    # ------------------------------------------------------------------ loops

    def loop(self, depth: int, loops: str) -> str:
        """Open a loop; its variable."""
        kinds = [each for each in "bpq" if each not in loops]
        if not kinds:
            kinds = ["c"]
        kind = self.pick(kinds)
        if kind == "p" and "b" in loops and self.chance(0.85):
            bounds = "off[b], off[b + 1]"
        elif kind == "p" and "q" in loops and self.chance(0.7):
            bounds = "lo[q], hi[q]"
        elif kind == "p":
            bounds = self.pick(("P", "P", "k", "1, P", "0, P, 2"))
        else:
            bounds = {"b": self.pick(("B", "B", "B", "0, B, 2")), "q": "Q", "c": "2"}[kind]
        self.put(depth, f"for {kind} in range({bounds}):")
        return str(kind)

    def loops(self, depth: int, loops: str, more: int, local: str | None) -> None:
        """Loops and what they do, into ``local`` if there is a local row or number to add to."""
        loops += self.loop(depth, loops)
        depth += 1
        conditional = more == 1 and self.chance(0.3) and loops[-1] in CONDITIONS
        if conditional:
            self.put(depth, f"if {self.pick(CONDITIONS[loops[-1]])}:")
            depth += 1
        if more == 1:
            self.work(depth, loops, local)
            if not conditional and local is None and self.chance(0.15):
                self.work(depth, loops, None)
            return
        made = None
        if local is None and self.chance(0.6):
            made = self.declare(depth, loops)
        self.loops(depth, loops, more - 1, made or local)
        if made is not None:
            self.finish(depth, loops, made)

    # ------------------------------------------------------------------ statements

    def declare(self, depth: int, loops: str) -> str | None:
        if self.output(loops, is_row=True) is None and self.output(loops, is_row=False) is None:
            return None
        self.locals += 1
        if self.output(loops, is_row=False) is not None and self.chance(0.35):
            name = f"n{self.locals}"
            self.put(depth, f"{name} = {self.pick(('0.0', '0.0', '1.5'))}")
        else:
            name = f"r{self.locals}"
            self.put(depth, f"{name} = daedal.zeros(D)")
        return name

    def finish(self, depth: int, loops: str, local: str) -> None:
        """Store a local row or number."""
        is_row = local[0] == "r"
        output = self.output(loops, is_row=is_row)
        if output is None:
            return
        self.taken.add(output)
        where = ", ".join(OUTPUTS[output])
        if not is_row:
            self.put(
                depth, f"{output}[{where}] = {self.pick((local, f'{local} * 2.0', f'{local} + {self.number(loops)}'))}"
            )
            return
        factor = self.number(loops)
        self.put(depth, "for d in range(D):")
        value = self.pick((f"{local}[d]", f"{local}[d]", f"{local}[d] * {factor}", f"max({local}[d], 0.0)"))
        self.put(depth + 1, f"{output}[{where}, d] = {value}")

    def output(self, loops: str, *, is_row: bool) -> str | None:
        """An array whose rows (or elements) the loops around choose, and that no nest has written so far."""
        found = [
            name for name, needed in OUTPUTS.items()
            if set(needed) <= set(loops) and (name[0] != "s") is is_row
            and (name not in self.taken or self.chance(0.05))
        ]  # fmt: skip
        return found[-1] if found else None

    def is_written_again(self, output: str, loops: str) -> bool:
        """Whether a loop around those that choose an element comes back to it; mostly it is not read then."""
        deciding = max(loops.index(each) for each in OUTPUTS[output])
        return not set(loops[:deciding]) <= set(OUTPUTS[output]) and self.chance(0.8)

    def work(self, depth: int, loops: str, local: str | None) -> None:
        if local is not None and local[0] == "n":
            if self.chance(0.3):
                self.put(depth, "for d in range(D):")
                self.put(depth + 1, f"{local} += {self.row(loops, 1)}")
                return
            value = self.scalar(loops)
            self.put(depth, self.pick((f"{local} += {value}", f"{local} = {local} - {value}")))
            return
        if local is None and self.chance(0.15) and (output := self.output(loops, is_row=False)):
            self.taken.add(output)
            where = ", ".join(OUTPUTS[output])
            sign = "=" if self.is_written_again(output, loops) else self.pick(("+=", "=", "-="))
            self.put(depth, f"{output}[{where}] {sign} {self.scalar(loops)}")
            return
        target, is_again = f"{local}[d]", False
        if local is None:
            output = self.output(loops, is_row=True)
            if output is None:
                self.put(depth, "pass")
                return
            self.taken.add(output)
            target = f"{output}[{', '.join(OUTPUTS[output])}, d]"
            is_again = self.is_written_again(output, loops)
        self.put(depth, "for d in range(D):")
        value = self.row(loops, 2)
        if self.chance(0.1):
            self.put(depth + 1, f"e = {value}")
            value = self.pick(("e", "e * e", "e - 0.5"))
        if is_again:
            self.put(depth + 1, f"{target} = {value}")
            return
        if self.chance(0.1):
            self.put(depth + 1, f"if {value} {self.pick('<>')} {target}:")
            self.put(depth + 2, f"{target} = {value}")
            return
        forms = (
            f"{target} += {value}",
            f"{target} += {value}",
            f"{target} = max({target}, {value})",
            f"{target} = {value}",
            f"{target} -= {value}",
            f"{target} = {target} * {self.number(loops)} + {value}",
        )
        self.put(depth + 1, self.pick(forms))

    # ------------------------------------------------------------------ expressions

    def number(self, loops: str) -> str:
        return str(self.pick([one for each in (*loops, "") for one in NUMBERS.get(each, ())]))

    def scalar(self, loops: str) -> str:
        a, b = self.number(loops), self.number(loops)
        return str(self.pick((a, a, f"{a} * {b}", f"({a} + {b})", f"abs({a})", f"max({a}, {b})")))

    def row(self, loops: str, depth: int) -> str:
        """An f32 along a row."""
        rows = [one for each in loops for one in TERMS.get(each, ())] or list(TERMS[""])
        term = str(self.pick(rows))
        if depth == 0 or self.chance(0.4):
            return term
        other = self.row(loops, depth - 1) if self.chance(0.4) else self.number(loops)
        forms = (f"{term} * {other}", f"{other} * {term}", f"({term} + {other})", f"({term} - {other})", f"abs({term})",
                 f"max({term}, {other})", f"min({other}, {term})", f"-{term}")  # fmt: skip
        return str(self.pick(forms))


def random_source(rng: np.random.Generator) -> str:
    """The source of a random kernel ``f``."""
    while True:
        text = Writer(rng).source()
        if any(f"{name}[" in text for name in OUTPUTS):
            return text


def arrays(rng: np.random.Generator) -> dict[str, Any]:
    """A value for every argument."""
    b, p, q, n, m = (int(rng.integers(low, high)) for low, high in ((1, 6), (1, 14), (1, 4), (4, 9), (3, 7)))
    width = int(rng.choice([1, 3, 4, 8, 20, 33]))
    lo = rng.integers(0, p + 1, q)
    sizes = {"B": b, "P": p, "Q": q, "N": n, "M": m, "D": width}
    values: dict[str, Any] = {
        "ib": rng.integers(0, n, b), "ip": rng.integers(0, n, p), "jp": rng.integers(0, m, p),
        "iq": rng.integers(0, n, q), "lo": lo,
        "off": np.concatenate([[0], np.sort(rng.integers(0, p + 1, b - 1)), [p]]),
        "hi": lo + rng.integers(0, p + 1 - lo), "alpha": float(np.float32(rng.standard_normal())),
        "k": int(rng.integers(0, p + 1)),
    }  # fmt: skip
    for name, kind in ARGUMENTS.items():
        if kind.startswith("f32["):
            shape = [sizes[size] for size in kind[4:-1].split(", ")]
            values[name] = (rng.standard_normal(shape) * np.exp2(rng.integers(-6, 6, shape))).astype(np.float32)
        elif kind.startswith("i32["):
            values[name] = values[name].astype(np.int32)
    return values


def load(text: str, folder: Path) -> KernelFunction:
    """The kernel with this source, which is put into a file."""
    path = folder / "kernel.py"
    path.write_text(HEAD + text, encoding="utf-8")
    linecache.checkcache(str(path))
    names: dict[str, Any] = {}
    exec(compile(HEAD + text, str(path), "exec"), names)
    found = names["f"]
    assert isinstance(found, KernelFunction)
    return found


def plain(text: str) -> Callable[..., None]:
    """The same function without anything of the compiler's, for Python with NumPy."""
    names: dict[str, Any] = {"daedal": daedal, "tree_sum": tree_sum}
    exec("from __future__ import annotations\n" + with_trees(text), names)
    found: Callable[..., None] = names["f"]
    return found


@dataclass(frozen=True)
class Outcome:
    """How a kernel went: why it was refused, and where results differ; both None if all is well."""

    refusal: str | None = None
    difference: str | None = None


Arrays = Callable[[np.random.Generator], dict[str, Any]]
"""Makes a value for every argument."""


def run(text: str, seed: int, devices: Sequence[daedal.Device], folder: Path, make: Arrays = arrays) -> Outcome:
    """Run a kernel in Python and on devices, with data of ``seed``.

    Where it adds up along rows into a number, Python does so in the order of ``tree_sum``.
    """
    values = make(np.random.default_rng(seed))
    kernel = load(text, folder)
    given = [values[name] for name in kernel.signature.arguments]
    sizes = kernel.signature.sizes({n: v.shape for n, v in values.items() if n in kernel.signature.arguments and
                                    isinstance(v, np.ndarray)}, {})  # fmt: skip
    python = plain(text)
    python.__globals__.update(sizes)
    wanted = copied(given)
    with np.errstate(all="ignore"):
        python(*wanted)
    for device in devices:
        try:
            executable = daedal.compile(kernel, given, device=device)
        except UnsupportedOperation as error:
            return Outcome(refusal=_reason(str(error)))
        here = copied(given)
        try:
            executable(*here)
        except daedal.DaedalError as error:
            return Outcome(difference=f"{type(error).__name__}: {error}")
        for name, a, b in zip(kernel.signature.arguments, here, wanted, strict=True):
            if isinstance(a, np.ndarray) and not same_bits(a, b):
                return Outcome(difference=f"{name} is {a!r}, not {b!r}")
    return Outcome()


def at_levels(text: str, seed: int, device: daedal.Device, folder: Path, make: Arrays = arrays) -> Outcome:
    """Run what a kernel becomes, at each level of the IR and each of optimisation, by its interpreter."""
    values = make(np.random.default_rng(seed))
    kernel = load(text, folder)
    given = {name: values[name] for name in kernel.signature.arguments}
    buffers = {name: value for name, value in given.items() if isinstance(value, np.ndarray)}
    sizes = kernel.signature.sizes({name: array.shape for name, array in buffers.items()}, {})
    python = plain(text)
    python.__globals__.update(sizes)
    wanted = copied(list(given.values()))
    with np.errstate(all="ignore"):
        python(*wanted)
    numbers = {name: value for name, value in given.items() if name not in buffers}
    for opt in range(4):
        try:
            executable = daedal.compile(kernel, list(given.values()), device=device, opt=opt)
        except UnsupportedOperation as error:
            return Outcome(refusal=_reason(str(error)))
        for level in LEVELS:
            found = interpret(executable.ir(level), buffers, {**sizes, **numbers})
            for name, right in zip(given, wanted, strict=True):
                if isinstance(right, np.ndarray) and not same_bits(found[name], right):
                    return Outcome(difference=f"O{opt}, {level}: {name} is {found[name]!r}, not {right!r}")
    return Outcome()


def _reason(message: str) -> str:
    """A refusal without names and numbers."""
    text = message.partition("`: ")[2]
    return re.sub(r"\d+", "#", re.sub(r"%\w+", "%", text))[:70]


def shrunk(text: str, fails: Callable[[str], bool]) -> str:
    """The source with as many lines left out as it still fails without."""
    lines = text.splitlines()
    size = max(len(lines) // 2, 1)
    while size:
        position = 1
        while position < len(lines):
            fewer = "\n".join(lines[:position] + lines[position + size :]) + "\n"
            if _is_source(fewer) and fails(fewer):
                lines = fewer.splitlines()
            else:
                position += 1
        size //= 2
    return "\n".join(lines) + "\n"


def _is_source(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
