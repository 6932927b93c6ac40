"""Random models, random plans, 1 to 5 tiles: PyTorch's bits, whoever does what."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import daedal
from daedal.compiler.frontends.requests.checks import computed_types
from daedal.compiler.frontends.torch.trace.module_trace import trace
from daedal.compiler.frontends.torch.traced_module import TracedModule
from daedal.compiler.operation_compiler import compiler_for
from daedal.compiler.opt_levels import BEST
from daedal.hw.config.core import Config
from daedal.system.default_plan import default_plan
from daedal.system.executable import SystemExecutable
from tests.tiles.models import Mixed, inputs_of, random_plan, same


def with_bfloat16(config: str) -> Config:
    """The configuration with converters for bfloat16."""
    return replace(Config.preset(config), bfloat16=1)


def steps_of(model: Mixed, inputs: object, system: daedal.System) -> dict[str, int]:
    """By table, what the columns of a slice are a multiple of."""
    assert isinstance(inputs, tuple)
    program = TracedModule(trace(model, inputs), model, computed_types(system.config))
    compile_operation = compiler_for(system.config, "fatal", BEST)
    executable = SystemExecutable(program, system, compile_operation, "fatal", BEST, default_plan)
    return {demand.table.name: demand.step for demand in executable.demands(inputs).all}


@pytest.mark.slow
@pytest.mark.parametrize(("tiles", "config"), [(1, "ddr3"), (2, "edge"), (3, "ddr3"), (5, "edge")])
def test_random_models_under_random_plans(tiles: int, config: str, rng: np.random.Generator) -> None:
    model = Mixed(rng, joined=tiles % 2 > 0).eval()
    sample = inputs_of(model, rng, int(rng.integers(1, 40)))
    with daedal.System.open("emulator", config=with_bfloat16(config), tiles=tiles) as system, torch.no_grad():
        made = daedal.plan(model, system, sample=sample, extra_bytes=float(rng.choice([0, 0.1, 2])))
        for plan in (made, random_plan(made, steps_of(model, sample, system), rng)):
            executable = daedal.compile(model, sample, device=system, plan=plan)
            for bags in (int(rng.integers(1, 60)), 0, 1):
                inputs = inputs_of(model, rng, bags)
                assert same(executable(*inputs), model(*inputs)), executable.explain()
            futures = [(each, executable.submit(*each)) for each in (sample, inputs_of(model, rng, 9))]
            for given, future in reversed(futures):
                assert same(future.result(), model(*given))


@pytest.mark.slow
def test_copies_on_several_tiles_follow_their_tensor(rng: np.random.Generator) -> None:
    model = Mixed(rng, joined=True).eval()
    sample = inputs_of(model, rng, 20)
    with daedal.System.open("emulator", config=with_bfloat16("edge"), tiles=3) as system:
        made = daedal.plan(model, system, sample=sample)
        for plan in (random_plan(made, steps_of(model, sample, system), rng),):
            executable = daedal.compile(model, sample, device=system, plan=plan)
            executable(*sample)
            for parameter in model.parameters():
                with torch.no_grad():
                    parameter[int(rng.integers(0, len(parameter)))] += 3
            with torch.no_grad():
                assert same(executable(*sample), model(*sample))
            before = system.table_uploads
            executable(*sample)
            assert system.table_uploads == before


def test_parts_left_to_pytorch_and_torch_compile(rng: np.random.Generator) -> None:
    """What the machine cannot do is PyTorch's, in a system too; Dynamo's graphs get a plan in their first call."""

    class Odd(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bag = torch.nn.EmbeddingBag(30, 7, mode="mean", dtype=torch.bfloat16)
            self.other = torch.nn.EmbeddingBag(30, 8, mode="sum")
            self.linear = torch.nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> object:
            return self.bag(x), self.linear(self.other(x)), self.other((x + 1) % 30)

    model, x = Odd().eval(), torch.from_numpy(rng.integers(0, 30, (11, 4)))
    with torch.no_grad(), daedal.System.open("emulator", config="edge", tiles=2) as system:
        executable = daedal.compile(torch.nn.Sequential(model.other), x, device=system)
        assert same([executable(x)], [model.other(x)])
        compiled = torch.compile(model, backend="daedal", options={"device": system})
        for _ in range(2):
            assert same(compiled(x), model(x))
        (graph,) = daedal.graphs(system)
        assert "in PyTorch" in graph.explain()
        assert "2 tiles of edge" in graph.explain()
        assert len(graph.stats.per_tile) == 2
        torch._dynamo.reset()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_empty_segments(dtype: torch.dtype, rng: np.random.Generator) -> None:
    """What a segment without rows gives is of the elements' type, whoever does the others."""

    class Segments(torch.nn.Module):
        def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            return torch.segment_reduce(x, "max", lengths=lengths, axis=0, initial=None)

    x = torch.from_numpy(rng.standard_normal((30, 64)).astype(np.float32)).to(dtype)
    lengths = torch.tensor([5, 0, 10, 0, 15])
    with daedal.System.open("emulator", config=with_bfloat16("edge"), tiles=3) as system:
        executable = daedal.compile(Segments(), (x, lengths), device=system)
        assert same([executable(x, lengths)], [Segments()(x, lengths)])


def test_quantised_rows_are_not_cut_by_columns(rng: np.random.Generator) -> None:
    """A scale and a bias stand for a whole row; bags are shared out all the same."""
    quantised = torch.ops.quantized

    class Rows(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            packed = quantised.embedding_bag_byte_prepack(torch.from_numpy(rng.standard_normal((50, 40)).astype("f4")))
            self.register_buffer("rows", packed)

        def forward(self, x: torch.Tensor, ends: torch.Tensor) -> object:
            return quantised.embedding_bag_byte_rowwise_offsets(self.rows, x, ends, False, 0, False, None, None, True)

    model, x, ends = Rows(), torch.from_numpy(rng.integers(0, 50, 45)), torch.arange(0, 50, 5)
    config = replace(Config.preset("edge"), name="edge-quantised", quantised=1)
    with daedal.System.open("emulator", config=config, tiles=3) as system:
        plan = daedal.plan(model, system, sample=(x, ends), extra_bytes=9)
        assert {piece.columns for piece in plan.pieces} == {(0, 40)}
        assert len(plan.pieces) == 3
        executable = daedal.compile(model, (x, ends), device=system, plan=plan)
        assert same([executable(x, ends)], [model(x, ends)])
