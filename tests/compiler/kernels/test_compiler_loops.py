"""Loops as text: changed ones, and ones that no embedding operation gives, do what they say."""

import itertools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal.compiler.pipeline import compile_scf
from daedal.hw.config.core import Config
from daedal.hw.isa.tools.assembler import disassemble
from daedal.runtime.kernel import Kernel
from daedal.runtime.kernel_launch import run_kernel
from daedal.runtime.launch_arguments import Buffer
from tests.compiler.layers.compiler_support import ddr3, device, run

__all__ = ["ddr3", "device"]

INDICES = np.array([3, 1, 4, 1, 5, 0, 2, 6, 5, 3], np.int64)
OFFSETS = np.array([0, 3, 3, 8, 10], np.int64)


@pytest.fixture
def table(rng: np.random.Generator) -> Any:
    return rng.standard_normal((7, 64)).astype(np.float32)


def sum_text(device: daedal.Device) -> str:
    inputs = (torch.from_numpy(INDICES), torch.from_numpy(OFFSETS))
    module = nn.EmbeddingBag(7, 64, mode="sum", include_last_offset=True)
    return daedal.compile(module, inputs, device=device).ir("scf")


def changed(device: daedal.Device, *changes: tuple[str, str]) -> Kernel:
    text = sum_text(device)
    original = compile_scf(text, device.config)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    kernel = compile_scf(text, device.config)
    assert kernel.program != original.program
    return kernel


def run_bags(device: daedal.Device, kernel: Kernel, table: Any) -> Any:
    out = np.full((4, 64), 9, np.float32)
    return run(device, kernel, table=table, indices=INDICES, offsets=OFFSETS, out=out)


def expected(table: Any, step: Any, start: float = 0.0, each: int = 1) -> Any:
    out = np.full((4, 64), start, np.float32)
    for b in range(4):
        for p in range(OFFSETS[b], OFFSETS[b + 1], each):
            out[b] = step(out[b], table[INDICES[p]])
    return out


def test_unchanged_text_gives_the_same_program(device: daedal.Device, table: Any) -> None:
    kernel = compile_scf(sum_text(device), device.config)
    module = nn.EmbeddingBag(7, 64, mode="sum")
    inputs = (torch.from_numpy(INDICES), torch.from_numpy(OFFSETS))
    assert kernel.program == daedal.compile(module, inputs, device=device).program
    assert np.array_equal(run_bags(device, kernel, table), expected(table, lambda s, x: s + x))


def test_subtraction(device: daedal.Device, table: Any) -> None:
    kernel = changed(device, ("arith.addf %s, %x", "arith.subf %s, %x"))
    assert np.array_equal(run_bags(device, kernel, table), expected(table, lambda s, x: s - x))
    kernel = changed(device, ("arith.addf %s, %x", "arith.subf %x, %s"))
    assert np.array_equal(run_bags(device, kernel, table), expected(table, lambda s, x: x - s))


def test_product_from_another_start(device: daedal.Device, table: Any) -> None:
    start = ("%zero = arith.constant 0.000000e+00", "%zero = arith.constant 1.500000e+00")
    kernel = changed(device, start, ("arith.addf %s, %x", "arith.mulf %s, %x"))
    assert np.array_equal(run_bags(device, kernel, table), expected(table, lambda s, x: s * x, 1.5))


def test_scale(device: daedal.Device, table: Any) -> None:
    scaled = "%scale = arith.constant 0.3 : f32\n%y = arith.mulf %x, %scale : f32\n"
    kernel = changed(device, ("%added = arith.addf %s, %x", scaled + "%added = arith.addf %s, %y"))
    third = np.float32(0.3)
    assert np.array_equal(run_bags(device, kernel, table), expected(table, lambda s, x: s + x * third))


def test_negation_and_division_by_a_constant(device: daedal.Device, table: Any) -> None:
    three = "%three = arith.constant 3.0 : f32\n%y = arith.divf %x, %three : f32\n%z = arith.negf %y : f32\n"
    kernel = changed(device, ("%added = arith.addf %s, %x", three + "%added = arith.addf %s, %z"))
    wanted = expected(table, lambda s, x: s + -(x / np.float32(3)))
    assert np.array_equal(run_bags(device, kernel, table), wanted)
    with pytest.raises(daedal.UnsupportedOperation, match=r"arith\.divf must be by a count"):
        changed(device, ("arith.addf %s, %x", "arith.divf %s, %x"))


