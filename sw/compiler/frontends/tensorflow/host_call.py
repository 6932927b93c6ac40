"""An operation of TensorFlow's that an executable hands over; imports TensorFlow."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from daedal.compiler.frontends.tensorflow.ops.operation import HandedOver
from daedal.compiler.frontends.tensorflow.parts import Builder


@dataclass(frozen=True, eq=False)
class HostCall(HandedOver):
    """An operation, and what TensorFlow does for it."""

    builder: Builder
    shape: Any

    @cached_property
    def in_tensorflow(self) -> Callable[..., Any]:
        """What TensorFlow does instead, made when it is needed first."""
        return self.builder.operation(self.operation)

    def in_torch(self, *sources: Any) -> Any:
        """What TensorFlow makes of these tensors."""
        return self.in_tensorflow(*sources)
