"""Who owns a parameter: the device that has its rows, what backward passes recorded for it, and who is ahead."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from daedal.compiler.frontends.torch.ops.operation import Operation
from daedal.compiler.frontends.torch.training.parameter import OWNER, OWNERS, OwnedParameter, owner_of
from daedal.compiler.frontends.torch.training.recording import Array, Pair, Recorded, Samples, accumulated
from daedal.compiler.frontends.torch.training.samples import samples_of, why_no_samples
from daedal.compiler.frontends.torch.training.undo import Undo
from daedal.driver.device import Device
from daedal.driver.memory.layout import row_mapping, row_pitch
from daedal.driver.tables.table_store import Table, Use
from daedal.errors import StaleParameter
from daedal.runtime.request import Request

_CHUNK = 1 << 24
"""Bytes of rows that are fetched at a time."""

HOOKED = "it has a hook for its gradient, and gradients are PyTorch's"


class Updates(Protocol):
    """What an optimizer says of a parameter of its."""

    def why_not(self, owner: "Owner", *, is_sparse: bool) -> str | None:
        """Why PyTorch updates it with such gradients; None if the device does."""
        ...


class Owner:
    """A parameter's place on a device. ``parameter`` becomes an ``OwnedParameter``, and plain again in :meth:`release`.

    Attributes
    ----------
    reason
        Why PyTorch trains it from now on; empty if the device does.
    pairs
        What backward passes have recorded since gradients were cleared.
    is_passed_by
        Whether its last step was of a gradient that PyTorch had.
    undo
        What the last step changed, as it was before.
    """

    def __init__(self, parameter: nn.Parameter, name: str, device: Device) -> None:
        self.parameter, self.name, self.device = parameter, name, device
        self.updates: list[Updates] = []
        self.reason = ""
        self.pairs: list[Pair] = []
        self.is_passed_by = False
        self._host = parameter.detach()
        self._table: Table | None = None
        """Where its rows are on the device, once launches have changed them."""
        self._is_ahead = self._is_fetched = False
        """Whether launches have changed the table since it was uploaded, and the host has got its rows since then."""
        self._lost = ""
        """What went wrong when the device changed rows that the host did not have."""
        self._version = 0
        """What PyTorch counts of the host's changes, when the device went ahead."""
        self._digests: Array = np.empty(0, np.uint64)
        self.undo = Undo(device)
        vars(parameter)[OWNER] = self
        OWNERS.add(self)
        parameter.__class__ = OwnedParameter

    def __repr__(self) -> str:
        return f"<{self.name} on {self.device!r}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> "Owner":
        return self

    # ------------------------------------------------------------------ the forward pass

    def why_not(self, operation: Operation, device: Device | None) -> str | None:
        """Why PyTorch does an operation on the parameter of which a gradient is wanted; None if this device does."""
        if device is not self.device:
            return f"its table is trained on another device, {self.device!r}: compile for that, or call opt.release()"
        host = self._host_now()
        if self.reason or (why := why_no_samples(operation)) is not None:
            return self.reason or why
        if host.dtype != torch.float32 or not host.is_contiguous() or host.dim() != 2 or not host.numel():
            return f"a table must be contiguous rows of float32 to be trained on the device, not {host.dtype}"
        if self._is_hooked:
            return HOOKED
        is_sparse = bool(getattr(operation, "is_sparse", False))
        return next((why for each in self.updates if (why := each.why_not(self, is_sparse=is_sparse))), None)

    def record(self, operation: Operation, request: Request, sources: Sequence[Any], rows: Tensor) -> Tensor:
        """The rows that an operation looked up, whose gradient is recorded for the optimizer."""
        samples = samples_of(operation, request, sources)
        kept = [each for each in sources[1:] if isinstance(each, Tensor)]
        found: Tensor = Recorded.apply(sources[0], rows, samples, self._record, *kept)
        return found

    def _record(self, samples: Samples, grad: Tensor) -> Tensor | None:
        if torch.is_grad_enabled() or self._is_hooked or self.reason:
            return samples.gradient(grad)
        self.pairs.append(Pair.of(samples, grad))
        return None

    @property
    def _is_hooked(self) -> bool:
        return bool(self.parameter._backward_hooks) or bool(
            getattr(self.parameter, "_post_accumulate_grad_hooks", None)
        )

    # ------------------------------------------------------------------ gradients

    @property
    def has_gradients(self) -> bool:
        """Whether gradients were recorded."""
        return bool(self.pairs)

    @property
    def is_used_twice(self) -> bool:
        """Whether a backward pass has come to it twice: PyTorch adds these gradients in an order of its own."""
        tasks = [pair.task for pair in self.pairs]
        return len(set(tasks)) < len(tasks)

    def forget(self) -> None:
        """Forget the gradients that were recorded."""
        self.pairs.clear()

    def give_gradient(self, why: str, *, for_good: bool = True) -> None:
        """Make what was recorded a gradient of PyTorch's, which PyTorch takes a step with; ``for_good``: from now on
        PyTorch does all of the parameter.
        """
        if for_good:
            self.reason = why
        pairs, self.pairs = self.pairs, []
        self.parameter.grad = accumulated(pairs, self.host_gradient)

    @property
    def host_gradient(self) -> Tensor | None:
        """The gradient that PyTorch has of it."""
        found: Tensor | None = self.parameter.grad
        return found

    # ------------------------------------------------------------------ the table

    def table(self) -> Table:
        """The table on the device, uploaded if the host's rows are others: StaleParameter if both have changed."""
        host = self._host_now()
        pitch = row_pitch(host.shape[1] * host.element_size(), self.device.config)
        mapping = row_mapping(pitch, self.device.config)  # copies would have to be written as well
        return self.device.bind_table(self.name, host, mapping=mapping, use=Use.HELD)

    def go_ahead(self, table: Table) -> None:
        """A launch has changed the table."""
        self._table = table
        if not self._is_ahead or self._is_fetched:
            self._digests = _row_digests(self._host.numpy())
            self._version = self._host._version
        self._is_ahead, self._is_fetched = True, False
        self.device.table_ahead(self._host, self._counts)

    def lose(self, why: str, *, for_good: bool = False) -> None:
        """A launch that changes the table did not end well: who knows which rows it has changed; ``for_good``: or what
        else belongs to it.
        """
        if not self.is_ahead and not for_good:  # the host has the rows as they were before
            self._is_ahead = self._is_fetched = False
            self.device.table_changed(self._host)
        else:
            self._lost = why

    @property
    def is_ahead(self) -> bool:
        """Whether the device has rows that the host has not."""
        return self._is_ahead and not self._is_fetched

    def _counts(self) -> bool:
        """Whether the device's rows are those that count."""
        self._check_lost()
        if self._host._version == self._version:
            return True
        if self._is_fetched:  # written after that, so nothing is lost
            self._is_ahead = False
            return False
        raise self._stale("was changed on the host while the device has later rows")

    def _check_lost(self) -> None:
        if self._lost:
            raise StaleParameter(
                f"parameter {self.name!r} has lost its rows in a launch that failed ({self._lost}): load a checkpoint "
                "into the module, after which opt.sync() takes it"
            )

    def _stale(self, what: str) -> StaleParameter:
        return StaleParameter(
            f"parameter {self.name!r} {what}: call opt.sync(), after which rows that were written on the host count, "
            "and of all others the device's"
        )

    def _host_now(self) -> Tensor:
        """The host's memory of the parameter, which may have been replaced (``parameter.data = …``)."""
        with torch._C.DisableTorchFunctionSubclass():
            now = self.parameter.detach()
        if now.data_ptr() != self._host.data_ptr() or now.shape != self._host.shape or now.dtype != self._host.dtype:
            if self.is_ahead:
                raise self._stale("was given other memory on the host while the device has later rows")
            self._host, self._is_ahead = now, False
        return self._host

    def fetch(self) -> None:
        """Let the host have the rows that the device has. The device's still count."""
        if not self.is_ahead:
            return
        self._check_lost()
        if self._host._version != self._version:
            raise self._stale("was changed on the host while the device has later rows")
        self._download(None)
        self._is_fetched, self._version = True, self._host._version

    def sync(self) -> None:
        """Bring host and device together: what was written on the host counts, all other rows are the device's."""
        if not self._is_ahead:
            return
        host = self._host
        if self._lost and self._host._version == self._version:
            self._check_lost()
        lost, self._lost = self._lost, ""
        with torch._C.DisableTorchFunctionSubclass():
            now = self.parameter.detach()
        is_written = host._version != self._version
        if now.data_ptr() != host.data_ptr():
            self._host, is_written = now, True
        elif not self._is_fetched and not lost:
            self._download(_row_digests(host.numpy()) == self._digests if is_written else None)
        self._is_ahead = self._is_fetched = False
        self.device.table_met(host)
        if is_written:
            self.device.table_changed(host)

    def _download(self, wanted: Array | None) -> None:
        """Write rows of the table, all or those that are wanted, into the host's memory."""
        table, host = self._table, self._host
        assert table is not None
        step = max(1, _CHUNK // table.pitch)
        for first in range(0, table.rows, step):
            count = min(step, table.rows - first)
            found = np.empty((count, table.pitch // 4), np.float32)
            self.device.memory.read_into(table.address + first * table.pitch, found)
            rows = torch.from_numpy(found)[:, : table.dim]
            with torch.no_grad():
                if wanted is None:
                    host[first : first + count].copy_(rows)
                else:
                    taken = torch.from_numpy(wanted[first : first + count])
                    host[first : first + count][taken] = rows[taken]

    def release(self) -> None:
        """Give the parameter back to the host, with its rows."""
        self.sync()
        self.pairs.clear()
        vars(self.parameter).pop(OWNER, None)
        self.parameter.__class__ = nn.Parameter


def own(parameter: nn.Parameter, name: str, device: Device) -> Owner:
    """The owner of a parameter on this device. One of another device gives it up if no optimizer is left that has it;
    StaleParameter if one has.
    """
    found = owner_of(parameter)
    if isinstance(found, Owner):
        if found.device is device:
            return found
        if found.updates and not found.device.closed:
            raise StaleParameter(
                f"parameter {found.name!r} must be trained by one device, not by {device!r} too: {found.device!r} has "
                "it; call release() of that optimizer first"
            )
        found.release()
    return Owner(parameter, name, device)


def _row_digests(rows: Array) -> Array:
    """A number for each row: uint64[N], another one if the row's bytes are others."""
    words = rows.view(np.uint32)
    weights = np.random.default_rng(1).integers(0, 1 << 64, words.shape[1], np.uint64) | np.uint64(1)
    found = np.empty(len(rows), np.uint64)
    step = max(1, (_CHUNK >> 3) // max(1, words.shape[1]))
    for first in range(0, len(rows), step):
        found[first : first + step] = words[first : first + step].astype(np.uint64) @ weights
    return found


def is_finite(number: Any) -> bool:
    """Whether a learning rate, maybe a tensor, is finite."""
    return math.isfinite(float(number))


Prepared = Callable[[], None]
"""A launch whose arguments are checked."""
