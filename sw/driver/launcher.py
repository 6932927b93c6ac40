"""Launches: launch block, doorbell, waiting, completion record, and what to do when it goes wrong."""

import asyncio
import functools
import operator
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from daedal.driver.allocator import Allocator
from daedal.driver.record import RECORD_BYTES, Record, fault_exception
from daedal.driver.registers import Registers
from daedal.driver.target import Counting, Target
from daedal.errors import CountMismatch, DaedalError, DeviceClosed, DeviceHang, LaunchCancelled
from daedal.hw.config import Config
from daedal.hw.isa.launch import (
    BLOCK_REGION,
    LAUNCH_ALIGNMENT,
    LEAST_FOLLOWING,
    Counter,
    LaunchFlags,
    LaunchWord,
    State,
    launch_block_words,
)
from daedal.hw.isa.program import WORD_BYTES, Program, pack
from daedal.hw.isa.program_words import VALUE_BITS
from daedal.hw.isa.registers import Register

P = ParamSpec("P")
R = TypeVar("R")

LAUNCH_MODULUS = 1 << 32
"""Launch numbers and COMPLETED are 32 bits."""

_PROGRAM, _RECORD, _LAUNCH, _FLAGS, _ARGUMENTS = (
    word.value
    for word in (LaunchWord.PROGRAM, LaunchWord.RECORD, LaunchWord.LAUNCH, LaunchWord.FLAGS, LaunchWord.ARGUMENTS)
)
_LEAST, _MOST = -(1 << (VALUE_BITS - 1)), (1 << VALUE_BITS) - 1
"""Looked up once, for a block is written in every launch."""

POLL_SECONDS = 0.003
"""How long an awaited launch keeps the event loop at a time."""


class LaunchTimeout(TimeoutError):
    """A launch did not end in the time that it was given; it goes on, and nothing is wrong with it."""


class Region(NamedTuple):
    """``size`` bytes of device memory from ``address`` on."""

    address: int
    size: int

    def overlaps(self, other: "Region") -> bool:
        """Whether they have a byte in common."""
        return self.address < other.address + other.size and other.address < self.address + self.size


class Resident(NamedTuple):
    """A program in device memory: its bytes, and the least arguments that it can be launched with."""

    raw: bytes
    arguments: int


@functools.cache
def _flags(*, fence: bool, follows: int, count: int) -> int:
    """``follows``: words of the program that follows, or 0; ``count``: arguments of the block."""
    return pack(
        LaunchFlags, {"fence": fence, "last_word": max(follows - 1, 0), "last_argument": (count - 1) * bool(follows)}
    )


