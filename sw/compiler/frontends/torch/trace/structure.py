"""How the inputs and results of a graph are nested: taken off the graph, whose code then works on their leaves."""

from collections.abc import Sequence
from contextlib import suppress
from types import NoneType
from typing import Any, NamedTuple, Self

import torch
from torch import fx, nn
from torch.fx import _pytree as fx_pytree
from torch.fx.graph import CodeGen
from torch.utils import _pytree as pytree

from daedal.compiler.frontends.torch.trace.input_kinds import check_nesting, check_number

_LEAVES = frozenset((torch.Tensor, nn.Parameter, NoneType, bool, int, float, str))
"""Types of values that are no trees to PyTorch."""


class _Plan(NamedTuple):
    """A list, tuple or dict with so many values; ``parts`` are plans for them, None for leaves, and in all None if all
    of them are leaves.
    """

    kind: type[Any]
    size: int
    keys: list[Any] | None
    parts: "tuple[_Plan | None, ...] | None"

    @classmethod
    def of(cls, spec: pytree.TreeSpec) -> Self | None:
        """The plan for values that are nested so; None for a leaf. TypeError for what has no plan."""
        if spec.is_leaf():
            return None
        if spec.type not in (list, tuple, dict):
            raise TypeError(f"a plan must be for a list, tuple or dict, not {spec.type}")
        parts = tuple(cls.of(child) for child in spec.children())
        keys = list(spec.context) if spec.type is dict else None
        return cls(spec.type, len(parts), keys, parts if any(part is not None for part in parts) else None)

    def take(self, given: Any, leaves: list[Any]) -> bool:
        """Put the values in ``given`` behind ``leaves``; whether it is nested so."""
        if type(given) is not self.kind or len(given) != self.size or (self.keys and list(given) != self.keys):
            return False
        values = given if self.keys is None else given.values()
        if self.parts is None:
            leaves += values
            return True
        return _take(self.parts, values, leaves)


def _take(plans: Sequence[_Plan | None], values: Any, leaves: list[Any]) -> bool:
    for plan, value in zip(plans, values, strict=True):
        if plan is None:
            leaves.append(value)
        elif not plan.take(value, leaves):
            return False
    return True


class Structure:
    """How inputs and results of a graph are nested, if its code sorts that out: it does not after this was made.

    PyTorch's way through nested values takes a microsecond for each, for any kinds of trees; this one knows lists,
    tuples and dicts, and asks PyTorch where there are others.
    """

    def __init__(self, graph: fx.Graph) -> None:
        self._graph = graph
        self._inputs: pytree.TreeSpec | None = None
        self._plans: tuple[_Plan | None, ...] | None = None
        self._checked = -1
        """A number of inputs that is right."""
        info = getattr(graph._codegen, "pytree_info", None)
        if info is None or not _is_of_call(info.in_spec):
            return
        self._inputs, self._results, self._given = info.in_spec, info.out_spec, info.in_spec.child(0).num_children
        graph.set_codegen(CodeGen())
        self._wanted = [child for group in info.in_spec.children() for child in group.children()]
        with suppress(TypeError):  # for trees of other kinds
            self._plans = tuple(map(_Plan.of, self._wanted))
        results = self._results
        self._is_one = results is not None and results.is_leaf()
        is_flat = results is not None and results.type in (list, tuple)
        self._kind = results.type if is_flat and all(child.is_leaf() for child in results.children()) else None

    @property
    def inputs(self) -> pytree.TreeSpec | None:
        """How inputs are nested, by position and by name; None if the graph's code takes them as they are."""
        return self._inputs

    @property
    def results(self) -> pytree.TreeSpec | None:
        """How results are; None if as the graph gives them."""
        return None if self._inputs is None else self._results

    def quick_leaves(self, inputs: Sequence[Any]) -> list[Any] | None:
        """The leaves of inputs that are nested as the graph's; None if they are not, or if that takes a closer look."""
        leaves: list[Any] = []
        if self._inputs is None:  # the graph's code takes them as they are
            return [*inputs] if _LEAVES.issuperset(map(type, inputs)) else None
        if self._plans is None or len(inputs) != len(self._plans):
            return None
        is_so = _take(self._plans, inputs, leaves) and _LEAVES.issuperset(map(type, leaves))
        return leaves if is_so else None

    def leaves(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """What the graph's code takes for these inputs; OtherInputs, with both kinds in words, if they do not fit it.

        Types, sizes and numbers are left to the graph's checks.
        """
        if self._inputs is None:
            if (spec := getattr(self._graph.owning_module, "_in_spec", None)) is None:
                if len(inputs) != self._checked:
                    check_number(self._graph, inputs)
                    self._checked = len(inputs)
            else:
                check_nesting([child for group in spec.children() for child in group.children()], inputs)
            return inputs
        if (quick := self.quick_leaves(inputs)) is not None:
            return quick
        check_nesting(self._wanted, inputs)
        named = dict(zip(self._inputs.child(1).context, inputs[self._given :], strict=True))
        leaves: list[Any] = fx_pytree.tree_flatten_spec((list(inputs[: self._given]), named), self._inputs)
        return leaves

    def result(self, values: Any) -> Any:
        """What the module gives, of what the graph's code does."""
        if self._inputs is None or self._results is None:
            return values
        leaves = values if isinstance(values, list | tuple) else [values]
        if self._is_one:
            (value,) = leaves
            return value
        return pytree.tree_unflatten(leaves, self._results) if self._kind is None else self._kind(leaves)


def _is_of_call(spec: pytree.TreeSpec) -> bool:
    """Whether it is of arguments by position and by name."""
    kinds = [child.type for child in spec.children()] if spec.type is tuple else []
    return kinds == [tuple, dict]
