"""Bags of rows of 8, 4 and 2-bit integers with a scale and a bias: bits of PyTorch's operators, from narrow rows."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal.compiler.frontends.requests.emb_builder import build
from daedal.compiler.interpreters import interpret
from daedal.compiler.pipeline import compile_emb
from daedal.driver.tables.quantised import QuantisedRows
from daedal.hw.config.core import Config
from daedal.hw.isa.elements import BINARY16
from daedal.runtime.operations import Bag, BagList, Kind
from tests.compiler.layers.compiler_support import random_bags, same_bits
from tests.fuzz.configs import SMALL

EDGE = replace(Config.preset("edge"), name="edge-quantised", quantised=1)
AFFINE = replace(EDGE, name="edge-affine", preadder=1)
TWO_PASS = replace(EDGE, name="edge-two-pass", two_pass=1)
TINY = replace(SMALL, name="small-quantised", lanes=2, vector_registers=4, quantised=1)
TWICE = replace(TINY, name="small-two-pass", bus_bytes=16, lanes=4, register_beats=16, two_pass=1)
NAMES = {8: "byte", 4: "4bit", 2: "2bit"}
WIDTHS = {8: (1, 4, 7, 16, 50, 64), 4: (2, 8, 14, 36, 64), 2: (4, 16, 20, 60)}


@pytest.fixture(scope="module")
def quantised() -> Iterator[daedal.Device]:
    """The golden model of a machine that has such rows."""
    with daedal.Device.open("emulator", config=EDGE) as opened:
        yield opened


class Layer(nn.Module):
    """A table, and the operator that looks bags up in it."""

    def __init__(self, bits: int, table: Tensor, **options: Any) -> None:
        super().__init__()
        self.operator = getattr(torch.ops.quantized, f"embedding_bag_{NAMES[bits]}_rowwise_offsets")
        self.options = options
        self.register_buffer("table", table)

    def forward(self, indices: Tensor, offsets: Tensor | None = None, weights: Tensor | None = None) -> Tensor:
        result: Tensor = self.operator(self.table, indices, offsets, per_sample_weights=weights, **self.options)
        return result


def table_of(bits: int, rows: int, width: int, rng: np.random.Generator, *, any_bits: bool = False) -> Tensor:
    """Rows of integers with scale and bias of many magnitudes, or of any bytes: of NaN and infinite ones as well."""
    form = QuantisedRows(bits, width, "float32" if bits == 8 else "float16")
    table = rng.integers(0, 256, (rows, form.row_bytes), dtype=np.uint8)
    if not any_bits:
        head = rng.standard_normal((rows, 2)) * np.exp2(rng.integers(-9, 9, (rows, 2)))
        table[:, form.integer_bytes :] = head.astype(form.number).view(np.uint8)
    return torch.from_numpy(table)


def random_layer(rng: np.random.Generator) -> tuple[Layer, tuple[Any, ...]]:
    """Any of the operators, and inputs."""
    bits, rows = int(rng.choice(list(NAMES))), int(rng.integers(1, 40))
    table = table_of(bits, rows, int(rng.choice(WIDTHS[bits])), rng, any_bits=bool(rng.integers(4) == 0))
    types = (torch.int32 if rng.integers(2) else torch.int64, torch.int32 if rng.integers(2) else torch.int64)
    weights: Tensor | None = None
    if rng.integers(4) == 0:
        indices = torch.from_numpy(rng.integers(0, rows, (int(rng.integers(1, 6)), int(rng.integers(1, 20)))))
        inputs: tuple[Any, ...] = (indices.to(types[0]),)
    else:
        inputs = random_bags(rows, int(rng.integers(1, 12)), rng, longest=int(rng.choice([3, 30])), types=types)
        if rng.integers(2):
            weights = torch.from_numpy(rng.standard_normal(len(inputs[0])).astype(np.float32))
    options = {"include_last_offset": len(inputs) > 1, "mode": int(rng.integers(2))}
    return Layer(bits, table, **options), inputs if weights is None else (*inputs, weights)


@pytest.mark.parametrize("part", range(4))
def test_random_bags(part: int, quantised: daedal.Device) -> None:
    rng = np.random.default_rng([48, part])
    for _ in range(15):
        layer, inputs = random_layer(rng)
        executable = daedal.compile(layer, inputs, device=quantised)
        assert same_bits(executable(*inputs), layer(*inputs))
        assert len(executable.offloaded) == 1


@pytest.mark.parametrize("config", [AFFINE, TWO_PASS], ids=lambda config: config.name)
def test_whole_rows(config: Config, rng: np.random.Generator) -> None:
    """On a machine with AFFINE each row is one instruction, whose weight is sent once."""
    with daedal.Device.open("emulator", config=config) as device:
        for _ in range(15):
            layer, inputs = random_layer(rng)
            executable = daedal.compile(layer, inputs, device=device)
            assert same_bits(executable(*inputs), layer(*inputs))
            asm = executable.asm()
            assert "op=affine" in asm and not any(f"op={op}" in asm for op in ("fma", "mul_add", "multiply"))


@pytest.mark.parametrize("config", [EDGE, AFFINE], ids=lambda config: config.name)
@pytest.mark.parametrize("bits", NAMES)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_every_level_gives_the_same(bits: int, is_weighted: bool, config: Config) -> None:
    rng = np.random.default_rng(bits)
    form = QuantisedRows(bits, 50, "float32", is_first=True)
    table = form.pack(rng.integers(0, 256, (9, form.row_bytes), dtype=np.uint8) % 127)
    kernel = compile_emb(build(Bag("sum", 50, 64, 64, is_weighted=is_weighted, bits=bits, words=form.words)), config)
    buffers = {
        "table": table, "indices": rng.integers(0, 9, 30), "offsets": np.array([0, 0, 7, 30]),
        "out": np.zeros((3, 50), np.float32),
    }  # fmt: skip
    if is_weighted:
        buffers["weights"] = rng.standard_normal(30).astype(np.float32)
    results = [interpret(kernel.ir(level), buffers)["out"] for level in ("emb", "scf", "slc", "slcv", "dlc")]
    assert results[0].any()
    for result in results[1:]:
        assert np.array_equal(result.view(np.uint32), results[0].view(np.uint32))


class Several(nn.Module):
    """Tables of integers of all sizes beside one of float32 and a gather; one result is of two kinds of rows."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        sizes = [(8, 16), (4, 16), (8, 16), (2, 16), (8, 7), (4, 14)]
        self.layers = nn.ModuleList(Layer(b, table_of(b, 20, w, rng), include_last_offset=True) for b, w in sizes)
        self.plain = nn.EmbeddingBag(20, 16, mode="sum", include_last_offset=True)
        self.rows = nn.Embedding(20, 16)

    def forward(self, indices: Tensor, offsets: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
        bags = [layer(indices, offsets, weights) for layer in self.layers]
        return torch.cat([*bags, self.plain(indices, offsets)], 1), self.rows(indices)


@pytest.mark.parametrize(("config", "is_weighted"), [(EDGE, True), (AFFINE, False)], ids=["edge", "affine"])
def test_several_tables_are_one_launch(config: Config, is_weighted: bool, rng: np.random.Generator) -> None:
    module = Several(rng)
    with daedal.Device.open("emulator", config=config) as device, torch.no_grad():
        executable = None
        for _ in range(3):
            inputs = random_bags(20, int(rng.integers(1, 9)), rng, types=(torch.int64, torch.int64))
            inputs = (*inputs, torch.randn(len(inputs[0]))) if is_weighted else inputs
            executable = executable or daedal.compile(module, inputs, device=device)
            for found, expected in zip(executable(*inputs), module(*inputs), strict=True):
                assert same_bits(found, expected)
            assert executable.stats.launches == 1


@pytest.mark.parametrize("kind", ["words of integers", "rows that stay wide"])
def test_every_level_of_a_list_gives_the_same(kind: str) -> None:
    """Two tables of a list, whose results are of another type or length than their rows."""
    rng, width, bags = np.random.default_rng(3), 10, 3
    if kind == "words of integers":
        form = QuantisedRows(4, width, "float32", is_first=True)
        rows = form.pack(rng.integers(0, 100, (6, form.row_bytes), dtype=np.uint8))
        of, pitch = Kind("sum", width, 8, 12, 64, False, False, None, bits=4), 8
    else:
        rows = rng.standard_normal((6, width)).astype(np.float16)
        of, pitch = Kind("sum", width, 16, 12, 64, False, False, None, BINARY16, is_wide=True), 16
    table = np.zeros((6, pitch), rows.dtype)
    table[:, : rows.shape[1]] = rows
    memory = np.zeros(4096, np.uint8)
    memory[512 : 512 + table.nbytes] = table.view(np.uint8).reshape(-1)
    config = replace(EDGE, name="edge-lists", binary16=1)
    levels = compile_emb(build(BagList(((of, 2),))), config).levels
    first, step = 2048, 12 * 4 * (bags + 1)
    buffers = {
        "list": np.array([[6, 6], [512, 512], [first, first + 1024 - step]]), "indices64": rng.integers(0, 6, 14),
        "offsets": np.array([0, 2, 2, 7, 7, 8, 11, 14]), "memory": memory,
    }  # fmt: skip
    results = [
        interpret(text, {name: each.copy() for name, each in buffers.items()}, {"bags": bags})["memory"]
        for name, text in levels.items()
        if name in ("emb", "scf", "slc", "slcv", "dlc")
    ]
    assert len(results) == 5 and results[0][first : first + 4 * width].any() and results[0][first + 1024 :].any()
    for result in results[1:]:
        assert np.array_equal(result, results[0])


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("config", [TINY, TWICE], ids=lambda config: config.name)
@pytest.mark.parametrize("memory", ["ideal", "ideal:latency=30,stall=0.3,seed=5"])
def test_rtl(memory: str, config: Config) -> None:
    """RTL = emulator = PyTorch, by the same program."""
    rng = np.random.default_rng(48)
    with (
        daedal.Device.open("verilator", config=config, memory=memory) as rtl,
        daedal.Device.open("emulator", config=config) as emulator,
    ):
        for _ in range(12):
            layer, inputs = random_layer(rng)
            pair = [daedal.compile(layer, inputs, device=device) for device in (rtl, emulator)]
            for executable in pair:
                assert same_bits(executable(*inputs), layer(*inputs))
            assert pair[0].stats.lookups == pair[1].stats.lookups


def test_rows_stay_narrow_and_are_uploaded_once(quantised: daedal.Device) -> None:
    rng = np.random.default_rng(1)
    for bits, row_bytes in ((8, 8 + 64), (4, 8 + 32), (2, 8 + 16)):
        layer = Layer(bits, table_of(bits, 20, 64, rng))
        inputs = (torch.arange(20), torch.tensor([0, 7]))
        executable = daedal.compile(layer, inputs, device=quantised)
        executable(*inputs)
        before = dict(quantised.tables)
        table = list(before.values())[-1]
        assert table.row_bytes == row_bytes and table.pitch < row_bytes + 16
        executable(*inputs)
        assert dict(quantised.tables) == before
        layer.table[3, 0] ^= 1
        assert same_bits(executable(*inputs), layer(*inputs))
        assert dict(quantised.tables) == before


def test_the_bytes_of_a_row() -> None:
    """Where scale, bias and each integer lie on the device."""
    first, last = QuantisedRows(4, 6, "float16", is_first=True), QuantisedRows(4, 6, "float16")
    head, integers = np.array([1.5, -2.0], np.float16).tobytes(), bytes([0x21, 0x43, 0x65])
    expected = np.array([1.5, -2.0], np.float32).tobytes() + integers + b"\0"
    for form, row in ((first, head + integers), (last, integers + head)):
        packed = form.pack(np.frombuffer(row, np.uint8)[None])
        assert packed.tobytes() == expected and form.words == 3 and form.row_bytes == len(row)


def test_one_table_in_two_forms(quantised: daedal.Device) -> None:
    """A table of bytes that is looked up as such as well."""
    table = table_of(8, 12, 16, np.random.default_rng(3))

    class Both(nn.Module):
        def forward(self, indices: Tensor, offsets: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
            pooled = torch.ops.quantized.embedding_bag_byte_rowwise_offsets(table, indices, offsets)
            return pooled, table.index_select(0, indices)

    inputs = (torch.tensor([3, 1, 1, 11]), torch.tensor([0, 2]), table)
    executable = daedal.compile(Both(), inputs, device=quantised)
    for found, expected in zip(executable(*inputs), Both()(*inputs), strict=True):
        assert torch.equal(found, expected)
    assert len(executable.offloaded) == 2


def test_what_is_refused(quantised: daedal.Device) -> None:
    rng = np.random.default_rng(2)
    inputs = (torch.tensor([1, 2]), torch.tensor([0]))
    with (
        daedal.Device.open("emulator", config="edge") as plain,
        pytest.raises(daedal.UnsupportedOperation, match="rows of 8-bit integers need a converter, which the machine"),
    ):
        daedal.compile(Layer(8, table_of(8, 4, 16, rng)), inputs, device=plain)
    layer = Layer(8, table_of(8, 4, 16, rng), pruned_weights=True)
    with pytest.raises(daedal.UnsupportedOperation, match="pruned_weights must be False"):
        daedal.compile(layer, inputs, device=quantised)
    wide = Layer(8, table_of(8, 4, EDGE.vl_max + 4, rng))
    with pytest.raises(daedal.UnsupportedOperation, match="here it takes 64 at most: split the columns into several"):
        daedal.compile(wide, inputs, device=quantised)
    executable = daedal.compile(Layer(8, table_of(8, 4, 16, rng)), inputs, device=quantised)
    with pytest.raises(daedal.IndexOutOfRange, match="4"):
        executable(torch.tensor([1, 4]), torch.tensor([0]))


def test_configurations() -> None:
    assert replace(Config.preset("wide"), quantised=1).hash != Config.preset("wide").hash
    with pytest.raises(
        ValueError, match="two_pass must be 0 but with at least 4 lanes and quantised, not with 2 lanes"
    ):
        replace(TINY, two_pass=1)
    with pytest.raises(ValueError, match="two_pass must be 0 with preadder"):
        replace(AFFINE, two_pass=1)
    with pytest.raises(ValueError, match="scalars must be at least 1 with quantised, not 0"):
        replace(Config.preset("edge"), scalars=0, quantised=1)
