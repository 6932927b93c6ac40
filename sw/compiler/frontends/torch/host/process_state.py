"""What PyTorch remembers for a whole thread: graphs change it, and an error in between must not leave it changed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Protocol, Self

import torch
from torch import fx
from torch._C import _autograd, _functorch
from torch._functorch.predispatch import _enter_dual_level, _exit_dual_level
from torch.amp.autocast_mode import _enter_autocast, _exit_autocast
from torch.autograd import forward_ad
from torch.autograd.grad_mode import _enter_inference_mode, _exit_inference_mode

from daedal.compiler.frontends.torch.host.code_helpers import named


class _Mode(Protocol):
    """A mode that a graph has entered."""

    def __exit__(self, *error: Any) -> Any: ...


_ENTERING = (_enter_autocast, _enter_inference_mode)
_LEAVING = (_exit_autocast, _exit_inference_mode)


class Modes:
    """The modes that a graph enters and leaves by itself, so that somebody can leave them if the graph fails."""

    def __init__(self, graph: fx.Graph) -> None:
        self._entered: list[_Mode] = []
        self.any = False
        """Whether the graph enters any."""
        self.has_levels = any(node.target is _enter_dual_level for node in graph.nodes)
        """Whether it begins a level of forward-mode differentiation, which ``forward_ad`` then does not know of."""
        for node in graph.nodes:
            if node.op == "call_function" and node.target in _ENTERING:
                node.target, self.any = self._entering(node.target), True
            elif node.op == "call_function" and node.target in _LEAVING:
                node.target = self._leaving()

    def _entering(self, enter: Any) -> Callable[..., _Mode]:
        def enter_mode(*arguments: Any) -> _Mode:
            mode: _Mode = enter(*arguments)
            self._entered.append(mode)
            return mode

        return named("enter_mode", enter_mode)

    def _leaving(self) -> Callable[..., None]:
        def leave_mode(mode: _Mode) -> None:
            self._entered.remove(mode)
            mode.__exit__(None, None, None)

        return named("leave_mode", leave_mode)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """After an error in here, what PyTorch remembers is as it was before."""
        before = self.state()
        try:
            yield
        except BaseException:
            self.restore(before)
            raise

    def state(self) -> tuple[int, "State"]:
        """What PyTorch remembers now."""
        return len(self._entered), State.now()

    def restore(self, before: tuple[int, "State"]) -> None:
        """What PyTorch remembers is as it was before; after an error."""
        entered, state = before
        state.restore(has_levels=self.has_levels)
        while len(self._entered) > entered:
            self._entered.pop().__exit__(None, None, None)


class State(NamedTuple):
    """Gradients, the transforms of ``torch.func`` and the level of forward-mode differentiation."""

    grad: bool
    forward: bool
    depth: int
    in_place: bool
    has_hooks: bool
    level: int

    @classmethod
    def now(cls) -> Self:
        """As they are."""
        return cls(
            torch.is_grad_enabled(),
            torch._C._is_fwd_grad_enabled(),
            _functorch.get_dynamic_layer_stack_depth(),
            _functorch.get_inplace_requires_grad_allowed(),
            _autograd._saved_tensors_hooks_get_disabled_error_message() is None,
            forward_ad._current_level,
        )

    def restore(self, *, has_levels: bool) -> None:
        """Have them as they were, with ``has_levels`` also the level, after an error."""
        _functorch.pop_dynamic_layer_stack_and_undo_to_depth(self.depth)
        if has_levels and self.level < 0:
            with suppress(RuntimeError):  # if there is none
                _exit_dual_level(level=0)
        _functorch.set_inplace_requires_grad_allowed(self.in_place)
        if self.has_hooks:
            _autograd._saved_tensors_hooks_enable()
        torch._C._set_fwd_grad_enabled(self.forward)
        torch._C._set_grad_enabled(self.grad)


@contextmanager
def restored(*, has_levels: bool = False) -> Iterator[None]:
    """After an error in here, all of :class:`State` is as it was before, the level only with ``has_levels``."""
    before = State.now()
    try:
        yield
    except BaseException:
        before.restore(has_levels=has_levels)
        raise
