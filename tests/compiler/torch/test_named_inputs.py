"""Inputs by name, nested and by position, as modules take them; names of a module in what a user is told."""

from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import daedal
from tests.compiler.layers.compiler_support import ddr3, same_bits
from tests.compiler.torch.dynamo_support import fresh

__all__ = ["ddr3", "fresh"]


class Batch(nn.Module):
    """Takes a batch as most recommenders do."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleDict({name: nn.Embedding(20, 8) for name in ("user", "item")})

    def forward(self, user: Tensor, item: Tensor | None = None, scale: float = 2.0, *, mask: Any = None) -> Tensor:
        rows = self.tables["user"](user) * scale
        rows = rows if item is None else rows + self.tables["item"](item)
        return rows if mask is None else rows * mask.unsqueeze(1)


USER, ITEM, MASK = torch.tensor([1, 2, 3]), torch.tensor([4, 5, 19]), torch.tensor([1.0, 0.0, 1.0])

CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "by position": ((USER, ITEM), {}),
    "by name": ((), {"item": ITEM, "user": USER}),
    "mixed": ((USER,), {"item": ITEM}),
    "defaults between": ((USER,), {"scale": 3.0}),
    "by name only": ((USER,), {"mask": MASK}),
    "all": ((USER, ITEM), {"mask": MASK, "scale": 0.5}),
}


@pytest.mark.parametrize("case", CALLS)
def test_inputs_by_name(ddr3: daedal.Device, case: str) -> None:
    module, (inputs, named) = Batch(), CALLS[case]
    executable = daedal.compile(module, inputs, example_kwargs=named, device=ddr3)
    with torch.no_grad():
        assert torch.equal(executable(*inputs, **named), module(*inputs, **named))
        assert torch.equal(executable.submit(*inputs, **named).result(), module(*inputs, **named))
    assert executable.stats.launches == 1
    assert "user" in executable.explain() and "daedal_inner" not in executable.explain()


def test_a_dictionary_has_inputs_by_name(ddr3: daedal.Device) -> None:
    module = Batch()
    executable = daedal.compile(module, {"user": USER, "item": ITEM}, device=ddr3)
    with torch.no_grad():
        assert torch.equal(executable(item=ITEM, user=USER), module(USER, ITEM))
        assert torch.equal(executable(USER), module(USER))


def test_inputs_that_the_module_does_not_take(ddr3: daedal.Device) -> None:
    module = Batch()
    with pytest.raises(daedal.UnsupportedOperation, match=r"the inputs must be what Batch takes: .*'users'"):
        daedal.compile(module, (USER,), example_kwargs={"users": USER}, device=ddr3)
    with pytest.raises(daedal.UnsupportedOperation, match=r"example_kwargs must be a dictionary .*, not list"):
        daedal.compile(module, (), example_kwargs=[USER], device=ddr3)  # type: ignore[arg-type]
    executable = daedal.compile(module, (USER,), example_kwargs={"mask": MASK}, device=ddr3)
    with pytest.raises(daedal.UnsupportedOperation, match="was compiled for mask by name only, and 1 other"):
        executable(USER)
    executable = daedal.compile(module, (USER,), device=ddr3)
    with pytest.raises(daedal.UnsupportedOperation, match="missing a required argument: 'user'"):
        executable(item=ITEM)


def test_a_module_s_own_names(ddr3: daedal.Device) -> None:
    """In errors, of both front doors, and on the device."""
    module = Batch()
    executable = daedal.compile(module, (USER, ITEM), device=ddr3)
    executable(USER, ITEM)
    assert {"tables.user.weight", "tables.item.weight"} <= {name.partition("#")[0] for name in ddr3.tables}
    compiled = torch.compile(module, backend="daedal", dynamic=True, options={"device": ddr3})
    for call in (executable, compiled):
        with torch.no_grad(), pytest.raises(daedal.IndexOutOfRange, match=r"of tables.item.weight: index 20 .*20 rows"):
            call(USER, torch.tensor([1, 20, 3]))
    assert "of tables.user.weight: on the device" in daedal.graphs(ddr3)[-1].explain()


class Jagged:
    """Values and lengths, as libraries have classes for them: it takes tensors and nothing else."""

    def __init__(self, values: Tensor, offsets: Tensor) -> None:
        assert isinstance(values, Tensor)
        assert isinstance(offsets, Tensor)
        self.values, self.offsets = values, offsets


class Pair(NamedTuple):
    first: Jagged
    second: Jagged


class OfJagged(nn.Module):
    """Bags of an input of that class."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.EmbeddingBag(30, 8, mode="sum"), nn.EmbeddingBag(30, 16, mode="mean")

    def forward(self, given: Pair) -> list[Tensor]:
        return [bag(each.values, each.offsets) for bag, each in zip((self.a, self.b), given, strict=True)]


def test_inputs_of_registered_classes(ddr3: daedal.Device) -> None:
    """What a library has registered with PyTorch's trees is traced with open sizes: one trace, one launch."""
    if Jagged not in pytree.SUPPORTED_NODES:
        pytree.register_pytree_node(
            Jagged,
            lambda jagged: ([jagged.values, jagged.offsets], None),
            lambda parts, _: Jagged(*parts),
            flatten_with_keys_fn=lambda jagged: (
                [(pytree.GetAttrKey(name), getattr(jagged, name)) for name in ("values", "offsets")],
                None,
            ),
            serialized_type_name="tests.Jagged",
            to_dumpable_context=lambda context: None,
            from_dumpable_context=lambda context: None,
        )

    def given(count: int) -> Pair:
        return Pair(*(Jagged(torch.arange(count) % 30, torch.arange(0, count, 3)) for _ in range(2)))

    module = OfJagged()
    executable = daedal.compile(module, (given(12),), device=ddr3)
    code = executable.code
    for count in (12, 7, 60):
        found = executable(given(count))
        assert executable.stats.launches == 1 and executable.code == code
        assert all(map(same_bits, found, module(given(count))))