def test_maximum(device: daedal.Device, table: Any) -> None:
    start = ("%zero = arith.constant 0.000000e+00", "%zero = arith.constant 0xFF800000")
    choose = "%more = arith.cmpf ogt, %x, %s : f32\n%added = arith.select %more, %x, %s : f32"
    kernel = changed(device, start, ("%added = arith.addf %s, %x : f32", choose))
    wanted = expected(table, lambda s, x: np.where(x > s, x, s), -np.inf)
    assert np.array_equal(run_bags(device, kernel, table), wanted)
    zero = changed(device, ("%added = arith.addf %s, %x : f32", choose))
    wanted = expected(-abs(table), lambda s, x: np.where(x > s, x, s))
    assert np.array_equal(run_bags(device, zero, -abs(table)), wanted)


def test_a_minimum_that_takes_the_first_row_as_it_is(device: daedal.Device, table: Any) -> None:
    inputs = (torch.from_numpy(INDICES), torch.from_numpy(OFFSETS))
    text = daedal.compile(nn.EmbeddingBag(7, 64, mode="max"), inputs, device=device).ir("scf")
    least = text.replace("arith.cmpf ogt", "arith.cmpf olt")
    assert least != text
    result = run_bags(device, compile_scf(least, device.config), table)
    for b in range(4):
        rows = table[INDICES[OFFSETS[b] : OFFSETS[b + 1]]]
        assert np.array_equal(result[b], rows.min(0) if len(rows) else np.zeros(64))
    for other in (
        text.replace("%zero = arith.constant 0.000000e+00", "%zero = arith.constant 1.000000e+00"),
        text.replace("arith.cmpi eq, %count, %c0", "arith.cmpi eq, %count, %c1"),
        text.replace("arith.select %taken, %x, %s", "arith.select %taken, %s, %x"),
    ):
        assert other != text
        with pytest.raises(daedal.UnsupportedOperation):
            compile_scf(other, device.config)


def test_absolute(device: daedal.Device, table: Any) -> None:
    change = ("%added = arith.addf %s, %x", "%y = math.absf %x : f32\n%added = arith.addf %s, %y")
    kernel = changed(device, change)
    assert np.array_equal(run_bags(device, kernel, table), expected(table, lambda s, x: s + abs(x)))


def test_bounds_and_steps(device: daedal.Device, table: Any) -> None:
    narrow = changed(device, ("%width = arith.constant 64", "%width = arith.constant 40"))
    out = run_bags(device, narrow, table)
    assert np.array_equal(out[:, :40], expected(table, lambda s, x: s + x)[:, :40])
    assert (out[:, 40:] == 9).all()
    every_second = changed(device, ("%p = %start to %end step %c1", "%p = %start to %end step %c2"),
                           ("%c1 = ", "%c2 = arith.constant 2 : index\n%c1 = "))  # fmt: skip
    wanted = expected(table, lambda s, x: s + x, each=2)
    assert np.array_equal(run_bags(device, every_second, table), wanted)


def test_only_some_columns_are_added(device: daedal.Device, table: Any) -> None:
    kernel = changed(
        device,
        ("%d_1 = %c0 to %width", "%d_1 = %c0 to %c24"),
        ("%c1 = ", "%c24 = arith.constant 24 : index\n%c1 = "),
    )
    wanted = expected(table, lambda s, x: s + x)
    wanted[:, 24:] = 0
    assert np.array_equal(run_bags(device, kernel, table), wanted)


HEAD = """
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c8 = arith.constant 8 : index
"""


def compile_loops(config: Config, arguments: str, body: str) -> Kernel:
    return compile_scf(f"func.func @f({arguments}) {{ {HEAD} {body} func.return }}", config)


TWO_TABLES = {
    "arith.mulf %x, %y": lambda x, y, w: x * y,
    "arith.addf %x, %y": lambda x, y, w: x + y,
    "arith.subf %x, %y": lambda x, y, w: x - y,
    "arith.subf %y, %x": lambda x, y, w: y - x,
    "math.fma %y, %w, %x": lambda x, y, w: (y.astype(float) * w + x).astype(np.float32),
    "arith.subf %t, %u": lambda x, y, w: y * w - x * w,
}


