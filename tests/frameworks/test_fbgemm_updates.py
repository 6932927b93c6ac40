"""Steps of FBGEMM's optimizers, on its own gradients: table and state, bit for bit."""

from typing import Any

import numpy as np
import pytest
import torch

import daedal
from daedal.compiler.library import updates
from daedal.compiler.library.segments import segments

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]

RATE, EPS, ROWS, BAGS = 0.0123, 1e-6, 70, 20


@pytest.mark.parametrize("width", [4, 12, 64, 128])
@pytest.mark.parametrize("scaled", ["", "mean", "weights"])
@pytest.mark.parametrize("name", ["exact_sgd", "rowwise_adagrad"])
def test_steps(name: str, scaled: str, width: int, rng: np.random.Generator) -> None:
    from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation, PoolingMode
    from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
        ComputeDevice,
        OptimType,
        SplitTableBatchedEmbeddingBagsCodegen,
    )

    is_adagrad, mode = name == "rowwise_adagrad", PoolingMode.MEAN if scaled == "mean" else PoolingMode.SUM
    theirs: Any = SplitTableBatchedEmbeddingBagsCodegen(
        [(ROWS, width, EmbeddingLocation.HOST, ComputeDevice.CPU)], learning_rate=RATE, eps=EPS, pooling_mode=mode,
        optimizer=OptimType.EXACT_ROWWISE_ADAGRAD if is_adagrad else OptimType.EXACT_SGD,
    )  # fmt: skip
    lengths = rng.choice([0, 1, 2, 5, 20], BAGS)
    offsets, bags = np.concatenate([[0], lengths.cumsum()]), np.repeat(np.arange(BAGS), lengths)
    indices, weights = rng.integers(0, ROWS, len(bags)), rng.standard_normal(len(bags), np.float32)
    table, state = rng.standard_normal((ROWS, width), np.float32), np.zeros(ROWS, np.float32)
    theirs.split_embedding_weights()[0].data.copy_(torch.from_numpy(table))
    scale = {"mean": (1.0 / lengths[bags]).astype(np.float32), "weights": weights}.get(scaled)
    parts, kernel = segments(indices), getattr(updates, name if scale is None else f"{name}_scaled")
    scales = [] if scale is None else [scale[parts.order]]
    with daedal.Device.open("emulator", config="ddr3") as device:
        for _ in range(3):
            grad = rng.standard_normal((BAGS, width), np.float32)
            given = torch.from_numpy(weights) if scaled == "weights" else None
            out = theirs(torch.from_numpy(indices), torch.from_numpy(offsets), per_sample_weights=given)
            out.backward(torch.from_numpy(grad))
            arguments = (*([state] if is_adagrad else []), grad, *scales, parts.rows, parts.ends, bags[parts.order])
            arguments = (table, *arguments, *([EPS] if is_adagrad else []), -RATE)
            daedal.compile(kernel, arguments, device=device)(*arguments)
            found = theirs.split_embedding_weights()[0].detach().numpy().reshape(table.shape)
            assert np.array_equal(found.view(np.int32), table.view(np.int32))
    if is_adagrad:
        (theirs_state,) = theirs.split_optimizer_states()[0]
        assert np.array_equal(theirs_state.detach().numpy().reshape(-1), state)