def launch_block(
    config: Config, program: int, record: int, launch: int, arguments: Sequence[int], *, fence: bool = False,
    follows: bytes = b"", least: int = 1,
) -> bytes:  # fmt: skip
    """The bytes of a launch block, which has all of the machine's arguments.

    If the program ``follows``, these are its bytes, and the block has only as many arguments as are given, but at least
    ``least``. Raises ValueError if there are too many arguments or something does not fit, TypeError for what is no
    integer.
    """
    try:
        if not 0 <= operator.index(program) < 1 << config.address_bits:
            raise ValueError(f"the program's address must fit {config.address_bits} bits, not {program!r}")
        if len(arguments) > config.arguments:
            raise ValueError(f"a launch must have at most {config.arguments} arguments, not {len(arguments)}")
        count = max(len(arguments), least) if follows else config.arguments
        words = [0] * launch_block_words(count)
        words[_PROGRAM], words[_RECORD], words[_LAUNCH] = program, record, launch
        words[_FLAGS] = _flags(fence=fence, follows=len(follows) // WORD_BYTES, count=count)
        for position, value in enumerate(arguments):
            if not _LEAST <= value <= _MOST:
                raise ValueError(f"argument {position} must fit {VALUE_BITS} bits, not {value!r}")
            words[_ARGUMENTS + position] = value & _MOST
        return struct.pack(f"<{len(words)}Q", *words)
    except (TypeError, struct.error):
        raise TypeError(
            f"a program's address and a launch's arguments must be integers, not {program!r} and {arguments!r}"
        ) from None


def _regions(given: Sequence[Region] | None) -> list[Region] | None:
    return None if given is None else [Region(*region) for region in given]


class Launch:
    """A launch that was submitted, as a future: it ends after those submitted before it.

    Also works with ``await``. The machine works while somebody waits; a simulated one does so only then.
    """

    def __init__(self, launcher: "Launcher", number: int, record: int, writes: Sequence[Region] | None,
                 ended: Callable[[Record | None], None] | None) -> None:  # fmt: skip
        self.launcher, self._record, self._ended = launcher, record, ended
        self.number, self.writes = number, writes
        self._result: Record | None = None
        self._error: BaseException | None = None

    def __repr__(self) -> str:
        state = "in work" if not self._over else "done" if self._error is None else type(self._error).__name__
        return f"<Launch {self.number}, {state}>"

    @property
    def _over(self) -> bool:
        return self._result is not None or self._error is not None

    @property
    def record_address(self) -> int:
        """Where the machine writes its completion record."""
        return self._record

    def done(self) -> bool:
        """Whether it has ended, in whatever way; does not wait."""
        if not self._over:
            self.launcher.collect()
        return self._over

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for its end; what :meth:`result` would raise, or None."""
        self.launcher.wait_for(self, timeout)
        return self._error

    def result(self, timeout: float | None = None) -> Record:
        """Wait for its end and return its completion record.

        Raises the exception that belongs to a fault, with the record as ``.record``; the machine was reset then and
        can be used again. LaunchCancelled if a launch before it had a fault or the device was reset: it may be
        submitted again. TimeoutError if ``timeout`` seconds pass: the launch goes on, and so it does after an
        interrupt from the keyboard (``Device.reset`` stops it).
        """
        error = self.exception(timeout)
        if error is not None:
            raise error
        assert self._result is not None
        return self._result

    def __await__(self) -> Generator[Any, None, Record]:
        while not self._over:
            try:
                self.launcher.wait_for(self, POLL_SECONDS)
            except TimeoutError:
                yield from asyncio.sleep(0).__await__()
        return self.result()

    def settle(self, record: Record | None, error: BaseException | None) -> None:
        """It has ended: so. For the launcher; only the first time counts."""
        if self._over:
            return
        try:
            if self._ended is not None:
                self._ended(record if error is None else None)
        except Exception as later:
            error = error or later
        self._result, self._error = (record, None) if error is None else (None, error)


def _in_turn(method: Callable[Concatenate["Launcher", P], R]) -> Callable[Concatenate["Launcher", P], R]:
    """A method that one thread uses at a time."""

    def call(launcher: "Launcher", /, *arguments: P.args, **named: P.kwargs) -> R:
        with launcher.turn:
            return method(launcher, *arguments, **named)

    return functools.update_wrapper(call, method)


class Launcher:
    """Submits launches to a target and collects how they end.

    As many are with the machine at a time as it can queue; who submits another one waits for the first of them.
    Threads take turns; ``turn`` is the lock, which one thread may take several times.
    """

    def __init__(self, target: Target, registers: Registers, allocator: Allocator, config: Config) -> None:
        self._target, self._registers, self._config = target, registers, config
        self._counting = target if isinstance(target, Counting) else None
        self._slots = [
            (
                allocator.allocate(BLOCK_REGION, BLOCK_REGION, what="a launch block"),
                allocator.allocate(RECORD_BYTES, LAUNCH_ALIGNMENT, what="a completion record"),
            )
            for _ in range(config.launches)
        ]
        self._programs: dict[int, Resident] = {}
        self._behind: list[tuple[int, int] | None] = [None] * len(self._slots)
        """What follows the block in each slot, if that is known: the program's address, and the block's bytes."""
        self._slot = 0
        self._flying: deque[Launch] = deque()
        self._launch = 0
        self._completed = registers.read(Register.COMPLETED)
        self.turn = threading.RLock()
        self._lost = False
        """The machine did not come out of the last reset."""

    @property
    def flying(self) -> int:
        """Launches that have not ended, as far as is known."""
        return len(self._flying)

    @property
    def records(self) -> tuple[Region, ...]:
        """Where completion records are written, in turn."""
        return tuple(Region(record, RECORD_BYTES) for _, record in self._slots)

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
        overlap, or either is not known (None). ``ended`` is called with the record when the launch has ended, with
        None if it did not end well. Raises ValueError for arguments that do not fit.
        """
        reads, writes = _regions(reads), _regions(writes)
        if self._lost:
            self._reset_machine()
        record_at = self._slots[self._slot][1]
        fence = bool(self._flying) and any(
            reads is None or launch.writes is None or any(a.overlaps(b) for a in reads for b in launch.writes)
            for launch in self._flying
        )
        number = (self._launch + 1) % LAUNCH_MODULUS
        resident = self._following(program, arguments)
        block = launch_block(self._config, program, record_at, number, arguments, fence=fence, follows=resident.raw,
                             least=resident.arguments)  # fmt: skip
        while len(self._flying) == len(self._slots):
            self.wait_for(self._flying[0], None)
        block_at = self._write_block(program, block, resident.raw)
        self._launch, self._slot = number, (self._slot + 1) % len(self._slots)
        launch = Launch(self, number, record_at, writes, ended)
        self._target.mem_write(record_at, bytes(RECORD_BYTES))
        self._flying.append(launch)
        try:
            self._ring(block_at)  # not heard if one before has had a fault: that ends this one too, see collect
        except BaseException:
            self.reset()
            raise
        return launch

    def know(self, address: int, program: Program, raw: bytes) -> None:
        """A program that is at this address, and stays there as it is: so copies may follow launch blocks."""
        used = [word.argument for word in program.body if word.argument is not None]
        self._programs[address] = Resident(raw, max([0, *used]) + 1)

    def _following(self, program: int, arguments: Sequence[int]) -> Resident:
        """The program at this address if a copy is to follow the launch block, to be read with it; else no bytes."""
        known = self._programs.get(program)
        if known is None or len(known.raw) < LEAST_FOLLOWING * WORD_BYTES:
            return Resident(b"", 0)
        given = len(arguments) if hasattr(arguments, "__len__") else 0  # launch_block says what is wrong with them
        block_bytes = WORD_BYTES * launch_block_words(max(known.arguments, given))
        return known if block_bytes + len(known.raw) <= BLOCK_REGION else Resident(b"", 0)

    def _write_block(self, program: int, block: bytes, follows: bytes) -> int:
        """The address to which the block was written, with the program behind it, unless that is there already."""
        address, behind = self._slots[self._slot][0], (program, len(block)) if follows else None
        is_there = behind is not None and self._behind[self._slot] == behind
        self._behind[self._slot] = None  # until it is all written
        self._target.mem_write(address, block if is_there else block + follows)
        self._behind[self._slot] = behind
        return address

    def _ring(self, block: int) -> None:
        registers = self._registers
        registers.write(Register.LAUNCH_LOW, block & 0xFFFF_FFFF)
        registers.write(Register.LAUNCH_HIGH, block >> 32)
        registers.write(Register.DOORBELL, 1)

    @_in_turn
    def finish(self, launch: Launch, timeout: float | None = None) -> Record:
        """Wait for the end of a launch and return its completion record.

        Raises the exception that belongs to a fault, with the record as ``.record``; the machine was reset
        then and can be used again. DeviceHang if ``timeout`` (seconds) passes; the machine is reset. An interrupt from
        the keyboard stops the launch in the same way, and with it all others.
        """
        self._check(launch)
        try:
            self.wait_for(launch, timeout)
        except LaunchTimeout:
            status = self._registers.status()
            self.reset()
            raise DeviceHang(
                f"launch {launch.number} did not end within {timeout} s (status {status}): "
                "allow more time, or look at what it does with a waveform"
            ) from None
        except BaseException:
            self.reset()
            raise
        return launch.result()

    @_in_turn
    def wait_for(self, launch: Launch, timeout: float | None) -> None:
        """Let the machine work until the launch has ended; TimeoutError after so many seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while not launch.done():
            rest = None if end is None else end - time.monotonic()
            if (rest is not None and rest <= 0) or not self._target.wait(rest):
                raise LaunchTimeout(f"launch {launch.number} did not end within {timeout} s")
            self._registers.clear_interrupt()

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
        """Settle the launches that have ended. One with a fault ends all that were submitted after it.

        An interrupt from the keyboard in here stops the machine, so that it and what is known of it agree.
        """
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
        completed = self._registers.read(Register.COMPLETED)
        while completed != self._completed and self._flying:
            self._completed = (self._completed + 1) % LAUNCH_MODULUS
            launch = self._flying[0]
            record, error = self._judge(launch)
            launch.settle(record, error)
            self._flying.popleft()
            if error is not None:
                try:
                    self._stop(f"launch {launch.number} before it had a fault")
                except DeviceHang as hang:  # the fault says more: memory that does not answer
                    error.__cause__ = hang
                return

    def _judge(self, launch: Launch) -> tuple[Record | None, DaedalError | None]:
        """The record of a launch that has ended, or what went wrong."""
        try:
            record = Record.decode(self._target.mem_read(launch.record_address, RECORD_BYTES), self._config)
            if record.state is not State.DONE:
                return None, fault_exception(record)
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
    def reset(self) -> None:
        """Stop whatever runs; memory stays. Launches that have not ended are cancelled."""
        self._stop("the device was reset")

    def _reset_machine(self) -> None:
        """Bring the machine back, now or, if it does not come out of it (DeviceHang), before the next launch."""
        self._lost = True
        self._registers.reset()
        self._lost = False
        self._completed = self._registers.read(Register.COMPLETED)

    def _stop(self, why: str) -> None:
        """Reset the machine, which forgets its launches."""
        stopped = list(self._flying)
        self._flying.clear()
        try:
            self._reset_machine()
        finally:
            for launch in stopped:
                error = LaunchCancelled(f"launch {launch.number} was cancelled because {why}: submit it again")
                launch.settle(None, error)


def _compare(record: Record, counted: dict[str, int] | None) -> None:
    for name, value in (counted or {}).items():
        own = record.counters[Counter[name]]
        if own != value:
            raise CountMismatch(
                f"counter {name} of launch {record.launch} must be {value}, as counted on the bus, not {own}"
            )
