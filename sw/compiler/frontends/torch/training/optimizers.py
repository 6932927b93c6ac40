"""``daedal.optim``: optimizers whose tables, and what they keep of them, are a device's."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from daedal.compiler.frontends.torch.training.owner import Owner, is_finite
from daedal.compiler.frontends.torch.training.steps import Update, arrays_of, kernel_for
from daedal.compiler.frontends.torch.training.table_optimizer import Parameters, TableOptimizer
from daedal.compiler.library import updates
from daedal.driver.device import Device


class SGD(TableOptimizer, torch.optim.SGD):
    """``torch.optim.SGD``, with its arguments, whose tables are updated on a device.

    Sparse gradients are applied sample by sample, as PyTorch does it, and dense ones as they are where nothing but the
    rows that have samples changes: with momentum, weight decay or ``maximize`` PyTorch takes dense gradients, and it
    takes what sparse ones come to with momentum. All else is PyTorch's too. Results have PyTorch's bits.

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
        if group["weight_decay"] != 0:
            return "weight decay changes all rows, in PyTorch"
        if group["momentum"] != 0:
            return "momentum changes all rows, in PyTorch"
        if group["maximize"] and not is_sparse:
            return "with maximize a step of a dense gradient may change the signs of zeros in all rows, in PyTorch"
        kernel = kernel_for(self._function(is_sparse, True), owner.parameter.shape[1], self.device.config)
        return kernel if isinstance(kernel, str) else None

    @staticmethod
    def _function(is_sparse: bool, has_scale: bool) -> Any:
        if is_sparse:
            return updates.sgd_scaled if has_scale else updates.sgd
        return updates.exact_sgd_scaled if has_scale else updates.exact_sgd

    def _update(self, owner: Owner, group: dict[str, Any]) -> Update | None:
        arrays = arrays_of(owner, owner.pairs)
        if not len(arrays["rows"]):
            return None
        function = self._function(owner.pairs[0].samples.is_sparse, "scale" in arrays)
        lr = float(group["lr"])
        return Update(owner, function, arrays, {"rate": lr if group["maximize"] else -lr})
