"""Bags of 16-bit tables: sums in binary32, rounded as PyTorch does; tables stay narrow in device memory."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import daedal
from daedal.compiler.frontends.requests.emb_builder import build
from daedal.compiler.interpreters import interpret
from daedal.compiler.pipeline import compile_emb
from daedal.hw.isa.elements import BFLOAT16, BINARY16
from daedal.runtime.operations import Bag
from tests.compiler.layers.compiler_support import ddr3, random_bags, wild_table
from tests.compiler.torch.dynamo_support import Layer, fresh
from tests.fuzz.configs import HALVES, SMALL

__all__ = ["ddr3", "fresh"]

EDGE = HALVES
TINY = replace(SMALL, name="small-halves", lanes=2, binary16=1, bfloat16=1)
DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}
ELEMENTS = {"float16": BINARY16, "bfloat16": BFLOAT16}


@pytest.fixture(scope="module")
def halves() -> Iterator[daedal.Device]:
    """The golden model of a machine that has all converters."""
    with daedal.Device.open("emulator", config=EDGE) as opened:
        yield opened


def same(found: Tensor, expected: Tensor) -> bool:
    """Type, shape and bits, of a NaN only that it is one."""
    assert found.dtype is expected.dtype and found.shape == expected.shape
    nan = expected.isnan()
    bits, wanted = (each.contiguous().view(torch.int16) for each in (found, expected))
    return torch.equal(found.isnan(), nan) and torch.equal(bits[~nan], wanted[~nan])


def table_of(dtype: torch.dtype, rows: int, width: int, rng: np.random.Generator, *, any_bits: bool = False) -> Tensor:
    if any_bits:
        return torch.from_numpy(rng.integers(-(1 << 15), 1 << 15, (rows, width)).astype(np.int16)).view(dtype)
    return wild_table(rows, width, rng).clamp(-1e4, 1e4).to(dtype)


def laid_out(table: Tensor, layout: str) -> Tensor:
    """The same rows, whose elements lie otherwise."""
    if layout == "transposed":
        return table.t().contiguous().t()
    return torch.cat([table, table], 1)[:, : table.shape[1]] if layout == "sliced" else table


def random_layer(dtype: torch.dtype, rng: np.random.Generator) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
    """A pooling of any kind that the machine does, and its inputs."""
    rows, width = int(rng.integers(1, 40)), int(rng.choice([1, 2, 3, 5, 8, 9, 16, 17, 34, 63, 64, 65, 129, 130]))
    weighted, mode = bool(rng.integers(2)), str(rng.choice(["sum", "mean", "mean", "max"]))
    padding = None if rng.integers(2) else int(rng.integers(-rows, rows))
    table = laid_out(
        table_of(dtype, rows, width, rng, any_bits=bool(rng.integers(4) == 0)),
        str(rng.choice(["plain", "transposed", "sliced"])),
    )
    integer = torch.int32 if rng.integers(2) else torch.int64
    indices, offsets = random_bags(rows, int(rng.integers(1, 12)), rng, longest=30, types=(integer, integer))
    inputs: tuple[Any, ...] = (indices, offsets, table)
    mode = "sum" if weighted else mode
    if weighted:
        inputs += (table_of(dtype, 1, max(1, len(indices)), rng)[0, : len(indices)].clone(),)

    def layer(indices: Tensor, offsets: Tensor, table: Tensor, weights: Tensor | None = None) -> Tensor:
        return functional.embedding_bag(
            indices, table, offsets, mode=mode, per_sample_weights=weights, padding_idx=padding,
            include_last_offset=True,
        )  # fmt: skip

    return layer, inputs


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("dtype", DTYPES)
def test_random_bags(dtype: str, part: int, halves: daedal.Device) -> None:
    rng = np.random.default_rng([47, part])
    for _ in range(12):
        layer, inputs = random_layer(DTYPES[dtype], rng)
        executable = daedal.compile(Layer(layer), inputs, device=halves)
        assert same(executable(*inputs), layer(*inputs))
        assert executable.offloaded == ("embedding_bag",)


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("memory", ["ideal", "ideal:latency=30,stall=0.3,seed=5"])
def test_rtl(memory: str) -> None:
    """RTL = emulator = PyTorch, by the same program."""
    rng = np.random.default_rng(47)
    with (
        daedal.Device.open("verilator", config=TINY, memory=memory) as rtl,
        daedal.Device.open("emulator", config=TINY) as emulator,
    ):
        for number in range(16):
            layer, inputs = random_layer(list(DTYPES.values())[number % 2], rng)
            pair = [daedal.compile(Layer(layer), inputs, device=device) for device in (rtl, emulator)]
            for executable in pair:
                assert same(executable(*inputs), layer(*inputs))
            assert pair[0].program == pair[1].program
            assert pair[0].stats.rows == pair[1].stats.rows
        table = table_of(torch.bfloat16, 30, 7, rng)
        keys = torch.from_numpy(rng.integers(0, 30, 20))
        assert same(daedal.compile(nn.Embedding.from_pretrained(table), (keys,), device=rtl)(keys), table[keys])


ONE, HALF_ULP = 1.0, 2.0**-8
"""A sum of both is exactly between two bfloat16, of which 1.0 is the even one."""


@pytest.mark.parametrize(("padding", "expected"), [(None, 1.0 + 2.0**-7), (0, 1.0)])
def test_a_tie_of_bfloat16(padding: int | None, expected: float, halves: daedal.Device) -> None:
    """PyTorch rounds ties of sums away from zero, and to even where there is a padding row."""
    table = torch.tensor([[9.0, 9.0], [ONE, -ONE], [HALF_ULP, -HALF_ULP]], dtype=torch.bfloat16)
    module = nn.EmbeddingBag.from_pretrained(table, mode="sum", padding_idx=padding)
    inputs = torch.tensor([1, 2]), torch.tensor([0])
    found = daedal.compile(module, inputs, device=halves)(*inputs)
    assert found.tolist() == [[expected, -expected]] == module(*inputs).tolist()


class Several(nn.Module):
    """Tables of all types, pooled in one launch."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag.from_pretrained(table_of(dtype, 20, width, rng), mode=mode)
            for dtype in (torch.float16, torch.bfloat16, torch.float32)
            for width, mode in ((8, "sum"), (5, "max"))
        )

    def forward(self, indices: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        parts = [table(indices, offsets) for table in self.tables]
        return torch.cat(parts[:2], 1), torch.cat(parts[2:4], 1), torch.cat(parts[4:], 1)


def test_several_tables_in_one_launch(halves: daedal.Device, rng: np.random.Generator) -> None:
    module = Several(rng)
    batches = [random_bags(20, 9, rng, types=(torch.int64, torch.int64)) for _ in range(3)]
    batches = [(indices, offsets[:-1]) for indices, offsets in batches]
    executable = daedal.compile(module, batches[0], device=halves)
    for batch in batches:  # the second one takes the fast path
        for found, expected in zip(executable(*batch), module(*batch), strict=True):
            assert found.dtype is expected.dtype and torch.equal(found, expected)
        assert executable.stats.launches == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_lines_are_those_of_the_bytes(dtype: str, halves: daedal.Device, rng: np.random.Generator) -> None:
    module = nn.EmbeddingBag.from_pretrained(table_of(DTYPES[dtype], 500, 64, rng), mode="sum")
    indices, offsets = torch.from_numpy(rng.integers(0, 500, 512)), torch.arange(0, 512, 32)
    executable = daedal.compile(module, (indices, offsets), device=halves)
    executable(indices, offsets)
    lines, bus = 512 * 64 * 2 // 16, halves.config.bus_bytes
    assert lines <= executable.stats.lines_read <= lines + (512 + 17) * 8 // bus + 64
    assert executable.stats.bytes_written == 16 * 64 * 2
    (table,) = (each for each in halves.tables.values() if (each.rows, each.dim) == (500, 64) and each.dtype == dtype)
    raw = np.frombuffer(halves.memory.read(table.address, 500 * 128), np.uint8)
    assert table.pitch == 128 and np.array_equal(raw, module.weight.view(torch.uint8).numpy().ravel())
    halves.drop_table(next(name for name, each in halves.tables.items() if each is table))


@pytest.mark.parametrize("width", [1, 5, 9, 17])
def test_rows_of_odd_widths(width: int, halves: daedal.Device, rng: np.random.Generator) -> None:
    """They end within a granule: no more is stored than they have, and their neighbours stay as they are."""
    table = table_of(torch.bfloat16, 200, width, rng, any_bits=True)
    module = nn.EmbeddingBag.from_pretrained(table, mode="max")
    indices, offsets = torch.from_numpy(rng.integers(0, 200, 120)), torch.arange(0, 120, 3)
    executable = daedal.compile(module, (indices, offsets), device=halves)
    assert same(executable(indices, offsets), module(indices, offsets))
    assert executable.stats.bytes_written == 40 * width * 2
    for name in list(halves.tables):
        halves.drop_table(name)


def test_a_machine_without_converters(ddr3: daedal.Device) -> None:
    module = nn.EmbeddingBag(9, 4, mode="sum").half()
    inputs = torch.tensor([1, 2, 3]), torch.tensor([0, 2])
    message = (
        "rows of binary16 need a converter, which the machine does not have: set binary16 = 1 in its configuration"
    )
    with pytest.raises(daedal.UnsupportedOperation, match=f"embedding_bag of weight: .*configuration ddr3: {message}"):
        daedal.compile(module, inputs, device=ddr3)
    only = replace(EDGE, name="one", binary16=0)
    with (
        daedal.Device.open("emulator", config=only) as device,
        pytest.raises(daedal.UnsupportedOperation, match="binary16 need a converter"),
    ):
        daedal.compile(module, inputs, device=device)


def test_weights_of_another_type(halves: daedal.Device) -> None:
    module = nn.EmbeddingBag(9, 4, mode="sum").half()
    inputs = torch.tensor([1, 2, 3]), torch.tensor([0, 2]), torch.ones(3)
    with pytest.raises(daedal.UnsupportedOperation, match=r"must be of torch.float16, as the table, not torch.float32"):
        daedal.compile(module, inputs, device=halves)


@pytest.mark.parametrize("opt", [0, 1, 2, 3])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_every_level(mode: str, dtype: str, opt: int, rng: np.random.Generator) -> None:
    """Interpreted levels give what the machine does."""
    element, is_away = ELEMENTS[dtype], dtype == "bfloat16"
    operation = Bag(mode, 8, 64, 64, element=element, is_away=is_away)
    kernel = compile_emb(build(operation), EDGE, opt=opt)
    table = table_of(DTYPES[dtype], 20, 8, rng)
    indices, offsets = random_bags(20, 7, rng, types=(torch.int64, torch.int64))
    expected = functional.embedding_bag(indices, table, offsets, mode=mode, include_last_offset=True)
    arrays = {"table": table.view(torch.int16).numpy().view(element.array)}
    arrays |= {"indices": indices.numpy(), "offsets": offsets.numpy(), "out": np.zeros((7, 8), element.array)}
    for level in kernel.levels:
        if level != "mach":
            out = interpret(kernel.ir(level), dict(arrays))["out"]
            assert same(torch.from_numpy(out).view(DTYPES[dtype]), expected), level


COUNTS = {"float16": (2048, 4100, 2049), "bfloat16": (256, 258, 257)}
"""Numbers of rows: the greatest up to which all are of the type, one beyond it that is, and one that is not."""


@pytest.mark.parametrize("dtype", DTYPES)
def test_means_of_many_rows(dtype: str, halves: daedal.Device, rng: np.random.Generator) -> None:
    """PyTorch divides by a number of the elements' type."""
    module = nn.EmbeddingBag.from_pretrained(table_of(DTYPES[dtype], 50, 8, rng), mode="mean")
    *exact, other = COUNTS[dtype]
    indices = torch.from_numpy(rng.integers(0, 50, 5 + max(*exact, other)))
    executable = daedal.compile(module, (indices[:8], torch.tensor([0, 3])), device=halves)
    for count in exact:
        inputs = indices[: 5 + count], torch.tensor([0, 5])
        assert same(executable(*inputs), module(*inputs))
    for offsets in (torch.tensor([0, 5]), torch.tensor([0, other])):  # the second one is the second of the fast path
        message = f"at most {COUNTS[dtype][0]} rows of torch.{dtype}, or of a number that is one, not of {other}"
        with pytest.raises(daedal.UnsupportedOperation, match=message):
            executable(indices[: 5 + other] if offsets[1] == 5 else indices[:other], offsets)
    fast = torch.compile(module, backend="daedal", options={"device": halves})
    inputs = indices[: 5 + other], torch.tensor([0, 5])
    with torch.no_grad():
        assert same(fast(*inputs), module(*inputs))


@pytest.mark.parametrize("padding", [None, 0])
def test_a_mean_rounds_twice(padding: int | None, halves: daedal.Device) -> None:
    """The sum 1 + 2**-8 is a tie of bfloat16; of its thirds no other rounding gives both."""
    table = torch.tensor([[9.0, 9.0], [ONE, -ONE], [HALF_ULP, -HALF_ULP], [0.0, 0.0]], dtype=torch.bfloat16)
    module = nn.EmbeddingBag.from_pretrained(table, mode="mean", padding_idx=padding)
    inputs = torch.tensor([1, 2, 3]), torch.tensor([0])
    found = daedal.compile(module, inputs, device=halves)(*inputs)
    total = 1.0 + 2.0**-7 if padding is None else 1.0
    expected = torch.tensor([[total / 3, -total / 3]]).to(torch.bfloat16)
    assert same(found, expected) and same(module(*inputs), expected)