@pytest.mark.parametrize("operation", TWO_TABLES)
def test_two_tables(device: daedal.Device, operation: str, rng: np.random.Generator) -> None:
    kernel = compile_loops(
        device.config,
        "%a: memref<?x8xf32>, %b: memref<?x8xf32>, %i: memref<?xi32>, %j: memref<?xi64>, %out: memref<?x8xf32>",
        f"""
        %w = arith.constant 0.3 : f32
        %n = memref.dim %i, %c0 : memref<?xi32>
        scf.for %p = %c0 to %n step %c1 {{
          %k0 = memref.load %i[%p] : memref<?xi32>
          %k = arith.index_cast %k0 : i32 to index
          %l0 = memref.load %j[%p] : memref<?xi64>
          %l = arith.index_cast %l0 : i64 to index
          scf.for %d = %c0 to %c8 step %c1 {{
            %x = memref.load %a[%k, %d] : memref<?x8xf32>
            %y = memref.load %b[%l, %d] : memref<?x8xf32>
            %u = arith.mulf %x, %w : f32
            %t = arith.mulf %y, %w : f32
            %z = {operation} : f32
            memref.store %z, %out[%p, %d] : memref<?x8xf32>
          }}
        }}""",
    )
    a, b = rng.standard_normal((2, 9, 8)).astype(np.float32)
    i, j = rng.integers(0, 9, 6).astype(np.int32), rng.integers(0, 9, 6)
    wanted = TWO_TABLES[operation](a[i], b[j], np.float32(0.3))
    assert np.array_equal(run(device, kernel, a=a, b=b, i=i, j=j, out=(6, 8)), wanted)


def test_accumulation_into_the_output(device: daedal.Device, rng: np.random.Generator) -> None:
    kernel = compile_loops(
        device.config,
        "%t: memref<?x8xf32, strided<[?, 1]>>, %row: memref<?xi32>, %col: memref<?xi32>, %val: "
        "memref<?xf32>, "
        "%out: memref<?x8xf32>",
        """
        %n = memref.dim %out, %c0 : memref<?x8xf32>
        scf.for %r = %c0 to %n step %c1 {
          %next = arith.addi %r, %c1 : index
          %s0 = memref.load %row[%r] : memref<?xi32>
          %s = arith.index_cast %s0 : i32 to index
          %e0 = memref.load %row[%next] : memref<?xi32>
          %e = arith.index_cast %e0 : i32 to index
          scf.for %p = %s to %e step %c1 {
            scf.for %d = %c0 to %c8 step %c1 {
              %c00 = memref.load %col[%p] : memref<?xi32>
              %c = arith.index_cast %c00 : i32 to index
              %v = memref.load %val[%p] : memref<?xf32>
              %x = memref.load %t[%c, %d] : memref<?x8xf32, strided<[?, 1]>>
              %y = arith.mulf %v, %x : f32
              %o = memref.load %out[%r, %d] : memref<?x8xf32>
              %z = arith.addf %o, %y : f32
              memref.store %z, %out[%r, %d] : memref<?x8xf32>
            }
          }
        }""",
    )
    t = rng.standard_normal((5, 8)).astype(np.float32)
    row, col = np.array([0, 2, 2, 5], np.int32), np.array([0, 4, 1, 1, 3], np.int32)
    val = rng.standard_normal(5).astype(np.float32)
    out = rng.standard_normal((3, 8)).astype(np.float32)
    wanted = out.copy()
    for r in range(3):
        for p in range(row[r], row[r + 1]):
            wanted[r] = wanted[r] + val[p] * t[col[p]]
    with pytest.raises(daedal.UnsupportedOperation):
        compile_loops(device.config, "%x: memref<?xf64>", "")
    assert np.array_equal(run(device, kernel, t=t, row=row, col=col, val=val, out=out), wanted)


