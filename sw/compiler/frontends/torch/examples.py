"""What tracing knows of the values of a graph's nodes."""

from typing import Any

from torch import fx


def example_of(value: Any) -> Any:
    """What tracing knows of a node's value: a tensor without content; None if nothing."""
    if not isinstance(value, fx.Node):
        return value
    return value.meta.get("example_value", value.meta.get("val"))
