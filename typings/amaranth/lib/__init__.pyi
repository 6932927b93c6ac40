"""The standard library of amaranth; only its enumerations have types."""

from amaranth._untyped import (
    cdc as cdc,
)
from amaranth._untyped import (
    crc as crc,
)
from amaranth._untyped import (
    data as data,
)
from amaranth._untyped import (
    fifo as fifo,
)
from amaranth._untyped import (
    io as io,
)
from amaranth._untyped import (
    memory as memory,
)
from amaranth._untyped import (
    meta as meta,
)
from amaranth._untyped import (
    stream as stream,
)
from amaranth._untyped import (
    wiring as wiring,
)
from amaranth.lib import enum as enum
