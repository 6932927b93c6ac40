"""The traffic generator as a Python object: one shared library for each DRAM."""

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daedal.cosim.builder.library import read_sources
from daedal.cosim.builder.rtl_library import build_verilated
from daedal.cosim.litedram.memories import Dram
from daedal.cosim.litedram.model import ports_header
from daedal.cosim.litedram.text import generate
from daedal.errors import DaedalError

REQUEST = np.dtype([("word", "<u4"), ("beats", "<u2"), ("write", "<u2")])
"""A burst: the number of its first word in memory, its words, and whether it writes."""

ALL = (1 << 63) - 1
"""A window without an end, and a batch that all writes make up."""

TRIED_ON = 4
"""All policies are tried on one part in so many of the traffic, the best ones on all of it."""

SHORT = 50_000
"""Lines below which all policies are tried on all of the traffic."""

FINALISTS = 3
"""How many of them, besides the best one that keeps the order in each bank."""


@dataclass(frozen=True)
class Policy:
    """How the generator may reorder.

    Attributes
    ----------
    window
        Lines of reads that are issued and not yet back, in the order of the traffic; None for no bound.
    open_first
        Whether a bank takes requests to the row that it used last first.
    write_batch
        Lines of writes that go out together; None for all of them at the end.
    """

    window: int | None
    open_first: bool
    write_batch: int | None

    def __str__(self) -> str:
        window = "unbounded" if self.window is None else f"{self.window} lines"
        order = "open rows first" if self.open_first else "in order"
        writes = "writes last" if self.write_batch is None else f"writes by {self.write_batch}"
        return f"{window}, {order}, {writes}"


POLICIES = tuple(
    Policy(window, open_first, write_batch)
    for window in (128, 256, 1024, None)
    for open_first in (False, True)
    for write_batch in (256, None)
)
"""Those that are tried."""


class Best(NamedTuple):
    """The least cycles, the policy that needs them, and the least cycles of one that keeps the order in each bank."""

    cycles: int
    policy: Policy
    in_order: int


class Oracle:
    """A DRAM behind a generator with one port for each bank."""

    def __init__(self, dram: Dram) -> None:
        self.dram = dram
        ports = generate(dram, 1).description.banks
        made = generate(dram, ports)
        self.description = made.description
        files = read_sources(Path(__file__).parent, "traffic.cpp") | {"dram_ports.h": ports_header(made.description)}
        # Under the name of the DRAM behind the core, whose model may be there already.
        library = ctypes.CDLL(str(build_verilated(f"{dram.name}-{ports}", made.verilog, files, top="dram")))
        self._run = library.daedal_traffic_run
        self._run.restype = ctypes.c_uint64
        self._run.argtypes = (ctypes.c_void_p, *(ctypes.c_uint64,) * 3, ctypes.c_uint32)

    def cycles(self, requests: NDArray[np.void], policy: Policy) -> int:
        """Cycles from the first request to the last word of these (``REQUEST``), as the policy issues them.

        DaedalError if they do not end.
        """
        requests = np.ascontiguousarray(requests, REQUEST)
        found: int = self._run(
            requests.ctypes.data, len(requests), policy.window or ALL, policy.write_batch or ALL, policy.open_first
        )
        if not found and len(requests):
            raise DaedalError(f"the traffic of {len(requests)} requests must end on {self.dram.name}: this is a defect")
        return found

    def best(self, requests: NDArray[np.void], policies: tuple[Policy, ...] = POLICIES) -> Best:
        """The least cycles that a policy needs, and the least of one that keeps the order in each bank.

        Of long traffic, a part of it decides which policies are tried on all of it.
        """
        writes = bool(requests["write"].any())
        tried = [policy for policy in policies if writes or policy.write_batch is None]
        if int(requests["beats"].sum()) > SHORT:
            part = requests[: len(requests) // TRIED_ON]
            tried.sort(key=lambda policy: self.cycles(part, policy))
            in_order = [policy for policy in tried if not policy.open_first]
            tried = list(dict.fromkeys([*tried[:FINALISTS], *in_order[:1]]))
        found = {policy: self.cycles(requests, policy) for policy in tried}
        policy = min(found, key=found.__getitem__)
        return Best(found[policy], policy, min(n for each, n in found.items() if not each.open_first))


@cache
def oracle_of(dram: Dram) -> Oracle:
    """The oracle of a DRAM, made when it is first asked for."""
    return Oracle(dram)


def requests_of(
    addresses: NDArray[Any], beats: NDArray[Any], writes: NDArray[Any], word_bytes: int
) -> NDArray[np.void]:
    """Requests for bursts at these byte addresses."""
    requests = np.empty(len(addresses), REQUEST)
    requests["word"], requests["beats"], requests["write"] = addresses // word_bytes, beats, writes
    return requests
