"""The queue of launches: doorbell, waiting, and what to do when one goes wrong."""

import functools
import operator
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from daedal.base.handle import Handle
from daedal.base.process_resource import Owned
from daedal.driver.launch.launch import Launch, LaunchTimeout
from daedal.driver.launch.launch_block import Block, Task, launch_block, needs
from daedal.driver.launch.record import RECORD_BYTES, Record, fault_exception
from daedal.driver.memory.allocator import Allocator
from daedal.driver.memory.regions import Region, store_window
from daedal.driver.targets.registers import Registers
from daedal.driver.targets.target import Counting, Predicting, Target
from daedal.errors import (
    CountMismatch,
    DaedalError,
    DeviceClosed,
    DeviceHang,
    LaunchCancelled,
    MemoryFault,
    ProgramError,
)
from daedal.hw.config.core import LAUNCH_QUEUE_DEPTH, Config
from daedal.hw.isa.launch import (
    BLOCK_REGION,
    LAUNCH_ALIGNMENT,
    LEAST_FOLLOWING,
    Counter,
    State,
    launch_block_words,
)
from daedal.hw.isa.program import WORD_BYTES, Program
from daedal.hw.isa.registers import Register

P = ParamSpec("P")
R = TypeVar("R")

_NO_RECORD = bytes(RECORD_BYTES)

LAUNCH_MODULUS = 1 << 32
"""Launch numbers and COMPLETED are 32 bits."""

_LOW, _HIGH, _DOORBELL, _COMPLETED, _INTERRUPT = (
    int(register.value)
    for register in (
        Register.LAUNCH_LOW, Register.LAUNCH_HIGH, Register.DOORBELL, Register.COMPLETED, Register.INTERRUPT,
    )
)  # fmt: skip
"""Looked up once, for they are written or read in every launch."""


class Resident(NamedTuple):
    """A program in device memory: its bytes, and the least arguments that it can be launched with."""

    raw: bytes
    arguments: int


def _regions(given: Sequence[Region] | None) -> list[Region] | None:
    return None if given is None else [Region(*region) for region in given] if given else []


def _in_turn(method: Callable[Concatenate["Launcher", P], R]) -> Callable[Concatenate["Launcher", P], R]:
    """A method that one thread uses at a time."""

    def call(launcher: "Launcher", /, *arguments: P.args, **named: P.kwargs) -> R:
        with launcher.turn:
            if launcher.owned.forked:
                launcher.owned.check()
            return method(launcher, *arguments, **named)

    return functools.update_wrapper(call, method)


