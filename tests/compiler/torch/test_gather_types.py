"""Gathers copy rows of any type byte by byte, and rows are in device memory as they are on the host."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import daedal
from daedal.compiler.frontends.requests.checks import COPIED_TYPES
from daedal.driver.memory.layout import row_pitch
from daedal.driver.tables.table_store import Table
from tests.compiler.layers.compiler_support import ddr3, device
from tests.compiler.torch.dynamo_support import Layer, fresh

__all__ = ["ddr3", "device", "fresh"]

DTYPES = {name: getattr(torch, name) for name in sorted(COPIED_TYPES)}
ROWS = 37
WIDTHS = (1, 2, 3, 5, 8, 33, 64)


def any_rows(dtype: torch.dtype, rows: int, width: int, rng: np.random.Generator) -> Tensor:
    """A table of any bits: NaNs of all payloads, subnormals, zeros of both signs."""
    raw = rng.integers(0, 2 if dtype is torch.bool else 256, (rows, width * dtype.itemsize), np.uint8)
    return torch.from_numpy(raw).view(dtype)


def raw_bytes(tensor: Tensor) -> Tensor:
    return tensor.resolve_conj().resolve_neg().contiguous().view(torch.uint8)


def check(found: Tensor, expected: Tensor) -> None:
    """Type, shape, layout and bits."""
    assert found.dtype is expected.dtype and found.shape == expected.shape
    assert found.is_contiguous() and found.layout is expected.layout
    assert torch.equal(raw_bytes(found), raw_bytes(expected))


def in_memory(device: daedal.Device, table: Table) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """The bytes of a resident table with those behind its rows."""
    raw = device.memory.read(table.address, table.rows * table.pitch)
    return np.frombuffer(raw, np.uint8).reshape(table.rows, table.pitch)


def gathered_column(table: Tensor, keys: Tensor) -> Tensor:
    return torch.gather(table, 0, keys.view(-1, 1).expand(-1, table.shape[1]))


GATHERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "embedding": lambda table, keys: functional.embedding(keys, table),
    "index_select": lambda table, keys: table.index_select(0, keys),
    "indexed": lambda table, keys: table[keys - ROWS],
    "gather": gathered_column,
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_gathers(dtype: str, device: daedal.Device, rng: np.random.Generator) -> None:
    for (name, gather), width in itertools.product(GATHERS.items(), (3, 8)):
        table = any_rows(DTYPES[dtype], ROWS, width, rng)
        keys = torch.from_numpy(rng.integers(0, ROWS, int(rng.integers(1, 20))))
        try:
            expected = gather(table, keys)
        except RuntimeError:
            assert name == "gather"  # PyTorch has none for the rarer types
            continue
        executable = daedal.compile(Layer(gather), (table, keys), device=device)
        check(executable(table, keys), expected)
        assert len(executable.offloaded) == 1 and executable.stats.rows == len(keys)


@pytest.mark.parametrize("dtype", DTYPES)
def test_layers(dtype: str, device: daedal.Device, rng: np.random.Generator) -> None:
    """A table keeps its type and its bytes in device memory; nothing is widened."""
    for width in WIDTHS:
        module = nn.Embedding.from_pretrained(any_rows(DTYPES[dtype], ROWS, width, rng), padding_idx=1)
        keys = torch.from_numpy(rng.integers(0, ROWS, (3, 5)).astype(np.int32))
        executable = daedal.compile(module, (keys,), device=device)
        for shape in ((3, 5), (0,), (1,), (2, 1, 3)):
            keys = torch.from_numpy(rng.integers(0, ROWS, shape).astype(np.int32))
            check(executable(keys), module(keys))
        (table,) = (each for name, each in device.tables.items() if "weight" in name)
        expected = raw_bytes(module.weight).numpy()
        assert (table.dtype, table.rows, table.dim) == (dtype, ROWS, width)
        assert table.row_bytes == width * DTYPES[dtype].itemsize
        assert table.pitch == row_pitch(table.row_bytes, device.config)
        found = in_memory(device, table)
        assert np.array_equal(found[:, : table.row_bytes], expected) and not found[:, table.row_bytes :].any()
        for name in list(device.tables):
            device.drop_table(name)


@pytest.mark.parametrize(
    ("dtype", "width"),
    [("bfloat16", 64), ("int8", 64), ("float64", 8), ("float16", 33), ("bool", 5), ("uint8", 6), ("int8", 7)],
)
def test_lines_are_those_of_the_bytes(dtype: str, width: int, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """A launch moves as many lines as one for rows of float32 with as many bytes; if these are whole words, by the same
    program.
    """
    keys = torch.from_numpy(rng.integers(0, 4000, 512))
    row_bytes = width * DTYPES[dtype].itemsize
    words = -(-row_bytes // 4)
    table = any_rows(DTYPES[dtype], 4000, width, rng)
    executables = [
        daedal.compile(nn.Embedding.from_pretrained(each), (keys,), device=ddr3)
        for each in (table, any_rows(torch.float32, 4000, words, rng))
    ]
    for executable in executables:
        executable(keys)
    narrow, plain = executables
    assert (narrow.program == plain.program) is (row_bytes % 4 != 2)
    assert narrow.stats.lines_read == plain.stats.lines_read
    assert narrow.stats.bytes_written == 512 * (words * 4 if row_bytes % 2 else row_bytes)
    lines, indices = -(-words * 4 // ddr3.config.bus_bytes), 512 * 8 // ddr3.config.bus_bytes
    assert 512 * lines + indices <= narrow.stats.lines_read <= 512 * lines + indices + 64


def changed_rows(dtype: torch.dtype, rng: np.random.Generator) -> dict[str, Tensor]:
    """Tables whose elements are not one behind the other, or not as they are in memory."""
    whole = any_rows(dtype, 60, 24, rng)
    views = {"transposed": whole.t(), "columns": whole[:, 3:10], "rows": whole[::2], "columns apart": whole[:, ::5]}
    if dtype.is_complex:
        views["conjugate"] = whole.conj()
        if dtype is not torch.complex32:
            views |= {"negative": whole.conj().imag, "real": whole.real}
    return views


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "int64", "complex64", "complex128", "complex32", "bool"])
def test_tables_that_are_views(dtype: str, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    for name, table in changed_rows(DTYPES[dtype], rng).items():
        keys = torch.from_numpy(rng.integers(0, len(table), 9))
        for gather in (GATHERS["index_select"], GATHERS["embedding"]):
            executable = daedal.compile(Layer(gather), (table, keys), device=ddr3)
            check(executable(table, keys), gather(table, keys))
            assert executable.offloaded, name


def changes_in_place(table: Tensor, keys: Tensor) -> Tensor:
    first = table.index_select(0, keys)
    table += 1
    return torch.cat((first, table.index_select(0, keys)))


@pytest.mark.parametrize("dtype", ["bfloat16", "float64", "int8"])
def test_a_table_that_changes(dtype: str, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    keys = torch.from_numpy(rng.integers(0, ROWS, 11))
    table = torch.from_numpy(rng.integers(-100, 100, (ROWS, 7))).to(DTYPES[dtype])
    executable = daedal.compile(Layer(changes_in_place), (table.clone(), keys), device=ddr3)
    ours, theirs = table.clone(), table.clone()
    for _ in range(3):
        check(executable(ours, keys), changes_in_place(theirs, keys))
        assert torch.equal(ours, theirs) and executable.stats.launches == 2


@pytest.mark.parametrize("width", [2, 3])
def test_a_table_that_is_computed(width: int, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """Rows that PyTorch makes in between are launched with, and not kept."""

    def model(table: Tensor, keys: Tensor) -> Tensor:
        return (table + 1).index_select(0, keys)

    table, keys = torch.from_numpy(rng.integers(0, 99, (ROWS, width), np.uint8)), torch.tensor([5, 0, 36])
    executable = daedal.compile(Layer(model), (table, keys), device=ddr3)
    tables = len(ddr3.tables)
    check(executable(table, keys), model(table, keys))
    assert executable.stats.launches == 1 and len(ddr3.tables) == tables


@pytest.mark.parametrize(("dtype", "width"), [("bfloat16", 8), ("bfloat16", 3), ("int8", 3)])
def test_submitted(dtype: str, width: int, ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """Rows with padding are stripped when their launch has ended, whichever is waited for first."""
    module = nn.Embedding.from_pretrained(any_rows(DTYPES[dtype], ROWS, width, rng))
    batches = [torch.from_numpy(rng.integers(0, ROWS, 50)) for _ in range(4)]
    executable = daedal.compile(module, (batches[0],), device=ddr3)
    futures = [executable.submit(batch) for batch in batches]
    for future, batch in reversed(list(zip(futures, batches, strict=True))):
        check(future.result(), module(batch))


def test_a_bad_index(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    module = nn.Embedding.from_pretrained(any_rows(torch.float16, ROWS, 3, rng))
    good, bad = torch.tensor([0, 36]), torch.tensor([0, 36, 37])
    executable = daedal.compile(module, (good,), device=ddr3)
    with pytest.raises(daedal.IndexOutOfRange, match=r"index 37 is out of range.*the table has 37 rows.*number 2 of"):
        executable(bad)
    check(executable(good), module(good))
    lenient = daedal.compile(module, (good,), device=ddr3, bounds="warn")
    with pytest.warns(daedal.BoundsWarning, match="the first one met 37"):
        check(lenient(bad), module(torch.tensor([0, 36, 0])))


def test_what_stays_in_pytorch(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """Rows that are computed with, and gradients; the gathers in front of sums are the device's."""
    table = torch.from_numpy(rng.standard_normal((ROWS, 32))).bfloat16()

    def model(keys: Tensor) -> tuple[Tensor, ...]:
        rows = table.index_select(0, keys)
        return (
            functional.embedding_bag(keys.view(1, -1), table, mode="sum"),
            rows.new_zeros(ROWS, 32).index_add(0, keys, rows),
            functional.embedding(keys.view(1, -1), table).sum(1),
        )

    keys = torch.tensor([3, 3, 0, 36])
    fast = torch.compile(model, backend="daedal", options={"device": ddr3})
    for ours, theirs in zip(fast(keys), model(keys), strict=True):
        check(ours, theirs)
    (graph,) = daedal.graphs(ddr3)
    assert graph.offloaded == ("rows", "embedding")
    for reason in (
        "embedding_bag: in PyTorch, because loop %p, configuration ddr3: rows of bfloat16 need a converter",
        "index_add: in PyTorch, because rows of bfloat16 need a converter, which the machine does not have",
        "elements of float32 that nothing else uses",
    ):
        assert reason in graph.explain(), graph.explain()


