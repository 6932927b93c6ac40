"""Kernels, new operations as Python loops: a device does what Python does with the same loops, bit for bit."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal import f32, i32, i64
from daedal.compiler.frontends.python.function import KernelFunction
from tests.compiler.kernels.kernel_support import check, copied, floats, in_python, offsets, same_bits
from tests.compiler.layers.compiler_support import device

__all__ = ["device"]

B, D, N, M, P, K = daedal.dims("B D N M P K")
FOUR = 4
SCALE = 0.25


@daedal.kernel
def pooled(out: f32[B, D], table: f32[N, D], idx: i64[P], off: i64[B + 1]):
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                out[b, d] += table[idx[p], d]


@daedal.kernel
def bags(out: f32[B, D], table: f32[N, D], idx: i64[P], off: i64[B + 1]):
    """The same sums from 0.0 on, in a local row."""
    for b in range(B):
        row = daedal.zeros(D)
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                row[d] += table[idx[p], d]
        for d in range(D):
            out[b, d] = row[d]


@daedal.kernel
def means(out: f32[B, D], table: f32[N, D], idx: i64[P], off: i64[B + 1]):
    for b in range(B):
        row = daedal.zeros(D)
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                row[d] += table[idx[p], d]
        for d in range(D):
            out[b, d] = row[d] / max(off[b + 1] - off[b], 1)


@daedal.kernel
def weighted(out: f32[B, D], table: f32[N, D], idx: i32[P], w: f32[P], off: i32[B + 1]):
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                out[b, d] += w[p] * table[idx[p], d]


@daedal.kernel
def scaled(out: f32[N, D], x: f32[N, D], alpha: f32, first: i64, n: i64):
    for i in range(first, n):
        for d in range(D):
            out[i, d] = alpha * x[i, d] - SCALE * out[i, d]


@daedal.kernel
def numbers(out: f32[B], t: f32[N], idx: i32[P], off: i32[B + 1]):
    """A local number."""
    for b in range(B):
        acc = 0.5
        for p in range(off[b], off[b + 1]):
            acc += t[idx[p]]
        out[b] = acc * 2


@daedal.kernel
def padded(out: f32[B, D], table: f32[N, D], idx: i64[P], off: i32[B + 1]):
    """Negative indices are no indices."""
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            if idx[p] >= 0:
                for d in range(D):
                    out[b, d] += table[idx[p], d]


@daedal.kernel
def products(out: f32[P, D], a: f32[N, D], b: f32[M, D], i: i64[P], j: i32[P]):
    """Two indices in one loop, both checked."""
    for p in range(P):
        for d in range(D):
            out[p, d] = a[i[p], d] * b[j[p], d]


@daedal.kernel
def greatest(out: f32[B, D], table: f32[N, D], idx: i64[P], off: i64[B + 1]):
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                out[b, d] = max(out[b, d], table[idx[p], d])


@daedal.kernel
def least(out: f32[B, D], table: f32[N, D], idx: i64[P], off: i64[B + 1]):
    """A minimum as a condition."""
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                if table[idx[p], d] < out[b, d]:
                    out[b, d] = table[idx[p], d]


@daedal.kernel
def rectified(out: f32[N, D], x: f32[N, D]):
    for i in range(N):
        for d in range(D):
            out[i, d] = x[i, d] if x[i, d] > 0.0 else 0.0


@daedal.kernel
def elements(out: f32[N], x: f32[N], y: f32[N]):
    """One dimension."""
    for i in range(N):
        out[i] = x[i] * y[i] + abs(x[i]) - (-y[i])


@daedal.kernel
def four_levels(out: f32[B, K, D], table: f32[N, K, D], idx: i64[P], off: i64[B + 1]):
    for b in range(B):
        for k in range(K):
            for p in range(off[b], off[b + 1]):
                for d in range(D):
                    out[b, k, d] += table[idx[p], k, d]


@daedal.kernel
def siblings(out: f32[N, D], sums: f32[M, D], x: f32[N, D], idx: i64[M]):
    """Two nests, one after the other."""
    for i in range(N):
        for d in range(D):
            out[i, d] = x[i, d] + 1
    for m in range(M):
        for d in range(D):
            sums[m, d] += x[idx[m], d] * 2.0


@daedal.kernel
def invariant(out: f32[P, D], x: f32[N, D], idx: i64[P], k: i64):
    """A condition in the loop along the row that is the same all along it."""
    for p in range(P):
        for d in range(D):
            if idx[p] < k:
                out[p, d] = x[idx[p], d]


@daedal.kernel
def steps(out: f32[N, 8], x: f32[N, 8], n: i64):
    """Steps, parts of rows, constants in signatures."""
    for i in range(0, N, 2):
        for d in range(FOUR):
            out[i, d] = x[i, d + FOUR]


@daedal.kernel
def nothing_around(out: f32[1, 64], x: f32[3, 64]):
    """Work on rows outside of all loops."""
    for d in range(64):
        out[0, d] = x[0, d] + x[2, d]


@daedal.kernel
def kept(out: f32[B], table: f32[N], idx: i64[P], off: i64[B + 1]):
    """Single elements that are read and written again."""
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            out[b] += table[idx[p]] * 3


@daedal.kernel
def kept_in_columns(out: f32[B, D], x: f32[N], n: i64):
    for b in range(B):
        for d in range(D):
            out[b, d] = 1.0
            for i in range(n):
                if i > b:
                    out[b, d] = out[b, d] - x[i]


@daedal.kernel
def sums(out: f32[N], x: f32[N, D]):
    """A sum along a row, whose order is the machine's."""
    for i in range(N):
        s = 1.0
        for d in range(D):
            s += x[i, d]
        out[i] = s


