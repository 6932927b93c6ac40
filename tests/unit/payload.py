"""Payloads as plain values, for surroundings that look at them in every cycle.

Amaranth's constants ask the layout for each field, which takes most of the time of such a cycle. ``pack`` of
``daedal.hw.isa.program`` does the same for structures that are classes.
"""

from collections.abc import Mapping
from enum import Enum
from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data


class Payload:
    """The bits of a ``layout``, whose fields are unsigned numbers, enumerations and layouts of these."""

    def __init__(self, layout: data.Layout) -> None:
        self._fields: dict[str, tuple[int, int, Any]] = {}
        for name, field in layout:
            shape: Any = field.shape
            kind = Payload(shape) if isinstance(shape, data.Layout) else shape
            self._fields[str(name)] = field.offset, (1 << Shape.cast(shape).width) - 1, kind

    def unpack(self, bits: int) -> Any:
        """An object with the fields as attributes."""
        fields = self._fields.items()
        return SimpleNamespace(**{name: self._value(kind, bits >> at & mask) for name, (at, mask, kind) in fields})

    @staticmethod
    def _value(kind: Any, bits: int) -> Any:
        if isinstance(kind, Payload):
            return kind.unpack(bits)
        return kind(bits) if isinstance(kind, type) and issubclass(kind, Enum) else bits

    def pack(self, values: Mapping[str, Any]) -> int:
        """The bits for a value of each field; those that are not given are 0, the lowest bits count."""
        bits = 0
        for name, value in values.items():
            at, mask, kind = self._fields[name]
            if isinstance(kind, Payload):
                number = kind.pack(value)
            else:
                number = value.value if isinstance(value, Enum) else value
            bits |= (number & mask) << at
        return bits