def test_three_dimensions_and_an_offset_in_the_row(device: daedal.Device, rng: np.random.Generator) -> None:
    kernel = compile_loops(
        device.config,
        "%t: memref<?x?x32xf32>, %out: memref<?x?x24xf32>",
        """
        %n = memref.dim %out, %c0 : memref<?x?x24xf32>
        %m = memref.dim %out, %c1 : memref<?x?x24xf32>
        %c24 = arith.constant 24 : index
        scf.for %i = %c0 to %n step %c1 {
          scf.for %j = %c0 to %m step %c1 {
            scf.for %d = %c0 to %c24 step %c1 {
              %e = arith.addi %d, %c8 : index
              %x = memref.load %t[%j, %i, %e] : memref<?x?x32xf32>
              memref.store %x, %out[%i, %j, %d] : memref<?x?x24xf32>
            }
          }
        }""",
    )
    t = rng.standard_normal((4, 3, 32)).astype(np.float32)
    assert np.array_equal(run(device, kernel, t=t, out=(3, 4, 24)), t.transpose(1, 0, 2)[:, :, 8:])


def test_conditions_and_random_loads(device: daedal.Device, rng: np.random.Generator) -> None:
    kernel = compile_loops(
        device.config,
        "%t: memref<?x8xf32>, %i: memref<?xi64>, %weight: memref<?xf32>, %low: index, %out: memref<?x8xf32>",
        """
        %n = memref.dim %i, %c0 : memref<?xi64>
        %rows = memref.dim %t, %c0 : memref<?x8xf32>
        scf.for %p = %c0 to %n step %c1 {
          %k0 = memref.load %i[%p] : memref<?xi64>
          %k = arith.index_cast %k0 : i64 to index
          check.bounds "index" %k, %rows
          %w = memref.load %weight[%k] : memref<?xf32>
          %big = arith.cmpi sge, %k, %low : index
          scf.if %big {
            scf.for %d = %c0 to %c8 step %c1 {
              %x = memref.load %t[%k, %d] : memref<?x8xf32>
              %y = arith.mulf %x, %w : f32
              memref.store %y, %out[%p, %d] : memref<?x8xf32>
            }
          }
        }""",
    )
    t, weight = rng.standard_normal((9, 8)).astype(np.float32), rng.standard_normal(9).astype(np.float32)
    i = rng.integers(0, 9, 20)
    wanted = np.where((i >= 4)[:, None], t[i] * weight[i][:, None], np.float32(7))
    out = np.full((20, 8), 7, np.float32)
    given = {"t": t, "i": i, "weight": weight, "out": out}
    assert np.array_equal(run(device, kernel, values={"low": 4}, **given), wanted)
    with pytest.raises(daedal.IndexOutOfRange):
        run(device, kernel, values={"low": 4}, **(given | {"i": i + 3}))
    with pytest.raises(daedal.UnsupportedOperation, match="must be given low as well"):
        run(device, kernel, **given)
    with pytest.raises(daedal.UnsupportedOperation, match="'i' must be of int64"):
        run(device, kernel, values={"low": 4}, **(given | {"i": i.astype(np.int32)}))


def test_long_rows_are_tiled(device: daedal.Device, rng: np.random.Generator) -> None:
    width = 3 * device.config.vl_max + 20
    kernel = compile_loops(
        device.config,
        f"%t: memref<?x{width}xf32>, %out: memref<?x{width}xf32>",
        f"""
        %w = arith.constant {width} : index
        %n = memref.dim %t, %c0 : memref<?x{width}xf32>
        scf.for %p = %c0 to %n step %c1 {{
          scf.for %d = %c0 to %w step %c1 {{
            %x = memref.load %t[%p, %d] : memref<?x{width}xf32>
            %y = arith.addf %x, %x : f32
            memref.store %y, %out[%p, %d] : memref<?x{width}xf32>
          }}
        }}""",
    )
    t = rng.standard_normal((3, width)).astype(np.float32)
    assert np.array_equal(run(device, kernel, t=t, out=(3, width)), t + t)


