"""A layer, the inputs to run it on, and what to call it."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """One line of the table that ``daedal sim`` prints.

    Attributes
    ----------
    workload
        Name of the workload that it is part of.
    operation
        What is computed, in PyTorch's words.
    shape
        Bags (or rows), lookups and tables, for people to read.
    module
        The layer, an ``nn.Module`` on the CPU.
    inputs
        Tensors to call it with.
    """

    workload: str
    operation: str
    shape: str
    module: Any
    inputs: tuple[Any, ...]
