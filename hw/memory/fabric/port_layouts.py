"""Payloads inside the read fabric.

With groups of requests (``row_groups``) many requests wait and fly; what their beats are for is then kept in one block
RAM for all ports (``RequestNumbers``), and ports carry a request's number only. Otherwise each port carries all of it.
"""

from amaranth.lib import data
from amaranth.utils import ceil_log2

from daedal.hw.config.core import MAX_BURST, Config
from daedal.hw.interfaces import tag_layout
from daedal.hw.memory.store.store_layouts import line_bits

LOADS = 16
"""Loads that can wait at a port beside the requests for rows, if there are groups."""

IN_BETWEEN = 8
"""Requests that are neither at a port nor in flight, and some more."""


def is_numbered(config: Config) -> bool:
    """Whether requests have numbers."""
    return config.row_groups > 1


def most_waiting(config: Config) -> int:
    """Requests that can wait at one port."""
    return config.port_requests + (LOADS if is_numbered(config) else 0)


def most_open(config: Config) -> int:
    """Requests that can be anywhere in the fabric."""
    return config.ports * (most_waiting(config) + config.port_outstanding) + IN_BETWEEN


def burst_layout(config: Config) -> data.StructLayout:
    """What the beats of a burst are for: the burst's line in memory, with the mapping class above, and its tag.

    Of what each port has a copy of it is the line that the program named, whichever port the burst goes to.
    """
    return data.StructLayout({"line": line_bits(config), "tag": tag_layout(config)})


def memo_layout(config: Config) -> data.StructLayout:
    """What comes back from a port with each beat: the request's number, or ``burst_layout`` itself."""
    if is_numbered(config):
        return data.StructLayout({"number": ceil_log2(most_open(config))})
    return burst_layout(config)


def port_request_layout(config: Config) -> data.StructLayout:
    """A burst to read: ``beats`` lines from ``line``, as of ``burst_layout``. ``load``: it is no row."""
    kept = {"load": 1, "number": ceil_log2(most_open(config))} if is_numbered(config) else {"tag": tag_layout(config)}
    return data.StructLayout({"line": line_bits(config), "beats": range(MAX_BURST + 1), **kept})


def port_beat_layout(config: Config) -> data.StructLayout:
    """A beat as it comes from memory, ``place`` in its burst; ``error`` is memory's."""
    return data.StructLayout({"data": 8 * config.bus_bytes, "error": 1, "last": 1, "place": range(MAX_BURST)})
