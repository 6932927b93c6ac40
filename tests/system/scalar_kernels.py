"""Loops with reductions and single numbers, and what they give: the same operations in NumPy, bit for bit."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.compiler.functions import Reference, numpy_exponential, numpy_sigmoid
from daedal.hw.isa.execute import VectorOp
from tests.unit.execute_unit.model import reduce

Array = np.ndarray[Any, Any]
F32 = np.float32
fma = Reference().fma


@dataclass
class Case:
    """A function's text, the buffers of a run, and the ``out`` that it must give."""

    text: str
    buffers: dict[str, Any]
    expected: Array
    values: dict[str, int] = field(default_factory=dict)


def reduced(op: VectorOp, a: Array, b: Array | None = None) -> Array:
    """The reduction of a row, or of two."""
    with np.errstate(all="ignore"):
        bits = reduce(op, a.view(np.uint32), None if b is None else b.view(np.uint32))
    return np.array([bits], np.uint32).view(F32)[0]


def table(name: str, dim: int) -> str:
    """The argument that is a table of rows."""
    return f"%{name}: memref<?x{dim}xf32, strided<[?, 1]>>"


def function(arguments: str, body: str, dim: int) -> str:
    """A function with the usual constants."""
    return f"""
func.func private @daedal_exp(f32) -> f32
func.func private @daedal_sigmoid(f32) -> f32
func.func @f({arguments}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %dim = arith.constant {dim} : index
  %zero = arith.constant 0.0 : f32
  {body}
  func.return
}}"""


def row(name: str, indices: str, dim: int, to: str) -> str:
    """The load of an element of a row at column %d."""
    return f"%{to} = memref.load %{name}[{indices}, %d] : memref<?x{dim}xf32, strided<[?, 1]>>\n"


def load_index(buffer: str, at: str, to: str) -> str:
    """The load of an index."""
    return (
        f"%{to}0 = memref.load %{buffer}[{at}] : memref<?xi32>\n%{to} = arith.index_cast %{to}0 : i32 to index\n"
    )


def dot(rows: str, a: str, b: str, to: str, name: str = "acc") -> str:
    """The reduction of products, fused."""
    return f"""
    %{to} = scf.for %d = %c0 to %dim step %c1 iter_args(%{name} = %zero) -> (f32) {{
      {rows}
      %next_{name} = math.fma %{a}, %{b}, %{name} : f32
      scf.yield %next_{name} : f32
    }} {{daedal.reduce}}"""


ACTIVATIONS: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "identity": ("%g = arith.addf %dot, %zero : f32", lambda s: s + F32(0)),
    "relu": (
        "%positive = arith.cmpf ogt, %dot, %zero : f32\n%g = arith.select %positive, %dot, %zero : f32",
        lambda s: np.where(s > 0, s, F32(0)),
    ),
    "sigmoid": ("%g = func.call @daedal_sigmoid(%dot) : (f32) -> f32", numpy_sigmoid),
}


def graph(rng: np.random.Generator, vertices: int, edges: int) -> tuple[Array, Array]:
    """Row pointers, some vertices without edges, and columns."""
    cuts = np.sort(rng.integers(0, edges + 1, vertices - 1))
    return np.array([0, *cuts, edges], np.int32), rng.integers(0, vertices, edges).astype(np.int32)


BOUNDS = (
    "%next = arith.addi %v, %c1 : index\n" + load_index("row", "%v", "begin") + load_index("row", "%next", "end")
)


def message_passing(
    rng: np.random.Generator, activation: str, dim: int, vertices: int = 6, edges: int = 30
) -> Case:
    """For each vertex the sum of its neighbours, each weighted by a function of their dot product."""
    instructions, compute = ACTIVATIONS[activation]
    text = function(
        f"{table('x', dim)}, %row: memref<?xi32>, %col: memref<?xi32>, %out: memref<?x{dim}xf32>",
        f"""
        %n = memref.dim %out, %c0 : memref<?x{dim}xf32>
        %sum = memref.alloca() : memref<{dim}xf32>
        %own = memref.alloca() : memref<{dim}xf32>
        scf.for %v = %c0 to %n step %c1 {{
          {BOUNDS}
          scf.for %d = %c0 to %dim step %c1 {{
            {row("x", "%v", dim, "w")}
            memref.store %w, %own[%d] : memref<{dim}xf32>
            memref.store %zero, %sum[%d] : memref<{dim}xf32>
          }}
          scf.for %p = %begin to %end step %c1 {{
            {load_index("col", "%p", "k")}
            {dot(row("x", "%k", dim, "y") + f"%w = memref.load %own[%d] : memref<{dim}xf32>", "y", "w", "dot")}
            {instructions}
            scf.for %d = %c0 to %dim step %c1 {{
              {row("x", "%k", dim, "y")}
              %o = memref.load %sum[%d] : memref<{dim}xf32>
              %q = math.fma %g, %y, %o : f32
              memref.store %q, %sum[%d] : memref<{dim}xf32>
            }}
          }}
          scf.for %d = %c0 to %dim step %c1 {{
            %o = memref.load %sum[%d] : memref<{dim}xf32>
            memref.store %o, %out[%v, %d] : memref<?x{dim}xf32>
          }}
        }}""",
        dim,
    )
    x = (rng.standard_normal((vertices, dim)) / dim**0.5).astype(F32)
    rows, col = graph(rng, vertices, edges)
    expected = np.zeros((vertices, dim), F32)
    for v in range(vertices):
        for k in col[rows[v] : rows[v + 1]]:
            g = compute(reduced(VectorOp.FMA, x[k], x[v]))
            expected[v] = fma(g, x[k], expected[v])
    return Case(text, {"x": x, "row": rows, "col": col, "out": (vertices, dim)}, expected)