@daedal.kernel
def dots(out: f32[N], x: f32[N, D], y: f32[D]):
    for i in range(N):
        out[i] = 2.0 * daedal.dot(x[i, :], y)


@daedal.kernel
def running(out: f32[N, D], total: f32[1, D], x: f32[N, D]):
    """A local row from before all loops to after them."""
    row = daedal.zeros(D)
    for i in range(N):
        for d in range(D):
            row[d] += x[i, d]
            out[i, d] = row[d]
    for d in range(D):
        total[0, d] = row[d]


@daedal.kernel
def triangle(out: f32[N, D], x: f32[N, D]):
    """Bounds that are variables."""
    for i in range(N):
        for j in range(i + 1, N):
            for d in range(D):
                out[i, d] += x[j, d]


@daedal.kernel
def scattered(out: f32[N, D], x: f32[P, D], idx: i64[P]):
    """Later rows take the place of earlier ones."""
    for p in range(P):
        for d in range(D):
            out[idx[p], d] = x[p, d]


@daedal.kernel
def cumulated(out: f32[N, D], x: f32[N, D]):
    """A loop that is not along a row, because it carries a number."""
    for i in range(N):
        s = 0.0
        for d in range(D):
            s = s + x[i, d]
            out[i, d] = s


@daedal.kernel
def two_rows(out: f32[N, D], x: f32[N, D]):
    for i in range(N):
        a = daedal.zeros(D)
        b = daedal.zeros(D)
        for d in range(D):
            a[d] = x[i, d]
            b[d] = a[d] * 2.0
            a[d] = b[d] + a[d]
        for d in range(D):
            out[i, d] += a[d] - b[d]
        for d in range(D):
            out[i, d] *= 0.5


@daedal.kernel
def neighbours(out: f32[N, D], x: f32[N, D], y: f32[N], k: i64):
    """A condition keeps an index inside of its array."""
    for i in range(N - k):
        if i - 1 >= 0:
            for d in range(D):
                out[i, d] = (x[i - 1, d] - x[i + k, d]) * y[i - 1]


@daedal.kernel
def guarded_loop(out: f32[B, D], table: f32[N, D], lo: i64[B], hi: i64[B]):
    """A loop under a condition."""
    for b in range(B):
        if hi[b] > 2:
            for p in range(lo[b], hi[b]):
                for d in range(D):
                    out[b, d] += table[p, d]


