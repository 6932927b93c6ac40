"""Payloads as plain values, for surroundings that look at them in every cycle.

Amaranth's constants ask the layout for each field and take ten times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data, enum


class Payload:
    """The bits of a ``layout``, whose fields are unsigned numbers, enumerations and layouts of these."""

    def __init__(self, layout: data.Layout) -> None:
        self._fields: dict[str | int, tuple[int, int, Any]] = {}
        for name, field in layout:
            shape: Any = field.shape
            kind = Payload(shape) if isinstance(shape, data.Layout) else shape
            self._fields[name] = field.offset, (1 << Shape.cast(shape).width) - 1, kind

    def unpack(self, bits: int) -> Any:
        """An object with the fields of a structure as attributes, or the list of an array."""
        values = {name: self._value(kind, bits >> at & mask) for name, (at, mask, kind) in self._fields.items()}
        return list(values.values()) if 0 in values else SimpleNamespace(**values)

    @staticmethod
    def _value(kind: Any, bits: int) -> Any:
        if isinstance(kind, Payload):
            return kind.unpack(bits)
        return kind(bits) if isinstance(kind, type) and issubclass(kind, enum.Enum) else bits

    def pack(self, values: Mapping[str, Any] | Sequence[Any] | data.Const[Any]) -> int:
        """The bits for a value of each field; those that are not given are 0, the lowest bits count."""
        if isinstance(values, data.Const):
            return int(values.as_value().value)
        bits = 0
        for name, value in values.items() if isinstance(values, Mapping) else enumerate(values):
            at, mask, kind = self._fields[name]
            number = kind.pack(value) if isinstance(kind, Payload) else getattr(value, "value", value)
            bits |= (number & mask) << at
        return bits