def sddmm(rng: np.random.Generator, dim: int, edges: int = 20) -> Case:
    """For each edge the dot product of a row of each of two tables."""
    text = function(
        f"{table('x', dim)}, {table('y', dim)}, %src: memref<?xi32>, %dst: memref<?xi32>, %out: memref<?xf32>",
        f"""
        %n = memref.dim %out, %c0 : memref<?xf32>
        scf.for %e = %c0 to %n step %c1 {{
          {load_index("src", "%e", "i")}
          {load_index("dst", "%e", "j")}
          {dot(row("x", "%i", dim, "a") + row("y", "%j", dim, "b"), "a", "b", "s")}
          memref.store %s, %out[%e] : memref<?xf32>
        }}""",
        dim,
    )
    x, y = rng.standard_normal((2, 9, dim)).astype(F32)
    src, dst = rng.integers(0, 9, (2, edges)).astype(np.int32)
    expected = np.array([reduced(VectorOp.FMA, x[i], y[j]) for i, j in zip(src, dst, strict=True)], F32)
    return Case(text, {"x": x, "y": y, "src": src, "dst": dst, "out": (edges,)}, expected)


def difference(h: Array, r: Array, t: Array) -> Array:
    return h + r - t


SCORES: dict[str, tuple[str, str, Callable[[Array, Array, Array], Array]]] = {
    "transe-l1": (
        "%m = arith.addf %h, %r : f32\n%u = arith.subf %m, %t : f32\n%z = math.absf %u : f32\n"
        "%next = arith.addf %acc, %z : f32",
        "",
        lambda h, r, t: reduced(VectorOp.ADD, abs(difference(h, r, t))),
    ),
    "transe-l2": (
        "%m = arith.addf %h, %r : f32\n%u = arith.subf %m, %t : f32\n%next = math.fma %u, %u, %acc : f32",
        "",
        lambda h, r, t: reduced(VectorOp.FMA, difference(h, r, t), difference(h, r, t)),
    ),
    "transe-l2-root": (
        "%m = arith.addf %h, %r : f32\n%u = arith.subf %m, %t : f32\n%next = math.fma %u, %u, %acc : f32",
        "%root = math.sqrt %s : f32\n",
        lambda h, r, t: np.sqrt(reduced(VectorOp.FMA, difference(h, r, t), difference(h, r, t))),
    ),
    "distmult": (
        "%m = arith.mulf %h, %r : f32\n%z = arith.mulf %m, %t : f32\n%next = arith.addf %acc, %z : f32",
        "",
        lambda h, r, t: reduced(VectorOp.MUL_ADD, h * r, t),
    ),
}


def triples(rng: np.random.Generator, score: str, dim: int, count: int = 12) -> Case:
    """For each triple (head, relation, tail) a score of the three rows."""
    each, after, compute = SCORES[score]
    text = function(
        f"{table('x', dim)}, {table('y', dim)}, %hs: memref<?xi32>, %rs: memref<?xi32>, %ts: memref<?xi32>, "
        "%out: memref<?xf32>",
        f"""
        %n = memref.dim %out, %c0 : memref<?xf32>
        scf.for %e = %c0 to %n step %c1 {{
          {load_index("hs", "%e", "i")} {load_index("rs", "%e", "j")} {load_index("ts", "%e", "k")}
          %s = scf.for %d = %c0 to %dim step %c1 iter_args(%acc = %zero) -> (f32) {{
            {row("x", "%i", dim, "h")} {row("y", "%j", dim, "r")} {row("x", "%k", dim, "t")}
            {each} : f32
            scf.yield %next : f32
          }} {{daedal.reduce}}
          {after}
          memref.store %{"root" if after else "s"}, %out[%e] : memref<?xf32>
        }}""".replace(" : f32 : f32", " : f32"),
        dim,
    )
    x, y = rng.standard_normal((2, 7, dim)).astype(F32)
    hs, rs, ts = rng.integers(0, 7, (3, count)).astype(np.int32)
    expected = np.array([compute(x[i], y[j], x[k]) for i, j, k in zip(hs, rs, ts, strict=True)], F32)
    return Case(text, {"x": x, "y": y, "hs": hs, "rs": rs, "ts": ts, "out": (count,)}, expected)