def whole(rng: np.random.Generator, *shape: int) -> Any:
    """Whole numbers, whose sums are the same in every order."""
    return rng.integers(-9, 10, shape).astype(np.float32)


def arguments(name: str, rng: np.random.Generator, width: int) -> tuple[Any, ...]:
    b, n, m, p, k = 5, 11, 7, 23, 3
    idx, j = rng.integers(0, n, p), rng.integers(0, m, p)
    off, rows, table = offsets(rng, b, p), floats(rng, b, width), floats(rng, n, width)
    off32, idx32 = off.astype(np.int32), idx.astype(np.int32)
    lo = rng.integers(0, n, b)
    return {
        "weighted": lambda: (rows, table, idx32, floats(rng, p), off32),
        "scaled": lambda: (floats(rng, n, width), table, 0.3, 2, 9),
        "numbers": lambda: (floats(rng, b), floats(rng, n), idx32, off32),
        "padded": lambda: (rows, table, np.where(idx % 3 == 0, -1, idx), off32),
        "products": lambda: (floats(rng, p, width), table, floats(rng, m, width), idx, j.astype(np.int32)),
        "rectified": lambda: (floats(rng, n, width), table),
        "elements": lambda: (floats(rng, n), floats(rng, n), floats(rng, n)),
        "four_levels": lambda: (floats(rng, b, k, width), floats(rng, n, k, width), idx, off),
        "siblings": lambda: (floats(rng, n, width), floats(rng, m, width), table, rng.integers(0, n, m)),
        "invariant": lambda: (floats(rng, p, width), table, idx, 6),
        "steps": lambda: (floats(rng, n, 8), floats(rng, n, 8), 4),
        "nothing_around": lambda: (floats(rng, 1, 64), floats(rng, 3, 64)),
        "kept": lambda: (floats(rng, b), floats(rng, n), idx, off),
        "kept_in_columns": lambda: (rows, floats(rng, n), n - 1),
        "sums": lambda: (floats(rng, n), whole(rng, n, width)),
        "dots": lambda: (floats(rng, n), whole(rng, n, width), whole(rng, width)),
        "running": lambda: (floats(rng, n, width), floats(rng, 1, width), table),
        "triangle": lambda: (floats(rng, n, width), table),
        "scattered": lambda: (floats(rng, n, width), floats(rng, p, width), idx),
        "cumulated": lambda: (floats(rng, n, width), table),
        "two_rows": lambda: (floats(rng, n, width), table),
        "neighbours": lambda: (floats(rng, n, width), table, floats(rng, n), 2),
        "guarded_loop": lambda: (rows, table, lo, lo + rng.integers(0, n + 1 - lo)),
    }.get(name, lambda: (rows, table, idx, off))()


KERNELS = {name: each for name, each in globals().items() if isinstance(each, KernelFunction)}


@pytest.mark.parametrize("width", [64, 5, 1])
@pytest.mark.parametrize("name", KERNELS)
def test_what_python_does(device: daedal.Device, name: str, width: int, rng: np.random.Generator) -> None:
    check(device, KERNELS[name], *arguments(name, rng, width))


@pytest.mark.parametrize("name", ["pooled", "bags", "rectified", "least"])
def test_rows_longer_than_a_register(device: daedal.Device, name: str, rng: np.random.Generator) -> None:
    check(device, KERNELS[name], *arguments(name, rng, 2 * device.config.vl_max + 12))


@pytest.mark.parametrize("name", KERNELS)
def test_without_checks(device: daedal.Device, name: str, rng: np.random.Generator) -> None:
    check(device, KERNELS[name], *arguments(name, rng, 12), bounds="none")


@pytest.fixture(scope="module")
def rtl() -> Iterator[daedal.Device]:
    with daedal.Device.open("verilator", config="ddr3", memory="ideal:stall=0.1,seed=2") as opened:
        yield opened


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_on_the_rtl(rtl: daedal.Device, name: str, rng: np.random.Generator) -> None:
    for width in (20, 7):
        assert check(rtl, KERNELS[name], *arguments(name, rng, width)).stats.cycles > 0


MODES = {"sum": "bags", "mean": "means"}


