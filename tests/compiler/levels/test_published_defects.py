"""Defects of the published compiler for decoupled access-execute machines, one after the other: none may come in here.

Each is looked for at the level at which it would be, in the IR or in the machine's words, and in results: the emulator
against the same loops, run by Python on NumPy arrays, bit for bit.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from xdsl.dialects import memref
from xdsl.dialects.builtin import Float32Type, IndexType, ModuleOp
from xdsl.ir import Operation
from xdsl.parser import Parser

import daedal
from daedal import f32, i32, i64
from daedal.compiler.context import make_context
from daedal.compiler.dialects import dlc, slc, slcv
from daedal.hw.isa.words import EventKind
from daedal.runtime.kernel_launch import run_kernel
from tests.compiler.kernels.kernel_support import check, floats, offsets
from tests.compiler.layers.compiler_support import ddr3, same_bits, wild_table

__all__ = ["ddr3"]

B, D, E, G, K, M, N, P = daedal.dims("B D E G K M N P")
OPTS = (0, 1, 2, 3)
LEVELS = ("scf", "slc", "slcv", "dlc")
EVENTS_PER_LEVEL = 4


def module(executable: Any, level: str) -> ModuleOp:
    """A level's text, read again."""
    return Parser(make_context(), executable.ir(level)).parse_module()


def loops(executable: Any, level: str) -> list[slc.ForOp]:
    """The loops of the access unit, outer ones first."""
    return [op for op in module(executable, level).walk() if isinstance(op, slc.ForOp)]


def name_of(loop: Operation | None) -> str:
    """A loop's name, without the number that tells copies apart."""
    assert isinstance(loop, slc.ForOp)
    return (loop.induction.name_hint or "").partition("_")[0]


def inside(loop: slc.ForOp, kind: type[Operation]) -> list[Any]:
    """The operations of a kind that stand in a loop's own body."""
    return [op for op in loop.body.block.ops if isinstance(op, kind)]


# ---------------------------------------------------------------------- events registered at the wrong place


@daedal.kernel
def around(
    before: f32[B, D], out: f32[B, D], after: f32[B, D], x: f32[B, D], table: f32[N, D], idx: i64[P], off: i64[B + 1]
):
    for b in range(B):
        for d in range(D):
            before[b, d] = 2.0 * x[b, d]
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                out[b, d] += table[idx[p], d]
        for d in range(D):
            after[b, d] = 3.0 * x[b, d]


@daedal.kernel
def groups(
    out: f32[B, D], sums: f32[G, D], x: f32[B, D], table: f32[N, D], idx: i32[P], off: i64[B + 1], first: i32[G + 1]
):
    for g in range(G):
        total = daedal.zeros(D)
        for b in range(first[g], first[g + 1]):
            row = daedal.zeros(D)
            for p in range(off[b], off[b + 1]):
                for d in range(D):
                    row[d] += table[idx[p], d]
            for d in range(D):
                out[b, d] = row[d]
            for d in range(D):
                total[d] += x[b, d]
        for d in range(D):
            sums[g, d] = total[d]


def around_arguments(rng: np.random.Generator, width: int) -> list[Any]:
    rows = [floats(rng, 12, width) for _ in range(4)]
    return [*rows, floats(rng, 9, width), rng.integers(0, 9, 30), offsets(rng, 12, 30)]


def groups_arguments(rng: np.random.Generator, width: int) -> list[Any]:
    """Groups without bags at both ends, and bags without rows at the ends of groups."""
    off = np.array([0, 0, 4, 4, 4, 9, 11, 11])
    rows = [floats(rng, count, width) for count in (7, 5, 7, 9)]
    first = np.array([0, 0, 3, 4, 7, 7], np.int32)
    return [*rows, rng.integers(0, 9, 11).astype(np.int32), off, first]


PLACES = {
    "around": [
        ("b", "iteration", {"before", "out"}, {"before"}),
        ("p", "iteration", set(), set()),
        ("p", "end", {"out", "after"}, {"out", "after"}),
    ],
    "groups": [
        ("p", "iteration", set(), set()),
        ("p", "end", {"out"}, {"out"}),
        ("b", "end", {"sums"}, {"sums"}),
    ],
}
"""Loop and event of each callback, outputs that it fetches or stores, and those that it stores."""

