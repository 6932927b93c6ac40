"""What PyTorch does with tensors beside computing: derivatives, ``torch.func``, subclasses, modes. Such operations stay
with it, and an error leaves nothing behind that PyTorch remembers.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, func, nn
from torch._C import _functorch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

import daedal
from daedal import f32, i64
from tests.compiler.layers.compiler_support import ddr3, same_bits, wild_table
from tests.compiler.torch.dynamo_support import Layer, fresh

__all__ = ["ddr3", "fresh"]

pytestmark = [
    pytest.mark.filterwarnings("ignore:There is a performance drop"),  # PyTorch's, of bags in vmap
    pytest.mark.filterwarnings("ignore:.torch.jit.script"),  # PyTorch's, of its own forward derivatives
]

ROWS, WIDTH = 10, 4
KEYS = torch.tensor([[1, 2], [3, 4]])
BAD = torch.tensor([[1, 2], [3, 99]])

B, D, N = daedal.dims("B D N")


class Tripled(Tensor):
    """A subclass whose look-ups are three times what they were."""

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_function__(function, types, args, kwargs or {})
        return result * 3 if function in (functional.embedding, functional.embedding_bag) else result


class Counting(TorchDispatchMode):
    """A mode that counts operations."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return function(*args, **(kwargs or {}))


