"""The suite ``oracle``: the limit itself on traffic whose best figure is known, uniformly distributed rows to read."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from daedal.bench.limit import dram_of
from daedal.bench.report.table import KNOWN_COLUMNS
from daedal.bench.suite import Order, Row, Say, Suite
from daedal.cosim.litedram.memories import MEMORIES, Dram
from daedal.cosim.oracle.traffic import oracle_of, requests_of
from daedal.errors import DaedalError
from daedal.hw.config.core import Config
from daedal.hw.isa.address_mapping import CLASSES, granule_bytes, memory_addresses

NAME = "oracle"

WIDTHS = (32, 64, 128, 256, 512)
"""Bytes of a row."""

REFERENCE = {
    "litedram-ddr3-x16": (92.4, 93.8, 93.9, 94.2, 94.3),
    "litedram-ddr3-x64": (23.2, 46.3, 92.4, 93.8, 93.9),
    "litedram-ddr4-x64": (23.3, 46.8, 93.1, 94.0, 94.3),
}
"""Useful bytes in percent of what the pins can move, for each of ``WIDTHS``: the best of several reordering generators
in an earlier study of the same controller, with 8 ports and a table of 64 MiB.
"""

TABLE_BYTES = 64 << 20

LINES = 40_000
"""Lines of a run."""

TOLERANCE = 1.0
"""Points by which the limit may be below its reference."""


def run(order: Order, say: Say) -> Iterator[Row]:
    """The rows of all DRAMs, or of those that were asked for."""
    asked = [dram for dram in (dram_of(memory) for _, memory in order.machines) if dram is not None]
    for dram in asked or DRAMS:
        say(f"{NAME}: {dram.name}")
        try:
            for row in rows_of(dram, order.seed, lines=LINES // 20 if order.quick else LINES):
                yield {"suite": NAME, **row}
        except DaedalError as error:
            yield {"suite": NAME, "workload": NAME, "memory": dram.name, "verdict": str(error)}


def rows_of(dram: Dram, seed: int, *, lines: int = LINES) -> Iterator[Row]:
    """A row for each width."""
    for width, reference in zip(WIDTHS, REFERENCE[dram.name], strict=True):
        requests = gathered(dram, width, seed, lines)
        best = oracle_of(dram).best(requests)
        share = 100 * len(requests) * width / (best.cycles * dram.word_bytes)
        difference = share - reference
        yield {
            "workload": NAME, "distribution": "uniform", "memory": dram.name, "placement": 0, "row_bytes": width,
            "cycles": best.cycles, "limit_cycles": best.cycles, "limit_in_order_cycles": best.in_order,
            "share": share, "reference": reference, "difference": difference, "window": str(best.policy),
            "settings": oracle_of(dram).description.text(),
            "verdict": "" if difference >= -TOLERANCE else f"more than {TOLERANCE:g} below its reference",
        }  # fmt: skip


def gathered(dram: Dram, width: int, seed: int, lines: int) -> NDArray[np.void]:
    """Reads of uniformly distributed rows that lie in a granule each, as the driver places them."""
    config = config_of(dram)
    count = lines // max(1, width // dram.word_bytes)
    places = np.random.default_rng(seed).integers(0, TABLE_BYTES // width, count, dtype=np.int64) * width
    mapping = next(n for n in range(1, CLASSES) if granule_bytes(n, config) >= min(width, config.page_bytes))
    addresses = memory_addresses(places.astype(np.uint64), mapping, config)
    beats = np.full(count, max(1, width // dram.word_bytes))
    return requests_of(addresses, beats, np.zeros(count, bool), dram.word_bytes)


def config_of(dram: Dram) -> Config:
    """A machine whose mapping classes fit this DRAM."""
    description = oracle_of(dram).description
    return Config(bus_bytes=dram.word_bytes, banks=description.banks, page_bytes=description.page_bytes)


DRAMS = tuple(MEMORIES.values())
"""Those with references."""

SUITE = Suite(NAME, "The limit on traffic whose best figure is known", KNOWN_COLUMNS, run)
