"""What an executable is: one program for all sizes, looked into, in modules with other work, with tables that
stay."""

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export
from torch.nn import functional

import daedal
from tests.compiler.layers.compiler_support import ddr3, random_bags, same_bits

__all__ = ["ddr3"]

INT64 = (torch.int64, torch.int64)


def test_the_program_does_not_depend_on_sizes_and_values(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """But for bags of many rows on average, and for none, see test_compiler_interleaving.py."""

    def some_bags(rows: int, bags: int) -> tuple[torch.Tensor, torch.Tensor]:
        offsets = np.concatenate([[0], np.cumsum(rng.integers(2, 9, bags))])
        return torch.from_numpy(rng.integers(0, rows, int(offsets[-1]))), torch.from_numpy(offsets)

    module = nn.EmbeddingBag(20, 8, mode="mean", include_last_offset=True)
    example = some_bags(20, 1)
    executable = daedal.compile(module, example, device=ddr3)
    program = executable.program
    for bags in (0, 1, 2, 33):
        inputs = some_bags(20, bags)
        assert same_bits(executable(*inputs), module(*inputs))
        assert (executable.program == program) == bool(bags)
    other = nn.EmbeddingBag(77, 8, mode="mean", include_last_offset=True)
    assert daedal.compile(other, some_bags(77, 5), device=ddr3).program == program
    assert daedal.compile(nn.EmbeddingBag(20, 8), (*example,), device=ddr3).program == program
    assert daedal.compile(nn.EmbeddingBag(20, 9), (*example,), device=ddr3).program != program


def test_other_integer_types_have_programs_of_their_own(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    module = nn.EmbeddingBag(20, 8, mode="sum", include_last_offset=True)
    indices, offsets = random_bags(20, 5, rng, types=INT64)
    executable = daedal.compile(module, (indices, offsets), device=ddr3)
    program = executable.program
    assert same_bits(executable(indices.int(), offsets), module(indices, offsets))
    assert executable.program != program
    assert same_bits(executable(indices, offsets), module(indices, offsets))
    assert executable.program == program


def test_text_and_levels(ddr3: daedal.Device) -> None:
    module = nn.EmbeddingBag(20, 8, mode="sum")
    executable = daedal.compile(module, (torch.tensor([1, 2]), torch.tensor([0])), device=ddr3)
    assert daedal.assemble(executable.asm()) == executable.program
    assert "op=add a.kind=queue" in executable.asm()
    assert "emb.bag" in executable.ir("emb")
    for level in ("scf", "slc", "slcv", "dlc", "mach"):
        text = executable.ir(level)
        assert "emb" not in text
        found = {
            "scf": "scf.for",
            "slc": "slc.callback",
            "slcv": "slcv.fetch",
            "dlc": "dlc.fetch",
            "mach": "mach.fetch",
        }
        assert found[level] in text
    with pytest.raises(daedal.DaedalError, match="level must be one of emb, scf, slc, slcv, dlc, mach, not 'llvm'"):
        executable.ir("llvm")
    with pytest.raises(daedal.DaedalError, match="node must be one of embedding_bag, not 'linear'"):
        executable.ir("scf", "linear")


def test_a_row_costs_one_instruction(ddr3: daedal.Device) -> None:
    inputs = (torch.tensor([1, 2]), torch.tensor([0]))
    plain = daedal.compile(nn.EmbeddingBag(20, 64, mode="sum"), inputs, device=ddr3).asm()
    assert plain.count("instruction") == 2
    assert "instruction 0 code op=add a.kind=queue last=1" in plain
    assert "instruction 1 code op=store clear=1 last=1" in plain
    gather = daedal.compile(nn.Embedding(20, 64), inputs[:1], device=ddr3).asm()
    assert "instruction" not in gather
    assert "stream=1 queue=store" in gather


def test_statistics(ddr3: daedal.Device) -> None:
    module = nn.EmbeddingBag(20, 8, mode="sum", include_last_offset=True)
    inputs = (torch.tensor([1, 2, 3]), torch.tensor([0, 1, 3]))
    executable = daedal.compile(module, inputs, device=ddr3)
    executable(*inputs)
    stats = executable.stats
    assert (stats.launches, stats.rows, stats.lookups) == (1, 3, 3)


def test_tables_stay_and_changed_ones_are_uploaded_again(ddr3: daedal.Device) -> None:
    module = nn.EmbeddingBag(20, 8, mode="sum")
    inputs = (torch.tensor([1, 2]), torch.tensor([0, 1]))
    executable = daedal.compile(module, inputs, device=ddr3)
    executable(*inputs)
    held = dict(ddr3.tables)
    executable(*inputs)
    assert dict(ddr3.tables) == held
    with torch.no_grad():
        module.weight.mul_(3)
    assert same_bits(executable(*inputs), module(*inputs))
    assert dict(ddr3.tables) == held


class Model(nn.Module):
    """Two tables and dense layers around them."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.ModuleList(
            [nn.EmbeddingBag(30, 8, mode="sum"), nn.EmbeddingBag(50, 4, mode="mean", padding_idx=0)]
        )
        self.words = nn.Embedding(10, 3)
        self.top = nn.Linear(15, 2)

    def forward(self, x: Tensor, indices: list[Tensor], offsets: list[Tensor]) -> Tensor:
        pooled = [m(i, o) for m, i, o in zip(self.bags, indices, offsets, strict=True)]
        return torch.relu(self.top(torch.cat([*pooled, self.words(x)], 1)))


def model_inputs(batch: int, rng: np.random.Generator) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    words = torch.from_numpy(rng.integers(0, 10, batch))
    both = [random_bags(30, batch, rng, types=INT64) for _ in range(2)]
    return words, [b[0] for b in both], [b[1][:-1] for b in both]


def test_a_model_with_other_layers(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    module = Model().eval()
    executable = daedal.compile(module, model_inputs(4, rng), device=ddr3)
    assert len(executable.kernels) == 3
    assert executable.explain().count("on the device") == 3
    assert daedal.assemble(executable.asm()) == executable.program
    for batch in (4, 9, 1, 2):
        inputs = model_inputs(batch, rng)
        assert same_bits(executable(*inputs), module(*inputs))
        assert executable.stats.launches == 1


@pytest.mark.filterwarnings("ignore::FutureWarning")  # PyTorch's own, in run_decompositions
@pytest.mark.parametrize("decomposed", [False, True])
def test_exported_programs(ddr3: daedal.Device, decomposed: bool, rng: np.random.Generator) -> None:
    module = nn.EmbeddingBag(20, 8, mode="mean", padding_idx=-2, include_last_offset=True)
    inputs = random_bags(20, 5, rng, types=INT64)
    sizes = ({0: Dim.AUTO}, {0: Dim.AUTO})
    program = export(module, inputs, dynamic_shapes=sizes)
    if decomposed:
        program = program.run_decompositions()
    executable = daedal.compile(program, inputs, device=ddr3)
    for bags in (5, 12):
        inputs = random_bags(20, bags, rng, types=INT64)
        assert same_bits(executable(*inputs), module(*inputs))
    assert daedal.compile(module, inputs, device=ddr3).program == executable.program


def test_a_program_exported_for_fixed_sizes_refuses_others(ddr3: daedal.Device) -> None:
    module = nn.Embedding(20, 8)
    inputs = (torch.tensor([1, 2, 3]),)
    executable = daedal.compile(export(module, inputs), inputs, device=ddr3)
    assert same_bits(executable(*inputs), module(*inputs))
    with pytest.raises(daedal.UnsupportedOperation, match="inputs must be as the program was exported for"):
        executable(torch.tensor([1, 2]))


def test_a_computed_table(ddr3: daedal.Device) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.randn(10, 5))

        def forward(self, i: Tensor, scale: Tensor) -> Tensor:
            return functional.embedding(i, self.table * scale)

    module = Scaled()
    i = torch.tensor([[1, 2, 3]])
    executable = daedal.compile(module, (i, torch.tensor(2.0)), device=ddr3)
    for scale in (2.0, 3.0):
        assert same_bits(executable(i, torch.tensor(scale)), module(i, torch.tensor(scale)))


def test_what_stays_in_pytorch_is_named(ddr3: daedal.Device) -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.EmbeddingBag(10, 4, mode="sum")
            self.b = nn.EmbeddingBag(10, 4, mode="max", max_norm=100.0)

        def forward(self, i: Tensor, o: Tensor) -> Tensor:
            return self.a(i, o) + self.b(i, o)

    module, inputs = Both(), (torch.tensor([1, 2, 3]), torch.tensor([0, 2]))
    executable = daedal.compile(module, inputs, device=ddr3)
    assert same_bits(executable(*inputs), module(*inputs))
    assert "max_norm must be None" in executable.explain()


def test_inputs_of_another_kind_lead_to_another_trace(ddr3: daedal.Device) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bag = nn.EmbeddingBag(10, 4)

        def forward(self, bags: dict[str, Tensor], twice: bool = False) -> Tensor:
            pooled = self.bag(bags["i"], bags["o"])
            return pooled * 2 if twice else pooled

    i, o = torch.tensor([1, 2, 3]), torch.tensor([0, 2])
    module, turned = Scaled(), {"o": o, "i": i}
    executable = daedal.compile(module, ({"i": i, "o": o},), device=ddr3)
    for inputs in (({"i": i, "o": o}, True), (turned,), (turned, False), (turned, True)):
        assert same_bits(executable(*inputs), module(*inputs))
    with pytest.raises(KeyError, match="o"):  # as from the module itself
        executable({"i": i})
    assert same_bits(executable(turned), module(turned))


def test_exported_programs_take_only_inputs_nested_as_theirs(ddr3: daedal.Device) -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(10, 4)

        def forward(self, pair: list[Tensor]) -> Tensor:
            return self.table(pair[0]) + self.table(pair[1])

    i = torch.tensor([1, 2, 3])
    module = Pair()
    program = export(module, ([i, i + 1],))
    for given in (program, program.module()):
        executable = daedal.compile(given, ([i, i + 1],), device=ddr3)
        for wrong in (([i, i, i],), ([i],), (i, i), (([i, i]), i)):
            with pytest.raises(daedal.UnsupportedOperation, match=r"traced with, \(\[\*, \*\],\), not as"):
                executable(*wrong)
        with pytest.raises(daedal.UnsupportedOperation, match="exported for"):
            executable([i[:2], i[:2]])
        assert same_bits(executable([i, i + 1]), module([i, i + 1]))


def test_inputs_as_one_parameter(ddr3: daedal.Device) -> None:
    class Any(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bag = nn.EmbeddingBag(10, 4)

        def forward(self, *inputs: Tensor) -> Tensor:
            return self.bag(*inputs)

    module, inputs = Any(), (torch.tensor([1, 2, 3]), torch.tensor([0, 2]))
    executable = daedal.compile(module, inputs, device=ddr3)
    assert same_bits(executable(*inputs), module(*inputs))
    assert same_bits(executable(inputs[0].reshape(1, 3)), module(inputs[0].reshape(1, 3)))


@pytest.mark.parametrize("nested", [False, True])
def test_hooks_count(ddr3: daedal.Device, nested: bool) -> None:
    table = nn.Embedding(10, 4)
    table.register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))
    table.register_forward_hook(lambda module, inputs, output: output * 2)
    module = nn.Sequential(table) if nested else table
    i = torch.tensor([1, 2, 3])
    assert same_bits(daedal.compile(module, (i,), device=ddr3)(i), module(i))


def test_traced_modules(ddr3: daedal.Device) -> None:
    module = torch.fx.symbolic_trace(nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2)))
    i = torch.tensor([1, 2, 3])
    executable = daedal.compile(module, (i,), device=ddr3)
    assert same_bits(executable(i), module(i))
    assert executable.stats.launches == 1


def test_lazily_negated_weights(ddr3: daedal.Device) -> None:
    module = nn.EmbeddingBag(10, 4, mode="sum")
    inputs = (torch.tensor([1, 2, 3]), torch.tensor([0, 2]), torch._neg_view(torch.randn(3)))
    assert same_bits(daedal.compile(module, inputs, device=ddr3)(*inputs), module(*inputs))


class Counted(nn.Module):
    """Changes all that a module can: a buffer, the statistics of a norm, an input, its table, random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.bag, self.norm = nn.EmbeddingBag(9, 8, mode="sum"), nn.BatchNorm1d(8)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, indices: Tensor, shown: Tensor) -> Tensor:
        self.count.add_(1)
        self.bag.weight.mul_(0.5)
        rows = self.bag(indices)
        shown[0].copy_(rows[0] + 1)
        return torch.dropout(self.norm(rows) * self.count, 0.5, True)


def test_compiling_leaves_no_trace(ddr3: daedal.Device) -> None:
    module, indices, shown = Counted(), torch.tensor([[1, 2], [3, 4], [5, 5]]), torch.ones(3, 8)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    torch.manual_seed(3)
    with torch.no_grad():
        executable = daedal.compile(module, (indices, shown), device=ddr3)
    drawn = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(drawn, torch.rand(1))
    assert torch.equal(shown, torch.ones(3, 8))
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    twin, others = copy.deepcopy(module), shown.clone()
    for _ in range(2):
        with torch.no_grad():
            torch.manual_seed(4)
            expected = twin(indices, others)
            torch.manual_seed(4)
            assert same_bits(executable(indices, shown), expected)
    assert torch.equal(shown, others)
    assert all(torch.equal(value, twin.state_dict()[name]) for name, value in module.state_dict().items())


def without_gradients(table: nn.Embedding, indices: Tensor) -> Tensor:
    with torch.no_grad():
        rows = table(indices) * 2
    return rows + 1


def either(table: nn.Embedding, indices: Tensor) -> Tensor:
    rows = table(indices)
    return torch.cond(rows.sum() > 0, lambda x: x * 2, lambda x: x - 1, (rows,))


@pytest.mark.parametrize("function", [without_gradients, either])
def test_operations_that_run_a_graph(function: Callable[..., Tensor], ddr3: daedal.Device) -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(9, 8)

        def forward(self, indices: Tensor) -> Tensor:
            return function(self.table, indices)

    module, indices = Layer(), torch.tensor([1, 2])
    executable = daedal.compile(module, (indices,), device=ddr3)
    assert executable.offloaded == ("embedding",)
    with torch.no_grad():
        for given in (indices, torch.tensor([5, 3, 8])):
            assert same_bits(executable(given), module(given))


class Batch:
    """What PyTorch does not look into."""

    def __init__(self, indices: Tensor) -> None:
        self.indices = indices


def test_inputs_with_defaults_that_conditions_depend_on(ddr3: daedal.Device) -> None:
    class Either(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Embedding(9, 8), nn.Embedding(9, 8)

        def forward(self, batch: Batch, is_first: bool = True, scale: float | None = None) -> Tensor:
            rows = self.first(batch.indices) if is_first else self.second(batch.indices)
            return rows if scale is None else rows * scale

    module, batch = Either(), Batch(torch.tensor([1, 2]))
    executable = daedal.compile(module, (batch,), device=ddr3)
    for others in ((), (False,), (True,), (False, 2.0), (False, 3.0), ()):
        assert same_bits(executable(batch, *others), module(batch, *others))


def test_executables_are_not_copied(ddr3: daedal.Device) -> None:
    executable = daedal.compile(nn.EmbeddingBag(9, 6, mode="sum"), torch.zeros(2, 3, dtype=torch.int64), device=ddr3)
    with pytest.raises(TypeError, match="compile a copy of the module"):
        copy.deepcopy(executable)


def test_threads_take_turns(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """Calls and futures of two models, in whatever order they come."""
    models = [nn.EmbeddingBag(9, 6, mode="sum"), nn.EmbeddingBag(30, 5, mode="max")]
    batches = [torch.from_numpy(rng.integers(0, 9, (1 + n % 4, 3))) for n in range(32)]
    executables = [daedal.compile(model, batches[0], device=ddr3) for model in models]

    def call(number: int) -> bool:
        executable, batch = executables[number % 2], batches[number]
        result = executable(batch) if number % 4 < 2 else executable.submit(batch).result()
        return same_bits(result, models[number % 2](batch))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(call, range(len(batches))))
