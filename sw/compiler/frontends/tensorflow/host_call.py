"""An operation of TensorFlow's that an executable hands over; imports TensorFlow."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from daedal.compiler.frontends.tensorflow.ops.operation import Operation, Table
from daedal.compiler.frontends.tensorflow.parts import Builder


@dataclass(frozen=True, eq=False)
class HostCall:
    """An operation, and what TensorFlow does for it (``batch.members.PoolingCall``)."""

    operation: Operation
    builder: Builder
    shape: Any
    is_direct: bool = False
    is_pooling: bool = False
    include_last_offset: bool = False

    @cached_property
    def in_tensorflow(self) -> Callable[..., Any]:
        """What TensorFlow does instead, made when it is needed first."""
        return self.builder.operation(self.operation)

    @property
    def name(self) -> str:
        """The node whose result it gives."""
        return self.operation.name

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.operation.label

    @property
    def table_name(self) -> str:
        """What the device calls its table."""
        return self.operation.table.target

    @property
    def table(self) -> Table:
        """Where its table comes from."""
        return self.operation.table

    def in_torch(self, *sources: Any) -> Any:
        """What TensorFlow makes of these tensors."""
        return self.in_tensorflow(*sources)
