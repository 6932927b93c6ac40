"""Random mixtures of reductions, single numbers and rows in one callback, as NumPy computes them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

import daedal
from daedal.compiler.functions import numpy_sigmoid
from daedal.compiler.pipeline import compile_scf
from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.spec.binary32 import fused
from daedal.runtime.kernel_launch import run_kernel
from tests.compiler.layers.compiler_support import device, same_bits
from tests.compiler.scalars.scalar_kernels import F32, Array, function, load_index, reduced, row, table

__all__ = ["device"]

COUNT, DIM = 4, 12


@dataclass
class Mixture:
    """A random body: text, and the value of every name in each iteration (``COUNT`` numbers, or as many rows)."""

    rng: np.random.Generator
    rows: dict[str, Array]
    numbers: dict[str, Array]
    lines: list[str] = field(default_factory=list)
    made: int = 0

    def name(self) -> str:
        """A new one."""
        self.made += 1
        return f"m{self.made}"

    def pick(self, values: dict[str, Array]) -> str:
        return str(self.rng.choice(list(values)))

    def arithmetic(self, lines: list[str], values: dict[str, Array], others: dict[str, Array], kinds: list[str]) -> str:
        """One operation on ``values``, the second operand perhaps one of ``others``."""
        a, b, c = self.pick(values), self.pick({**values, **others}), self.pick(values)
        x, y, z = values[a], {**values, **others}[b], values[c]
        if y.ndim < x.ndim:
            y = y[:, None]
        new, kind = self.name(), str(self.rng.choice(kinds))
        simple = {"addf": x + y, "subf": x - y, "mulf": x * y}
        if kind in simple:
            lines.append(f"%{new} = arith.{kind} %{a}, %{b} : f32")
            values[new] = simple[kind]
        elif kind == "fma":
            lines.append(f"%{new} = math.fma %{a}, %{b}, %{c} : f32")
            values[new] = fused(x, np.broadcast_to(y, x.shape), z)
        elif kind == "absf":
            lines.append(f"%{new} = math.absf %{a} : f32")
            values[new] = abs(x)
        elif kind == "max":
            lines.append(f"%c{new} = arith.cmpf ogt, %{a}, %{b} : f32")
            lines.append(f"%{new} = arith.select %c{new}, %{a}, %{b} : f32")
            values[new] = np.where(x > y, x, y)
        elif kind == "select":
            lines.append(f"%c{new} = arith.cmpf ole, %{a}, %{b} : f32")
            lines.append(f"%{new} = arith.select %c{new}, %{c}, %{a} : f32")
            values[new] = np.where(x <= y, z, x)
        elif kind == "divf":
            lines.append(f"%{new} = arith.divf %{a}, %{b} : f32")
            values[new] = x / y
        elif kind == "sqrt":
            lines.append(f"%a{new} = math.absf %{a} : f32\n%{new} = math.sqrt %a{new} : f32")
            values[new] = np.sqrt(abs(x))
        else:
            lines.append(f"%{new} = func.call @daedal_sigmoid(%{a}) : (f32) -> f32")
            values[new] = numpy_sigmoid(x)
        return new

    def along_row(self) -> tuple[list[str], dict[str, Array]]:
        """The beginning of a loop along a row: some loads, and arithmetic on them and on numbers."""
        lines, values = [], {}
        for name, buffer, index in (("x", "a", "%k"), ("y", "b", "%p")):
            if not values or self.rng.random() < 0.7:
                new = self.name()
                lines.append(row(buffer, index, DIM, new))
                values[new] = self.rows[name]
        if self.rng.random() < 0.5:
            new = self.name()
            lines.append(f"%{new} = memref.load %local[%d] : memref<{DIM}xf32>")
            values[new] = self.rows["local"]
        for _ in range(self.rng.integers(1, 4)):
            kinds = ["addf", "subf", "mulf", "fma", "absf", "max", "select"]
            self.arithmetic(lines, values, self.numbers, kinds)
        return lines, values

    def reduction(self) -> None:
        lines, values = self.along_row()
        a, b, new = self.pick(values), self.pick(values), self.name()
        kinds = {
            "fma": (f"%n{new} = math.fma %{a}, %{b}, %acc : f32", VectorOp.FMA, True),
            "mul": (f"%u{new} = arith.mulf %{a}, %{b} : f32\n%n{new} = arith.addf %acc, %u{new} : f32",
                    VectorOp.MUL_ADD, True),
            "add": (f"%n{new} = arith.addf %acc, %{a} : f32", VectorOp.ADD, False),
        }  # fmt: skip
        text, op, both = kinds[str(self.rng.choice(list(kinds)))]
        body = "\n".join([*lines, text, f"scf.yield %n{new} : f32"])
        head = f"%{new} = scf.for %d = %c0 to %dim step %c1 iter_args(%acc = %zero) -> (f32) {{"
        self.lines.append(f"{head}\n{body}\n}} {{daedal.reduce}}")
        pairs = [(values[a][i].copy(), values[b][i].copy()) for i in range(COUNT)]
        self.numbers[new] = np.array([reduced(op, x, y if both else None) for x, y in pairs], F32)

    def work_on_rows(self, target: str) -> Array:
        """A loop that stores a row to ``target``; what it stores."""
        lines, values = self.along_row()
        result = list(values)[-1]
        body = "\n".join([*lines, f"memref.store %{result}, {target}"])
        self.lines.append(f"scf.for %d = %c0 to %dim step %c1 {{\n{body}\n}}")
        return values[result]


def mixture(seed: int) -> tuple[str, dict[str, Any], dict[str, Array]]:
    rng = np.random.default_rng([seed, 91])
    a, b = rng.standard_normal((2, COUNT, DIM)).astype(F32)
    u, w = rng.standard_normal((2, COUNT)).astype(F32)
    ks = rng.integers(0, COUNT, COUNT).astype(np.int32)
    mix = Mixture(rng, {"x": a[ks], "y": b, "local": b}, {"u": u, "w": w})
    mix.lines += [
        load_index("ks", "%p", "k"),
        "%u = memref.load %us[%p] : memref<?xf32>\n%w = memref.load %ws[%p] : memref<?xf32>",
        "scf.for %d = %c0 to %dim step %c1 {\n" + row("b", "%p", DIM, "own")
        + f"memref.store %own, %local[%d] : memref<{DIM}xf32>\n}}",
    ]  # fmt: skip
    mix.reduction()
    for _ in range(rng.integers(2, 7)):
        if rng.random() < 0.3:
            mix.reduction()
        else:
            kinds = ["addf", "subf", "mulf", "fma", "absf", "max", "select", "divf", "sqrt"]
            mix.arithmetic(mix.lines, mix.numbers, {}, [*kinds, "sigmoid"] if seed % 4 == 0 else kinds)
    if rng.random() < 0.6:
        mix.rows["local"] = mix.work_on_rows(f"%local[%d] : memref<{DIM}xf32>")
        mix.reduction()
    rows = mix.work_on_rows(f"%rows[%p, %d] : memref<?x{DIM}xf32>")
    last = list(mix.numbers)[-1]
    mix.lines.append(f"memref.store %{last}, %out[%p] : memref<?xf32>")
    body = f"""
        %n = memref.dim %out, %c0 : memref<?xf32>
        %local = memref.alloca() : memref<{DIM}xf32>
        scf.for %p = %c0 to %n step %c1 {{
          {chr(10).join(mix.lines)}
        }}"""
    arguments = (
        f"{table('a', DIM)}, {table('b', DIM)}, %us: memref<?xf32>, %ws: memref<?xf32>, %ks: memref<?xi32>, "
        f"%out: memref<?xf32>, %rows: memref<?x{DIM}xf32>"
    )
    buffers = {"a": a, "b": b, "us": u, "ws": w, "ks": ks, "out": (COUNT,), "rows": (COUNT, DIM)}
    return function(arguments, body, DIM), buffers, {"out": mix.numbers[last], "rows": rows}


@pytest.mark.parametrize("first", range(0, 40, 8))
def test_mixtures(device: daedal.Device, first: int) -> None:
    compiled = 0
    for seed in range(first, first + 8):
        with np.errstate(all="ignore"):
            text, buffers, wanted = mixture(seed)
        try:
            kernel = compile_scf(text, device.config)
        except daedal.UnsupportedOperation as error:
            if "configuration" not in str(error):  # else it is too large for the machine
                raise
            continue
        outputs = run_kernel(device, kernel, buffers).outputs
        for name, value in wanted.items():
            found = torch.from_numpy(outputs[name])
            assert same_bits(found, torch.from_numpy(np.ascontiguousarray(value, F32))), (seed, name, text)
        compiled += 1
    assert compiled >= 4
