"""``daedal.optim``: optimizers whose tables, and what they keep of them, are a device's."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim.adagrad import adagrad

from daedal.compiler.frontends.python.function import KernelFunction
from daedal.compiler.frontends.torch.training.owner import Owner, is_finite
from daedal.compiler.frontends.torch.training.row_state import RowState
from daedal.compiler.frontends.torch.training.steps import (
    Update,
    arrays_of,
    kept_function,
    kernel_for,
    of_all_rows,
    stacked,
)
from daedal.compiler.frontends.torch.training.table_optimizer import Parameters, TableOptimizer
from daedal.compiler.library import updates
from daedal.driver.device import Device


class SGD(TableOptimizer, torch.optim.SGD):
    """``torch.optim.SGD``, with its arguments, whose tables are updated on a device.

    Sparse gradients are applied sample by sample, as PyTorch does it, and dense ones as they are where nothing but the
    rows that have samples changes; momentum, weight decay and ``maximize`` change all rows of tables with dense
    gradients. Momentum of sparse ones is PyTorch's, and all else too. Results have PyTorch's bits.

    Parameters
    ----------
    device
        The device that owns the tables: that of the compiled model.
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        device: Device,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        with self._owned(device):
            torch.optim.SGD.__init__(
                self,
                params,
                lr,
                momentum,
                dampening,
                weight_decay,
                nesterov,
                maximize=maximize,
                foreach=foreach,
                differentiable=differentiable,
                fused=fused,
            )

    _step_in_torch: Callable[..., Any] = staticmethod(inspect.unwrap(torch.optim.SGD.step))

    def _why_not(self, owner: Owner, group: dict[str, Any], *, is_sparse: bool) -> str | None:
        lr = group["lr"]
        if group["differentiable"] or (isinstance(lr, Tensor) and lr.requires_grad):
            return "its step is differentiated, which is PyTorch's"
        if not is_finite(lr):
            return f"the learning rate is {float(lr)}, with which PyTorch takes the step"
        decay, momentum = group["weight_decay"], group["momentum"]
        if is_sparse and (momentum != 0 or decay != 0):
            return f"{'momentum' if momentum != 0 else 'weight decay'} of sparse gradients is PyTorch's"
        if isinstance(decay, Tensor) or ((momentum or decay) and (group["maximize"] or group["fused"])):
            return "PyTorch takes steps with momentum or weight decay that are fused, maximize, or have it as a tensor"
        function = getattr(updates, self._name(is_sparse, True)) if is_sparse else self._dense(group)
        kernel = kernel_for(function, owner.parameter.shape[1], self.device.config)
        return kernel if isinstance(kernel, str) else None

    def _dense(self, group: dict[str, Any]) -> KernelFunction:
        if (name := _of_all_rows(group)) is not None:
            return kept_function(name)
        found: KernelFunction = getattr(updates, self._name(False, True))
        return found

    @staticmethod
    def _name(is_sparse: bool, has_scale: bool) -> str:
        return ("sgd" if is_sparse else "exact_sgd") + ("_scaled" if has_scale else "")

    def _update(self, owner: Owner, group: dict[str, Any]) -> Update | None:
        lr, is_sparse = float(group["lr"]), owner.pairs[0].samples.is_sparse
        numbers = {"rate": lr if group["maximize"] else -lr}
        if not is_sparse and (name := _of_all_rows(group)) is not None:
            arrays: dict[str, Any] = of_all_rows(owner, owner.pairs)
            numbers["decay"] = group["weight_decay"]
            if group["momentum"] != 0:
                is_first = self.state[owner.parameter].get("momentum_buffer") is None
                arrays["m"] = self._state_of(owner, "momentum_buffer", lambda: _no_momentum(owner)).buffer()
                numbers |= {"keep": group["momentum"], "take": 1.0 if is_first else 1 - group["dampening"]}
            return Update(owner, name, arrays, numbers)
        arrays = arrays_of(owner, owner.pairs)
        if not len(arrays["rows"]):
            return None
        return Update(owner, self._name(is_sparse, "scale" in arrays), arrays, numbers)


