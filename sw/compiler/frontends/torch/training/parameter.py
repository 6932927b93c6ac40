"""A parameter whose rows may be on a device: PyTorch's, that looks at what is asked of it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, Protocol
from weakref import WeakSet

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad

OWNER = "_daedal_owner"
"""The attribute of such a parameter that says who owns it."""

OWNERS: "WeakSet[Any]" = WeakSet()
"""All owners that there are, of parameters that may have been given back since."""

_PLAIN = frozenset(
    (
        "__get__", "__set__", "__delete__", "__hash__", "__len__", "__format__", "register_hook", "size", "dim",
        "stride", "numel", "nelement", "element_size", "ndimension", "data_ptr", "storage", "untyped_storage",
        "storage_offset",
        "register_post_accumulate_grad_hook", "has_names", "get_device", "type", "__setitem__", "retain_grad",
    )
)  # fmt: skip
"""What is asked of a parameter, the first argument, without looking at its elements, or changes them."""


class ParameterOwner(Protocol):
    """Who has the rows of a parameter."""

    def fetch(self) -> None:
        """Let the host have the rows that the device has, as far as it does not."""
        ...

    def forget(self) -> None:
        """Forget the gradients that were recorded."""
        ...

    def give_gradient(self, why: str) -> None:
        """Make the gradients that were recorded one of PyTorch's, and leave the parameter to PyTorch from now on."""
        ...

    @property
    def has_gradients(self) -> bool:
        """Whether gradients were recorded."""
        ...


class OwnedParameter(nn.Parameter):
    """A parameter that an optimizer of ``daedal.optim`` updates on a device.

    A parameter becomes one, and a plain one again, by its ``__class__``. Whatever computes with it in PyTorch gets the
    rows that the device has. Its copies are plain parameters.
    """

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Compute as PyTorch does, with the rows as they are."""
        if not torch.compiler.is_compiling():
            _before(func, args, kwargs)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @property
    def grad(self) -> Tensor | None:
        """The gradient that PyTorch has; None if it is recorded for the device."""
        owner = owner_of(self)
        if owner is not None and owner.has_gradients:
            _asked(owner, sys._getframe(1).f_code)
        with torch._C.DisableTorchFunctionSubclass():
            found: Tensor | None = _GRAD.__get__(self)
        return found

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        owner = owner_of(self)
        if owner is not None:
            owner.forget()
        with torch._C.DisableTorchFunctionSubclass():
            _GRAD.__set__(self, value)

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    def __repr__(self) -> str:  # type: ignore[override]  # of nn.Parameter's form, which is not Tensor's
        return repr(nn.Parameter(_rows(self), self.requires_grad))

    def __deepcopy__(self, memo: dict[int, Any]) -> nn.Parameter:
        """A plain parameter with the rows as they are."""
        if id(self) not in memo:
            memo[id(self)] = nn.Parameter(_rows(self).clone(memory_format=torch.preserve_format), self.requires_grad)
        copied: nn.Parameter = memo[id(self)]
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        """What a plain parameter with the rows as they are is made of."""
        plain = nn.Parameter(_rows(self), self.requires_grad)
        vars(plain).update({name: value for name, value in vars(self).items() if name != OWNER})
        return plain.__reduce_ex__(protocol)


_GRAD: Any = Tensor.grad


def owner_of(value: Any) -> Any:
    """Who owns a parameter; None for what is none, or is the host's."""
    return vars(value).get(OWNER) if type(value) is OwnedParameter else None


def _rows(parameter: OwnedParameter) -> Tensor:
    owner = owner_of(parameter)
    if owner is not None:
        owner.fetch()
    with torch._C.DisableTorchFunctionSubclass():
        return parameter.data


def _before(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> None:
    name = getattr(func, "__name__", "")
    is_plain = name in _PLAIN or name.startswith("is_") or (name.endswith("_") and name[:2] != "__")
    # What loads a state over it begins with the rows as they are, so that what it writes counts.
    is_plain = is_plain and (name != "copy_" or sys._getframe(2).f_code is not _LOAD)
    for each in _tensors(args[1:] if is_plain else args, kwargs):
        owner = owner_of(each)
        if owner is not None:
            owner.fetch()


_LOAD = nn.Module._load_from_state_dict.__code__


def _tensors(args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> list[Any]:
    found: list[Any] = []
    for each in (*args, *(kwargs or {}).values()):
        found += each if isinstance(each, list | tuple) else [each]
    return found


def _asked(owner: ParameterOwner, code: CodeType) -> None:
    """Gradients that are recorded, and not in ``grad``, are looked at by this function of PyTorch's."""
    if code.co_name == "zero_grad":
        owner.forget()
    elif code.co_filename == _CLIPPING:
        owner.give_gradient("its gradient is clipped, and gradients are PyTorch's")
    elif code.co_filename == _SCALING:
        owner.give_gradient("its gradient is scaled by a GradScaler, and gradients are PyTorch's")


_CLIPPING = clip_grad.__file__
_SCALING = torch.amp.grad_scaler.__file__
