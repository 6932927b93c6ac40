"""The faults, one module for each area."""

from tests.mutate.fault import Fault
from tests.mutate.faults import (
    compiler,
    driver,
    emulator,
    harness,
    isa,
    neutral,
    robustness,
    rtl_access,
    rtl_boards,
    rtl_execute,
    rtl_host,
    rtl_memory,
    rtl_queues,
    rtl_serial,
    texts,
)

AREAS = (
    rtl_queues,
    rtl_access,
    rtl_serial,
    rtl_execute,
    rtl_memory,
    rtl_host,
    rtl_boards,
    isa,
    emulator,
    harness,
    compiler,
    driver,
    robustness,
    texts,
    neutral,
)

FAULTS: list[Fault] = [fault for area in AREAS for fault in area.FAULTS]
"""All faults, in the order in which they are planted."""
