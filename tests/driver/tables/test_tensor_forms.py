"""Forms of tensors, as PyTorch's own check sees them: nothing passes that is of another form."""

import pytest
import torch
from torch import Tensor, nn

from daedal.driver.tables.tensor_forms import TensorForms


class Own(Tensor):
    """A subclass."""


def others() -> dict[str, Tensor]:
    """Tensors like ``torch.arange(5)``, but for one thing."""
    with torch.inference_mode():
        inference = torch.arange(5)
    return {
        "dtype": torch.arange(5, dtype=torch.int32),
        "dimensions": torch.arange(6).reshape(2, 3),
        "strides": torch.arange(10)[::2],
        "expanded": torch.zeros(1, dtype=torch.int64).expand(5),
        "device": torch.arange(5, device="meta"),
        "layout": torch.arange(5).to_sparse(),
        "parameter": nn.Parameter(torch.arange(5), requires_grad=False),
        "subclass": torch.arange(5).as_subclass(Own),  # type: ignore[no-untyped-call]
        "zero": torch._efficientzerotensor((5,), dtype=torch.int64),
        "negative": torch._neg_view(torch.arange(5)),
        "inference": inference,
        "no tensor": "tensor",  # type: ignore[dict-item]
    }


@pytest.mark.parametrize("kind", others())
def test_what_is_of_another_form(kind: str) -> None:
    forms = TensorForms([torch.arange(3), torch.arange(7)])
    assert forms.are_of([torch.arange(8), torch.arange(1)])
    assert not forms.are_of([torch.arange(8), others()[kind]])
    assert not forms.are_of([others()[kind], torch.arange(8)])


def test_contiguity_of_two_dimensions() -> None:
    forms = TensorForms([torch.randn(3, 4), torch.randn(())])
    assert forms.are_of([torch.randn(5, 1), torch.randn(())])
    assert not forms.are_of([torch.randn(5, 6).T, torch.randn(())])
    assert not forms.are_of([torch.randn(5, 6)[:, :3], torch.randn(())])


def test_sizes_and_strides() -> None:
    table = torch.randn(6, 4)
    forms = TensorForms([table], has_sizes=True)
    assert forms.are_of([table]) and forms.are_of([torch.randn(6, 4)])
    assert not forms.are_of([torch.randn(5, 4)]) and not forms.are_of([torch.randn(4, 6).T])
    table.t_()
    assert not forms.are_of([table])


def test_gradients() -> None:
    forms = TensorForms([torch.randn(3)])
    assert not forms.are_of([torch.randn(3, requires_grad=True)])


def test_examples_without_a_form() -> None:
    """A tensor that is given twice, and what PyTorch's check cannot be asked for: nothing passes."""
    one = torch.arange(3)
    nested = torch.nested.nested_tensor([torch.arange(3), torch.arange(2)], layout=torch.jagged)
    for examples in ([one, one], [nested], [one.to_sparse()]):
        assert not TensorForms(examples).are_of(examples)