def test_gradients_of_narrow_tables(ddr3: daedal.Device) -> None:
    module = nn.Embedding(ROWS, 6, dtype=torch.float16)
    fast = torch.compile(module, backend="daedal", options={"device": ddr3})
    keys = torch.tensor([3, 3, 0])
    fast(keys).float().sum().backward()
    assert module.weight.grad is not None and module.weight.grad.dtype is torch.float16
    assert module.weight.grad[3].tolist() == [2.0] * 6
    assert "it needs a gradient, and gradients are PyTorch's" in daedal.graphs(ddr3)[-1].explain()
    with torch.no_grad():
        check(fast(keys), module(keys))
    assert daedal.graphs(ddr3)[-1].offloaded


def test_half_models_after_training_steps(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """``half()`` and back gives the table another type, which the next call takes."""
    module = nn.Embedding(ROWS, 5)
    keys = torch.from_numpy(rng.integers(0, ROWS, 12))
    executable = daedal.compile(module, (keys,), device=ddr3)
    for change in (module.half, module.bfloat16, module.double, module.float):
        change()
        check(executable(keys), module(keys))
        assert executable.stats.launches == 1


class Several(nn.Module):
    """Gathers of rows that end with a word, with half of one, and elsewhere."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        kinds = ((torch.float16, 3), (torch.bfloat16, 4), (torch.int8, 6), (torch.uint8, 5), (torch.float16, 3))
        self.tables = nn.ParameterList(
            nn.Parameter(any_rows(dtype, ROWS, width, rng), requires_grad=False) for dtype, width in kinds
        )

    def forward(self, keys: Tensor) -> tuple[Tensor, ...]:
        return tuple(functional.embedding(keys, table) for table in self.tables)


def test_several_gathers_in_one_launch(device: daedal.Device, rng: np.random.Generator) -> None:
    module = Several(rng)
    batches = [torch.from_numpy(rng.integers(0, ROWS, 20)) for _ in range(3)]
    executable = daedal.compile(module, (batches[0],), device=device)
    for batch in batches:
        for found, expected in zip(executable(batch), module(batch), strict=True):
            check(found, expected)
