"""What optimizers of tables on a device have in common."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor, nn

from daedal.compiler.frontends.torch.training.modules import Holders
from daedal.compiler.frontends.torch.training.owner import Owner, own
from daedal.compiler.frontends.torch.training.parameter import OwnedParameter, owner_of
from daedal.compiler.frontends.torch.training.row_state import RowState
from daedal.compiler.frontends.torch.training.steps import Interrupted, Update, run
from daedal.driver.device import Device
from daedal.errors import UnsupportedOperation
from daedal.runtime.futures import wait_for
from daedal.system.system import System

Parameters = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
"""What PyTorch's optimizers are given."""


_PASSED_BY = (
    "its last gradient came from PyTorch: no graph of the device recorded one (explain() of the graphs in "
    "daedal.graphs(device) says why; there is none if the forward pass was not compiled, or if torch.compile has given "
    "up after torch._dynamo.config.recompile_limit graphs of a function)"
)


class TableOptimizer(torch.optim.Optimizer, ABC):
    """An optimizer of PyTorch's, some of whose parameters are tables on a device: what is common in ``daedal.optim``.

    The device owns such a table: compiled models look it up there, backward passes record which samples have which
    gradients instead of filling ``grad``, and :meth:`step` updates it there. The host's rows are older until
    :meth:`sync`, and whatever PyTorch computes with the parameter gets them first.
    """

    device: Device
    _step_in_torch: Callable[..., Any]

    @contextmanager
    def _owned(self, device: object) -> Iterator[None]:
        """To be held while the optimizer is made: its tables go to the device."""
        if isinstance(device, System):
            raise UnsupportedOperation(
                "device must be one device, not a System, whose tiles have rows of the same tables: use Device.open"
            )
        if not isinstance(device, Device):
            raise TypeError(f"device must be what daedal.Device.open gives, not {device!r}")
        device.check_open()
        self.device = device
        self._owners: list[Owner] = []
        self._others: dict[str, str] = {}
        self._states: dict[int, RowState] = {}
        yield
        self._take(self.param_groups)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group, as PyTorch does; its tables go to the device too."""
        before = len(getattr(self, "param_groups", ()))
        torch.optim.Optimizer.add_param_group(self, param_group)
        if before:
            self._take(self.param_groups[before:])

    def _take(self, groups: list[dict[str, Any]]) -> None:
        parameters = [each for group in groups for each in group["params"]]
        holders = Holders(parameters)
        for number, parameter in enumerate(parameters):
            name = holders.name_of(parameter) or f"parameter {number}"
            why = _why_no_table(parameter) or holders.why_no_table(parameter)
            if why is not None:
                self._others[name] = why
                continue
            owner = own(parameter, name, self.device)
            if owner not in self._owners:
                self._owners.append(owner)
                owner.updates.append(self)

    # ------------------------------------------------------------------ copies

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """An optimizer of copies of the parameters, on the same device."""
        self.sync()
        copied = memo[id(self)] = type(self).__new__(type(self))
        with copied._owned(self.device):
            copied.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"daedal.optim.{type(self).__name__} cannot be saved or copied whole, as its tables are on a device: save "
            "its state_dict()"
        )

    # ------------------------------------------------------------------ steps

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters. A fault leaves tables as they were before."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with self.device.turn, torch.no_grad():
            for owner in self._owners:
                owner.is_passed_by = not owner.pairs and (owner.is_passed_by or owner.host_gradient is not None)
            self._step_tables()
            for owner in self._owners:
                if owner.host_gradient is not None:
                    owner.fetch()
                    if (state := self._states.get(id(owner.parameter))) is not None:
                        state.sync()
                        state.changed()
            self._step_in_torch(self)
        return loss

    def _step_tables(self) -> None:
        recorded = [owner for owner in self._owners if owner.pairs]
        prepared: list[Update] = []
        for owner in recorded:
            group = self._group(owner)
            is_sparse = owner.pairs[0].samples.is_sparse
            why = owner.reason or self._why_not(owner, group, is_sparse=is_sparse)
            if owner.is_used_twice:
                owner.give_gradient("its table is used twice in a backward pass, whose gradients PyTorch adds up")
            elif owner.host_gradient is not None:
                owner.give_gradient("PyTorch has a gradient of it too")
            elif why is not None:
                owner.give_gradient(why, for_good=False)
            elif (update := self._update(owner, group)) is not None:
                prepared.append(update)
        if not prepared:
            return
        wait_for(self.device)
        tables = [update.owner.table() for update in prepared]
        placed = [each for update, table in zip(prepared, tables, strict=True) for each in update.place(table)]
        interrupt: Interrupted | None = None
        try:
            run(self.device, placed)  # all that can be wrong with them has been looked at
        except Interrupted as error:
            interrupt = error
        except BaseException as error:
            for update in prepared:
                try:
                    update.undo()
                except BaseException as lost:  # the machine or its memory does not answer
                    error.add_note(f"{update.owner.name}: its rows could not be restored: {lost}")
                    self._lose(update.owner, f"{type(error).__name__}: {error}")
            raise
        for update, table in zip(prepared, tables, strict=True):
            update.owner.go_ahead(table)
            self._has_changed(update.owner)
        if interrupt is not None:
            raise interrupt

    def _group(self, owner: Owner) -> dict[str, Any]:
        return next(group for group in self.param_groups if any(each is owner.parameter for each in group["params"]))

    def why_not(self, owner: Owner, *, is_sparse: bool) -> str | None:
        """Why PyTorch updates a parameter with such gradients; None if the device does."""
        return self._why_not(owner, self._group(owner), is_sparse=is_sparse)

    @abstractmethod
    def _why_not(self, owner: Owner, group: dict[str, Any], *, is_sparse: bool) -> str | None:
        """Why PyTorch takes a step with such gradients; None if the device does."""

    @abstractmethod
    def _update(self, owner: Owner, group: dict[str, Any]) -> Update | None:
        """What the device does of a step; None for nothing."""

    def _state_of(self, owner: Owner, name: str, initial: Callable[[], Tensor]) -> RowState:
        """The state of a table, which the host has as ``state[p][name]``, after the first step that went well."""
        host = self.state[owner.parameter].get(name)
        found = self._states.get(id(owner.parameter))
        if found is None or (host is not None and found.host is not host):
            found = self._states[id(owner.parameter)] = RowState(self.device, initial() if host is None else host, name)
        return found

    def _has_changed(self, owner: Owner) -> None:
        """The device has updated a parameter."""
        if (state := self._states.get(id(owner.parameter))) is not None:
            self.state[owner.parameter][state.name] = state.host
            state.go_ahead()

    def _lose(self, owner: Owner, why: str) -> None:
        """An update of a parameter has failed, and cannot be undone."""
        state = self._states.get(id(owner.parameter))
        owner.lose(why, for_good=state is not None and not state.lose())

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget gradients, PyTorch's and those that are recorded."""
        for owner in self._owners:
            owner.forget()
        torch.optim.Optimizer.zero_grad(self, set_to_none)

    # ------------------------------------------------------------------ the host

    def sync(self) -> None:
        """Bring the host's parameters and the device's tables together: rows that were written on the host stay, all
        others are the device's.
        """
        with self.device.turn:
            for owner in self._owners:
                owner.sync()
            self._sync_state()

    def _sync_state(self) -> None:
        for state in self._states.values():
            state.sync()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """PyTorch's; the device's state is uploaded again."""
        torch.optim.Optimizer.load_state_dict(self, state_dict)
        self._states.clear()

    def release(self) -> None:
        """Give all parameters back to the host, with their rows: the optimizer is PyTorch's from then on."""
        with self.device.turn:
            self._sync_state()
            for owner in self._owners:
                owner.updates.remove(self)
                if not owner.updates:
                    owner.release()
        self._owners = []

    def state_dict(self) -> dict[str, Any]:
        """PyTorch's, after :meth:`sync`."""
        self.sync()
        return torch.optim.Optimizer.state_dict(self)

    def explain(self) -> str:
        """A line for each parameter: whether the device updates it, and why not."""
        lines = []
        for owner in self._owners:
            group = self._group(owner)
            why = [
                owner.reason
                or self._why_not(owner, group, is_sparse=each)
                or (_PASSED_BY if owner.is_passed_by else None)
                for each in (True, False)
            ]
            if why[0] == why[1]:
                lines.append(f"{owner.name}: " + (f"in PyTorch, because {why[0]}" if why[0] else "on the device"))
            else:
                lines.append(
                    f"{owner.name}: sparse gradients {'in PyTorch, because ' + why[0] if why[0] else 'on the device'}; "
                    f"dense ones {'in PyTorch, because ' + why[1] if why[1] else 'on the device'}"
                )
        return "\n".join(lines + [f"{name}: in PyTorch, because {why}" for name, why in self._others.items()])


def _why_no_table(parameter: Any) -> str | None:
    """Why a parameter cannot be a table of the device, whatever uses it."""
    if type(parameter) not in (nn.Parameter, OwnedParameter):
        return f"it is a {type(parameter).__name__}, not a plain parameter"
    if owner_of(parameter) is not None:
        return None
    if parameter.layout is not torch.strided or parameter.device.type != "cpu":
        return "it is not dense on the CPU"
    if parameter.dim() != 2 or parameter.dtype is not torch.float32 or not parameter.numel():
        return f"it is {parameter.dim()}-dimensional, of {parameter.dtype}: tables are rows of float32"
    if not parameter.is_contiguous() or not parameter.is_leaf:
        return "its rows do not follow each other in memory"
    return None