def _of_all_rows(group: dict[str, Any]) -> str | None:
    """The step that changes all rows of a table with a dense gradient; None if rows without samples stay."""
    has_decay, has_momentum = group["weight_decay"] != 0, group["momentum"] != 0
    if not (has_decay or has_momentum or group["maximize"]):
        return None
    name = ("nesterov" if group["nesterov"] else "momentum") if has_momentum else "all_rows"
    return name + ("_decay" if has_decay else "")


def _no_momentum(owner: Owner) -> Tensor:
    """What PyTorch's first step makes its gradient of."""
    return torch.full(owner.parameter.shape, -0.0)


class RowWiseAdagrad(TableOptimizer):
    """FBGEMM's ``EXACT_ROWWISE_ADAGRAD``: tables have one number of state a row, which is the device's as well.

    Samples of a row are added up in their own order, those of several backward passes behind each other: ``g``. Then
    ``h += mean(g * g)`` and ``w += g * (-lr / (sqrt(h) + eps))``, with FBGEMM's bits, whatever kind of gradient PyTorch
    would have. State ``sum`` of a table has h, float32[N]. Where PyTorch has a table's gradient it takes the same step,
    with bits of its own; parameters that are no tables get the step of ``torch.optim.Adagrad``.

    Parameters
    ----------
    lr, eps
        The learning rate, and what is added to the root.
    device
        The device that owns the tables: that of the compiled model.

    Raises ValueError for a rate or an ``eps`` below 0.
    """

    def __init__(self, params: Parameters, lr: float | Tensor = 1e-2, eps: float = 1e-8, *, device: Device) -> None:
        for name, value in (("lr", lr), ("eps", eps)):
            if float(value) < 0:
                raise ValueError(f"{name} must be at least 0, not {value!r}")
        with self._owned(device):
            torch.optim.Optimizer.__init__(self, params, {"lr": lr, "eps": eps})

    def _why_not(self, owner: Owner, group: dict[str, Any], *, is_sparse: bool) -> str | None:
        if not is_finite(group["lr"]):
            return f"the learning rate is {float(group['lr'])}, with which PyTorch takes the step"
        kernel = kernel_for(updates.rowwise_adagrad_scaled, owner.parameter.shape[1], self.device.config)
        return kernel if isinstance(kernel, str) else None

    def _sums(self, owner: Owner) -> RowState:
        return self._state_of(owner, "sum", lambda: torch.zeros(len(owner.parameter)))

    def _update(self, owner: Owner, group: dict[str, Any]) -> Update | None:
        arrays = stacked(owner, owner.pairs)
        if not len(arrays["rows"]):
            return None
        name = "rowwise_adagrad_scaled" if "scale" in arrays else "rowwise_adagrad"
        numbers = {"rate": -float(group["lr"]), "eps": float(group["eps"])}
        return Update(owner, name, {**arrays, "h": self._sums(owner).buffer()}, numbers)

    @staticmethod
    def _step_in_torch(optimizer: "RowWiseAdagrad") -> None:
        """The step of what PyTorch has gradients of."""
        self = optimizer
        owned = {id(owner.parameter): owner for owner in self._owners}
        for group in self.param_groups:
            for parameter in group["params"]:
                if (grad := parameter.grad) is None:
                    continue
                if id(parameter) in owned:
                    sums = self.state[parameter].setdefault("sum", torch.zeros(len(parameter)))
                    _rowwise_step(parameter.detach(), grad, sums, float(group["lr"]), group["eps"])
                else:
                    self._elementwise_step(parameter, grad, group)

    def _elementwise_step(self, parameter: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        state.setdefault("step", torch.tensor(0.0))
        state.setdefault("sum", torch.zeros_like(parameter))
        adagrad(
            [parameter], [grad], [state["sum"]], [state["step"]],
            has_sparse_grad=grad.is_sparse, lr=float(group["lr"]), weight_decay=0.0, lr_decay=0.0, eps=group["eps"],
            maximize=False,
        )  # fmt: skip


def _rowwise_step(table: Tensor, grad: Tensor, state: Tensor, lr: float, eps: float) -> None:
    """A step of a table in PyTorch, of the rows that the gradient has."""
    if grad.is_sparse:
        found = grad.coalesce()
        rows, values = found.indices()[0], found.values()
    else:
        rows = (grad != 0).any(1).nonzero().flatten()
        values = grad[rows]
    state[rows] += (values * values).mean(1)
    table[rows] += values * (-lr / (state[rows].sqrt() + eps)).unsqueeze(1)