class Launcher(Handle):
    """Submits launches to a target and collects how they end.

    As many are with the machine at a time as it can queue; who submits another one waits for the first of them.
    Threads take turns; ``turn`` is the lock, which one thread may take several times.

    Launches behind one that had a fault are submitted again, in their order: the machine has cancelled them before they
    wrote anything. Only those that may read what it was to write end with LaunchCancelled, and those that may read
    what these were to write. A launch that had its fault because its program was damaged in device memory is submitted
    again with a whole one. Whoever resets the device cancels all.
    """

    def __init__(
        self,
        target: Target,
        registers: Registers,
        allocator: Allocator,
        config: Config,
        owned: Owned,
        table_at: Callable[[int], str | None] = lambda address: None,
    ) -> None:
        self.owned, self._table_at = owned, table_at
        self._target, self._registers, self._config = target, registers, config
        self._checked = target.checked if isinstance(target, Predicting) else None
        self._counting = target if isinstance(target, Counting) else None
        self._slots = [
            (
                allocator.allocate(BLOCK_REGION, BLOCK_REGION, what="a launch block"),
                allocator.allocate(RECORD_BYTES, LAUNCH_ALIGNMENT, what="a completion record"),
            )
            for _ in range(LAUNCH_QUEUE_DEPTH)
        ]
        self._programs: dict[int, Resident] = {}
        self._behind: list[tuple[int, int] | None] = [None] * len(self._slots)
        """What follows the block in each slot, if that is known: the program's address, and the block's bytes."""
        self._blocks: list[Block | None] = [None] * len(self._slots)
        """The block last made for each slot: the next one is often of the same arguments."""
        self._window: tuple[list[Region] | None, int] = None, store_window(None, config)
        """What the last launch writes, and the store window for it: the next one often writes the same."""
        self._slot = 0
        self._flying: deque[Launch] = deque()
        self._launch = 0
        self._completed = registers.read(Register.COMPLETED)
        self._stopping = ""
        """Why the machine has to be reset and all launches be cancelled before anything else; empty if it has not.

        Set before the machine and what is known of it are changed, and cleared after that: an interrupt in between
        leaves it.
        """

    @property
    def turn(self) -> AbstractContextManager[Any]:
        """The lock of those who use the launcher."""
        return self.owned.lock

    @property
    def flying(self) -> int:
        """Launches that have not ended, as far as is known."""
        return len(self._flying)

    @property
    def records(self) -> tuple[Region, ...]:
        """Where completion records are written, in turn."""
        return tuple(Region(record, RECORD_BYTES) for _, record in self._slots)

    def record_of(self, slot: int) -> int:
        """Where the completion record of a launch in this slot is written."""
        return self._slots[slot][1]

    def run(self, program: int, arguments: Sequence[int], *, timeout: float | None = None) -> Record:
        """Launch the program at this address and return its completion record; see :meth:`finish`."""
        return self.finish(self.submit(program, arguments), timeout)

    @_in_turn
    def submit(
        self,
        program: int,
        arguments: Sequence[int],
        *,
        reads: Sequence[Region] | None = None,
        writes: Sequence[Region] | None = None,
        ended: Callable[[Record | None], None] | None = None,
    ) -> Launch:
        """Launch the program at this address; it begins while those before it still write.

        It is fenced, so it begins after them, if it reads what one of them writes: if ``reads`` and their ``writes``
        overlap, or either is not known (None). It cannot store outside of the least window of memory that
        has all of ``writes``, and ends in a fault if it tries; without them it may store anywhere. ``ended`` is called
        with the record when the launch has ended, with None if it did not end well. Raises ValueError for arguments
        that do not fit.
        """
        reads, writes = _regions(reads), _regions(writes)
        if self._stopping:
            self._stop(self._stopping)
        number = (self._launch + 1) % LAUNCH_MODULUS
        needed = [launch for launch in self._flying if needs(reads, launch.task)]
        if writes is None or writes != self._window[0]:
            self._window = writes, store_window(writes, self._config)
        block, follows = self._block(program, number, arguments, fence=bool(needed))
        launch = Launch(self, number, Task(program, self._slot, block, follows, reads, writes), ended)
        while any(each.task.slot == self._slot for each in self._flying):  # the first one: slots are taken in turn
            self.wait_for(self._flying[0], None)
        failed = next((each for each in needed if each.failed), None)
        if failed is not None:
            launch.settle(None, _cancelled(launch, _depends(failed)))
            return launch
        self._stopping = "a call was interrupted"
        self._launch, self._slot = number, (self._slot + 1) % len(self._slots)
        self._flying.append(launch)
        try:
            self._start(launch)  # not heard if one before has had a fault: see collect
        except BaseException:
            self.reset()
            raise
        self._stopping = ""
        return launch

    def _block(self, program: int, number: int, arguments: Sequence[int], *, fence: bool) -> tuple[bytes, bytes]:
        """The launch block for the next slot, and what is to follow it."""
        resident, slot, window = self._following(program, arguments), self._slot, self._window[1]
        key = program, arguments, resident.raw, fence, window
        known = self._blocks[slot]
        # Arguments that cannot change are as they were then, if they are the same object.
        if known is not None and type(arguments) is tuple and known.key[1] is arguments and known.key == key:
            return known.of(number), resident.raw
        raw = launch_block(
            self._config, program, self._slots[slot][1], number, arguments, fence=fence,
            follows=resident.raw, least=resident.arguments, window=window,
        )  # fmt: skip
        self._blocks[slot] = Block(key, raw)
        return raw, resident.raw

    def know(self, address: int, program: Program, raw: bytes) -> None:
        """A program that is at this address, and stays there as it is: so copies may follow launch blocks."""
        used = [word.argument for word in program.body if word.argument is not None]
        self._programs[int(address)] = Resident(raw, max([0, *used]) + 1)

    def _following(self, program: int, arguments: Sequence[int]) -> Resident:
        """The program at this address if a copy is to follow the launch block, to be read with it; else no bytes."""
        known = self._programs.get(program)
        if known is None or len(known.raw) < LEAST_FOLLOWING * WORD_BYTES:
            return Resident(b"", 0)
        given = len(arguments) if hasattr(arguments, "__len__") else 0  # launch_block says what is wrong with them
        block_bytes = WORD_BYTES * launch_block_words(max(known.arguments, given))
        return known if block_bytes + len(known.raw) <= BLOCK_REGION else Resident(b"", 0)

    def _start(self, launch: Launch) -> None:
        """Give it to the machine."""
        task, target = launch.task, self._target
        self._write_block(task)
        block, record = self._slots[task.slot]
        target.mem_write(record, _NO_RECORD)
        target.csr_write(_LOW, block & 0xFFFF_FFFF)
        target.csr_write(_HIGH, block >> 32)
        target.csr_write(_DOORBELL, 1)

    def _write_block(self, task: Task) -> None:
        """Write the launch block, with the program behind it, unless that is there already."""
        address, behind = self._slots[task.slot][0], (task.program, len(task.block)) if task.follows else None
        is_there = behind is not None and self._behind[task.slot] == behind
        self._target.mem_write(address, task.block if is_there else task.block + task.follows)
        self._behind[task.slot] = behind

    @_in_turn
    def finish(self, launch: Launch, timeout: float | None = None) -> Record:
        """Wait for the end of a launch and return its completion record.

        Raises the exception that belongs to a fault, with the record as ``.record``; the machine was reset
        then and can be used again. DeviceHang if ``timeout`` (seconds) passes: the launch is stopped, and with it the
        one that is at work; others go on. An interrupt from the keyboard stops all.
        """
        self._check(launch)
        try:
            self._wait_for(launch, timeout)
        except LaunchTimeout:
            raise self._give_up(launch, timeout) from None
        except DeviceClosed:
            raise
        except BaseException:
            self.reset()
            raise
        return launch.result()

    @_in_turn
    def wait_for(self, launch: Launch, timeout: float | None) -> None:
        """Let the machine work until the launch has ended; TimeoutError after so many seconds."""
        self._wait_for(launch, timeout)

    def _wait_for(self, launch: Launch, timeout: float | None) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        if not launch.over:
            self._settle_ended()
        while not launch.over:
            rest = None if end is None else end - time.monotonic()
            if (rest is not None and rest <= 0) or not self._target.wait(rest):
                raise LaunchTimeout(f"launch {launch.number} did not end within {timeout} s")
            self._target.csr_write(_INTERRUPT, 1)
            self._settle_ended()

    def _check(self, launch: object) -> None:
        """Raise TypeError or ValueError for what is no launch of this device."""
        if not isinstance(launch, Launch):
            raise TypeError(f"a launch must be what submit gave, not {launch!r}")
        if launch.launcher is not self:
            raise ValueError(
                f"launch {launch.number} must be one of this device: wait for it on the one it was given to"
            )

    @_in_turn
    def cancel(self, why: str) -> None:
        """All launches that have not ended end with DeviceClosed; the machine is not asked any more."""
        while self._flying:
            launch = self._flying.popleft()
            launch.settle(None, DeviceClosed(f"launch {launch.number} had not ended when {why}: open a new one"))

    @_in_turn
    def wait_all(self) -> None:
        """Let the machine work until all launches have ended."""
        while self._flying:
            self.wait_for(self._flying[-1], None)

    @_in_turn
    def collect(self) -> None:
        """Settle the launches that have ended. What was behind one with a fault is submitted again.

        An interrupt from the keyboard in here stops the machine, so that it and what is known of it agree.
        """
        self._settle_ended()

    def _settle_ended(self) -> None:
        try:
            self._collect()
        except DaedalError:
            raise
        except BaseException:
            self.reset()
            raise

    def _collect(self) -> None:
        if not self._flying:
            return
        if self._stopping:
            self._stop(self._stopping)
            return
        completed = self._target.csr_read(_COMPLETED)
        while completed != self._completed and self._flying:
            self._completed = (self._completed + 1) % LAUNCH_MODULUS
            launch = self._flying[0]
            record, error = self._judge(launch)
            if error is not None:
                self._fault(launch, error)
                return
            launch.settle(record, None)
            self._flying.popleft()

    def _fault(self, launch: Launch, error: DaedalError) -> None:
        """The first launch has ended so: reset the machine, and submit again what can be.

        The machine has cancelled those behind if the launch had a fault; if only its record is wrong, they may have
        begun to write.
        """
        had_fault = error.record is not None and error.record.state is State.FAULTED
        behind = [each for each in list(self._flying)[1:] if had_fault or each.task.can_be_repeated]
        why = _depends(launch)
        if changed := self._mend(launch.task):
            if launch.task.can_be_repeated and not launch.mended:
                launch.mended = True
                self._stop(why, [launch, *behind])
                return
            error = _damaged(launch, changed, error)
        launch.settle(None, error)
        try:
            self._stop(why, _independent(behind, [launch]))
        except DeviceHang as hang:  # the fault says more: memory that does not answer
            error.__cause__ = hang

    def _give_up(self, launch: Launch, timeout: float | None) -> DeviceHang:
        """A launch did not end in time, for which it or the first one is to blame: stop both; the error."""
        status = self._registers.status()
        stopped = [self._flying[0], launch]
        changed = sum(self._mend(each.task) for each in stopped)
        error = DeviceHang(
            f"launch {launch.number} did not end within {timeout} s (status {status}): "
            + ("its program had been damaged in device memory and was written anew: run it again" if changed
               else "allow more time, or look at what it does with a waveform")
        )  # fmt: skip
        launch.settle(None, error)
        others = [each for each in self._flying if each not in stopped and each.task.can_be_repeated]
        self._stop(f"launch {launch.number} did not end in time", _independent(others, stopped))
        return error

    def _mend(self, task: Task) -> int:
        """Write the task's program anew if it has changed in device memory, or its copy behind the launch block; the
        number of bytes that had changed in what the machine executed.
        """
        changed = _differences(task.block + task.follows, self._target, self._slots[task.slot][0])
        resident = self._programs.get(task.program)
        if resident is not None and (own := _differences(resident.raw, self._target, task.program)):
            self._target.mem_write(task.program, resident.raw)
            changed += 0 if task.follows else own
        return changed

    def _judge(self, launch: Launch) -> tuple[Record | None, DaedalError | None]:
        """The record of a launch that has ended, or what went wrong."""
        try:
            raw = self._target.mem_read(launch.record_address, RECORD_BYTES)
            record = Record.decode(raw, self._config, self._checked)
            if record.state is not State.DONE:
                return None, fault_exception(record, self._table_at)
            if record.launch != launch.number:
                return None, DaedalError(
                    f"the completion record must be of launch {launch.number}, not {record.launch}"
                )
            if self._counting is not None:
                _compare(record, self._counting.counted(launch.record_address))
        except DaedalError as error:
            return None, error
        return record, None

    @_in_turn
    def withdraw(self, launches: Sequence[Launch], why: str) -> None:
        """These launches end with LaunchCancelled if they have not ended; others go on, the first anew."""
        mine = [each for each in self._flying if each in launches]
        if mine:
            others = [each for each in self._flying if each not in mine and each.task.can_be_repeated]
            self._stop(why, _independent(others, mine))

    @_in_turn
    def reset(self) -> None:
        """Stop whatever runs; memory stays. Launches that have not ended are cancelled."""
        self._stop("the device was reset")

    def _stop(self, why: str, again: Sequence[Launch] = ()) -> None:
        """Reset the machine, which forgets its launches, and submit some again; all others are cancelled.

        DeviceHang if it does not come out of it: then all are, and the next launch tries once more.
        """
        self._stopping = why
        self._behind = [None] * len(self._slots)
        try:
            self._registers.reset()
            self._completed = self._registers.read(Register.COMPLETED)
            for task in {launch.task.program: launch.task for launch in self._flying}.values():
                self._mend(task)
        except DeviceClosed:
            self.cancel("the device was closed")
            raise
        except BaseException as error:
            self._cancel_others(
                (), "the device did not come out of its reset" if isinstance(error, DeviceHang) else why
            )
            raise
        self._cancel_others(again, why)
        for launch in again:
            self._start(launch)
        self._stopping = ""

    def _cancel_others(self, kept: Sequence[Launch], why: str) -> None:
        for launch in [each for each in self._flying if each not in kept]:
            launch.settle(None, _cancelled(launch, why))
            self._flying.remove(launch)


