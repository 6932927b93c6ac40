"""Whether the device may do an operation on some tensors. PyTorch must where it does more than to compute: a subclass
of tensors, a transform of ``torch.func``, a mode, or forward-mode differentiation wants to see the operation.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch._C import _functorch as functorch
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import forward_ad
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from daedal.compiler.frontends.torch.host.dry_run import Keeper
from daedal.compiler.frontends.torch.training.parameter import OwnedParameter

_TYPES = frozenset((Tensor, nn.Parameter, OwnedParameter))
_TYPES_OR_NONE = _TYPES | {type(None)}
_EXAMPLES = _TYPES | {FakeTensor}

_TRANSFORMED = "a transform of torch.func, such as vmap, jvp or grad, works on it"


def why_no_example(values: Iterable[Any]) -> str | None:
    """Why PyTorch does an operation on values of which tracing knows these examples; None if the device may."""
    for value in values:
        if isinstance(value, Tensor) and functorch.is_functorch_wrapped_tensor(value):
            return _TRANSFORMED
        if isinstance(value, Tensor) and type(value) not in _EXAMPLES:
            return _of_type(value)
    return None


def is_transformed() -> bool:
    """Whether this runs in a transform of ``torch.func``."""
    return functorch.peek_interpreter_stack() is not None


def why_not_here() -> str | None:
    """Why PyTorch does all operations, whatever they work on, as it stands; None if the device may do some."""
    if is_transformed():
        return _TRANSFORMED
    if torch._C._len_torch_dispatch_stack():
        for mode in _get_current_dispatch_mode_stack():
            if not isinstance(mode, Keeper):
                return f"mode {type(mode).__name__} is to see it"
    if torch._C._len_torch_function_stack():
        for mode in _get_current_function_mode_stack():
            if not isinstance(mode, DeviceContext):
                return f"mode {type(mode).__name__} is to see it"
    return None


def why_no_type(values: Iterable[Any]) -> str | None:
    """Why PyTorch does all operations on some of these values; None if there are only plain tensors among them."""
    for value in values:
        if isinstance(value, Tensor) and (reason := _why_not_plain(value)) is not None:
            return reason
    return None


def why_not(values: Iterable[Any], *, has_levels: bool = False) -> str | None:
    """Why PyTorch does an operation on these values; None if the device may. ``has_levels``: tensors may have tangents
    although ``torch.autograd.forward_ad`` knows of no level.
    """
    has_levels = has_levels or forward_ad._current_level >= 0
    for value in values:
        if not isinstance(value, Tensor):
            continue
        if (reason := _why_not_plain(value)) is not None:
            return reason
        if has_levels and torch._VF._unpack_dual(value, level=0).tangent is not None:
            return "it has a tangent, and derivatives are PyTorch's"
    return None


def are_as_before(values: Iterable[Any], *, has_levels: bool) -> bool:
    """Whether nothing speaks against values of dtypes that the device has taken before; quicker than ``why_not``."""
    is_here = why_not_here() is None and not has_levels and forward_ad._current_level < 0
    return is_here and _TYPES_OR_NONE.issuperset(map(type, values))


def _why_not_plain(value: Tensor) -> str | None:
    if type(value) not in _TYPES:
        return _of_type(value)
    if value.is_quantized or value._is_zerotensor():
        return f"a {'quantized' if value.is_quantized else 'zero'} tensor is not just its elements in memory"
    return None


def _of_type(value: Tensor) -> str:
    return f"a {type(value).__name__} computes in its own way"