def test_a_sum_of_single_numbers(device: daedal.Device, rng: np.random.Generator) -> None:
    kernel = compile_loops(
        device.config,
        "%t: memref<?xf32>, %i: memref<?xi64>, %o: memref<?xi64>, %low: index, %out: memref<?xf32>",
        """
        %n = memref.dim %out, %c0 : memref<?xf32>
        %start = arith.constant 0.5 : f32
        %two = arith.constant 2.0 : f32
        scf.for %b = %c0 to %n step %c1 {
          %next = arith.addi %b, %c1 : index
          %s0 = memref.load %o[%b] : memref<?xi64>
          %s = arith.index_cast %s0 : i64 to index
          %e0 = memref.load %o[%next] : memref<?xi64>
          %e = arith.index_cast %e0 : i64 to index
          %sum = scf.for %p = %s to %e step %c1 iter_args(%acc = %start) -> (f32) {
            %k0 = memref.load %i[%p] : memref<?xi64>
            %k = arith.index_cast %k0 : i64 to index
            %x = memref.load %t[%k] : memref<?xf32>
            %c = arith.cmpi sge, %k, %low : index
            %new = scf.if %c -> (f32) {
              %a = arith.addf %acc, %x : f32
              scf.yield %a : f32
            } else {
              scf.yield %acc : f32
            }
            scf.yield %new : f32
          }
          %twice = arith.mulf %sum, %two : f32
          memref.store %twice, %out[%b] : memref<?xf32>
        }""",
    )
    t = rng.standard_normal(9).astype(np.float32)
    wanted = np.zeros(4, np.float32)
    for b in range(4):
        acc = np.float32(0.5)
        for k in INDICES[OFFSETS[b] : OFFSETS[b + 1]]:
            acc = acc + t[k] if k >= 2 else acc
        wanted[b] = acc * np.float32(2)
    given = {"t": t, "i": INDICES, "o": OFFSETS, "out": (4,)}
    assert np.array_equal(run(device, kernel, values={"low": 2}, **given), wanted)


def test_products_along_rows(device: daedal.Device, rng: np.random.Generator) -> None:
    kernel = compile_loops(
        device.config,
        "%a: memref<?x8xf32>, %b: memref<8xf32>, %out: memref<?xf32>",
        """
        %n = memref.dim %out, %c0 : memref<?xf32>
        %zero = arith.constant 0.0 : f32
        scf.for %r = %c0 to %n step %c1 {
          %sum = scf.for %d = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (f32) {
            %x = memref.load %a[%r, %d] : memref<?x8xf32>
            %y = memref.load %b[%d] : memref<8xf32>
            %z = math.fma %x, %y, %acc : f32
            scf.yield %z : f32
          }
          memref.store %sum, %out[%r] : memref<?xf32>
        }""",
    )
    a = rng.integers(-99, 99, (5, 8)).astype(np.float32)
    b = rng.integers(-99, 99, 8).astype(np.float32)
    assert np.array_equal(run(device, kernel, a=a, b=b, out=(5,)), a @ b)


PARTLY = """
scf.for %d = %c0 to %c4 step %c1 {
  memref.store %one, %out[%r, %d] : memref<?x8xf32>
}"""
OTHER_ROW = """
%next = arith.addi %r, %c1 : index
scf.for %d = %c0 to %c8 step %c1 {
  memref.store %one, %out[%next, %d] : memref<?x8xf32>
}"""


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (PARTLY, "all loops over a row must have the same bounds"),
        (
            OTHER_ROW,
            "buffer %out is read and written, but not at the same row in all places: reads run ahead",
        ),
    ],
    ids=["part of the row", "another row"],
)
def test_what_is_read_and_written_must_be_one_row(ddr3: daedal.Device, write: str, message: str) -> None:
    with pytest.raises(daedal.UnsupportedOperation, match=message):
        compile_loops(
            ddr3.config,
            "%copy: memref<?x8xf32>, %out: memref<?x8xf32>",
            f"""
            %n = memref.dim %copy, %c0 : memref<?x8xf32>
            %c4 = arith.constant 4 : index
            %one = arith.constant 1.0 : f32
            scf.for %r = %c0 to %n step %c1 {{
              scf.for %d = %c0 to %c8 step %c1 {{
                %x = memref.load %out[%r, %d] : memref<?x8xf32>
                memref.store %x, %copy[%r, %d] : memref<?x8xf32>
              }}
              {write}
            }}""",
        )


