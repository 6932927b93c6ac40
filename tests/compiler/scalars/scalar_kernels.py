"""Loops with reductions and single numbers, and what they give: the same operations in NumPy, bit for bit."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from daedal.compiler.functions import numpy_exponential, numpy_sigmoid
from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.spec.binary32 import fused
from daedal.hw.isa.spec.reduction import reduce

Array = np.ndarray[Any, Any]
F32 = np.float32


@dataclass
class Case:
    """A function's text, the buffers of a run, and the ``out`` that it must give."""

    text: str
    buffers: dict[str, Any]
    expected: Array
    values: dict[str, int] = field(default_factory=dict)


def reduced(op: VectorOp, a: Array, b: Array | None = None) -> Array:
    """The reduction of a row, or of two."""
    return F32(reduce(op, a, b))


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
    return f"%{to}0 = memref.load %{buffer}[{at}] : memref<?xi32>\n%{to} = arith.index_cast %{to}0 : i32 to index\n"


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


BOUNDS = "%next = arith.addi %v, %c1 : index\n" + load_index("row", "%v", "begin") + load_index("row", "%next", "end")


def message_passing(rng: np.random.Generator, activation: str, dim: int, vertices: int = 6, edges: int = 30) -> Case:
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
            expected[v] = fused(g, x[k], expected[v])
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
              {
            dot(
                row("q", "%v", dim, "a") + f"%c = memref.load %k[%b, %j, %d] : memref<?x{block}x{dim}xf32>",
                "a",
                "c",
                "s",
            )
        }
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


def singles(rng: np.random.Generator, count: int = 24) -> Case:
    """Arithmetic on single numbers, no rows at all."""
    text = function(
        "%a: memref<?xf32>, %b: memref<?xf32>, %i: memref<?xi32>, %out: memref<?xf32>",
        """
        %n = memref.dim %out, %c0 : memref<?xf32>
        %one = arith.constant 1.0 : f32
        scf.for %p = %c0 to %n step %c1 {
          %x = memref.load %a[%p] : memref<?xf32>
          %y = memref.load %b[%p] : memref<?xf32>
          %k = memref.load %i[%p] : memref<?xi32>
          %whole = arith.sitofp %k : i32 to f32
          %size = math.absf %x : f32
          %root = math.sqrt %size : f32
          %product = arith.mulf %x, %y : f32
          %less = arith.subf %product, %whole : f32
          %quotient = arith.divf %less, %root : f32
          %inverse = arith.divf %one, %y : f32
          %more = math.fma %inverse, %x, %quotient : f32
          %above = arith.cmpf ogt, %more, %one : f32
          %least = arith.select %above, %one, %more : f32
          %negative = arith.negf %least : f32
          %below = arith.cmpf olt, %negative, %x : f32
          %lesser = arith.select %below, %negative, %x : f32
          %sum = arith.addf %lesser, %more : f32
          memref.store %sum, %out[%p] : memref<?xf32>
        }""",
        1,
    )
    a, b = (rng.standard_normal((2, count)) * 3).astype(F32)
    a[0], b[1] = 0, 0
    i = rng.integers(-(1 << 31), 1 << 31, count).astype(np.int32)
    i[3:] %= 100
    with np.errstate(all="ignore"):
        more = fused(F32(1) / b, a, (a * b - i.astype(F32)) / np.sqrt(abs(a)))
        negative = -np.where(more > 1, F32(1), more)
        expected = np.where(negative < a, negative, a) + more
    return Case(text, {"a": a, "b": b, "i": i, "out": (count,)}, expected)


def function_of_numbers(name: str, x: Array) -> Case:
    """The exponential or the sigmoid of each number."""
    text = function(
        "%x: memref<?xf32>, %out: memref<?xf32>",
        f"""
        %n = memref.dim %out, %c0 : memref<?xf32>
        scf.for %p = %c0 to %n step %c1 {{
          %y = memref.load %x[%p] : memref<?xf32>
          %z = func.call @daedal_{name}(%y) : (f32) -> f32
          memref.store %z, %out[%p] : memref<?xf32>
        }}""",
        1,
    )
    compute = numpy_exponential if name == "exp" else numpy_sigmoid
    return Case(text, {"x": x, "out": x.shape}, compute(x))