def block_attention(rng: np.random.Generator, dim: int, block: int = 4) -> Case:
    """Scores q.k: for each query the keys of the blocks that it lists, scaled."""
    queries, blocks, listed = 3, 6, 5
    text = function(
        f"{table('q', dim)}, %k: memref<?x{block}x{dim}xf32>, %row: memref<?xi32>, %col: memref<?xi32>, "
        f"%out: memref<?x{block}xf32>",
        f"""
        %n = memref.dim %q, %c0 : memref<?x{dim}xf32, strided<[?, 1]>>
        %block = arith.constant {block} : index
        %scale = arith.constant 0.3 : f32
        scf.for %v = %c0 to %n step %c1 {{
          {BOUNDS}
          scf.for %p = %begin to %end step %c1 {{
            {load_index("col", "%p", "b")}
            scf.for %j = %c0 to %block step %c1 {{
              {dot(row("q", "%v", dim, "a") + f"%c = memref.load %k[%b, %j, %d] : memref<?x{block}x{dim}xf32>",
                   "a", "c", "s")}
              %t = arith.mulf %s, %scale : f32
              memref.store %t, %out[%p, %j] : memref<?x{block}xf32>
            }}
          }}
        }}""",
        dim,
    )
    q, k = rng.standard_normal((queries, dim)).astype(F32), rng.standard_normal((blocks, block, dim)).astype(F32)
    rows, col = np.array([0, 2, 2, 5], np.int32), rng.integers(0, blocks, listed).astype(np.int32)
    expected = np.zeros((listed, block), F32)
    for v in range(queries):
        for p in range(rows[v], rows[v + 1]):
            for j in range(block):
                expected[p, j] = reduced(VectorOp.FMA, q[v], k[col[p], j]) * F32(0.3)
    return Case(text, {"q": q, "k": k, "row": rows, "col": col, "out": expected.shape}, expected)


ELEMENTWISE: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "exp": ("%y = func.call @daedal_exp(%x) : (f32) -> f32", numpy_exponential),
    "math.exp": ("%y = math.exp %x : f32", numpy_exponential),
    "sigmoid": ("%y = func.call @daedal_sigmoid(%x) : (f32) -> f32", numpy_sigmoid),
    "sqrt": ("%a = math.absf %x : f32\n%y = math.sqrt %a : f32", lambda x: np.sqrt(abs(x))),
    "abs": ("%y = math.absf %x : f32", abs),
    "relu": (
        "%above = arith.cmpf ogt, %x, %zero : f32\n%y = arith.select %above, %x, %zero : f32",
        lambda x: np.where(x > 0, x, F32(0)),
    ),
    "leaky": (
        "%c = arith.constant 0.1 : f32\n%z = arith.mulf %x, %c : f32\n%above = arith.cmpf oge, %x, %zero : f32\n"
        "%y = arith.select %above, %x, %z : f32",
        lambda x: np.where(x >= 0, x, x * F32(0.1)),
    ),
    "unlike": (
        "%c = arith.constant 0.5 : f32\n%z = arith.negf %x : f32\n%above = arith.cmpf une, %x, %c : f32\n"
        "%low = arith.cmpf ule, %x, %zero : f32\n%b = arith.andi %above, %low : i1\n%y = arith.select %b, %z, %x : f32",
        lambda x: np.where((x != 0.5) & ~(x > 0), -x, x),
    ),
}


def elementwise(rng: np.random.Generator, name: str, dim: int) -> Case:
    """A function of every element of the rows that are listed."""
    instructions, compute = ELEMENTWISE[name]
    text = function(
        f"{table('t', dim)}, %i: memref<?xi32>, %out: memref<?x{dim}xf32>",
        f"""
        %n = memref.dim %i, %c0 : memref<?xi32>
        scf.for %p = %c0 to %n step %c1 {{
          {load_index("i", "%p", "k")}
          scf.for %d = %c0 to %dim step %c1 {{
            {row("t", "%k", dim, "x")}
            {instructions}
            memref.store %y, %out[%p, %d] : memref<?x{dim}xf32>
          }}
        }}""",
        dim,
    )
    t = (rng.standard_normal((5, dim)) * 20).astype(F32)
    t[0, :4] = np.nan, 0.5, -0.0, -np.inf
    i = rng.integers(0, 5, 4).astype(np.int32)
    i[0] = 0
    with np.errstate(all="ignore"):
        return Case(text, {"t": t, "i": i, "out": (4, dim)}, np.asarray(compute(t[i]), F32))