def test_a_row_must_not_be_changed_again_in_a_later_turn(ddr3: daedal.Device) -> None:
    """Each row is read and written once for every turn of the outer loop; the access unit would read it too early."""
    with pytest.raises(daedal.UnsupportedOperation, match="buffer %out must not be both read and written"):
        compile_loops(
            ddr3.config,
            "%t: memref<?x8xf32>, %out: memref<?x8xf32>",
            """
            %n = memref.dim %t, %c0 : memref<?x8xf32>
            %m = memref.dim %out, %c0 : memref<?x8xf32>
            scf.for %q = %c0 to %n step %c1 {
              scf.for %r = %c0 to %m step %c1 {
                scf.for %d = %c0 to %c8 step %c1 {
                  %x = memref.load %t[%q, %d] : memref<?x8xf32>
                  %s = memref.load %out[%r, %d] : memref<?x8xf32>
                  %y = arith.addf %s, %x : f32
                  memref.store %y, %out[%r, %d] : memref<?x8xf32>
                }
              }
            }""",
        )


def running(config: Config, body: str) -> Kernel:
    """A loop over rows %x that keeps a local row %acc from one to the next; ``body`` may write %one and %two."""
    return compile_loops(
        config,
        "%t: memref<?x8xf32>, %one: memref<?x8xf32>, %two: memref<?x8xf32>",
        f"""
        %n = memref.dim %t, %c0 : memref<?x8xf32>
        %zero = arith.constant 0.0 : f32
        %acc = memref.alloca() : memref<8xf32>
        scf.for %d = %c0 to %c8 step %c1 {{
          memref.store %zero, %acc[%d] : memref<8xf32>
        }}
        scf.for %p = %c0 to %n step %c1 {{
          scf.for %d = %c0 to %c8 step %c1 {{
            %x = memref.load %t[%p, %d] : memref<?x8xf32>
            %s = memref.load %acc[%d] : memref<8xf32>
            {body}
          }}
        }}""",
    )


def test_rows_of_one_turn_go_to_their_own_places(device: daedal.Device, rng: np.random.Generator) -> None:
    """The sum before each row and the sum with it: the old one is needed after the new one was kept."""
    kernel = running(
        device.config,
        """
        %y = arith.addf %s, %x : f32
        memref.store %y, %acc[%d] : memref<8xf32>
        memref.store %s, %one[%p, %d] : memref<?x8xf32>
        memref.store %y, %two[%p, %d] : memref<?x8xf32>""",
    )
    t = rng.integers(-99, 99, (5, 8)).astype(np.float32)
    outputs = run_kernel(device, kernel, {"t": t, "one": (5, 8), "two": (5, 8)}).outputs
    assert np.array_equal(outputs["two"], np.cumsum(t, 0))
    assert np.array_equal(outputs["one"], np.cumsum(t, 0) - t)


def test_a_product_is_of_what_was_there(device: daedal.Device, rng: np.random.Generator) -> None:
    """One factor is overwritten before the product is added to something."""
    kernel = running(
        device.config,
        """
        %product = arith.mulf %s, %x : f32
        memref.store %x, %acc[%d] : memref<8xf32>
        %y = arith.addf %product, %x : f32
        memref.store %y, %one[%p, %d] : memref<?x8xf32>""",
    )
    t = rng.integers(-99, 99, (5, 8)).astype(np.float32)
    outputs = run_kernel(device, kernel, {"t": t, "one": (5, 8), "two": (5, 8)}).outputs
    before = np.concatenate([np.zeros((1, 8), np.float32), t[:-1]])
    assert np.array_equal(outputs["one"], before * t + t)