@pytest.mark.parametrize("mode", MODES)
def test_a_bag_is_the_program_of_an_embedding_bag(device: daedal.Device, mode: str, rng: np.random.Generator) -> None:
    out, table, idx, off = arguments("bags", rng, 64)
    executable = daedal.compile(KERNELS[MODES[mode]], (out, table, idx, off), device=device)
    layer = nn.EmbeddingBag(11, 64, mode=mode, include_last_offset=True)
    wanted = daedal.compile(layer, (torch.from_numpy(idx), torch.from_numpy(off)), device=device)
    assert len(executable.program) == len(wanted.program)
    if mode == "sum":
        assert executable.program == wanted.program


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_bag_takes_the_cycles_of_an_embedding_bag(mode: str, rng: np.random.Generator) -> None:
    table, idx, off = floats(rng, 500, 64), rng.integers(0, 500, 300), offsets(rng, 20, 300)
    layer = nn.EmbeddingBag(500, 64, mode=mode, include_last_offset=True, _weight=torch.from_numpy(table))
    inputs = (torch.from_numpy(idx), torch.from_numpy(off))
    with daedal.Device.open("verilator", config="ddr3", memory="ideal") as device:
        wanted = daedal.compile(layer, inputs, device=device)
        given = (torch.zeros(20, 64), layer.weight, *inputs)
        executable = daedal.compile(KERNELS[MODES[mode]], given, device=device)
        result = wanted(*inputs)
        executable(*given)
    assert torch.equal(result, given[0])
    # Buffers lie elsewhere, so requests meet otherwise at the ports: a sum's program is the same, byte by byte.
    assert executable.stats.cycles <= (1.01 if mode == "sum" else 1.02) * wanted.stats.cycles


# ------------------------------------------------------------------ what it is called with


def test_one_executable_serves_all_sizes(device: daedal.Device, rng: np.random.Generator) -> None:
    executable = daedal.compile(pooled, arguments("pooled", rng, 16), device=device)
    program = executable.program
    for b, n, p in ((1, 1, 0), (3, 40, 9), (30, 2, 100)):
        given = (floats(rng, b, 16), floats(rng, n, 16), rng.integers(0, n, p), offsets(rng, b, p))
        wanted, here = in_python(pooled, *given), copied(given)
        executable(*here)
        assert same_bits(here[0], wanted[0])
        assert executable.program == program
    assert len(executable._made) == 1


def test_another_width_is_another_program_that_is_kept(device: daedal.Device, rng: np.random.Generator) -> None:
    executable = daedal.compile(pooled, arguments("pooled", rng, 16), device=device)
    programs = []
    for width in (16, 24, 16, 24):
        given = arguments("pooled", rng, width)
        wanted, here = in_python(pooled, *given), copied(given)
        executable(*here)
        assert same_bits(here[0], wanted[0])
        assert f"D = {width}" in executable.explain()
        programs.append(executable.program)
    assert programs[:2] == programs[2:] and programs[0] != programs[1]
    assert len(executable._made) == 2


def test_tensors_are_filled_in_place(device: daedal.Device, rng: np.random.Generator) -> None:
    given = arguments("pooled", rng, 12)
    wanted = in_python(pooled, *given)
    tensors = [torch.from_numpy(array.copy()) for array in given]
    out = tensors[0]
    address, version = out.data_ptr(), out._version
    executable = daedal.compile(pooled, tensors, device=device)
    executable(*tensors)
    assert out.data_ptr() == address and out._version > version
    assert same_bits(out.numpy(), wanted[0])
    executable(*tensors)
    assert not same_bits(out.numpy(), wanted[0])


def test_arrays_may_lie_anyhow(device: daedal.Device, rng: np.random.Generator) -> None:
    out, table, idx, off = arguments("pooled", rng, 12)
    wanted = in_python(pooled, out, table, idx, off)
    wide = np.zeros((5, 30), np.float32)
    given = (wide[:, 3:27:2], np.asfortranarray(table), np.repeat(idx, 2)[::2], off)
    given[0][...] = out
    daedal.compile(pooled, given, device=device)(*given)
    assert same_bits(given[0].copy(), wanted[0])
    assert not wide[:, 4:27:2].any()
    columns = torch.from_numpy(out.copy()).t().contiguous().t()
    tensors = (columns, *(torch.from_numpy(array) for array in (table, idx, off)))
    daedal.compile(pooled, tensors, device=device)(*tensors)
    assert same_bits(columns.contiguous().numpy(), wanted[0])


