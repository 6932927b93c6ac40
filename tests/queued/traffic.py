"""Launches without end on one simulated machine, whose registers are read and written while they run."""

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

import daedal
from daedal.cosim.verilator import VerilatorTarget
from daedal.hw.config.core import Config
from daedal.hw.isa.registers import ACCESS, Register
from tests.queued.jobs import Chain, Flying, Layer

MEMORY_BYTES = 1 << 26
LAYERS = 8
RESET_ONE_IN = 150
"""So many turns have one that resets the machine in the middle of everything."""

READABLE = [register for register, access in ACCESS.items() if "read" in access]


class Traffic:
    """Submits launches at random, checks all, and meanwhile looks at futures and registers.

    ``launches`` have ended as they must, ``cancelled`` were stopped by a reset of ours, and ``accesses`` were made, by
    kind, while one was at work. AssertionError for the first that is wrong, and whatever the driver raises.
    """

    def __init__(self, machine: daedal.Device, emulator: daedal.Device, seed: list[int]) -> None:
        assert isinstance(machine.target, VerilatorTarget)
        self._machine, self._target = machine, machine.target
        self._rng = np.random.default_rng(seed)
        self._jobs: list[Layer | Chain] = [Layer(machine, emulator, self._rng) for _ in range(LAYERS)]
        self._jobs += [Chain(machine, self._rng)] * 2
        self._flying: deque[Flying] = deque()
        self.launches = self.cancelled = 0
        self.accesses: Counter[str] = Counter()

    def run(self, launches: int) -> None:
        """Until so many more launches have ended."""
        end = self.launches + launches
        while self.launches < end:
            if self._rng.integers(RESET_ONE_IN) == 0:
                self._reset()
            for _ in range(self._rng.integers(1, 5)):
                self._flying += self._jobs[self._rng.integers(len(self._jobs))].submit()
                self._disturb(self._rng.integers(0, 8))
            for _ in range(self._rng.integers(0, len(self._flying) + 1)):
                self._check_next()
                self._disturb(self._rng.integers(0, 4))
        while self._flying:
            self._check_next()

    def _check_next(self) -> None:
        self._flying.popleft().check()
        self.launches += 1

    def _disturb(self, times: int) -> None:
        """Let some cycles pass and access a register, so often; a few of these accesses follow each other at once."""
        for _ in range(times):
            busy = self._machine.target.csr_read(Register.STATUS.value) & 1
            kind = str(self._rng.choice(["done", "read", "write", "clear"], p=[0.3, 0.4, 0.1, 0.2]))
            for _ in range(self._rng.integers(1, 4)):
                self._access(kind)
                self.accesses[kind] += busy
            if self._rng.random() < 0.8:  # the clock stands still while the interrupt is there
                self._target.step(int(self._rng.integers(1, 200)))

    def _access(self, kind: str) -> None:
        if kind == "done" and self._flying:
            self._flying[self._rng.integers(len(self._flying))].future.done()
        elif kind == "read":
            self._target.csr_read(READABLE[self._rng.integers(len(READABLE))].value)
        elif kind == "write":  # written anew before each doorbell
            self._target.csr_write(Register.LAUNCH_LOW.value, int(self._rng.integers(1 << 32)))
        else:  # who waits looks at COMPLETED first
            self._target.csr_write(Register.INTERRUPT.value, 1)

    def _reset(self) -> None:
        """In the middle of whatever runs; launches that were not over are cancelled, those after it are as always."""
        self._machine.reset()
        while self._flying:
            try:
                self._check_next()
            except daedal.LaunchCancelled:
                self.cancelled += 1


@contextmanager
def traffic(config: Config, memory: str, seed: list[int]) -> Iterator[Traffic]:
    """Traffic on the RTL of this configuration with this memory."""
    with (
        daedal.Device.open("verilator", config=config, memory=memory, memory_bytes=MEMORY_BYTES) as machine,
        daedal.Device.open("emulator", config=config, memory_bytes=MEMORY_BYTES) as emulator,
    ):
        yield Traffic(machine, emulator, seed)
