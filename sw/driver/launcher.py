"""Launches: launch block, doorbell, waiting, completion record, and what to do when it goes wrong."""

import struct
import time
from collections.abc import Sequence

from daedal.driver.allocator import Allocator
from daedal.driver.record import RECORD_BYTES, Record, fault_exception
from daedal.driver.registers import Registers
from daedal.driver.target import Counting, Target
from daedal.errors import DaedalError, DeviceHang
from daedal.hw.config import ADDRESS_BITS, Config
from daedal.hw.isa.launch import (
    LAUNCH_ALIGNMENT,
    Counter,
    LaunchWord,
    State,
    launch_block_words,
)
from daedal.hw.isa.registers import Register

LAUNCH_MODULUS = 1 << 32
"""Launch numbers and COMPLETED are 32 bits."""


class CountMismatch(DaedalError):
    """The machine's counters and the test bench's own disagree: a defect of one of them."""


def launch_block(config: Config, program: int, record: int, launch: int, arguments: Sequence[int]) -> bytes:
    """The bytes of a launch block; ValueError if there are too many arguments or one does not fit."""
    if len(arguments) > config.arguments:
        raise ValueError(f"a launch must have at most {config.arguments} arguments, not {len(arguments)}")
    words = [0] * launch_block_words(config.arguments)
    words[LaunchWord.PROGRAM.value] = program
    words[LaunchWord.RECORD.value] = record
    words[LaunchWord.LAUNCH.value] = launch
    for position, value in enumerate(arguments):
        if not -(1 << (ADDRESS_BITS - 1)) <= value < 1 << ADDRESS_BITS:
            raise ValueError(f"argument {position} must fit {ADDRESS_BITS} bits, not {value!r}")
        words[LaunchWord.ARGUMENTS.value + position] = value % (1 << ADDRESS_BITS)
    return struct.pack(f"<{len(words)}Q", *words)


class Launcher:
    """Runs one launch at a time on a target."""

    def __init__(self, target: Target, registers: Registers, allocator: Allocator, config: Config) -> None:
        self._target, self._registers, self._config = target, registers, config
        block_bytes = 8 * launch_block_words(config.arguments)
        self._block = allocator.allocate(block_bytes, LAUNCH_ALIGNMENT, what="the launch block")
        self._record = allocator.allocate(RECORD_BYTES, LAUNCH_ALIGNMENT, what="the completion record")
        self._launch = 0

    def run(self, program: int, arguments: Sequence[int], *, timeout: float | None = None) -> Record:
        """Launch the program at this address and return its completion record.

        Raises the exception that belongs to a fault, with the record as ``.record``; the machine was reset
        then and can be used again. DeviceHang if ``timeout`` (seconds) passes. An interrupt from the keyboard
        stops the launch in the same way.
        """
        self._launch = (self._launch + 1) % LAUNCH_MODULUS
        block = launch_block(self._config, program, self._record, self._launch, arguments)
        self._target.mem_write(self._block, block)
        self._target.mem_write(self._record, bytes(RECORD_BYTES))
        try:
            self._ring_and_wait(timeout)
        except BaseException:
            self.reset()
            raise
        return self._finish()

    def reset(self) -> None:
        """Stop whatever runs; memory stays."""
        self._registers.reset()

    def _ring_and_wait(self, timeout: float | None) -> None:
        registers = self._registers
        before = registers.read(Register.COMPLETED)
        registers.write(Register.LAUNCH_LOW, self._block & 0xFFFF_FFFF)
        registers.write(Register.LAUNCH_HIGH, self._block >> 32)
        registers.write(Register.DOORBELL, 1)
        end = None if timeout is None else time.monotonic() + timeout
        while registers.read(Register.COMPLETED) == before:
            rest = None if end is None else end - time.monotonic()
            if (rest is not None and rest <= 0) or not self._target.wait(rest):
                raise DeviceHang(
                    f"launch {self._launch} did not end within {timeout} s (status {registers.status()}): "
                    "allow more time, or look at what it does with a waveform"
                )
            registers.clear_interrupt()

    def _finish(self) -> Record:
        record = Record.decode(self._target.mem_read(self._record, RECORD_BYTES), self._config)
        if record.state is not State.DONE:
            fault = fault_exception(record)
            try:
                self.reset()
            except DeviceHang as hang:
                raise fault from hang
            raise fault
        if record.launch != self._launch:
            self.reset()
            raise DaedalError(f"the completion record must be of launch {self._launch}, not {record.launch}")
        if isinstance(self._target, Counting):
            _compare(record, self._target.counted())
        return record


def _compare(record: Record, counted: dict[str, int] | None) -> None:
    for name, value in (counted or {}).items():
        own = record.counters[Counter[name]]
        if own != value:
            raise CountMismatch(
                f"counter {name} of launch {record.launch} must be {value}, as counted on the bus, not {own}"
            )
