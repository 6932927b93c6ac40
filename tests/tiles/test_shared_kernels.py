"""Kernels on a system: rounds of the outermost loops, shared out; what Python does, bit for bit."""

import copy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import daedal
from daedal import bf16, f32, i64
from daedal.compiler.frontends.python.function import KernelFunction
from daedal.system.shared_kernel import SystemKernelExecutable
from tests.compiler.kernels.kernel_support import copied, floats, in_python, offsets, same_bits
from tests.fuzz.kernels.sources import load, random_source, run
from tests.tiles.test_random_plans import with_bfloat16

B, D, N, P = daedal.dims("B D N P")


@daedal.kernel
def pooled(out: f32[B, D], table: f32[N, D], idx: i64[P], off: i64[B + 1], scale: f32):
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                out[b, d] += table[idx[p], d] * scale


@daedal.kernel
def double(x: f32[B], out: f32[B]):
    for i in range(0, B):
        out[i] = x[i] + x[i]


@pytest.fixture
def system() -> Iterator[daedal.System]:
    with daedal.System.open("emulator", config=with_bfloat16("ddr3"), tiles=3) as opened:
        yield opened


def given(rng: np.random.Generator, bags: int = 8, entries: int = 40) -> list[Any]:
    ends = offsets(rng, bags, entries) if bags else np.zeros(1, np.int64)
    return [floats(rng, bags, 64), floats(rng, 50, 64), rng.integers(0, 50, entries), ends, np.float32(1.25)]


def compiled(system: daedal.System, kernel: KernelFunction, arguments: Any, **options: Any) -> SystemKernelExecutable:
    made = daedal.compile(kernel, arguments, device=system, **options)
    assert isinstance(made, SystemKernelExecutable)
    return made


def test_any_number_of_rounds(system: daedal.System, rng: np.random.Generator) -> None:
    """Of arrays and of tensors; tiles without rounds do nothing; sums go on from what is in the array."""
    executable = compiled(system, pooled, given(rng))
    for bags, launches in ((8, [1, 1, 1]), (2, [0, 1, 1]), (1, [0, 0, 1]), (0, [0, 0, 0]), (50, [1, 1, 1])):
        arguments = given(rng, bags)
        wanted = in_python(pooled, *arguments)[0]
        tensors = [torch.from_numpy(each) if each.ndim else float(each) for each in copied(arguments)]
        for values in (copied(arguments), tensors):
            assert executable(*values) is None
            assert same_bits(np.asarray(values[0]), wanted)
        assert [each.launches for each in executable.stats.per_tile] == launches
        assert executable.stats.lookups == sum(each.lookups for each in executable.stats.per_tile)
    text = executable.explain()
    assert text.endswith("rounds of range(B) are shared out to 3 tiles, as many to each")
    assert copy.copy(executable).program == executable.program


@pytest.mark.slow
def test_random_kernels(system: daedal.System, seed: int, tmp_path: Path) -> None:
    """What is shared out does what Python does."""
    found: Counter[bool] = Counter()
    for number in range(60):
        data = 1000 * seed + number
        text = random_source(np.random.default_rng(data))
        is_shared = not load(text, tmp_path).rounds.why_not
        outcome = run(text, data, [system], tmp_path)
        assert outcome.difference is None, f"seed {data}:\n{text}\n{outcome.difference}"
        found[is_shared and outcome.refusal is None] += 1
    assert found[True] > 10, found


def test_parts_that_reach_into_each_other(system: daedal.System, rng: np.random.Generator) -> None:
    """Rounds read rows of the next two, of bfloat16, and another nest writes an array of its own."""

    @daedal.kernel
    def window(out: bf16[B, D], total: f32[B], x: bf16[B + 2, D], w: f32[B], y: f32[B, D]):
        for b in range(B):
            for d in range(D):
                out[b, d] = x[b, d] + x[2 + b, d] * w[b]
        for c in range(B):
            total[c] = w[c] * 2.0

    values = torch.randn(12, 64).bfloat16()
    arguments = [torch.zeros(10, 64).bfloat16(), torch.zeros(10), values, torch.randn(10), torch.zeros(10, 64)]
    for device in (system, system.tiles[1]):
        found = [each.clone() for each in arguments]
        daedal.compile(window, found, device=device)(*found)
        assert torch.equal(found[0], (values[:-2].float() + values[2:].float() * found[3][:, None]).bfloat16())
        assert torch.equal(found[1], 2 * found[3])


def test_a_fault_leaves_all_as_it_was(system: daedal.System, rng: np.random.Generator) -> None:
    """It is told of the whole arrays, with the tile; other calls are right before and after it."""
    executable = compiled(system, pooled, given(rng))
    good, bad = given(rng), given(rng)
    bad[2][25] = 77
    wanted, before = in_python(pooled, *good)[0], bad[0].copy()
    futures = [executable.submit(*each) for each in (good, bad)]
    match = r"`out\[b, d\] \+= .*index 77 .*it is element 25 of idx, and must be below 50"
    for run_it in (futures[1].result, lambda: executable(*bad)):
        with pytest.raises(daedal.IndexOutOfRange, match=match) as caught:
            run_it()
        assert caught.value.tile in range(3)
        assert same_bits(bad[0], before)
    assert futures[0].result() is None
    assert same_bits(good[0], wanted)


