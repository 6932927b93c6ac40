"""Runs cases on a target by the driver's five primitives, and keeps what came of it."""

import struct
import time
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from daedal.cosim.emulator import EmulatorTarget, TraceEntry
from daedal.cosim.verilator import VerilatorTarget
from daedal.driver.launch.launch_block import launch_block
from daedal.driver.launch.record import RECORD_BYTES
from daedal.driver.memory.regions import Region, store_window
from daedal.driver.targets.target import Counting, Target
from daedal.driver.targets.target_registry import open_target
from daedal.errors import DaedalError
from daedal.hw.config.core import Config
from daedal.hw.isa.launch import (
    LEAST_FOLLOWING,
    RECORD_WORDS,
    Cause,
    Counter,
    EmulatedCause,
    Queue,
    RecordHead,
    RecordWord,
    State,
    cause_of,
)
from daedal.hw.isa.program import WORD_BYTES, pack, unpack
from daedal.hw.isa.registers import Control, Register
from tests.fuzz.programs.case import Case
from tests.fuzz.programs.image import BLOCK, MEMORY_BYTES, OUT, OUT_END, PLACE, PLACE_BYTES, PROGRAM, image

WRITTEN = Region(OUT, OUT_END - OUT)
"""What every case may write."""

SECONDS = 60.0
"""A case that runs for longer does not end; the longest legal ones take well under a second."""

SHORT = 0.2
"""The same for programs of which nothing is known: a loop may go round for hours."""

RESET_POLLS = 100_000


class Stuck(DaedalError):
    """A machine did not come to the end of a launch, or of a reset."""


@dataclass(frozen=True)
class Record:
    """A completion record."""

    words: tuple[int, ...]
    registers: int
    """How many stream registers the machine has."""

    @property
    def head(self) -> dict[str, int]:
        return unpack(RecordHead, self.words[RecordWord.HEAD.value])

    @property
    def state(self) -> State:
        return State(self.head["state"])

    @property
    def cause(self) -> Cause | EmulatedCause:
        return cause_of(self.head["cause"])

    def counter(self, counter: Counter) -> int:
        return self.words[RecordWord.COUNTERS.value + counter.value]

    def fault(self) -> dict[str, Any]:
        """All that a record says of a fault."""
        head, first = self.head, RecordWord.REGISTER0.value
        return {
            "state": self.state.name,
            "cause": self.cause.name,
            "nest": head["nest"],
            "level": head["level"],
            "queue": Queue(head["queue"]).name,
            "value": self.words[RecordWord.VALUE.value],
            "address": self.words[RecordWord.ADDRESS.value],
            "registers": self.words[first : first + self.registers],
        }


@dataclass(frozen=True)
class Outcome:
    """What came of launches: their records, the memory below ``OUT_END`` behind all of them, FAULT, what the access
    unit did (by an emulator, of the last one), and what the bus says that was done (by a simulation).
    """

    records: tuple[Record, ...]
    memory: bytes
    fault: Cause | EmulatedCause
    trace: tuple[TraceEntry, ...] = ()
    counted: dict[str, int] | None = None