REDUCTIONS: dict[str, tuple[str, str, Callable[[Array, Array], Array]]] = {
    "sum": ("0.0", "%next = arith.addf %x, %acc : f32", lambda x, y: reduced(VectorOp.ADD, x)),
    "sum from a number": (
        "1.5",
        "%next = arith.addf %acc, %x : f32",
        lambda x, y: reduced(VectorOp.ADD, x) + F32(1.5),
    ),
    "of sums": (
        "0.0",
        "%s = arith.addf %x, %y : f32\n%next = arith.addf %acc, %s : f32",
        lambda x, y: reduced(VectorOp.ADD, x + y),
    ),
    "max": (
        "0xFF800000",
        "%c = arith.cmpf ogt, %x, %acc : f32\n%next = arith.select %c, %x, %acc : f32",
        lambda x, y: reduced(VectorOp.MAX, x),
    ),
    "min from a number": (
        "-0.25",
        "%c = arith.cmpf olt, %x, %acc : f32\n%next = arith.select %c, %x, %acc : f32",
        lambda x, y: np.minimum(reduced(VectorOp.MIN, x), F32(-0.25)),
    ),
    "scaled": (
        "0.0",
        "%h = arith.constant 0.5 : f32\n%z = arith.mulf %x, %h : f32\n%next = math.fma %z, %y, %acc : f32",
        lambda x, y: reduced(VectorOp.FMA, x * F32(0.5), y),
    ),
}


def reduction(rng: np.random.Generator, name: str, dim: int) -> Case:
    """One reduction of the rows of one or two tables."""
    initial, each, compute = REDUCTIONS[name]
    text = function(
        f"{table('a', dim)}, {table('b', dim)}, %out: memref<?xf32>",
        f"""
        %n = memref.dim %out, %c0 : memref<?xf32>
        %initial = arith.constant {initial} : f32
        scf.for %p = %c0 to %n step %c1 {{
          %s = scf.for %d = %c0 to %dim step %c1 iter_args(%acc = %initial) -> (f32) {{
            {row("a", "%p", dim, "x")} {row("b", "%p", dim, "y")}
            {each}
            scf.yield %next : f32
          }} {{daedal.reduce}}
          memref.store %s, %out[%p] : memref<?xf32>
        }}""",
        dim,
    )
    a, b = rng.standard_normal((2, 5, dim)).astype(F32)
    expected = np.array([compute(x, y) for x, y in zip(a, b, strict=True)], F32)
    return Case(text, {"a": a, "b": b, "out": (5,)}, expected)


def cosines(rng: np.random.Generator, dim: int, vertices: int = 5, edges: int = 20) -> Case:
    """For each vertex the mean over its edges of exp(cosine of the two rows), times its row: numbers cross callbacks.

    The length of a vertex's own row is computed before its edges and used with each; the sum over the edges is carried
    from one to the next; a square of the row is needed only after them.
    """
    text = function(
        f"{table('x', dim)}, %row: memref<?xi32>, %col: memref<?xi32>, %out: memref<?x{dim}xf32>",
        f"""
        %n = memref.dim %out, %c0 : memref<?x{dim}xf32>
        scf.for %v = %c0 to %n step %c1 {{
          {BOUNDS}
          {dot(row("x", "%v", dim, "w"), "w", "w", "square", "acc0")}
          %length = math.sqrt %square : f32
          %sum, %count = scf.for %p = %begin to %end step %c1 iter_args(%acc = %zero, %i = %c0) -> (f32, index) {{
            {load_index("col", "%p", "k")}
            {dot(row("x", "%k", dim, "y") + row("x", "%v", dim, "w"), "y", "w", "product", "acc1")}
            {dot(row("x", "%k", dim, "y"), "y", "y", "other", "acc2")}
            %root = math.sqrt %other : f32
            %both = arith.mulf %root, %length : f32
            %cosine = arith.divf %product, %both : f32
            %e = func.call @daedal_exp(%cosine) : (f32) -> f32
            %next_acc = arith.addf %acc, %e : f32
            %next_i = arith.addi %i, %c1 : index
            scf.yield %next_acc, %next_i : f32, index
          }}
          %least = arith.maxsi %count, %c1 : index
          %wide = arith.index_cast %least : index to i32
          %edges = arith.sitofp %wide : i32 to f32
          %mean = arith.divf %sum, %edges : f32
          %weight = arith.divf %mean, %square : f32
          scf.for %d = %c0 to %dim step %c1 {{
            {row("x", "%v", dim, "w")}
            %z = arith.mulf %w, %weight : f32
            memref.store %z, %out[%v, %d] : memref<?x{dim}xf32>
          }}
        }}""",
        dim,
    )
    x = rng.standard_normal((vertices, dim)).astype(F32)
    rows, col = graph(rng, vertices, edges)
    expected = np.zeros((vertices, dim), F32)
    for v in range(vertices):
        square, total = reduced(VectorOp.FMA, x[v], x[v]), F32(0)
        for k in col[rows[v] : rows[v + 1]]:
            both = np.sqrt(reduced(VectorOp.FMA, x[k], x[k])) * np.sqrt(square)
            total = total + numpy_exponential(reduced(VectorOp.FMA, x[k], x[v]) / both)
        mean = total / F32(max(rows[v + 1] - rows[v], 1))
        expected[v] = x[v] * (mean / square)
    return Case(text, {"x": x, "row": rows, "col": col, "out": (vertices, dim)}, expected)