def test_calls_wait_for_what_others_fill(system: daedal.System) -> None:
    """Kernels that are given it, and modules, whatever nobody has waited for."""
    x, y, z = np.arange(10, dtype=np.float32), np.zeros(10, np.float32), np.zeros(10, np.float32)
    executable = compiled(system, double, (x, y))
    first, second = executable.submit(x, y), executable.submit(y, z)
    assert second.result() is None
    assert (y == 2 * x).all() and (z == 4 * x).all()
    assert first.done() and first.result() is None
    table = np.zeros((10, 16), np.float32)
    ids = torch.arange(10).reshape(5, 2)

    class Bags(torch.nn.Module):
        def forward(self, rows: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.embedding_bag(ids, rows, mode="sum")

    tensor = torch.from_numpy(table)
    rows = np.repeat(x[:, None], 16, 1)
    bags = daedal.compile(Bags(), (tensor, ids), device=system)

    @daedal.kernel
    def copies(out: f32[B, D], source: f32[B, D]):
        for b in range(B):
            for d in range(D):
                out[b, d] = source[b, d]

    compiled(system, copies, (table, rows)).submit(table, rows)
    assert (bags(tensor, ids).numpy() == rows[::2] + rows[1::2]).all()


def test_warnings_are_of_all_tiles(system: daedal.System, rng: np.random.Generator) -> None:
    arguments = given(rng)
    arguments[2][[3, 36]] = 99, -4
    executable = compiled(system, pooled, arguments, bounds="warn")
    wanted = copied(arguments)
    wanted[2][[3, 36]] = 0
    wanted = in_python(pooled, *wanted)[0]
    with pytest.warns(
        daedal.BoundsWarning, match=r"pooled: 2 indices were out of range, the first one met 99:"
    ) as said:
        executable(*arguments)
    assert len(said) == 1 and same_bits(arguments[0], wanted)


def test_files(system: daedal.System, rng: np.random.Generator, tmp_path: Path) -> None:
    """A file is for systems and for devices, whatever it was saved from."""
    arguments = given(rng)
    wanted = in_python(pooled, *arguments)[0]
    files = []
    for device in (system, system.tiles[2]):
        made = daedal.compile(pooled, arguments, device=device)
        made.save(tmp_path / "kernel.daedal")
        files.append((tmp_path / "kernel.daedal").read_bytes())
        for other in (system, system.tiles[0]):
            loaded, values = daedal.load(tmp_path / "kernel.daedal", device=other), copied(arguments)
            loaded(*values)
            assert same_bits(values[0], wanted)
    assert files[0] == files[1]


@daedal.kernel
def sums(out: f32[D], x: f32[B, D]):
    for b in range(B):
        for d in range(D):
            out[d] += x[b, d]


@daedal.kernel
def scattered(out: f32[N, D], x: f32[B, D], rows: i64[B]):
    for b in range(B):
        for d in range(D):
            out[rows[b], d] = x[b, d]


@daedal.kernel
def every_other(out: f32[B], x: f32[B]):
    for b in range(0, B, 2):
        out[b] = x[b]


@daedal.kernel
def counted(out: f32[B], x: f32[B]):
    for b in range(B):
        out[b] = x[b] * float(b)


@daedal.kernel
def measured(out: f32[B], x: f32[B]):
    for b in range(B):
        out[b] = x[b] / B


@daedal.kernel
def shifted(out: f32[B + 1], x: f32[B]):
    for b in range(B):
        out[b + 1] = x[b]


@daedal.kernel
def square(out: f32[B, B], x: f32[B, D]):
    for b in range(B):
        for c in range(B):
            out[b, c] = x[b, 0]


@daedal.kernel
def pairs(out: f32[B], other: f32[N, B], i: i64[B]):
    for b in range(B):
        out[b] = other[i[b], 0]


@daedal.kernel
def elsewhere(out: f32[B], x: f32[B], i: i64[B]):
    for b in range(B):
        out[b] = x[i[b]]


@daedal.kernel
def two_sizes(out: f32[B], other: f32[P]):
    for b in range(B):
        out[b] = 1.0
    for p in range(P):
        other[p] = 1.0


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (sums, "out is written, and must have the first size B and the loop's variable as index"),
        (scattered, "out is written"),
        (every_other, r"an outermost loop must be over a size, as range\(B\), not range\(0, B, 2\)"),
        (counted, "b must be the first index of arrays alone"),
        (measured, r"B must be used in range\(B\) and as first size of arrays alone"),
        (shifted, "out is written"),
        (square, "there is a program for each B, as it is the length of rows"),
        (pairs, "other has B as another size than the first"),
        (elsewhere, r"the first index of x must be b, not i\[b\]"),
        (two_sizes, "all outermost loops must be over the same size"),
    ],
)
def test_what_stays_whole(system: daedal.System, kernel: KernelFunction, why: str) -> None:
    shapes = {"B": 4, "D": 16, "N": 4, "P": 3}
    arguments = []
    for each in kernel.signature.arguments.values():
        sizes = [eval(size.strip(), {}, shapes) for size in each.text[each.text.index("[") + 1 : -1].split(",")]
        arguments.append(np.zeros(sizes, np.int64 if each.element == "i64" else np.float32))
    with pytest.raises(daedal.UnsupportedOperation, match=rf"rounds cannot be shared out to tiles: {why}.*tiles\[0\]"):
        daedal.compile(kernel, arguments, device=system)


def test_no_plan_is_for_a_kernel(system: daedal.System, rng: np.random.Generator) -> None:
    model, ids = torch.nn.EmbeddingBag(90, 16, mode="sum"), torch.zeros(4, 3).long()
    plan = daedal.plan(model, system, sample=ids)
    with pytest.raises(daedal.UnsupportedOperation, match="plan must be left out for a kernel"):
        daedal.compile(pooled, given(rng), device=system, plan=plan)  # type: ignore[call-overload]
