"""Netlists as Yosys writes them in JSON."""

from typing import Any


def top_module(design: dict[str, Any]) -> dict[str, Any]:
    """The module at the top of a netlist; KeyError, TypeError, AttributeError or StopIteration if it is none."""
    found: dict[str, Any] = next(module for module in design["modules"].values() if "top" in module["attributes"])
    return found
