"""Faults of the C++ loops around simulated machines."""

from tests.mutate.fault import SLOW, area

HERE = "cosim/harness/"
ACCESS = f"tests/cosim/test_cosim_access.py {SLOW}"
COPIER = f"tests/cosim/test_cosim_harness.py {SLOW}"

plant = area("harness", ACCESS, COPIER)

FAULTS = [
    plant(
        "inputs-missed-by-an-access",
        "lost strobe",
        HERE + "simulation.cpp",
        "if (take_inputs) lower_pins_clock();  // high if the host",
        "// high if the host",
        "behind a register access the core does not get its inputs at the next edge",
        ACCESS,
    ),
    plant(
        "access-taken-late",
        "off by one",
        HERE + "simulation.cpp",
        "  host_.start_read(address);\n  taken_ = false;",
        "  host_.start_read(address);",
        "a read that a memory's early inputs are before is taken a cycle late",
        ACCESS,
    ),
    plant(
        "memory-driven-twice",
        "duplicated work",
        HERE + "simulation.cpp",
        "if (!early) memory_->drive(cycle_);",
        "if (!early || !taken_) memory_->drive(cycle_);",
        "a register access has the memory driven once more",
        ACCESS,
    ),
    plant(
        "counts-of-the-last-launch",
        "wrong index",
        HERE + "counts.h",
        "ended_[pending_.front().record] =",
        "ended_[0] =",
        "counts are not those of the launch with that record",
        COPIER,
    ),
]
