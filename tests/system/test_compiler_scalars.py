"""Reductions and single numbers in loops: on the emulator and on RTL, bit for bit what NumPy gives."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

import daedal
from daedal.compiler.pipeline import compile_scf
from tests.system.compiler_support import CONFIGS, ddr3, run, same_bits
from tests.system.scalar_kernels import (
    ACTIVATIONS,
    ELEMENTWISE,
    SCORES,
    Case,
    block_attention,
    elementwise,
    message_passing,
    sddmm,
    triples,
)

__all__ = ["ddr3"]

TARGETS = [
    *(pytest.param(("emulator", name), id=f"emulator-{name}") for name in CONFIGS),
    *(
        pytest.param(("verilator", name), id=f"verilator-{name}", marks=(pytest.mark.rtl, pytest.mark.slow))
        for name in CONFIGS
    ),
]


@pytest.fixture(scope="module", params=TARGETS)
def device(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    """The emulator and the RTL in every preset."""
    target, config = request.param
    memory = {"memory": "ideal:stall=0.1,seed=3"} if target == "verilator" else {}
    with daedal.Device.open(target, config=config, **memory) as opened:
        yield opened


def check(device: daedal.Device, case: Case) -> None:
    kernel = compile_scf(case.text, device.config)
    found = run(device, kernel, values=case.values, **case.buffers)
    assert same_bits(torch.from_numpy(found), torch.from_numpy(case.expected))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dim", [4, 20, 64])
def test_message_passing(device: daedal.Device, activation: str, dim: int, rng: np.random.Generator) -> None:
    check(device, message_passing(rng, activation, dim))


@pytest.mark.parametrize("dim", [1, 3, 8, 33, 64])
def test_sampled_dense_products(device: daedal.Device, dim: int, rng: np.random.Generator) -> None:
    check(device, sddmm(rng, dim))


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("dim", [8, 50])
def test_knowledge_graph_scores(device: daedal.Device, score: str, dim: int, rng: np.random.Generator) -> None:
    check(device, triples(rng, score, dim))


@pytest.mark.parametrize("dim", [8, 32])
def test_block_sparse_attention(device: daedal.Device, dim: int, rng: np.random.Generator) -> None:
    check(device, block_attention(rng, dim))


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(device: daedal.Device, name: str, rng: np.random.Generator) -> None:
    check(device, elementwise(rng, name, 12))
