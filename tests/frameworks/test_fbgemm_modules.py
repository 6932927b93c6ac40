"""FBGEMM's modules of batched tables within ``daedal.compile``: FBGEMM's own bits, one launch for all tables."""

import gc
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal.hw.config.core import Config
from tests.tiles.models import random_plan

pytest.importorskip("fbgemm_gpu")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of a part that the package for CPUs does not have
    from fbgemm_gpu.split_embedding_configs import SparseType
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
    from fbgemm_gpu.split_table_batched_embeddings_ops_inference import IntNBitTableBatchedEmbeddingBagsCodegen
    from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
        ComputeDevice,
        DenseTableBatchedEmbeddingBagsCodegen,
        OptimType,
        SplitTableBatchedEmbeddingBagsCodegen,
    )

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]

ALL = replace(Config.preset("edge"), name="edge-all", quantised=1, binary16=1, bfloat16=1)
HOST = EmbeddingLocation.HOST
FEATURES = [0, 0, 1, 2]
ROWS, WIDTHS = (40, 50, 30), (16, 24, 8)
POOLING = ("SUM", "MEAN", "NONE")


@pytest.fixture(scope="module")
def device() -> Iterator[daedal.Device]:
    """The golden model of a machine that has rows of all types."""
    with daedal.Device.open("emulator", config=ALL) as opened:
        yield opened


@pytest.fixture(scope="module")
def plain() -> Iterator[daedal.Device]:
    """That of a machine that has rows of float32 alone."""
    with daedal.Device.open("emulator", config="edge") as opened:
        yield opened


def widths(pooling: str) -> tuple[int, ...]:
    """Rows that are not pooled are of one width."""
    return (16,) * len(ROWS) if pooling == "NONE" else WIDTHS


def split(pooling: str, weights: str = "FP32", output: str = "FP32", **options: Any) -> Any:
    made: Any = SplitTableBatchedEmbeddingBagsCodegen(
        [(rows, width, HOST, ComputeDevice.CPU) for rows, width in zip(ROWS, widths(pooling), strict=True)],
        feature_table_map=FEATURES,
        optimizer=OptimType.EXACT_SGD,
        weights_precision=SparseType[weights],
        output_dtype=SparseType[output],
        pooling_mode=PoolingMode[pooling],
        **options,
    ).eval()
    for table in made.split_embedding_weights():
        table.copy_(torch.randn(table.shape) * torch.exp2(torch.randint(-6, 6, table.shape)))
    return made


def integers(pooling: str, kinds: str, output: str, features: list[int] = FEATURES, **options: Any) -> Any:
    types = [SparseType[kind] for kind in kinds.split()]
    tables = zip("abc", ROWS, widths(pooling), types, strict=True)
    made: Any = IntNBitTableBatchedEmbeddingBagsCodegen(
        [(name, rows, width, kind, HOST) for name, rows, width, kind in tables],
        feature_table_map=features,
        pooling_mode=PoolingMode[pooling],
        output_dtype=SparseType[output],
        device="cpu",
        **options,
    )
    made.fill_random_weights()
    for (rows, _), width, kind in zip(made.split_embedding_weights(False), widths(pooling), types, strict=True):
        count = len(rows)
        if kind is SparseType.FP32:
            rows[:, : 4 * width] = torch.randn(count, width).view(torch.uint8)
        elif kind is SparseType.FP16:
            rows[:, : 2 * width] = torch.randn(count, width).half().view(torch.uint8)
        elif kind is not SparseType.FP8:  # scale and bias: else there would be many a NaN
            rows[:, :4] = torch.randn(count, 2).half().view(torch.uint8)
    return made


def batch(samples: int, dtype: torch.dtype, features: int = len(FEATURES), least: int = min(ROWS)) -> list[Tensor]:
    """Indices, offsets and weights of bags of no to seven rows."""
    lengths = torch.randint(0, 8, (features * samples,))
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    count = int(offsets[-1])
    return [torch.randint(0, least, (count,)).to(dtype), offsets.to(dtype), torch.randn(count)]


def are_same(found: Tensor, expected: Tensor) -> bool:
    """Bits, but for those of a NaN."""
    bits = {2: torch.int16, 4: torch.int32}[expected.element_size()]
    same = found.view(bits) == expected.view(bits)
    return found.dtype is expected.dtype and bool((same | (found.isnan() & expected.isnan())).all())


