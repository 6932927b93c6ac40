"""Rows and numbers that are read and written again, which loaded numbers choose: no row twice."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import daedal
from daedal import f32, i32, i64
from daedal.compiler.frontends.python.function import KernelFunction
from daedal.compiler.opt_levels import OPT_LEVELS
from daedal.errors import IndexOutOfRange, UnsupportedOperation
from daedal.runtime.kernel_launch import submit_kernel
from tests.compiler.kernels.kernel_support import check, copied, floats, offsets, same_bits
from tests.compiler.layers.compiler_support import ddr3

__all__ = ["ddr3"]

N, D, B, U, P = daedal.dims("N D B U P")


@daedal.kernel
def summed(w: f32[N, D], grad: f32[B, D], rows: i64[U], seg: i64[U + 1], src: i64[P], rate: f32):
    """Each row takes the gradients of its segment one by one, as sparse SGD does."""
    for u in range(U):
        for p in range(seg[u], seg[u + 1]):
            for d in range(D):
                w[rows[u], d] = daedal.fma(grad[src[p], d], rate, w[rows[u], d])


@daedal.kernel
def momentum(w: f32[N, D], m: f32[N, D], grad: f32[U, D], rows: i32[U], keep: f32, rate: f32):
    """Two arrays at the same rows."""
    for u in range(U):
        for d in range(D):
            m[rows[u], d] = keep * m[rows[u], d] + grad[u, d]
        for d in range(D):
            w[rows[u], d] = daedal.fma(m[rows[u], d], rate, w[rows[u], d])


@daedal.kernel
def counted(h: f32[N], x: f32[U], rows: i64[U]):
    """Single numbers."""
    for u in range(U):
        h[rows[u]] += x[u]


@daedal.kernel
def scaled_by_row(w: f32[N, D], h: f32[N], x: f32[U, D], y: f32[U], rows: i64[U], rate: f32):
    """A single number and a row, and what was stored used again."""
    for u in range(U):
        new = h[rows[u]] + y[u]
        h[rows[u]] = new
        step = rate / (daedal.sqrt(abs(new)) + 1.0)
        for d in range(D):
            w[rows[u], d] = w[rows[u], d] + x[u, d] * step


@daedal.kernel
def by_permutation(w: f32[N, D], x: f32[U, D], rows: i64[U], order: i64[U]):
    """Numbers that are themselves chosen by loaded ones: none of either twice."""
    for u in range(U):
        for d in range(D):
            w[rows[order[u]], d] += x[u, d]


@daedal.kernel
def halved(w: f32[B, N, D], rows: i64[B, U]):
    """A number for each turn of two loops."""
    for b in range(B):
        for u in range(U):
            for d in range(D):
                w[b, rows[b, u], d] *= 0.5


KERNELS = {name: each for name, each in globals().items() if isinstance(each, KernelFunction)}


def arguments(name: str, rng: np.random.Generator, width: int) -> tuple[Any, ...]:
    n, used, b, p = 60, 40, 9, 70
    rows, table, x = rng.permutation(n)[:used], floats(rng, n, width), floats(rng, used, width)
    return {
        "summed": lambda: (table, floats(rng, b, width), rows, offsets(rng, used, p), rng.integers(0, b, p), -0.1),
        "momentum": lambda: (table, floats(rng, n, width), x, rows.astype(np.int32), 0.9, -0.1),
        "counted": lambda: (floats(rng, n), floats(rng, used), rows),
        "scaled_by_row": lambda: (table, floats(rng, n), x, floats(rng, used), rows, -0.1),
        "by_permutation": lambda: (table, x, rows, rng.permutation(used)),
        "halved": lambda: (floats(rng, 3, 20, width), rng.permutation(20)[:12].reshape(3, 4)),
    }[name]()


@pytest.mark.parametrize("opt", OPT_LEVELS)
@pytest.mark.parametrize("width", [64, 5, 1])
@pytest.mark.parametrize("name", KERNELS)
def test_as_python(ddr3: daedal.Device, name: str, width: int, opt: int, rng: np.random.Generator) -> None:
    check(ddr3, KERNELS[name], *arguments(name, rng, width), opt=opt)
    check(ddr3, KERNELS[name], *arguments(name, rng, width), opt=opt, bounds="none")


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("memory", ["ideal:stall=0.1,seed=2", "litedram-ddr3-x16"])
@pytest.mark.parametrize("name", KERNELS)
def test_on_the_rtl(memory: str, name: str, rng: np.random.Generator) -> None:
    """Where reads run ahead of writes, as they do not on the emulator."""
    with daedal.Device.open("verilator", config="ddr3", memory=memory) as rtl:
        for width in (16, 3):
            check(rtl, KERNELS[name], *arguments(name, rng, width))


@pytest.mark.parametrize("samples", [1, 17, 300])
def test_sparse_sgd_of_pytorch(ddr3: daedal.Device, samples: int, rng: np.random.Generator) -> None:
    """Rows in the order in which PyTorch adds them up, without any coalescing."""
    table, grad = floats(rng, 60, 20), floats(rng, 9, 20)
    index, bag = (torch.from_numpy(rng.integers(0, most, samples)) for most in (60, 9))
    parameter = torch.nn.Parameter(torch.from_numpy(table.copy()))
    values = torch.from_numpy(grad)[bag]
    parameter.grad = torch.sparse_coo_tensor(index[None], values, parameter.shape, check_invariants=True)
    torch.optim.SGD([parameter], lr=0.1).step()
    sorted_index, order = torch.sort(index, stable=True)
    rows, counts = torch.unique_consecutive(sorted_index, return_counts=True)
    segments = np.concatenate([[0], counts.numpy().cumsum()])
    given = (table, grad, rows.numpy(), segments, bag[order].numpy(), -0.1)
    daedal.compile(KERNELS["summed"], given, device=ddr3)(*given)
    assert same_bits(table, parameter.detach().numpy())


def test_tables_that_need_gradients(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """What the kernel writes would have a wrong one, or none. In ``no_grad`` it counts as a change in place."""
    table, *others = arguments("summed", rng, 16)
    parameter = torch.nn.Parameter(torch.from_numpy(table.copy()))
    executable = daedal.compile(KERNELS["summed"], (table, *others), device=ddr3)
    executable(table, *others)
    for given in (parameter, parameter * 1.0):
        with pytest.raises(UnsupportedOperation, match=r"must not need a gradient.*torch\.no_grad\(\), or give it w\."):
            executable(given, *others)
    version = parameter._version
    with torch.no_grad():
        executable(parameter, *others)
    assert parameter._version > version
    assert same_bits(table, parameter.detach().numpy())


@pytest.mark.parametrize("name", ["summed", "momentum", "counted", "halved"])
def test_a_row_twice(ddr3: daedal.Device, name: str, rng: np.random.Generator) -> None:
    kernel, given = KERNELS[name], copied(arguments(name, rng, 8))
    executable = daedal.compile(kernel, given, device=ddr3)
    place = list(kernel.signature.arguments).index("rows")
    wrong, rows = copied(given), given[place].reshape(-1).copy()
    rows[7] = rows[2]
    wrong[place] = rows.reshape(given[place].shape)
    before = copied(wrong)
    message = f"rows must not have a number twice, .*; {rows[2]} is its element 2 and 7: give each row once"
    with pytest.raises(UnsupportedOperation, match=message):
        executable(*wrong)
    assert all(np.array_equal(a, b) for a, b in zip(wrong, before, strict=True) if isinstance(a, np.ndarray))
    with pytest.raises(UnsupportedOperation, match=message):
        submit_kernel(ddr3, executable.kernels[name], dict(zip(kernel.signature.arguments, wrong, strict=True)),
                      dict.fromkeys(executable.kernels[name].values, 0))  # fmt: skip
    executable(*given)


@pytest.mark.parametrize("bounds", ["fatal", "warn", "ignore"])
@pytest.mark.parametrize("bad", [60, -1])
def test_a_row_that_there_is_not(ddr3: daedal.Device, bounds: str, bad: int, rng: np.random.Generator) -> None:
    """Row 0 cannot take its place: it may be there as well."""
    table, x, rows, order = arguments("by_permutation", rng, 8)
    executable = daedal.compile(KERNELS["by_permutation"], (table, x, rows, order), device=ddr3, bounds=bounds)
    rows[5] = bad
    before = table.copy()
    with pytest.raises(IndexOutOfRange, match=f"{bad}.*must be (from 0 to 59|below 60)"):
        executable(table, x, rows, order)
    assert same_bits(table, before)


def test_only_where_they_choose_what_is_read_and_written(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """Rows that are written only, the last of which counts, and rows that are read only, may be there twice."""
    given = arguments("summed", rng, 8)
    made = daedal.compile(KERNELS["summed"], given, device=ddr3).kernels["summed"]
    assert [spec.name for spec in made.buffers if spec.is_distinct] == ["rows"]


@daedal.kernel
def placed(out: f32[N, D], x: f32[U, D], rows: i32[U], other: i64[U]):
    """Rows that are only written, of which the kernel promises something."""
    daedal.distinct(rows)
    for u in range(U):
        for d in range(D):
            out[rows[u], d] = x[other[u], d]


@pytest.mark.parametrize("opt", OPT_LEVELS)
def test_a_promise_is_checked(ddr3: daedal.Device, opt: int, rng: np.random.Generator) -> None:
    """Of the array that it is of, on the device, by the plain function, and from a file."""
    rows, other = rng.permutation(60)[:40].astype(np.int32), rng.integers(0, 40, 40)
    given = floats(rng, 60, 8), floats(rng, 40, 8), rows, other
    check(ddr3, placed, *given, opt=opt)
    executable = daedal.compile(placed, given, device=ddr3, opt=opt)
    rows[9], rows[30], rows[39] = rows[4], rows[1], rows[0]
    message = f"must not have a number twice, .*; {rows[4]} is its element 4 and 9: give each row once"
    before = given[0].copy()
    with pytest.raises(UnsupportedOperation, match=": rows " + message):
        executable(*given)
    with pytest.raises(UnsupportedOperation, match=message):
        placed(*given)
    assert same_bits(given[0], before)


def test_a_promise_of_a_file(ddr3: daedal.Device, tmp_path: Path, rng: np.random.Generator) -> None:
    given = floats(rng, 60, 8), floats(rng, 40, 8), np.arange(40, dtype=np.int32), rng.integers(0, 40, 40)
    daedal.compile(placed, given, device=ddr3).save(tmp_path / "placed.daedal")
    loaded = daedal.load(tmp_path / "placed.daedal", device=ddr3)
    loaded(*given)
    given[2][7] = 5
    with pytest.raises(UnsupportedOperation, match=r": rows must not have a number twice, .* 5 is its element 5 and 7"):
        loaded(*given)


def test_what_is_no_promise() -> None:
    def late(out: f32[N], rows: i64[U]) -> None:
        for u in range(U):
            daedal.distinct(rows)
            out[rows[u]] = 1.0

    def behind(out: f32[N], rows: i64[U]) -> None:
        for u in range(U):
            out[rows[u]] = 1.0
        daedal.distinct(rows)

    def floating(out: f32[N], rows: i64[U]) -> None:
        daedal.distinct(out)
        for u in range(U):
            out[rows[u]] = 1.0

    def nothing(out: f32[N], rows: i64[U]) -> None:
        daedal.distinct()
        for u in range(U):
            out[rows[u]] = 1.0

    wrong = {
        late: "must be a statement of its own in front of all loops", behind: "in front of all loops and conditions",
        floating: "must be given arrays of i32 or i64 of the kernel's, not out",
        nothing: "must be given the arrays that have no number twice",
    }  # fmt: skip
    for function, message in wrong.items():
        with pytest.raises(UnsupportedOperation, match=r"test_kernel_updates.py:\d+: .*" + message):
            daedal.kernel(function)