class Negating(TorchFunctionMode):
    """A mode that does something else."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        return -result if function is functional.embedding else result


def looked_up(keys: Tensor, table: Tensor) -> Tensor:
    return functional.embedding(keys, table)


def two_bags(keys: Tensor, table: Tensor) -> Tensor:
    bags = [functional.embedding_bag(keys, each, mode="sum") for each in (table, table * 2)]
    return torch.cat(bags, 1)


def summed(keys: Tensor, table: Tensor) -> Tensor:
    flat = keys.reshape(-1)
    return torch.zeros(ROWS, WIDTH).index_add(0, flat, table.index_select(0, flat))


@pytest.fixture(params=[looked_up, two_bags, summed])
def layer(request: pytest.FixtureRequest) -> Callable[[Tensor, Tensor], Tensor]:
    found: Callable[[Tensor, Tensor], Tensor] = request.param
    return found


@pytest.fixture
def table(rng: np.random.Generator) -> Tensor:
    return torch.from_numpy(rng.integers(-9, 9, (ROWS, WIDTH))).float()


def state() -> tuple[object, ...]:
    """What PyTorch remembers."""
    nesting = torch.autocast_increment_nesting()
    torch.autocast_decrement_nesting()
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        nesting,
        torch._C._is_fwd_grad_enabled(),
        _functorch.get_dynamic_layer_stack_depth(),
        _functorch.get_inplace_requires_grad_allowed(),
        torch._C._autograd._saved_tensors_hooks_get_disabled_error_message(),
        forward_ad._current_level,
        torch._C._len_torch_dispatch_stack(),
        torch._C._len_torch_function_stack(),
    )


def agree(found: Any, expected: Any) -> None:
    for left, right in zip(pytree.tree_leaves(found), pytree.tree_leaves(expected), strict=True):
        assert torch.equal(left, right) and left.stride() == right.stride()


# ------------------------------------------------------------------ around an executable

Use = Callable[[Callable[[Tensor, Tensor], Tensor], Tensor], Any]

USES: dict[str, Use] = {
    "vmap": lambda run, table: func.vmap(run, (0, None))(torch.stack([KEYS, KEYS + 1]), table),
    "vmap of tables": lambda run, table: func.vmap(run, (None, 0))(KEYS, torch.stack([table, table + 1])),
    "vmap of others": lambda run, table: func.vmap(lambda x: run(KEYS, table) * x)(torch.ones(3)),
    "vjp": lambda run, table: func.vjp(lambda each: run(KEYS, each), table)[0],
    "grad": lambda run, table: func.grad(lambda each: run(KEYS, each).sum())(table),
    "jacrev": lambda run, table: func.jacrev(lambda each: run(KEYS, each))(table),
    "grad of others": lambda run, table: func.grad(lambda x: run(KEYS, table).sum() * x)(torch.tensor(2.0)),
    "subclass": lambda run, table: run(KEYS, table.as_subclass(Tripled)).as_subclass(Tensor),
}


@pytest.mark.parametrize("use", USES)
def test_an_executable_in_a_transform(
    use: str, layer: Callable[[Tensor, Tensor], Tensor], ddr3: daedal.Device, table: Tensor
) -> None:
    executable = daedal.compile(Layer(layer), (KEYS, table), device=ddr3)
    before = state()
    agree(USES[use](executable, table), USES[use](layer, table))
    reason = "a Tripled computes in its own way" if use == "subclass" else "a transform of torch.func"
    assert f"in PyTorch, because {reason}" in executable.explain() and not executable.offloaded
    assert state() == before
    agree(executable(KEYS, table), layer(KEYS, table))
    assert executable.offloaded


@pytest.mark.parametrize("function", [looked_up, summed])
def test_forward_derivatives(function: Callable[[Tensor, Tensor], Tensor], ddr3: daedal.Device, table: Tensor) -> None:
    executable = daedal.compile(Layer(function), (KEYS, table), device=ddr3)
    fast = torch.compile(function, backend="daedal", options={"device": ddr3})
    for run in (executable, fast, function):
        with forward_ad.dual_level():
            dual = forward_ad.unpack_dual(run(KEYS, forward_ad.make_dual(table, table + 1)))
        agree(tuple(dual), (function(KEYS, table), function(KEYS, table + 1)))
        agree(func.jvp(partial(run, KEYS), (table,), (table + 1,)), tuple(dual))
    explained = daedal.graphs(ddr3)[-1].explain()
    assert "in PyTorch, because it has a tangent" in explained


@pytest.mark.parametrize("mode", [Counting, Negating, FakeTensorMode])
def test_an_executable_in_a_mode(mode: Callable[[], Any], ddr3: daedal.Device, table: Tensor) -> None:
    executable = daedal.compile(Layer(looked_up), (KEYS, table), device=ddr3)
    results = []
    for run in (executable, looked_up):
        with mode() as entered:
            given = [entered.from_tensor(each) if mode is FakeTensorMode else each for each in (KEYS, table)]
            results.append(run(*given))
    found, expected = results
    assert found.shape == expected.shape and type(found) is type(expected)
    if mode is not FakeTensorMode:
        agree(found, expected)
    assert f"mode {mode.__name__} is to see it" in executable.explain()
    with torch.device("cpu"):  # a mode as well, but one that does not concern results
        agree(executable(KEYS, table), looked_up(KEYS, table))
    assert executable.offloaded


def test_examples_must_be_plain(ddr3: daedal.Device, table: Tensor) -> None:
    with pytest.raises(daedal.UnsupportedOperation, match=r"must be plain tensors.*a Tripled computes in its own way"):
        daedal.compile(Layer(looked_up), (KEYS, table.as_subclass(Tripled)), device=ddr3)
    with Counting(), pytest.raises(daedal.UnsupportedOperation, match="mode Counting is to see it"):
        daedal.compile(Layer(looked_up), (KEYS, table), device=ddr3)


@daedal.kernel
def taken(out: f32[B, D], rows: f32[N, D], idx: i64[B]):
    for b in range(B):
        for d in range(D):
            out[b, d] = rows[idx[b], d]


def test_kernels_take_plain_tensors(ddr3: daedal.Device, table: Tensor) -> None:
    out, keys = torch.zeros(4, WIDTH), KEYS.reshape(-1)
    kernel = daedal.compile(taken, (out, table, keys), device=ddr3)
    before = state()
    with pytest.raises(daedal.UnsupportedOperation, match=r"'rows' must be plain.*a Tripled"):
        kernel(out, table.as_subclass(Tripled), keys)
    with pytest.raises(daedal.UnsupportedOperation, match="a transform of torch"):
        func.vmap(lambda each: kernel(out, each, keys))(torch.stack([table, table]))
    with forward_ad.dual_level(), pytest.raises(daedal.UnsupportedOperation, match="it has a tangent"):
        kernel(out, forward_ad.make_dual(table, table), keys)
    assert state() == before
    kernel(out, table, keys)
    assert same_bits(out, table[keys])


@pytest.mark.filterwarnings("ignore:.*quantize")  # PyTorch is about to drop these functions
@pytest.mark.parametrize("kind", ["quantized", "zero"])
def test_tensors_that_are_no_elements_in_memory(kind: str, ddr3: daedal.Device, table: Tensor) -> None:
    if kind == "quantized":
        odd = torch.quantize_per_tensor(table, 0.5, 0, torch.qint8)
    else:
        odd = torch._efficientzerotensor((ROWS, WIDTH))
    executable = daedal.compile(Layer(looked_up), (KEYS, table), device=ddr3)
    agree(executable(KEYS, odd), looked_up(KEYS, odd))
    assert f"a {kind} tensor" in executable.explain()
    agree(executable.submit(KEYS, odd).result(), looked_up(KEYS, odd))


# ------------------------------------------------------------------ inside of a module


def in_vmap(keys: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    return func.vmap(lambda each: functional.embedding(each, table).sum(0))(keys), functional.embedding(keys, table)


def in_jvp(keys: Tensor, table: Tensor) -> tuple[Any, Tensor]:
    return func.jvp(lambda each: functional.embedding(keys, each), (table,), (table,)), functional.embedding(
        keys, table
    )


def in_grad(keys: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    return func.grad(lambda each: functional.embedding(keys, each).sum())(table), functional.embedding(keys, table)


@pytest.mark.parametrize("function", [in_vmap, in_jvp, in_grad])
@pytest.mark.parametrize("grad", [False, True])
def test_transforms_in_a_graph(
    function: Callable[[Tensor, Tensor], Any], grad: bool, ddr3: daedal.Device, table: Tensor
) -> None:
    fast = torch.compile(function, backend="daedal", options={"device": ddr3})
    with torch.set_grad_enabled(grad):
        before = state()
        agree(fast(KEYS, table), function(KEYS, table))
        (graph,) = daedal.graphs(ddr3)[-1:]
        assert graph.stats.launches == 1 and "a transform of torch.func" in graph.explain()
        with pytest.raises((daedal.IndexOutOfRange, IndexError)):
            fast(BAD, table)
        assert state() == before
        agree(fast(KEYS, table), function(KEYS, table))


@pytest.mark.parametrize("function", [in_vmap, in_jvp])
def test_transforms_in_a_module(function: Callable[[Tensor, Tensor], Any], ddr3: daedal.Device, table: Tensor) -> None:
    executable = daedal.compile(Layer(function), (KEYS, table), device=ddr3)
    before = state()
    agree(executable(KEYS, table), function(KEYS, table))
    assert executable.stats.launches == 1
    with pytest.raises(IndexError):
        executable(BAD, table)
    assert state() == before


def test_gradients_that_cannot_be_exported(ddr3: daedal.Device, table: Tensor) -> None:
    """``torch.export`` leaves a constant without content in such a graph."""
    with pytest.raises(daedal.UnsupportedOperation, match=r"cannot be traced: .* constant without content"):
        daedal.compile(Layer(in_grad), (KEYS, table), device=ddr3)


def with_inference(keys: Tensor, table: Tensor) -> Tensor:
    with torch.inference_mode():
        return functional.embedding_bag(keys, table, mode="sum") * 2


def without_gradients(keys: Tensor, table: Tensor) -> Tensor:
    with torch.no_grad():
        return functional.embedding_bag(keys, table, mode="sum") * 2


def with_gradients(keys: Tensor, table: Tensor) -> Tensor:
    with torch.enable_grad():
        return functional.embedding_bag(keys, table, mode="sum") * 2


def with_autocast(keys: Tensor, table: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        first = functional.embedding_bag(keys, table, mode="sum") @ torch.full((WIDTH, WIDTH), 0.3)
        return first.float() + functional.embedding_bag(keys, table * 1, mode="sum") @ torch.full((WIDTH, WIDTH), 0.7)


STATES = [with_inference, without_gradients, with_gradients, with_autocast]


@pytest.mark.parametrize("function", STATES)
@pytest.mark.parametrize("grad", [False, True])
def test_an_error_leaves_no_state_behind(
    function: Callable[[Tensor, Tensor], Tensor], grad: bool, ddr3: daedal.Device, table: Tensor
) -> None:
    fast = torch.compile(function, backend="daedal", options={"device": ddr3})
    with torch.set_grad_enabled(grad):
        before = state()
        agree(fast(KEYS, table), function(KEYS, table))
        with pytest.raises(daedal.IndexOutOfRange):
            fast(BAD, table)
        assert state() == before


def in_double(keys: Tensor, table: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return table.double()[keys, 0].sum()


def test_an_error_of_pytorchs_leaves_no_state_behind(ddr3: daedal.Device, table: Tensor) -> None:
    fast = torch.compile(in_double, backend="daedal", options={"device": ddr3})
    before = state()
    agree(fast(KEYS, table), in_double(KEYS, table))
    with pytest.raises(IndexError):
        fast(BAD, table)
    assert state() == before and not daedal.graphs(ddr3)[-1].offloaded


def test_autocast_counts_from_stretch_to_stretch(ddr3: daedal.Device, table: Tensor) -> None:
    options = {"device": ddr3, "backend": "aot_eager"}
    fast = torch.compile(with_autocast, backend="daedal", options=options)
    with torch.no_grad():
        agree(fast(KEYS, table), with_autocast(KEYS, table))
    assert "it enters a mode" in daedal.graphs(ddr3)[-1].explain()


# ------------------------------------------------------------------ tensor subclasses


class Distributed(nn.Module):
    """An embedding whose weight is a subclass of tensors."""

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.table = nn.Parameter(table.as_subclass(Tripled), requires_grad=False)

    def forward(self, keys: Tensor) -> Tensor:
        return functional.embedding(keys, self.table)


def test_a_parameter_that_is_of_a_subclass(ddr3: daedal.Device, table: Tensor) -> None:
    module = Distributed(table)
    with torch.no_grad():
        expected = module(KEYS)
        found = torch.compile(module, backend="daedal", options={"device": ddr3})(KEYS)
    assert torch.equal(found.as_subclass(Tensor), expected.as_subclass(Tensor))
    with pytest.raises(daedal.UnsupportedOperation, match=r"table of the module must be a plain tensor, but a Tripled"):
        daedal.compile(module, (KEYS,), device=ddr3)


def test_many_bags_made_ready_then_transformed(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """Also a launch that was made ready looks at what it is given."""
    tables = [wild_table(ROWS, WIDTH, rng) for _ in range(2)]
    keys, offsets = torch.tensor([1, 2, 3]), torch.tensor([0, 1])

    def run(keys: Tensor, offsets: Tensor) -> tuple[Tensor, ...]:
        return tuple(functional.embedding_bag(keys, each, offsets, mode="sum") for each in tables)

    fast = torch.compile(run, backend="daedal", options={"device": ddr3})
    with torch.no_grad():
        for _ in range(3):
            agree(fast(keys, offsets), run(keys, offsets))
        graph = daedal.graphs(ddr3)[-1]
        inputs = _inputs_of(graph, fast, keys, offsets)
        assert graph.stats.launches == 1
        with Counting() as mode:
            found = graph(*inputs)
        assert mode.count > 0 and graph.stats.launches == 0
    assert same_bits(found[0], run(keys, offsets)[0])


def _inputs_of(graph: Any, fast: Callable[..., Any], *inputs: Tensor) -> tuple[Any, ...]:
    """What PyTorch gives to a graph."""
    seen: list[tuple[Any, ...]] = []
    graph.on_call = seen.append
    fast(*inputs)
    graph.on_call = None
    return seen[0]