def test_addresses_of_empty_bags(device: daedal.Device, rng: np.random.Generator) -> None:
    """Where a bag's result goes takes more arithmetic than the outer loop's level has; an empty bag has none inside."""
    kernel = compile_loops(
        device.config,
        "%t: memref<?x8xf32>, %o: memref<?xi64>, %r: memref<?xi64>, %out: memref<?x?x8xf32>",
        """
        %n = memref.dim %r, %c0 : memref<?xi64>
        %c2 = arith.constant 2 : index
        %zero = arith.constant 0.0 : f32
        %acc = memref.alloca() : memref<8xf32>
        scf.for %b = %c0 to %n step %c1 {
          %next = arith.addi %b, %c1 : index
          %b0 = memref.load %o[%b] : memref<?xi64>
          %begin = arith.index_cast %b0 : i64 to index
          %e0 = memref.load %o[%next] : memref<?xi64>
          %end = arith.index_cast %e0 : i64 to index
          %y0 = memref.load %r[%b] : memref<?xi64>
          %half = arith.index_cast %y0 : i64 to index
          %y = arith.muli %half, %c2 : index
          scf.for %d = %c0 to %c8 step %c1 {
            memref.store %zero, %acc[%d] : memref<8xf32>
          }
          scf.for %p = %begin to %end step %c1 {
            scf.for %d = %c0 to %c8 step %c1 {
              %x = memref.load %t[%p, %d] : memref<?x8xf32>
              %a = memref.load %acc[%d] : memref<8xf32>
              %c = arith.addf %a, %x : f32
              memref.store %c, %acc[%d] : memref<8xf32>
            }
          }
          scf.for %d = %c0 to %c8 step %c1 {
            %a = memref.load %acc[%d] : memref<8xf32>
            memref.store %a, %out[%b, %y, %d] : memref<?x?x8xf32>
          }
        }""",
    )
    t, r = rng.integers(-9, 9, (10, 8)).astype(np.float32), np.array([2, 0, 1, 2], np.int64)
    wanted = np.full((4, 5, 8), 7, np.float32)
    for b in range(4):
        wanted[b, 2 * r[b]] = t[OFFSETS[b] : OFFSETS[b + 1]].sum(0)
    out = np.full((4, 5, 8), 7, np.float32)
    assert np.array_equal(run(device, kernel, t=t, o=OFFSETS, r=r, out=out), wanted)


def siblings(second: str, stored: str) -> str:
    """Two loops in the body of one: the sum of the bag's rows, and of the rows before it, in local row ``second``."""

    def add(index: str, bounds: str, local: str) -> str:
        return f"""
          scf.for %d = %c0 to %c8 step %c1 {{
            memref.store %zero, %{local}[%d] : memref<8xf32>
          }}
          scf.for %{index} = {bounds} step %c1 {{
            scf.for %d = %c0 to %c8 step %c1 {{
              %x = memref.load %t[%{index}, %d] : memref<?x8xf32>
              %a = memref.load %{local}[%d] : memref<8xf32>
              %c = arith.addf %a, %x : f32
              memref.store %c, %{local}[%d] : memref<8xf32>
            }}
          }}"""

    def store(local: str, place: str) -> str:
        return f"""
          scf.for %d = %c0 to %c8 step %c1 {{
            %a = memref.load %{local}[%d] : memref<8xf32>
            {place}
          }}"""

    after = f"%f = arith.addi %d, %c8 : index\n memref.store %a, %out[{stored}, %f] : memref<?x16xf32>"
    return f"""
        %n = memref.dim %out, %c0 : memref<?x16xf32>
        %zero = arith.constant 0.0 : f32
        %p = memref.alloca() : memref<8xf32>
        %q = memref.alloca() : memref<8xf32>
        scf.for %b = %c0 to %n step %c1 {{
          %next = arith.addi %b, %c1 : index
          %b0 = memref.load %o[%b] : memref<?xi64>
          %begin = arith.index_cast %b0 : i64 to index
          %e0 = memref.load %o[%next] : memref<?xi64>
          %end = arith.index_cast %e0 : i64 to index
          {add("i", "%begin to %end", "p")}
          {store("p", "memref.store %a, %out[%b, %d] : memref<?x16xf32>")}
          {add("j", "%c0 to %begin", second)}
          {store(second, after)}
        }}"""


def test_loops_beside_each_other(device: daedal.Device, rng: np.random.Generator) -> None:
    arguments = "%t: memref<?x8xf32>, %o: memref<?xi64>, %out: memref<?x16xf32>"
    kernel = compile_loops(device.config, arguments, siblings("q", "%b"))
    t = rng.integers(-9, 9, (10, 8)).astype(np.float32)
    wanted = [np.concatenate([t[a:b].sum(0), t[:a].sum(0)]) for a, b in itertools.pairwise(OFFSETS)]
    assert np.array_equal(run(device, kernel, t=t, o=OFFSETS, out=(4, 16)), np.array(wanted))
    message = "loop %b must have one loop in its body, not loop %i and loop %j, which share a local row"
    with pytest.raises(daedal.UnsupportedOperation, match=message):
        compile_loops(device.config, arguments, siblings("p", "%b"))
    with pytest.raises(daedal.UnsupportedOperation, match=message):
        compile_loops(device.config, arguments, siblings("q", "%c0"))