def check(module: Any, device: daedal.Device, *, dtype: torch.dtype, is_weighted: bool, pruned: float = 0.0,
          features: int = len(FEATURES), least: int = min(ROWS)) -> None:  # fmt: skip
    """The same bits for batches of several sizes, in one launch, by one trace."""
    executable, code = None, None
    with torch.no_grad():
        for samples in (5, 2, 9):
            inputs = batch(samples, dtype, features, least)[: 3 if is_weighted else 2]
            inputs[0][torch.rand(len(inputs[0])) < pruned] = -1
            executable = executable or daedal.compile(module, inputs, device=device)
            found = executable(*inputs)
            assert are_same(found, module(*(each.clone() for each in inputs)))
            assert executable.stats.launches == 1
            assert code in (None, executable.code), "the module must not be traced again"
            code = executable.code


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("weights", ["FP32", "FP16"])
@pytest.mark.parametrize("pooling", POOLING)
def test_split(pooling: str, weights: str, dtype: torch.dtype, device: daedal.Device) -> None:
    torch.manual_seed(3)
    for output in ("FP32", "FP16"):
        for is_weighted in (False, pooling == "SUM" or output == "FP32"):
            check(split(pooling, weights, output), device, dtype=dtype, is_weighted=is_weighted)


@pytest.mark.parametrize("kind", ["split", "dense"])
@pytest.mark.parametrize("output", ["FP32", "FP16"])
def test_means_that_are_between_two_halves(kind: str, output: str, device: daedal.Device) -> None:
    """Of FP16 they are quotients, of FP32 products with a reciprocal; here the mean is its bag's one row."""
    torch.manual_seed(5)
    if kind == "split":
        module = split("MEAN", output=output)
    else:
        pairs = list(zip(ROWS, WIDTHS, strict=True))
        options: Any = {"pooling_mode": PoolingMode.MEAN, "output_dtype": SparseType[output], "use_cpu": True}
        module = DenseTableBatchedEmbeddingBagsCodegen(pairs, feature_table_map=FEATURES, **options)
    for table in module.split_embedding_weights():
        table.data.copy_((2 * torch.randint(1024, 2048, table.shape) + 1).float() / 2048)
    lengths = torch.tensor([3, 49, 41, 98, 7, 1, 0, 103] * len(FEATURES))
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    indices = torch.repeat_interleave(torch.arange(len(lengths)) % min(ROWS), lengths)
    with torch.no_grad():
        executable = daedal.compile(module, (indices, offsets), device=device)
        assert are_same(executable(indices, offsets), module(indices, offsets))
        assert executable.stats.launches == 1


@pytest.mark.parametrize("pooling", ["SUM", "MEAN"])
def test_dense(pooling: str, device: daedal.Device) -> None:
    torch.manual_seed(4)
    tables = list(zip(ROWS, WIDTHS, strict=True))
    module: Any = DenseTableBatchedEmbeddingBagsCodegen(
        tables, feature_table_map=FEATURES, pooling_mode=PoolingMode[pooling], use_cpu=True
    ).eval()
    for is_weighted in (False, True):
        check(module, device, dtype=torch.int64, is_weighted=is_weighted)


@pytest.mark.parametrize("kinds", ["", "INT8 FP16 INT4"])
@pytest.mark.parametrize("pooling", POOLING)
def test_on_tiles(pooling: str, kinds: str, rng: np.random.Generator) -> None:
    """Tables in any parts; rows that FBGEMM changes are changed on all tiles."""
    torch.manual_seed(8)
    module = integers(pooling, kinds, "FP32") if kinds else split(pooling)
    with daedal.System.open("emulator", config=ALL, tiles=3) as system, torch.no_grad():
        first = batch(6, torch.int64)[:2]
        made = daedal.plan(module, system, sample=first)
        steps = {table.name: 0 if kinds else 4 for table in made.tables}
        for plan in (made, random_plan(made, steps, rng), random_plan(made, steps, rng)):
            executable = daedal.compile(module, first, device=system, plan=plan)
            for samples in (6, 2, 11):
                inputs = batch(samples, torch.int64)[:2]
                assert are_same(executable(*inputs), module(*(each.clone() for each in inputs)))
                for table in () if kinds else module.split_embedding_weights():
                    table[int(rng.integers(0, len(table)))] += 1


@pytest.mark.parametrize("kinds", ["INT8 INT4 INT2", "FP32 FP16 INT8", "FP8 FP8 FP16"])
@pytest.mark.parametrize("output", ["FP32", "FP16", "BF16"])
@pytest.mark.parametrize("pooling", POOLING)
def test_integers(pooling: str, output: str, kinds: str, device: daedal.Device) -> None:
    """With rows of whatever length, and indices of rows that were pruned."""
    torch.manual_seed(5)
    for is_weighted, dtype, alignment in ((False, torch.int32, 1), (True, torch.int64, 16)):
        module = integers(pooling, kinds, output, row_alignment=alignment)
        pruned = 0.0 if "FP8" in kinds else 0.2
        check(module, device, dtype=dtype, is_weighted=is_weighted, pruned=pruned)


def test_index_remapping(device: daedal.Device) -> None:
    torch.manual_seed(6)
    remapping = [torch.where(torch.rand(60) < 0.3, -1, torch.randint(0, rows, (60,))).int() for rows in ROWS]
    module = integers("MEAN", "INT8 INT4 INT8", "FP16", [0, 1, 2], index_remapping=remapping)
    check(module, device, dtype=torch.int32, is_weighted=False, features=3, least=60)


