"""Enumerations with a shape: Python's own for a type checker, with amaranth's class arguments."""

import enum
from enum import auto as auto
from enum import unique as unique
from typing import Any

class EnumType(enum.EnumMeta):
    """Metaclass that gives an enumeration its shape in hardware."""

    def as_shape(cls) -> Any: ...
    def const(cls, init: object) -> Any: ...
    def from_bits(cls, bits: int) -> Any: ...

class Enum(enum.Enum, metaclass=EnumType):
    """``enum.Enum`` with ``shape=``."""

    def __init_subclass__(cls, *, shape: object = ..., view_class: object = ...) -> None: ...

class IntEnum(enum.IntEnum, metaclass=EnumType):
    """``enum.IntEnum`` with ``shape=``."""

    def __init_subclass__(cls, *, shape: object = ..., view_class: object = ...) -> None: ...

class Flag(enum.Flag, metaclass=EnumType):
    """``enum.Flag`` with ``shape=``."""

    def __init_subclass__(cls, *, shape: object = ..., view_class: object = ...) -> None: ...

class IntFlag(enum.IntFlag, metaclass=EnumType):
    """``enum.IntFlag`` with ``shape=``."""

    def __init_subclass__(cls, *, shape: object = ..., view_class: object = ...) -> None: ...