FILLED = """
      %z = arith.constant 0.0 : f32
      scf.for %i = %c0 to %n step %c1 {
        BODY
      }
"""
LIMITS = {
    "no dimension": (
        "%o: memref<f32>, %n: index",
        "memref.store %z, %o[] : memref<f32>",
        "%o must have at least one dim",
    ),
    "a large constant": (
        "%o: memref<?xf32>, %n: index",
        f"%a = arith.constant {1 << 41} : index\n scf.for %j = %c0 to %a step %c1 "
        "{ memref.store %z, %o[%j] : memref<?xf32> }",
        "constant 8796093022208 must fit 40 bits",
    ),
    "a negative factor": (
        "%o: memref<?xf32>, %n: index",
        "%a = arith.constant -3 : index\n %b = arith.muli %i, %a : index\n memref.store %z, %o[%b] : memref<?xf32>",
        "the constant factor of a product, .* must be from 0 to 16777215, not -3",
    ),
    "nesting": (
        "%o: memref<?xf32>, %n: index",
        "".join(f"scf.for %j{n} = %c0 to %c1 step %c1 {{ " for n in range(300)) + "}" * 300,
        "the loops cannot be read: line 8: it is nested too deeply",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(ddr3: daedal.Device, name: str) -> None:
    arguments, body, message = LIMITS[name]
    with pytest.raises(daedal.UnsupportedOperation, match=message):
        compile_loops(ddr3.config, arguments, FILLED.replace("BODY", body))


def test_more_steps_than_there_are() -> None:
    config = Config.preset("ddr3")

    def three_tables(config: Config) -> Kernel:
        tables = ", ".join(f"%{name}: memref<?x8xf32>" for name in ("a", "b", "c", "out"))
        loads = "\n".join(f"%{name}x = memref.load %{name}[%p, %d] : memref<?x8xf32>" for name in "abc")
        return compile_loops(
            config,
            tables,
            f"""
            %n = memref.dim %a, %c0 : memref<?x8xf32>
            scf.for %p = %c0 to %n step %c1 {{
              scf.for %d = %c0 to %c8 step %c1 {{
                {loads}
                %y = arith.mulf %ax, %bx : f32
                %z = arith.mulf %y, %cx : f32
                memref.store %z, %out[%p, %d] : memref<?x8xf32>
              }}
            }}""",
        )

    steps = {int(n) for n in re.findall(r"^step (\d+)", disassemble(three_tables(config).program), re.MULTILINE)}
    assert len(steps) > 2
    three_tables(replace(config, steps=len(steps)))
    few = len(steps) - 1
    with pytest.raises(daedal.UnsupportedOperation, match=f"loop %p: its events need more than the {few} steps of"):
        three_tables(replace(config, steps=few))


@pytest.mark.parametrize(
    ("name", "shape", "wanted"),
    [
        ("table", (7, 32), r"buffer 'table' must be of float32 with shape \(\?, 64\), not of float32 with \(7, 32\)"),
        ("table", (7 * 64,), r"with shape \(\?, 64\), not of float32 with \(448,\)"),
        ("offsets", (5, 1), r"buffer 'offsets' must be of int64 with shape \(\?\), not of int64 with \(5, 1\)"),
    ],
)
def test_buffers_of_another_shape(ddr3: daedal.Device, table: Any, name: str, shape: Any, wanted: str) -> None:
    kernel = compile_scf(sum_text(ddr3), ddr3.config)
    buffers = {"table": table, "indices": INDICES, "offsets": OFFSETS, "out": np.zeros((4, 64), np.float32)}
    buffers[name] = np.resize(buffers[name], shape)
    with pytest.raises(daedal.UnsupportedOperation, match=wanted):
        run(ddr3, kernel, **buffers)
    buffers[name] = {"table": table, "offsets": OFFSETS}[name]
    assert np.array_equal(run(ddr3, kernel, **buffers), expected(table, lambda s, x: s + x))


@pytest.mark.parametrize(
    ("shape", "strides", "size"), [((3, 4), (16, 4), 48), ((3, 4), (64, 4), 192), ((5,), (8,), 40), ((), (), 4)]
)
def test_where_a_buffer_ends(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> None:
    assert Buffer(0x1000, shape, strides).end == 0x1000 + size
