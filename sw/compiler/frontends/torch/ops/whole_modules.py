"""``daedal::whole_module``: modules that no trace can look into, which PyTorch runs as they are, with the reason."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol
from weakref import WeakValueDictionary

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.torch.operators import arguments_of
from daedal.compiler.frontends.torch.ops.operation import Line, Operation, PytorchsOwn
from daedal.compiler.frontends.torch.ops.row_bags import LIBRARY
from daedal.errors import UnsupportedOperation


class Whole(Protocol):
    """What stands for such a module."""

    reason: str
    """Why it stays in PyTorch."""

    def run(self, indices: Tensor, offsets: Tensor, weights: Tensor | None) -> Tensor:
        """What the module gives."""
        ...

    def form(self, indices: Tensor, offsets: Tensor) -> Tensor:
        """A tensor of that shape and type, made as these are."""
        ...


_MODULES: "WeakValueDictionary[int, Any]" = WeakValueDictionary()
_NUMBERS = count()


def number_of(module: Whole) -> int:
    """A number by which the operator finds a module, as long as there is the module."""
    number = next(_NUMBERS)
    _MODULES[number] = module
    return number


def _module_of(number: int) -> Whole:
    """The module with a number; UnsupportedOperation if there is none any more."""
    module: Whole | None = _MODULES.get(number)
    if module is None:
        raise UnsupportedOperation(
            "a module that this program calls is gone: keep what daedal.quantized.traceable gave for as long as the "
            "program, which has no copy of it"
        )
    return module


_OUTSIDE = torch._C._dispatch_tls_local_exclude_set()
"""What is passed over outside of operators. Some operators of FBGEMM's are for the key of gradients alone, which is
passed over within others.
"""

LIBRARY.define("whole_module(int module, Tensor indices, Tensor offsets, Tensor? weights) -> Tensor")


def _run(module: int, indices: Tensor, offsets: Tensor, weights: Tensor | None) -> Tensor:
    whole = _module_of(module)
    with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), _OUTSIDE):
        return whole.run(indices.clone(), offsets.clone(), weights)  # which a check of FBGEMM's may change


def _form(module: int, indices: Tensor, offsets: Tensor, weights: Tensor | None) -> Tensor:
    whole = _module_of(module)
    return whole.form(indices, offsets)


LIBRARY.impl("whole_module", _run, "CPU")
LIBRARY.impl("whole_module", _form, "Meta")


@dataclass(frozen=True)
class WholeModule(PytorchsOwn):
    """A module that PyTorch runs."""

    targets = (torch.ops.daedal.whole_module.default,)
    line = Line("… with caches, hooks, other types of results, on a GPU", "nothing", "`explain()` says why")

    @classmethod
    def match(cls, node: fx.Node, found: Mapping[fx.Node, Operation]) -> Operation | str | None:
        """As of any operation."""
        number = arguments_of(node, torch.ops.daedal.whole_module.default)["module"]
        return _module_of(number).reason