class Machine:
    """An open target of the configuration ``config``. Use it in a ``with`` block.

    With ``accesses``, registers of a simulation are read all the time while it works.
    """

    def __init__(
        self,
        config: Config,
        name: str,
        memory: str = "ideal",
        *,
        accesses: bool = False,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self.config, self.name, self.memory, self.memory_bytes = config, name, memory, memory_bytes
        self._accesses = np.random.default_rng(1) if accesses else None
        self.seconds = SECONDS
        self._target: Target | None = None
        self._launch = 0

    @property
    def target(self) -> Target:
        if self._target is None:
            if self.name == "emulator":
                self._target = EmulatorTarget(self.config, self.memory_bytes, trace=True)
            else:
                self._target = open_target(
                    self.name, self.config, memory=self.memory, memory_bytes=self.memory_bytes, wave=None
                )
            self.reset()
        return self._target

    def close(self) -> None:
        """End it; it begins anew when it is used again."""
        if self._target is not None:
            self._target.close()
            self._target = None

    def __enter__(self) -> "Machine":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def run(self, *cases: Case) -> Outcome:
        """Launch these cases one behind the other on the first one's memory; all are queued at once.

        Raises Stuck if they do not end, and what a simulation raises when the machine breaks a rule of its bus; the
        next case gets a new machine then.
        """
        try:
            return self._run(cases)
        except DaedalError:
            self.close()
            raise

    def _run(self, cases: tuple[Case, ...]) -> Outcome:
        target = self.target
        target.mem_write(0, image(cases[0].image))
        before = target.csr_read(Register.COMPLETED.value)
        for place, case in enumerate(cases):
            self._place(PLACE + place * PLACE_BYTES, case)
        for place in range(len(cases)):
            self._ring(PLACE + place * PLACE_BYTES + BLOCK)
        self._wait((before + len(cases)) % (1 << 32))
        last = PLACE + (len(cases) - 1) * PLACE_BYTES
        counted = target.counted(last) if isinstance(target, Counting) else None
        fault = cause_of(target.csr_read(Register.FAULT.value))
        records = tuple(self._record(PLACE + place * PLACE_BYTES) for place in range(len(cases)))
        trace = tuple(target.trace()) if isinstance(target, EmulatorTarget) else ()
        outcome = Outcome(records, target.mem_read(0, OUT_END), fault, trace, counted)
        if fault is not Cause.NONE:
            self.reset()
        return outcome

    def launch(self, block: int, record: int) -> Record:
        """Launch what is in memory; the record, which is written to ``record``. Raises Stuck if it does not end."""
        before = self.target.csr_read(Register.COMPLETED.value)
        self._ring(block)
        self._wait((before + 1) % (1 << 32))
        return self._record(record)

    def _ring(self, block: int) -> None:
        self.target.csr_write(Register.LAUNCH_LOW.value, block)
        self.target.csr_write(Register.LAUNCH_HIGH.value, 0)
        self.target.csr_write(Register.DOORBELL.value, 1)

    def _place(self, at: int, case: Case) -> None:
        """Every other program, whatever has chosen it, follows its launch block."""
        self._launch += 1
        follows = case.raw if len(case.raw) >= WORD_BYTES * LEAST_FOLLOWING and crc32(case.raw) % 2 else b""
        block = launch_block(self.config, at + PROGRAM, at, self._launch, case.arguments, follows=follows,
                             least=self.config.arguments, window=store_window([WRITTEN], self.config))  # fmt: skip
        whole = bytes(BLOCK) + block
        self.target.mem_write(at, whole + (follows or bytes(PROGRAM - len(whole)) + case.raw))

    def _record(self, at: int) -> Record:
        words = struct.unpack(f"<{RECORD_WORDS}Q", self.target.mem_read(at, RECORD_BYTES))
        return Record(words, self.config.registers)

    def _wait(self, completed: int) -> None:
        target, end = self.target, time.monotonic() + self.seconds
        while target.csr_read(Register.COMPLETED.value) != completed:
            if not self._work(end):
                raise Stuck(f"{self.name} must end a launch within {self.seconds} s")
            target.csr_write(Register.INTERRUPT.value, 1)

    def _work(self, end: float) -> bool:
        """Let it work until its interrupt, or for some cycles between two accesses; False if it is ``end`` by then."""
        target = self.target
        if self._accesses is None or not isinstance(target, VerilatorTarget):
            return target.wait(max(0.0, end - time.monotonic()))
        target.step(int(self._accesses.integers(0, 60)))
        for register in self._accesses.choice(list(Register), self._accesses.integers(0, 3)):
            target.csr_read(register.value)
        return time.monotonic() < end

    def reset(self) -> None:
        """Bring the machine back from whatever it does; launches that it knows of are forgotten."""
        target = self._target
        assert target is not None
        target.csr_write(Register.CONTROL.value, pack(Control, {"reset": 1, "interrupt_enable": 1}))
        for _ in range(RESET_POLLS):
            if not unpack(Control, target.csr_read(Register.CONTROL.value))["reset"]:
                target.csr_write(Register.INTERRUPT.value, 1)
                return
        raise Stuck(f"{self.name} must end a reset")
