"""What tests of ``torch.compile`` have in common."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Nothing that another test has compiled."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Layer(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)