def updates(rng: np.random.Generator, dim: int, vertices: int = 6) -> Case:
    """``out[v] += (x[v] . y[k[v]]) * x[v]``."""
    text = function(
        f"{table('x', dim)}, {table('y', dim)}, %ks: memref<?xi32>, %out: memref<?x{dim}xf32>",
        f"""
        %n = memref.dim %out, %c0 : memref<?x{dim}xf32>
        scf.for %v = %c0 to %n step %c1 {{
          {load_index("ks", "%v", "k")}
          {dot(row("x", "%v", dim, "a") + row("y", "%k", dim, "b"), "a", "b", "s")}
          scf.for %d = %c0 to %dim step %c1 {{
            {row("x", "%v", dim, "a")}
            %o = memref.load %out[%v, %d] : memref<?x{dim}xf32>
            %z = math.fma %s, %a, %o : f32
            memref.store %z, %out[%v, %d] : memref<?x{dim}xf32>
          }}
        }}""",
        dim,
    )
    x, y, out = rng.standard_normal((3, vertices, dim)).astype(F32)
    ks = rng.integers(0, vertices, vertices).astype(np.int32)
    expected = out.copy()
    for v, k in enumerate(ks):
        expected[v] = fused(reduced(VectorOp.FMA, x[v], y[k]), x[v], out[v])
    return Case(text, {"x": x, "y": y, "ks": ks, "out": out}, expected)


def conditional(rng: np.random.Generator, dim: int, vertices: int = 6) -> Case:
    """The dot product of rows v and k[v], and the row scaled by it, where ``k[v]`` is not -1."""
    text = function(
        f"{table('x', dim)}, %ks: memref<?xi32>, %rows: memref<?x{dim}xf32>, %out: memref<?xf32>",
        f"""
        %n = memref.dim %out, %c0 : memref<?xf32>
        scf.for %v = %c0 to %n step %c1 {{
          {load_index("ks", "%v", "k")}
          %there = arith.cmpi sge, %k, %c0 : index
          scf.if %there {{
            {dot(row("x", "%v", dim, "a") + row("x", "%k", dim, "b"), "a", "b", "s")}
            memref.store %s, %out[%v] : memref<?xf32>
            scf.for %d = %c0 to %dim step %c1 {{
              {row("x", "%v", dim, "a")}
              %z = arith.mulf %s, %a : f32
              memref.store %z, %rows[%v, %d] : memref<?x{dim}xf32>
            }}
          }}
        }}""",
        dim,
    )
    x, out = rng.standard_normal((vertices, dim)).astype(F32), np.full(vertices, 7, F32)
    ks = np.array([3, -1, 0, 5, -1, 2], np.int32)
    expected = out.copy()
    for v, k in enumerate(ks):
        if k >= 0:
            expected[v] = reduced(VectorOp.FMA, x[v], x[k])
    return Case(text, {"x": x, "ks": ks, "rows": (vertices, dim), "out": out}, expected)


def block_gather(rng: np.random.Generator, dim: int, block: int = 4) -> Case:
    """The rows of the listed blocks, one after the other: no arithmetic at all."""
    kind = f"memref<?x{block}x{dim}xf32>"
    text = function(
        f"%k: {kind}, %col: memref<?xi32>, %out: {kind}",
        f"""
        %n = memref.dim %out, %c0 : {kind}
        %block = arith.constant {block} : index
        scf.for %p = %c0 to %n step %c1 {{
          {load_index("col", "%p", "b")}
          scf.for %j = %c0 to %block step %c1 {{
            scf.for %d = %c0 to %dim step %c1 {{
              %x = memref.load %k[%b, %j, %d] : {kind}
              memref.store %x, %out[%p, %j, %d] : {kind}
            }}
          }}
        }}""",
        dim,
    )
    k, col = rng.standard_normal((6, block, dim)).astype(F32), rng.integers(0, 6, 5).astype(np.int32)
    return Case(text, {"k": k, "col": col, "out": (5, block, dim)}, k[col])
