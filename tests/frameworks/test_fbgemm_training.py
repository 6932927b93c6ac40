"""Tables trained by ``daedal.optim.RowWiseAdagrad`` and by FBGEMM, on the same gradients: the same bits."""

import warnings

import pytest
import torch
from torch import nn

import daedal
from tests.compiler.torch.dynamo_support import fresh

pytest.importorskip("fbgemm_gpu")
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of a part that the package for CPUs does not have
    from fbgemm_gpu.split_embedding_configs import SparseType
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
    from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
        ComputeDevice,
        OptimType,
        SplitTableBatchedEmbeddingBagsCodegen,
    )

__all__ = ["fresh"]

pytestmark = pytest.mark.frameworks

MODES = {"sum": PoolingMode.SUM, "mean": PoolingMode.MEAN}


@pytest.mark.parametrize("width", [4, 16, 64, 100])
@pytest.mark.parametrize("mode", ["sum", "mean", "weights"])
def test_rowwise_adagrad(mode: str, width: int) -> None:
    rows, bags, lr, eps = 50, 9, 0.0123, 1e-6
    generator = torch.Generator().manual_seed(1)
    theirs = SplitTableBatchedEmbeddingBagsCodegen(
        [(rows, width, EmbeddingLocation.HOST, ComputeDevice.CPU)],
        optimizer=OptimType.EXACT_ROWWISE_ADAGRAD,
        learning_rate=lr,
        eps=eps,
        weights_precision=SparseType.FP32,
        output_dtype=SparseType.FP32,
        pooling_mode=MODES.get(mode, PoolingMode.SUM),
    )
    ours = nn.EmbeddingBag(rows, width, mode="mean" if mode == "mean" else "sum", include_last_offset=True, sparse=True)
    with torch.no_grad():
        theirs.split_embedding_weights()[0].copy_(ours.weight)
    with daedal.Device.open("emulator") as device:
        fast = torch.compile(ours, backend="daedal", dynamic=True, options={"device": device})
        optimizer = daedal.optim.RowWiseAdagrad(ours.parameters(), lr, eps, device=device)
        for _ in range(5):
            lengths = torch.randint(0, 20, (bags,), generator=generator)
            offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
            samples = int(offsets[-1])
            indices = torch.randint(0, rows, (samples,), generator=generator)
            weights = torch.randn(samples, generator=generator) if mode == "weights" else None
            grad = torch.randn(bags, width, generator=generator)
            optimizer.zero_grad()
            fast(indices, offsets, weights).backward(grad)
            optimizer.step()
            theirs(indices, offsets, per_sample_weights=weights).backward(grad)
        optimizer.sync()
    assert torch.equal(ours.weight, theirs.split_embedding_weights()[0])
    (state,) = theirs.split_optimizer_states()
    state = state if isinstance(state, torch.Tensor) else state[0]
    assert torch.equal(optimizer.state[ours.weight]["sum"], state.flatten())