def _independent(launches: Iterable[Launch], failed: Iterable[Launch]) -> list[Launch]:
    """Those that need nothing of what failed, or of others that do."""
    lost, found = list(failed), list[Launch]()
    for launch in launches:
        (lost if any(launch.task.needs(each.task) for each in lost) else found).append(launch)
    return found


def _differences(raw: bytes, target: Target, address: int) -> int:
    """How many of these bytes are others at this address."""
    found = target.mem_read(address, len(raw))
    return 0 if found == raw else sum(map(operator.ne, found, raw))


def _depends(failed: Launch) -> str:
    return f"it may read what launch {failed.number}, which had a fault, was to write"


def _cancelled(launch: Launch, why: str) -> LaunchCancelled:
    return LaunchCancelled(f"launch {launch.number} was cancelled because {why}: submit it again")


def _damaged(launch: Launch, changed: int, fault: DaedalError) -> DaedalError:
    """The error of a launch whose program was damaged, and which cannot be submitted again by itself."""
    what = f"launch {launch.number} had a fault because {changed} bytes of its program had changed in device memory"
    error: DaedalError
    if launch.mended:
        error = MemoryFault(f"{what}, although it had just been written anew: check the memory")
    else:
        error = ProgramError(
            f"{what}; it was written anew: run it again, with everything that it reads and writes as before"
        )
    error.record, error.__cause__ = fault.record, fault
    return error


def _compare(record: Record, counted: dict[str, int] | None) -> None:
    for name, value in (counted or {}).items():
        own = record.counters[Counter[name]]
        if own != value:
            raise CountMismatch(
                f"counter {name} of launch {record.launch} must be {value}, as counted on the bus, not {own}"
            )