def test_tables_stay_on_the_device(device: daedal.Device, rng: np.random.Generator) -> None:
    given = [torch.from_numpy(array) for array in arguments("pooled", rng, 12)]
    executable = daedal.compile(pooled, given, device=device)
    before = device.table_uploads
    executable(*given)
    executable(*given)
    assert device.table_uploads == before + 1
    given[1] += 1
    executable(*given)
    assert device.table_uploads == before + 2


def test_memory_is_given_back(device: daedal.Device, rng: np.random.Generator) -> None:
    given = arguments("pooled", rng, 12)
    executable = daedal.compile(pooled, given, device=device)
    executable(*given)
    free = device.free_bytes
    for _ in range(3):
        executable(*given)
        assert device.free_bytes == free


def test_what_it_says_of_itself(device: daedal.Device, rng: np.random.Generator) -> None:
    given = arguments("padded", rng, 12)
    executable = daedal.compile(padded, given, device=device)
    for level, word in {
        "scf": "memref.load",
        "slc": "slc.callback",
        "slcv": "slcv.fetch",
        "dlc": "dlc.execute",
    }.items():
        assert word in executable.ir(level)
    with pytest.raises(daedal.DaedalError, match="level must be one of"):
        executable.ir("emb")
    assert daedal.assemble(executable.asm()) == executable.program
    text = executable.explain()
    assert "padded: on the device, in one launch, compiled for D = 12" in text
    assert "`for b in range(B):`: a loop of the access unit over b" in text
    assert "`if idx[p] >= 0:`: a condition that is a loop of no iteration or one" in text
    assert "off[b + 1]: checked by the machine" in text
    executable(*given)
    assert executable.stats.rows > 0 and executable.stats.launches == 1
    assert set(executable.kernels) == {"padded"}


def test_the_function_stays_a_python_function(rng: np.random.Generator) -> None:
    assert pooled.__name__ == pooled.name == "pooled"
    assert bags.__doc__ == "The same sums from 0.0 on, in a local row."
    out, table, idx, off = arguments("pooled", rng, 3)
    wanted = out + np.zeros_like(out)
    for b in range(len(out)):
        for p in range(off[b], off[b + 1]):
            wanted[b] += table[idx[p]]
    pooled(out, table, idx, off)
    assert same_bits(out, wanted)


def test_sizes_from_sums_and_scalars(device: daedal.Device, rng: np.random.Generator) -> None:
    size, extra = daedal.dims("size extra")

    @daedal.kernel
    def shifted(out: f32[2 * size + 1, 4], x: f32[size * 3 - extra, 4], extra: i64):
        for i in range(size):
            for d in range(4):
                out[2 * i + 1, d] = x[i + extra, d]

    check(device, shifted, floats(rng, 11, 4), floats(rng, 13, 4), 2)
    with pytest.raises(daedal.UnsupportedOperation, match=r"dimension 0 of argument 'x' must be 13 .*, not 14"):
        check(device, shifted, floats(rng, 11, 4), floats(rng, 14, 4), 2)


def test_names_that_text_would_change(device: daedal.Device, rng: np.random.Generator) -> None:
    n_1, n_2 = daedal.dims("n_1 n_2")

    @daedal.kernel
    def f_1(out_1: f32[n_1, n_2], x_1: f32[n_1, n_2], x_2: f32[n_1, n_2], c0: f32[n_1], k_1: i64, größe: f32):
        for i_1 in range(k_1):
            w_1 = c0[i_1] * größe
            for d in range(n_2):
                out_1[i_1, d] += x_1[i_1, d] - x_2[i_1, d] * w_1

    tables = [floats(rng, 4, 8) for _ in range(3)]
    check(device, f_1, *tables, floats(rng, 4), 3, 0.5)
