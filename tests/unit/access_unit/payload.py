"""Payloads as plain values, for surroundings that look at them in every cycle.

Amaranth's constants ask the layout for each field and take ten times as long.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data, enum


class Payload:
    """What is in the bits of a ``layout``, whose fields are unsigned numbers, enumerations and layouts of these."""

    def __init__(self, layout: data.Layout) -> None:
        self._fields: list[tuple[str, int, int, Any]] = []
        for name, field in layout:
            shape: Any = field.shape
            kind = Payload(shape).unpack if isinstance(shape, data.Layout) else shape if self._is_enum(shape) else int
            self._fields.append((str(name), field.offset, (1 << Shape.cast(shape).width) - 1, kind))

    @staticmethod
    def _is_enum(shape: Any) -> bool:
        return isinstance(shape, type) and issubclass(shape, enum.Enum)

    def unpack(self, bits: int) -> Any:
        """An object with the fields as attributes."""
        return SimpleNamespace(**{name: kind(bits >> at & mask) for name, at, mask, kind in self._fields})

    def pack(self, values: Mapping[str, int]) -> int:
        """The bits for a number in each field; raises for one that is missing or too large."""
        bits = 0
        for name, at, mask, _ in self._fields:
            assert 0 <= values[name] <= mask, f"{name} = {values[name]} does not fit"
            bits |= values[name] << at
        return bits
