"""Reductions and single numbers in loops: on the emulator and on RTL, bit for bit what NumPy gives."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

import daedal
from daedal.compiler.functions import EXPONENTIAL_ULP, SIGMOID_ULP, numpy_exponential, numpy_sigmoid
from daedal.compiler.pipeline import compile_scf
from daedal.hw.config.core import Config
from tests.compiler.layers.compiler_support import CONFIGS, run, same_bits
from tests.compiler.scalars.scalar_kernels import (
    ACTIVATIONS,
    ELEMENTWISE,
    REDUCTIONS,
    SCORES,
    Case,
    block_attention,
    block_gather,
    conditional,
    cosines,
    elementwise,
    function_of_numbers,
    message_passing,
    reduction,
    sddmm,
    singles,
    triples,
    updates,
)

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


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dim", [5, 48])
def test_reductions(device: daedal.Device, name: str, dim: int, rng: np.random.Generator) -> None:
    check(device, reduction(rng, name, dim))


def test_single_numbers(device: daedal.Device, rng: np.random.Generator) -> None:
    check(device, singles(rng))


@pytest.mark.parametrize("dim", [4, 24])
def test_numbers_of_other_callbacks(device: daedal.Device, dim: int, rng: np.random.Generator) -> None:
    check(device, cosines(rng, dim))


@pytest.mark.parametrize("dim", [8, 24])
def test_updates(device: daedal.Device, dim: int, rng: np.random.Generator) -> None:
    check(device, updates(rng, dim))
    check(device, conditional(rng, dim))


CORNERS = np.array(
    [np.nan, np.inf, -np.inf, 0, -0.0, 1e-45, -1e-45, 1e-39, 88.72283, 88.72284, 89, 90, 1e9, 3e38, -87, -88.7, -103.97,
     -103.98, -104, -105, -1e9, -3e38, 0.34657359, -0.34657362, 1, -1, 16.6, 17.4], np.float32,
)  # fmt: skip


@pytest.mark.parametrize("name", ["exp", "sigmoid"])
def test_functions_over_all_numbers(device: daedal.Device, name: str, rng: np.random.Generator) -> None:
    patterns = rng.integers(0, 1 << 32, 100, dtype=np.uint32).view(np.float32)
    near = rng.uniform(-110, 95, 100).astype(np.float32)
    check(device, function_of_numbers(name, np.concatenate([CORNERS, patterns, near])))


def ulps(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """How far results are from the exact ones, in units in the last place of these."""
    units = np.spacing(np.abs(exact).astype(np.float32)).astype(float)
    return np.abs(found.astype(float) - exact) / units


def test_bounds_of_the_functions(rng: np.random.Generator) -> None:
    """The results are those of NumPy's operations (see above), so it is enough to look at these."""
    x = np.concatenate([rng.uniform(-104, 88.7, 400_000), rng.uniform(-2, 2, 200_000)]).astype(np.float32)
    wide = x.astype(float)
    exponential = ulps(numpy_exponential(x), np.exp(wide)).max()
    sigmoid = ulps(numpy_sigmoid(x), 1 / (1 + np.exp(-wide))).max()
    print(f"{len(x):,} numbers: exp {exponential:.2f} ulp, sigmoid {sigmoid:.2f} ulp")
    assert exponential <= EXPONENTIAL_ULP
    assert sigmoid <= SIGMOID_ULP
    corners = numpy_exponential(CORNERS)
    assert np.array_equal(corners[:5], np.array([np.nan, np.inf, 0, 1, 1], np.float32), equal_nan=True)
    assert np.isinf(corners[9:14]).all()
    assert (corners[17:22] == 0).all()
    corners = numpy_sigmoid(CORNERS)
    assert np.array_equal(corners[:5], np.array([np.nan, 1, 0, 0.5, 0.5], np.float32), equal_nan=True)
    assert ((corners >= 0) & (corners <= 1))[1:].all()


def test_without_scalar_registers(rng: np.random.Generator) -> None:
    config = Config.preset("minimum")
    with pytest.raises(daedal.UnsupportedOperation, match=r"loop %e, configuration minimum: .* takes scalar registers"):
        compile_scf(sddmm(rng, 4).text, config)
    with pytest.raises(daedal.UnsupportedOperation, match=r"need 11 scalar registers for constants; .* minimum has 0"):
        compile_scf(function_of_numbers("sigmoid", CORNERS).text, config)


def test_too_few_scalar_registers(rng: np.random.Generator) -> None:
    config = replace(Config.preset("ddr3"), name="few", scalars=12)
    message = "loop %p, configuration few: a callback needs more than the machine's 12 scalar registers, of which 11"
    with pytest.raises(daedal.UnsupportedOperation, match=message):
        compile_scf(function_of_numbers("sigmoid", CORNERS).text, config)


def test_rows_too_long_to_reduce(rng: np.random.Generator) -> None:
    with pytest.raises(daedal.UnsupportedOperation, match="loop %e: rows of 257 elements are reduced"):
        compile_scf(sddmm(rng, 257).text, Config.preset("ddr3"))


WRONG = [
    ("%next = math.fma %x, %acc, %y : f32", "loop %d with daedal.reduce must do nothing with %acc but add"),
    ("%z = arith.mulf %x, %acc : f32\n%next = arith.addf %z, %acc : f32", "loop %d .* must do nothing with %acc"),
    ("%z = math.sqrt %x : f32\n%next = arith.addf %z, %acc : f32", "loop %d with daedal.reduce must run along a row"),
]


@pytest.mark.parametrize(("each", "message"), WRONG)
def test_what_is_no_reduction(each: str, message: str, rng: np.random.Generator) -> None:
    text = reduction(rng, "sum", 8).text.replace(REDUCTIONS["sum"][1], each)
    with pytest.raises(daedal.UnsupportedOperation, match=message):
        compile_scf(text, Config.preset("ddr3"))


def test_unknown_functions(rng: np.random.Generator) -> None:
    text = function_of_numbers("sigmoid", CORNERS).text.replace("daedal_sigmoid", "tanh")
    with pytest.raises(daedal.UnsupportedOperation, match="@tanh must be of @daedal_exp or @daedal_sigmoid"):
        compile_scf(text, Config.preset("ddr3"))


def test_blocks_are_copied_past_the_execute_unit(device: daedal.Device, rng: np.random.Generator) -> None:
    case = block_gather(rng, 32)
    check(device, case)
    assert "dlc.callback" not in compile_scf(case.text, device.config).ir("dlc")