CASES: dict[str, Any] = {"around": (around, around_arguments), "groups": (groups, groups_arguments)}


@pytest.mark.parametrize("opt", OPTS)
@pytest.mark.parametrize("width", [1, 4, 19])
@pytest.mark.parametrize("name", CASES)
def test_events_registered_at_the_wrong_place(
    name: str, width: int, opt: int, ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    """A callback that hangs on another event, or on that of another loop, runs too often or not at all: what is stored
    after an inner loop is stored in each of its iterations, or left out where the loop had none.
    """
    kernel, make = CASES[name]
    check(ddr3, kernel, *make(rng, width), opt=opt)


@pytest.mark.parametrize("name", CASES)
def test_events_registered_at_the_wrong_place_in_the_ir(
    name: str, ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    """The same, in the IR: each callback on the event at which the loops reach its work, and so to the machine's
    words.
    """
    kernel, make = CASES[name]
    executable = check(ddr3, kernel, *make(rng, 19))
    callbacks = [op for op in module(executable, "slcv").walk() if isinstance(op, slc.CallbackOp)]
    found = []
    for op in callbacks:
        stored = {one.memref.name_hint for one in op.walk() if isinstance(one, slcv.StoreOp)}
        touched = stored | {one.memref.name_hint for one in op.walk() if isinstance(one, slcv.FetchOp)}
        outputs = touched & {"before", "out", "after", "sums"}
        found.append((name_of(op.parent_op()), op.event.data, outputs, stored))
    assert found == PLACES[name]
    events = [op for op in module(executable, "dlc").walk() if isinstance(op, dlc.EventOp)]
    places = [(name_of(op.parent_op()), op.event.data) for op in events]
    assert places == [place[:2] for place in PLACES[name]]
    first = min(int(number) for number in re.findall(r"^level (\d) control", executable.asm(), re.MULTILINE))
    levels = {name_of(loop): level for level, loop in enumerate(loops(executable, "dlc"), first)}
    kinds = {"begin": EventKind.BEGIN, "iteration": EventKind.ITER, "end": EventKind.END}
    words = [int(number) for number in re.findall(r"^event (\d+) control", executable.asm(), re.MULTILINE)]
    assert sorted(words) == sorted(levels[loop] * EVENTS_PER_LEVEL + kinds[event].value for loop, event in places)


# ---------------------------------------------------------------------- vectors stepped by one


@daedal.kernel
def scaled(out: f32[N, D], x: f32[N, D], alpha: f32):
    for i in range(N):
        for d in range(D):
            out[i, d] += alpha * x[i, d]


@pytest.mark.parametrize("opt", [0, 1, 2, 3])
@pytest.mark.parametrize("width", [1, 4, 7, 8, 19, 300, 515])
def test_vectors_stepped_by_one(width: int, opt: int, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """A loop over vectors that goes on by one element does every element as often as a vector has some, and reads
    beyond the end of rows: what is added to an output is added several times.
    """
    given = [floats(rng, 5, width), floats(rng, 5, width), 0.3]
    executable = check(ddr3, scaled, *given, opt=opt)
    lanes = {0: 1, 1: ddr3.config.lanes}.get(opt, ddr3.config.vl_max)
    pieces = -(-width // lanes)
    tiles = [loop for loop in loops(executable, "slcv") if name_of(loop) == "tile"]
    assert len(tiles) == (width // lanes > 1)
    for loop in tiles:
        lower, upper, step = (bound.owner.value.value.data for bound in (loop.lower, loop.upper, loop.step))
        assert (lower, upper, step) == (0, width // lanes * lanes, lanes)
    for loop in loops(executable, "dlc"):
        if name_of(loop) == "tile":
            assert loop.step.owner.value.value.data == 4 * lanes, "bytes"
    assert executable.stats.rows == 2 * 5 * pieces, "each piece of both arrays once"


# ---------------------------------------------------------------------- operands without framing


@daedal.kernel
def two_lengths(out: f32[B, D], ends: f32[B, E], x: f32[N, D], y: f32[M, E], i: i64[B], j: i32[B], w: f32[B]):
    for b in range(B):
        for d in range(D):
            out[b, d] += w[b] * x[i[b], d]
        for e in range(E):
            ends[b, e] = y[j[b], e] * w[b] - ends[b, e]


def two_lengths_arguments(rng: np.random.Generator, first: int, second: int) -> list[Any]:
    rows = [floats(rng, 6, first), floats(rng, 6, second), floats(rng, 9, first), floats(rng, 7, second)]
    return [*rows, rng.integers(0, 9, 6), rng.integers(0, 7, 6).astype(np.int32), floats(rng, 6)]


def traffic(executable: Any) -> Iterator[tuple[list[tuple[str, int]], list[tuple[str, int]]]]:
    """Of each callback what its event enqueues, and what it pops and stores: queue and elements, queue by queue."""
    text = module(executable, "dlc")
    callbacks = {op.token.value.data: op for op in text.walk() if isinstance(op, dlc.CallbackOp)}
    for event in [op for op in text.walk() if isinstance(op, dlc.EventOp)]:
        ops = list(event.body.block.ops)
        (token,) = [op.token.value.data for op in ops if isinstance(op, dlc.PushTokenOp)]
        sent = [(op.queue.data, op.bytes.value.data // 4) for op in ops if isinstance(op, dlc.FetchOp)]
        sent += [("scalar", 1) for op in ops if isinstance(op, dlc.PushScalarOp)]
        sent += [("store", op.bytes.value.data // 4) for op in ops if isinstance(op, dlc.PushStoreOp)]
        own = list(callbacks[token].body.block.ops)
        taken = [(op.queue.data, slcv.width_of(op.result)) for op in own if isinstance(op, dlc.PopOp)]
        taken += [("scalar", 1) for op in own if isinstance(op, dlc.PopScalarOp)]
        taken += [("store", slcv.width_of(op.row)) for op in own if isinstance(op, dlc.PushOp)]
        yield sorted(sent, key=lambda one: one[0]), sorted(taken, key=lambda one: one[0])


@pytest.mark.parametrize("opt", OPTS)
@pytest.mark.parametrize("widths", [(1, 5), (19, 6), (64, 3), (5, 5)])
def test_operands_without_framing(
    widths: tuple[int, int], opt: int, ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    """A callback that does not take as many elements as its event has sent, or not in the same order, goes on with
    what belongs to the next one: rows of two lengths and numbers get mixed up.
    """
    executable = check(ddr3, two_lengths, *two_lengths_arguments(rng, *widths), opt=opt)
    pairs = list(traffic(executable))
    assert pairs and all(sent == taken for sent, taken in pairs)
    lengths = {elements for sent, _ in pairs for queue, elements in sent if queue != "scalar"}
    if executable.kernels["two_lengths"].opt > 1:
        assert lengths == set(widths)


@pytest.mark.parametrize("more", [-1, 1, 4])
def test_operands_without_framing_are_a_fault(more: int, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """Should a program have it in spite of all, the machine stops; it does not compute with what it finds."""
    given = [floats(rng, 5, 19), floats(rng, 5, 19), 0.3]
    executable = check(ddr3, scaled, *given)
    text, count = re.subn(r"(fetch_size = )0x4c", rf"\g<1>{4 * (19 + more):#x}", executable.asm())
    assert count == 2
    broken = replace(executable.kernels["scaled"], program=daedal.assemble(text))
    buffers = {"out": given[0], "x": given[1]}
    alpha = int(np.float32(0.3).view(np.uint32))
    with pytest.raises(daedal.ProgramError, match="expected a row of 19 elements and got another number"):
        run_kernel(ddr3, broken, buffers, {"alpha": alpha})
    check(ddr3, scaled, *given)


# ---------------------------------------------------------------------- bounds that are streams


@daedal.kernel
def triangle(out: f32[B, D], x: f32[B, D]):
    """Up to, and from, the variable of the loop around."""
    for b in range(B):
        for k in range(b, B):
            for d in range(D):
                out[b, d] += x[k, d]


@daedal.kernel
def half(out: f32[B, D], x: f32[N, D], n: i64[B]):
    """One bound is loaded."""
    for b in range(B):
        for k in range(n[b]):
            for d in range(D):
                out[b, d] += x[k, d]


@daedal.kernel
def chained(out: f32[B, D], table: f32[N, D], bag: i32[B], off: i64[M + 1], idx: i32[P]):
    """Both bounds are loaded with an index that was loaded, and so is the row."""
    for b in range(B):
        for p in range(off[bag[b]], off[bag[b] + 1]):
            for d in range(D):
                out[b, d] += table[idx[p], d]


def chained_arguments(rng: np.random.Generator, width: int) -> list[Any]:
    bag, idx = rng.integers(0, 6, 8).astype(np.int32), rng.integers(0, 9, 20).astype(np.int32)
    return [floats(rng, 8, width), floats(rng, 9, width), bag, offsets(rng, 6, 20), idx]


STREAMS: dict[str, Any] = {
    "triangle": (triangle, lambda rng, width: [floats(rng, 7, width), floats(rng, 7, width)], (True, False)),
    "half": (
        half,
        lambda rng, width: [floats(rng, 5, width), floats(rng, 6, width), np.array([3, 0, 6, 1, 0])],
        (False, True),
    ),
    "chained": (chained, chained_arguments, (True, True)),
}
"""Kernel, arguments, and which of the inner loop's bounds are streams."""


@pytest.mark.parametrize("opt", OPTS)
@pytest.mark.parametrize("width", [3, 16, 21])
@pytest.mark.parametrize("name", STREAMS)
def test_bounds_that_are_streams(
    name: str, width: int, opt: int, ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    """Bounds taken for constants of the launch: all activations of an inner loop run over the same range, that of the
    first one, or such loops are not taken at all.
    """
    kernel, make, wanted = STREAMS[name]
    executable = check(ddr3, kernel, *make(rng, width), opt=opt, bounds="fatal")
    for level in ("slc", "slcv", "dlc"):
        inner = [loop for loop in loops(executable, level) if name_of(loop) in ("k", "p")]
        assert inner
        for loop in inner:
            assert tuple(isinstance(bound.type, slc.StreamType) for bound in (loop.lower, loop.upper)) == wanted
    inner_levels = [line for line in executable.asm().splitlines() if re.match(r"level \d control enable", line)]
    held = [tuple(f"{bound}=r" in line for bound in ("lower", "upper")) for line in inner_levels]
    assert wanted in held, "read from stream registers"


# ---------------------------------------------------------------------- more than one inner loop


@daedal.kernel
def three_inner(
    out: f32[B, D], other: f32[B, E], third: f32[B, D], x: f32[N, D], y: f32[M, E], i: i64[P], j: i32[K],
    off: i64[B + 1], ends: i32[B + 1],
):  # fmt: skip
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                out[b, d] += x[i[p], d]
        for k in range(ends[b], ends[b + 1]):
            for e in range(E):
                other[b, e] += y[j[k], e]
        for m in range(b):
            for d in range(D):
                third[b, d] = max(third[b, d], x[m, d])


@daedal.kernel
def inner_of_inner(first: f32[B, K, D], second: f32[B, M, D], x: f32[N, D], n: i64[K], m: i64[M]):
    for b in range(B):
        for k in range(K):
            for p in range(n[k]):
                for d in range(D):
                    first[b, k, d] += x[p, d]
        for q in range(M):
            for p in range(m[q]):
                for d in range(D):
                    second[b, q, d] -= x[p, d]


@daedal.kernel
def shared(out: f32[B, D], x: f32[N, D], y: f32[M, D], off: i64[B + 1], ends: i64[B + 1]):
    """Both loops add to one row, so that they cannot be put apart."""
    for b in range(B):
        row = daedal.zeros(D)
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                row[d] += x[p, d]
        for q in range(ends[b], ends[b + 1]):
            for d in range(D):
                row[d] += y[q, d]
        for d in range(D):
            out[b, d] = row[d]


def three_arguments(rng: np.random.Generator, width: int) -> list[Any]:
    outputs = [floats(rng, 6, width), floats(rng, 6, 5), floats(rng, 6, width)]
    i, j = rng.integers(0, 9, 20), rng.integers(0, 8, 14).astype(np.int32)
    ends = offsets(rng, 6, 14, np.int32)
    return [*outputs, floats(rng, 9, width), floats(rng, 8, 5), i, j, offsets(rng, 6, 20), ends]


def inner_arguments(rng: np.random.Generator, width: int) -> list[Any]:
    n, m = np.array([0, 3, 9, 1]), np.array([2, 0, 5])
    return [floats(rng, 5, 4, width), floats(rng, 5, 3, width), floats(rng, 9, width), n, m]


SIBLINGS: dict[str, Any] = {
    "three_inner": (three_inner, three_arguments, ["p", "k", "m"]),
    "inner_of_inner": (inner_of_inner, inner_arguments, ["p", "p"]),
}
"""Kernel, arguments, and the innermost loops of its nests."""


def nests(executable: Any, level: str) -> list[list[slc.ForOp]]:
    """The nests, each with its loops from the outermost on."""
    found: list[list[slc.ForOp]] = []
    for loop in loops(executable, level):
        if isinstance(loop.parent_op(), slc.ForOp):
            found[-1].append(loop)
        else:
            found.append([loop])
    return found


@pytest.mark.parametrize("opt", OPTS)
@pytest.mark.parametrize("width", [2, 19])
@pytest.mark.parametrize("name", SIBLINGS)
def test_more_than_one_inner_loop(
    name: str, width: int, opt: int, ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    """Of several loops in the body of one only the last, or the first, is kept, or they get into one another: outputs
    of the others stay as they were.
    """
    kernel, make, wanted = SIBLINGS[name]
    executable = check(ddr3, kernel, *make(rng, width), opt=opt)
    assert [name_of(nest[-1]) for nest in nests(executable, "slc")] == wanted
    assert executable.asm().count(" run = ") >= len(wanted) and executable.stats.launches == 1


def test_more_than_one_inner_loop_that_cannot_be_put_apart(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """They are refused with the line and the reason; none is left out in silence."""
    given = [floats(rng, 3, 8), floats(rng, 6, 8), floats(rng, 6, 8), offsets(rng, 3, 6), offsets(rng, 3, 6)]
    with pytest.raises(daedal.UnsupportedOperation, match="one loop in its body, not loop %p and loop %q, which share"):
        daedal.compile(shared, given, device=ddr3)


# ---------------------------------------------------------------------- one global counter


@daedal.kernel
def numbered(first: f32[B, K], second: f32[B, M], start: i64[B]):
    """Both inner loops write where they are."""
    for b in range(B):
        for k in range(K):
            first[b, k] = float(b * 64 + k)
        for m in range(start[b], M):
            second[b, m] = float(b) - float(m)


@pytest.mark.parametrize("opt", OPTS)
def test_one_global_counter_for_loops(opt: int, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """Loops that share one variable go on where another one stopped, or move it on for the loops around."""
    for call in range(2):
        given = [floats(rng, 6, 5), floats(rng, 6, 9), np.array([3, 9, 0, 8, 1, 4])]
        executable = check(ddr3, numbered, *given, opt=opt)
        assert executable.stats.launches == 1, f"call {call}"
    for level in ("slc", "slcv", "dlc"):
        for nest in nests(executable, level):
            variables = [loop.induction for loop in nest]
            assert len(set(variables)) == len(variables)
            assert [loop.induction.owner for loop in nest] == [loop.body.block for loop in nest]
    registers: list[set[str]] = [set()]
    for line in executable.asm().splitlines():
        held = re.match(r"level \d control enable=1.* induction=(r\d+)", line)
        if held is not None:
            assert held[1] not in registers[-1], "a register of its own while the loops around need theirs"
            registers[-1].add(held[1])
        elif " run = " in line:
            registers.append(set())
    assert any(len(held) == 2 for held in registers)


class Means(nn.Module):
    """Means without padding rows: each divides by a count of its own."""

    def __init__(self, tables: list[torch.Tensor], paddings: list[int]) -> None:
        super().__init__()
        self.bags = nn.ModuleList(
            nn.EmbeddingBag.from_pretrained(table, mode="mean", padding_idx=padding, include_last_offset=True)
            for table, padding in zip(tables, paddings, strict=True)
        )

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(bag(*inputs[2 * n : 2 * n + 2]) for n, bag in enumerate(self.bags))


def mean_by_loops(table: Any, padding: int, indices: Any, off: Any) -> Any:
    """Means of bags, as NumPy has them by plain loops."""
    out = np.zeros((len(off) - 1, table.shape[1]), np.float32)
    for b in range(len(out)):
        count = 0
        for p in range(off[b], off[b + 1]):
            if indices[p] != padding:
                count += 1
                out[b] = out[b] + table[indices[p]]
        out[b] = out[b] / np.float32(max(count, 1))
    return out


@pytest.mark.parametrize("opt", OPTS)
@pytest.mark.parametrize("widths", [(6,), (6, 20), (20, 33)])
def test_one_global_counter_for_counts(
    widths: tuple[int, ...], opt: int, ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    """Counts that go on from bag to bag, or from table to table, make all means but the first too small."""
    tables, paddings = [wild_table(9, width, rng) for width in widths], [2 + n for n in range(len(widths))]
    inputs: list[torch.Tensor] = []
    for n in range(len(widths)):
        indices = rng.integers(0, 9, 40 - 9 * n)
        indices[rng.random(len(indices)) < 0.4] = paddings[n]
        inputs += [torch.from_numpy(indices), torch.from_numpy(offsets(rng, 8, len(indices)))]
    executable = daedal.compile(Means(tables, paddings), tuple(inputs), device=ddr3, opt=opt)
    for _ in range(2):
        results = executable(*inputs)
        for n, result in enumerate(results):
            indices, off = inputs[2 * n].numpy(), inputs[2 * n + 1].numpy()
            assert same_bits(result, torch.from_numpy(mean_by_loops(tables[n].numpy(), paddings[n], indices, off)))
    for nest in nests(executable, "slc"):
        held = [inside(loop, slc.CountOp) for loop in nest]
        assert [len(counts) for counts in held] == [0] * (len(nest) - 1) + [1], "in the loop over the rows of a bag"


def test_one_global_counter_for_callbacks(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """Tokens: each event starts the callback that was made for it, and no other does."""
    executable = check(ddr3, three_inner, *three_arguments(rng, 19))
    text = module(executable, "dlc")
    sent = Counter(op.token.value.data for op in text.walk() if isinstance(op, dlc.PushTokenOp))
    made = Counter(op.token.value.data for op in text.walk() if isinstance(op, dlc.CallbackOp))
    assert sent == made and set(made.values()) == {1} and sorted(made) == list(range(len(made)))


# ---------------------------------------------------------------------- empty loops left behind


@daedal.kernel
def idle(out: f32[B, D], x: f32[B, D], n: i64[B]):
    """Loops that have nothing to do to begin with."""
    for b in range(B):
        for _k in range(n[b]):
            pass
        for m in range(5):
            for _q in range(m):
                pass
        for d in range(D):
            out[b, d] = 2.0 * x[b, d]


EMPTY: dict[str, Any] = {
    **{name: case[:2] for name, case in {**CASES, **SIBLINGS, **STREAMS}.items()},
    "scaled": (scaled, lambda rng, width: [floats(rng, 5, width), floats(rng, 5, width), 0.3]),
    "two_lengths": (two_lengths, lambda rng, width: two_lengths_arguments(rng, width, 6)),
    "idle": (
        idle,
        lambda rng, width: [floats(rng, 4, width), floats(rng, 4, width), np.array([2, 0, 4, 1])],
    ),
    "numbered": (numbered, lambda rng, width: [floats(rng, 6, 5), floats(rng, 6, 9), np.array([3, 9, 0, 8, 1, 4])]),
}


@pytest.mark.parametrize("opt", OPTS)
@pytest.mark.parametrize("name", EMPTY)
def test_empty_loops_left_behind(name: str, opt: int, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """Loops whose work has gone elsewhere stay and are walked for nothing: they take levels and cycles."""
    kernel, make = EMPTY[name]
    executable = check(ddr3, kernel, *make(rng, 19), opt=opt)
    for level in ("slc", "slcv", "dlc"):
        kind = dlc.EventOp if level == "dlc" else slc.CallbackOp
        for nest in nests(executable, level):
            assert inside(nest[-1], kind), f"{level}: the innermost loop %{name_of(nest[-1])} does nothing"
        for op in module(executable, level).walk():
            if isinstance(op, slc.CallbackOp | dlc.EventOp | dlc.CallbackOp):
                assert list(op.body.block.ops), f"{level}: {op.name} without work"
    if name == "idle":
        assert {name_of(loop) for loop in loops(executable, "dlc")} <= {"tile", "b"}
    words = re.findall(r"^event \d+ control.*$", executable.asm(), re.MULTILINE)
    assert words and all(" count=" in word for word in words), "an event without steps"


# ---------------------------------------------------------------------- f64-only streams


@daedal.kernel
def mixed(out: f32[B, D], table: f32[N, D], w: f32[P], narrow: i32[P], wide: i64[B + 1]):
    for b in range(B):
        for p in range(wide[b], wide[b + 1]):
            for d in range(D):
                out[b, d] += w[p] * table[narrow[p], d]


@daedal.kernel
def weighed(out: f32[P, D], table: f32[N, D], w: f32[P], wide: i64[P]):
    for p in range(P):
        for d in range(D):
            out[p, d] = w[p] * table[wide[p], d]


def mixed_arguments(rng: np.random.Generator, width: int) -> list[Any]:
    narrow = rng.integers(0, 9, 40).astype(np.int32)
    return [floats(rng, 8, width), floats(rng, 9, width), floats(rng, 40), narrow, offsets(rng, 8, 40)]


@pytest.mark.parametrize("opt", OPTS)
@pytest.mark.parametrize("width", [1, 5, 16, 33])
def test_f64_only_streams(width: int, opt: int, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """Streams of one type: i32, i64 and f32 that are read as if they had 8 bytes, and sums that are rounded once at
    their end.
    """
    given = mixed_arguments(rng, width)
    executable = check(ddr3, mixed, *given, opt=opt)
    out, table, w, narrow, wide = given
    exact = out.astype(np.float64)
    for b in range(len(out)):
        for p in range(wide[b], wide[b + 1]):
            exact[b] += np.float64(w[p]) * table[narrow[p]]
    executable(*given)
    assert not np.array_equal(given[0], exact.astype(np.float32)), "what f64 would give differs"
    for level in LEVELS:
        assert "f64" not in executable.ir(level)
    for level in ("slc", "slcv"):
        types = {op.memref.name_hint: op for op in module(executable, level).walk() if isinstance(op, slc.LoadOp)}
        assert set(types) == {"w", "narrow", "wide"}
        for name, op in types.items():
            assert isinstance(op.memref.type, memref.MemRefType)
            assert str(op.memref.type.element_type) == {"w": "f32", "wide": "i64"}.get(name, "i32")
            assert isinstance(op.result.type.element_type, Float32Type if name == "w" else IndexType)
    loads = [op for op in module(executable, "dlc").walk() if isinstance(op, dlc.LoadOp)]
    for op in loads:
        buffer = next(name for name in ("narrow", "wide", "w") if (op.end.name_hint or "").startswith(name))
        assert op.bytes.value.data == (8 if buffer == "wide" else 4)
        assert (op.signed is None) == (buffer == "w") == isinstance(op.result.type.element_type, Float32Type)
    sizes = Counter(int(size) for size in re.findall(r"load\d enable=1 size=(\d)", executable.asm()))
    assert sizes == Counter(op.bytes.value.data.bit_length() - 1 for op in loads) and set(sizes) == {2, 3}


@pytest.mark.parametrize("index", [(1 << 53) + 1, -1, (1 << 31), -(1 << 63), (1 << 63) - 1])
def test_f64_only_streams_of_indices(index: int, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """An index has 64 bits, a f64 53: the machine checks, and names, the very one."""
    given = [floats(rng, 12, 5), floats(rng, 9, 5), floats(rng, 12), rng.integers(0, 9, 12)]
    executable = check(ddr3, weighed, *given)
    given[3][7] = index
    with pytest.raises(daedal.IndexOutOfRange, match=rf"(^|\D){index}\D"):
        executable(*given)
