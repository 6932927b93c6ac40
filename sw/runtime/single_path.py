"""The quick way of an operation that is a launch of its own, for inputs of the sizes that the last ones had."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from daedal.base.handle import Handle
from daedal.driver.device import Device
from daedal.driver.launch.launch import Launch
from daedal.driver.tables.table_watch import Watch
from daedal.driver.tables.tensor_forms import TensorForms
from daedal.runtime.batch.members import Call
from daedal.runtime.kernel import Kernel
from daedal.runtime.request import Request
from daedal.runtime.staged_runs import Form, StagedRuns
from daedal.runtime.tensors import tensor_of

if TYPE_CHECKING:
    from torch import Tensor


class SinglePath(Handle):
    """A launch like one that has just been, whose request was made of these sources; for ``Call.is_direct``.

    All that a request is checked for follows from the forms and sizes of the sources, but for the ends of offsets.

    Parameters
    ----------
    watch
        The table, where the launch has it.
    runs, form
        Runs of the kernel, and the form that the last one had.
    """

    def __init__(
        self, device: Device, call: Call, request: Request, sources: Sequence[Any], watch: Watch, runs: StagedRuns,
        form: Form,
    ) -> None:  # fmt: skip
        self.call, self.rows = call, len(request.table)
        self._device, self._watch, self._runs, self._form = device, watch, runs, form
        self._shape, self._dtype = request.shape, request.dtype
        given = sources[1:]
        self._present = [number for number, source in enumerate(given) if source is not None]
        tensors = [given[number] for number in self._present]
        self._forms, self._shapes = TensorForms(tensors), [tensor.shape for tensor in tensors]
        self._lookups = request.lookups
        arrays = form.inputs.arrays
        self._indices, self._offsets, self._weights = (arrays.get(each) for each in ("indices", "offsets", "weights"))
        self._is_closed = self._offsets is not None and len(self._offsets) == len(given[1])

    @staticmethod
    def can_be_of(sources: Sequence[Any]) -> bool:
        """Whether the buffers of a request are these sources as they are in memory."""
        import torch

        given = [source for source in sources[1:] if source is not None]
        return all(
            isinstance(each, torch.Tensor)
            and each.dtype in (torch.int32, torch.int64, torch.float32)
            and not each.requires_grad
            and not each.is_neg()
            and each.is_contiguous()
            for each in given
        )

    @property
    def kernel(self) -> Kernel:
        """What runs."""
        return self._runs.kernel

    def start(self, sources: Sequence[Any]) -> "tuple[Tensor, Launch] | None":
        """Submit a launch; the result, whose content is there when it has ended well. None if these sources are of
        other forms or sizes, or something is wrong with them: the general way says what.
        """
        form, device = self._form, self._device
        table, *given = sources
        tensors = [each for each in given if each is not None]
        if self._runs.form is not form or len(tensors) != len(self._shapes) or not self._watch.is_of((table,)):
            return None
        if not self._forms.are_of(tensors) or [each.shape for each in tensors] != self._shapes:
            return None
        if any(given[number] is None for number in self._present):
            return None
        self._runs.form = None  # nobody else has it meanwhile
        if not self._take(tensors):
            return None
        with device.preparing():
            if not device.are_current(self._watch):
                return None
            (array,), launch = form.program.submit()
        self._runs.form = form
        return tensor_of(array, self._shape, self._dtype), launch

    def _take(self, tensors: "Sequence[Tensor]") -> bool:
        """Copy what the launch reads; whether offsets begin and end as they must."""
        indices, *others = (tensor.numpy().reshape(-1) for tensor in tensors)
        assert self._indices is not None
        if self._offsets is not None:
            offsets = others[0]
            if len(offsets):
                if offsets[0] or offsets[-1] > self._lookups:
                    return False
            elif self._is_closed:
                return False
            self._offsets[: len(offsets)] = offsets
            if not self._is_closed:
                self._offsets[-1] = self._lookups
        self._indices[...] = indices
        if self._weights is not None:
            self._weights[...] = others[-1]
        return True