class Model(nn.Module):
    """A module of FBGEMM's beside another embedding."""

    def __init__(self, tables: Any) -> None:
        super().__init__()
        self.tables, self.other = tables, nn.Embedding(min(ROWS), 16)

    def forward(self, indices: Tensor, offsets: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.tables(indices, offsets, per_sample_weights=weights), self.other(indices)


def test_tables_are_shared(device: daedal.Device) -> None:
    """What FBGEMM's optimizer changes in its backward is seen by the device."""
    torch.manual_seed(7)
    model = Model(split("SUM", learning_rate=0.5))
    indices, offsets, _ = batch(4, torch.int64)
    with torch.no_grad():
        executable = daedal.compile(model, (indices, offsets), device=device)
        before = executable(indices, offsets)[0]
    model.tables(indices, offsets).sum().backward()
    with torch.no_grad():
        found = executable(indices, offsets)[0]
        assert are_same(found, model.tables(indices, offsets)) and not torch.equal(found, before)
    assert {"tables.table_0", "tables.table_2", "other.weight"} <= set(device.tables)


def test_what_stays_fbgemms_has_a_reason(device: daedal.Device, plain: daedal.Device) -> None:
    torch.manual_seed(8)
    hooked = split("SUM")
    hooked.register_forward_hook(lambda module, inputs, result: result + 1)
    cases = [
        (plain, integers("SUM", "INT8 INT8 INT8", "FP32"), False, "machines with Config.quantised have rows of int8"),
        (plain, split("SUM", "FP16"), False, "machine edge does not compute with rows of torch.float16"),
        (device, split("MEAN", "FP32", "FP16"), True, "weighted means of FP16 are added up in an order of FBGEMM's"),
        (device, hooked, False, "a forward or hooks of its own"),
    ]
    for where, module, is_weighted, reason in cases:
        model, inputs = Model(module), batch(3, torch.int64)[: 3 if is_weighted else 2]
        with torch.no_grad():
            executable = daedal.compile(model, inputs, device=where)
            for found, expected in zip(executable(*inputs), model(*inputs), strict=True):
                assert torch.equal(found, expected)
        assert reason in executable.explain() and executable.stats.launches == 1


def test_a_module_that_is_gone_is_named(device: daedal.Device) -> None:
    """An exported program has no copy of a module that stays FBGEMM's."""
    torch.manual_seed(11)
    model, inputs = Model(split("MEAN", "FP32", "FP16")), batch(3, torch.int64)
    with torch.no_grad():
        made = daedal.quantized.traceable(model, device=device)
        program = torch.export.export(made, tuple(inputs))
        executable = daedal.compile(program, inputs, device=device)
        assert all(torch.equal(*pair) for pair in zip(executable(*inputs), model(*inputs), strict=True))
        del made
        gc.collect()
        for use in (lambda: executable(*inputs), lambda: daedal.compile(program, inputs, device=device)):
            with pytest.raises(daedal.UnsupportedOperation, match=r"is gone: keep what daedal\.quantized\.traceable"):
                use()


def test_refusals(device: daedal.Device) -> None:
    torch.manual_seed(9)
    indices, offsets, _ = batch(3, torch.int64)
    executable = daedal.compile(split("SUM"), (indices, offsets), device=device)
    bad = indices.clone()
    bad[0] = 1000
    with torch.no_grad(), pytest.raises(daedal.IndexOutOfRange, match=r"of table_0: index 1000"):
        executable(bad, offsets)
    with torch.no_grad(), pytest.raises(daedal.InvalidOffsets, match="a bag for each sample of 4 features"):
        executable(indices, offsets[:-1])
    empty = IntNBitTableBatchedEmbeddingBagsCodegen([("a", 9, 8, SparseType.INT8, HOST)], device="cpu")
    with pytest.raises(daedal.UnsupportedOperation, match="tables must have their rows before it is compiled"):
        daedal.compile(empty, (indices, offsets), device=device)


def test_torch_compile(device: daedal.Device) -> None:
    torch.manual_seed(10)
    torch._dynamo.reset()
    training = daedal.quantized.traceable(split("SUM").train(), device=device)
    with pytest.raises(Exception, match="FBGEMM trains this table when gradients come back"):
        torch.compile(training, backend="daedal", options={"device": device})(*batch(3, torch.int64)[:2])
    torch._dynamo.reset()
    model = Model(integers("MEAN", "INT8 INT4 INT2", "FP32"))
    fast = torch.compile(
        daedal.quantized.traceable(model, device=device), backend="daedal", dynamic=True, options={"device": device}
    )
    with torch.no_grad():
        for samples in (4, 7, 5):
            indices, offsets, _ = batch(samples, torch.int64)
            for found, expected in zip(fast(indices, offsets), model(indices, offsets), strict=True):
                assert are_same(found, expected)
    assert all(graph.stats.launches == 1 for graph in daedal.graphs(device))
    torch._dynamo.reset()
