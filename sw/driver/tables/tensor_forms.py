"""Whether tensors are of the forms that others were: by PyTorch's own check, made for the guards of its compiler."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


class TensorForms:
    """Types, dtypes, devices, layouts, dimensions and contiguity of tensors, and whether they require gradients.

    All of that is looked at in one call, in a tenth of a microsecond for each tensor: as long as Python takes for one
    attribute. What passes is of these forms; what does not may be of them all the same, in another mode of PyTorch's
    (inference, autocast), or if a tensor is given twice.

    Parameters
    ----------
    examples
        Tensors of these forms, which are not kept.
    has_sizes
        Whether sizes and strides are part of the form. If not, all with a dimension are contiguous.
    """

    def __init__(self, examples: "Sequence[Tensor]", *, has_sizes: bool = False) -> None:
        self._check: Callable[..., bool] | None = None
        self._loose: list[int] = []
        """Those of which the check leaves strides out."""
        if len(set(map(id, examples))) < len(examples) or not all(map(_is_dense, examples)):
            return
        from torch._C._dynamo import guards

        sizes: Any = [list(each.shape) if has_sizes else [None] * each.dim() for each in examples]
        strides: Any = [list(each.stride()) if has_sizes else _strides(each.dim()) for each in examples]
        make: Any = guards.TensorGuards
        self._check = make(*examples, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
        self._loose = [] if has_sizes else [number for number, each in enumerate(examples) if each.dim() > 1]

    def are_of(self, tensors: "Sequence[Any]") -> bool:
        """Whether these, as many as the examples were, are of their forms."""
        check = self._check
        if check is None or not check(*tensors):
            return False
        return not self._loose or all(tensors[number].is_contiguous() for number in self._loose)


def _strides(dimensions: int) -> list[int | None]:
    """Of a contiguous tensor, as far as they do not depend on its sizes."""
    return [*[None] * (dimensions - 1), 1][:dimensions]


def _is_dense(tensor: "Tensor") -> bool:
    """PyTorch's check is of no others: for some it ends the process."""
    import torch

    return tensor.layout is torch.strided and not tensor.is_nested
