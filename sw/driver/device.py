"""A device: one machine with its memory, its resident tables and programs, and its launches."""

import atexit
import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self, SupportsIndex
from weakref import WeakSet

from daedal.base.opened import Opened
from daedal.base.process_resource import Owned
from daedal.driver.launch.launch import Launch
from daedal.driver.launch.launcher import Launcher
from daedal.driver.launch.record import Record
from daedal.driver.memory.allocator import Address, Allocator
from daedal.driver.memory.arena import Arena
from daedal.driver.memory.device_memory import DeviceMemory
from daedal.driver.memory.regions import Region
from daedal.driver.tables.quantised import Form
from daedal.driver.tables.table_sources import TABLE_CHECKS, Source, TableCheck
from daedal.driver.tables.table_store import Table, TableStore, Use
from daedal.driver.tables.table_watch import Watch
from daedal.driver.targets.registers import Registers
from daedal.driver.targets.target import Target
from daedal.driver.targets.target_registry import TARGETS, open_target
from daedal.errors import ConfigMismatch, DeviceClosed, StaleParameter, UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.hw.isa.launch import LAUNCH_ALIGNMENT
from daedal.hw.isa.program import Program

MEMORY_BYTES = 256 << 20
"""Device memory of a simulated or emulated machine unless told otherwise."""

FIRST_ADDRESS = 4096
"""Memory below this address is never handed out: a forgotten address does not hit anything."""


class Device(Opened):
    """A machine to run on. Make one with :meth:`open`; use it in a ``with`` block or call :meth:`close`.

    Calls of executables, and launches, take turns if they come from several threads. It may be closed by any thread at
    any time. All else (the methods for tables and memory) is for one thread at a time. A forked process cannot use it.
    """

    def __init__(self, target: Target, config: Config, table_check: TableCheck = "contents") -> None:
        self._config, self._owned = config, Owned("the device")
        self._open: Target | None = target
        registers = Registers(target)
        registers.check(config)
        registers.reset()
        superblock = config.superblock_bytes
        self._memory = DeviceMemory(target, config)
        self._allocator = Allocator(FIRST_ADDRESS, target.memory_bytes // superblock * superblock, config)
        self._tables = TableStore(config, self._allocator, self._write_table, table_check)
        self._launcher = Launcher(target, registers, self._allocator, config, self._owned, self._tables.name_at)
        self._allocator.reclaim = self._make_room
        self._programs: dict[bytes, Address] = {}
        self._uneven: list[Table] = []
        """Tables with copies into the first of which a launch may have written."""
        _devices.add(self)

    @classmethod
    def open(
        cls,
        target: str = "verilator",
        config: str | Config = "ddr3",
        memory: str = "ideal",
        *,
        memory_bytes: int = MEMORY_BYTES,
        wave: str | None = None,
        board: str | None = None,
        table_check: TableCheck | None = None,
    ) -> Self:
        """Start a machine.

        Parameters
        ----------
        target
            ``"verilator"`` for the RTL, ``"emulator"`` for the golden model, ``"model"`` for it with predicted cycles,
            ``"uart:DEVICE[@BAUD]"`` and ``"etherbone:HOST[:PORT]"`` for a board, ``"board-sim"`` for a board's design
            under Verilator.
        config
            A configuration, or the name of a preset.
        memory
            Memory model and options of a simulated machine, as ``"ideal:latency=200,stall=0.1,seed=3"`` or
            ``"litedram-ddr3-x16"``; see docs/machine/memory.md.
        memory_bytes
            Size of the device's memory, rounded down to whole superblocks; boards have what they have.
        wave
            File for a waveform (VCD) of everything the RTL does.
        board
            Name of the board, or the description (a ``.json`` file) from the build of its bitstream.
        table_check
            How launches see that a table has changed on the host. ``"contents"``: its bytes are compared with those
            that were uploaded, 1 ms for 10 MB, which finds every change. ``"versions"``: what PyTorch counts of
            changes, steps of optimizers and calls of :meth:`table_changed` count, and what was written past PyTorch
            (``tensor.data``, NumPy arrays that share the memory) is not seen; NumPy arrays and inference tensors, of
            which nothing is counted, are compared all the same. ``"shapes"``, for targets ``emulator`` and ``model``:
            tables have their places and no content, and ``memory_bytes`` may be more than the host has; cycles are as
            ever, as they depend on no content of a module's tables, and results mean nothing. Left out, it is
            ``"contents"`` for what is simulated and ``"versions"`` for boards.

        Raises ValueError for an option that does not exist, ConfigMismatch for a machine with another
        configuration or bitstream, ToolchainNotFound if the model has to be built and cannot be, LinkLost if a board
        does not answer, LevellingFailed if its DRAM does not work.
        """
        shape = Config.preset(config) if isinstance(config, str) else config
        if not isinstance(shape, Config):
            raise ValueError(f"config must be a Config or the name of one, not {config!r}")
        if not isinstance(memory, str):
            raise ValueError(f"memory must be a memory model as text, such as 'ideal', not {memory!r}")
        is_simulated = target in TARGETS or target == "board-sim"
        check = table_check or ("contents" if is_simulated else "versions")
        if check not in TABLE_CHECKS:
            raise ValueError(f"table_check must be one of {', '.join(TABLE_CHECKS)}, not {table_check!r}")
        least, most = max(1 << 16, 2 * shape.superblock_bytes), 1 << shape.place_bits
        if isinstance(memory_bytes, bool) or not isinstance(memory_bytes, SupportsIndex):
            raise ValueError(f"memory_bytes must be a whole number, not {memory_bytes!r}")
        memory_bytes = memory_bytes.__index__()
        if not least <= memory_bytes <= most:
            raise ValueError(f"memory_bytes must be from {least} to {most}, not {memory_bytes!r}")
        memory_bytes -= memory_bytes % shape.superblock_bytes
        opened = open_target(target, shape, memory=memory, memory_bytes=memory_bytes, wave=wave, board=board,
                             sparse=check == "shapes")  # fmt: skip
        try:
            return cls(opened, shape, check)
        except BaseException:
            opened.close()
            raise

    def close(self) -> None:
        """Stop the machine; tables, programs and everything else on it are gone. May be called again.

        Whatever other threads do with it at that time, or wait for, ends with DeviceClosed before this returns. In a
        forked process nothing happens to the machine.
        """
        opened, self._open = self._open, None
        if opened is not None and not self._owned.forked:
            opened.close()  # so that nobody waits in there any more
            self._launcher.cancel("the device was closed")

    def leave(self) -> None:
        """What :meth:`close` does, but for launches of others, whose threads may never get to their ends."""
        opened, self._open = self._open, None
        if opened is not None and not self._owned.forked:
            opened.close()

    def check_open(self) -> None:
        """Raise DeviceClosed if it was closed, DeviceForked in a forked process."""
        _ = self.target

    def __repr__(self) -> str:
        if self._owned.forked:
            state = "of another process"
        else:
            state = "closed" if self._open is None else f"{len(self._tables)} tables"
        return f"<Device {self._config.name} {self._config.hash:#010x}, {state}>"

    @property
    def closed(self) -> bool:
        """Whether the device was closed."""
        return self._open is None

    @property
    def config(self) -> Config:
        """The machine's configuration."""
        return self._config

    @property
    def turn(self) -> AbstractContextManager[Any]:
        """To be held while a call prepares, launches and waits, so that calls of other threads come before or after."""
        return self._launcher.turn

    @property
    def target(self) -> Target:
        """The five primitives, which know memory addresses only.

        Raises DeviceClosed after :meth:`close`, DeviceForked in a forked process.
        """
        if not self._owned.usable:
            self._owned.check()
        opened = self._open
        if opened is None:
            raise DeviceClosed("the device is closed: open a new one and compile for it")
        return opened

    @property
    def memory(self) -> DeviceMemory:
        """Device memory at the addresses that tables, buffers and programs have."""
        _ = self.target
        return self._memory

    @property
    def allocator(self) -> Allocator:
        """What hands out device memory."""
        return self._allocator

    @property
    def tables(self) -> Mapping[str, Table]:
        """The resident tables by name."""
        _ = self.target
        return self._tables

    @property
    def has_contents(self) -> bool:
        """Whether its tables have the contents of their sources, and not their places alone."""
        return self._tables.has_contents

    @property
    def free_bytes(self) -> int:
        """Bytes of device memory that are not in use."""
        _ = self.target
        return self._allocator.free_bytes

    @property
    def flying(self) -> int:
        """Launches that were submitted and have not ended, as far as is known."""
        return self._launcher.flying

    @property
    def records(self) -> tuple[Region, ...]:
        """The memory into which the machine writes its completion records."""
        return self._launcher.records

    @property
    def table_uploads(self) -> int:
        """How often a table was uploaded so far."""
        _ = self.target
        return self._tables.uploads

    @property
    def bytes_up(self) -> int:
        """Bytes of tables and buffers that were written to the device's memory so far."""
        return self._memory.bytes_up

    @property
    def bytes_down(self) -> int:
        """Bytes of tables and results that were read from the device's memory so far."""
        return self._memory.bytes_down

    def bind_table(
        self,
        name: str,
        source: Source,
        *,
        mapping: int | None = None,
        use: Use = Use.HELD,
        form: Form | None = None,
    ) -> Table:
        """Make a 2-D torch tensor or NumPy array resident; see :meth:`TableStore.bind`.

        The table stays until it is dropped or its source is gone. With another ``use`` its memory may be given to
        others, unless this is in :meth:`preparing`.
        """
        _ = self.target
        return self._tables.bind(name, source, mapping=mapping, use=use, form=form)

    def find_tables(self, sources: Iterable[Source]) -> list[Table | None]:
        """The tables of tensors or arrays with their contents as they are now; None for one that is not resident."""
        _ = self.target
        return list(map(self._tables.find, sources))

    def watch_tables(self, sources: Sequence[Source]) -> Watch | None:
        """The tables of these tensors, which were just found, to be looked at together; None if they cannot be."""
        _ = self.target
        return self._tables.watch(sources)

    def are_current(self, watch: Watch) -> bool:
        """Whether these tables are all there, as they were, with the contents of their tensors as they are now."""
        return self._tables.are_current(watch)

    def preparing(self) -> AbstractContextManager[None]:
        """To be held from the first table that is asked for to the launch that needs it: tables stay meanwhile."""
        return self._tables.preparing()

    def table_changed(self, tensor: Source) -> None:
        """The content of a tensor or array has changed: the next launch uploads the tables in its memory again.

        These are the tables of all tensors that share its storage, or of those that share memory with an array.
        Needed with ``table_check="versions"``, after writing past PyTorch. Raises TypeError for what is neither,
        ValueError for a tensor that is not dense or not on the CPU.
        """
        _ = self.target
        self._tables.changed(tensor)

    def table_ahead(self, tensor: Source, ahead: Callable[[], bool]) -> None:
        """Launches have changed the table of a tensor, which is resident: its rows are those that count while
        ``ahead``, which each use asks, says so.

        UnsupportedOperation if tables have no content (``table_check="shapes"``).
        """
        if not self._tables.has_contents:
            raise UnsupportedOperation(
                "table_check of a device whose launches change tables must be 'contents' or 'versions', not 'shapes'"
            )
        self._tables.go_ahead(tensor, ahead)

    def table_met(self, tensor: Source) -> None:
        """A tensor whose table was ahead has got the table's rows."""
        self._tables.meet(tensor)

    def drop_table(self, name: str) -> None:
        """Give back the memory of the table ``name``; KeyError if there is none. Waits for launches in work.

        StaleParameter if it has rows that an optimizer has changed and the host does not have.
        """
        _ = self.target
        if self._tables.is_ahead(name):
            raise StaleParameter(f"table {name!r} has rows that the host does not have: call opt.sync() first")
        self._launcher.wait_all()
        self._tables.drop(name)

    def _make_room(self) -> bool:
        """Give back what launches in work held, tables of sources that are gone, or one that was used long ago.

        Modules and what is compiled of them hang together in cycles: garbage is looked for last, as that takes long.
        """
        before = self._allocator.free_bytes
        self._launcher.wait_all()
        if self._allocator.free_bytes > before or self._tables.drop_dead() or self._tables.evict():
            return True
        gc.collect()
        return self._tables.drop_dead()

    def _write_table(self, address: int, data: memoryview) -> None:
        """Launches in work may still read what was there before."""
        self._launcher.wait_all()
        self._memory.write(address, data)

    def load_program(self, raw: bytes) -> int:
        """The address of this program in device memory, where it stays.

        Raises ProgramError for bytes that are no whole program, ConfigMismatch for one of another machine.
        """
        target = self.target
        raw = bytes(raw)
        if raw not in self._programs:
            program = Program.from_bytes(raw)
            found = program.config_hash
            if found != self._config.hash:
                raise ConfigMismatch(
                    f"the program must be for configuration {self._config.name} ({self._config.hash:#010x}), as the "
                    f"device is, not for {found:#010x}: compile it for this device"
                )
            address = self._allocator.allocate(len(raw), LAUNCH_ALIGNMENT, what="a program")
            target.mem_write(address, raw)
            self._launcher.know(address, program, raw)
            self._programs[raw] = address
        return self._programs[raw]

    def arena(self) -> Arena:
        """Buffers for one run, to be used as ``with device.arena() as arena``."""
        return Arena(self.memory, self._allocator, self._config)

    def launch(self, program: int, arguments: Sequence[int] = (), *, timeout: float | None = None) -> Record:
        """Run the program at this address and wait for its end; see :meth:`Launcher.finish`."""
        _ = self.target
        return self._launcher.finish(self.submit(program, arguments), timeout)

    def submit(
        self,
        program: int,
        arguments: Sequence[int] = (),
        *,
        reads: Sequence[Region] | None = None,
        writes: Sequence[Region] | None = None,
        ended: Callable[[Record | None], None] | None = None,
    ) -> Launch:
        """Run the program at this address, without waiting for its end: a future; see :meth:`Launcher.submit`.

        Launches run and end in the order in which they were submitted, but one begins to read while the one before it
        still works. Give ``reads`` and ``writes``, the memory that the program reads and writes: a launch for which
        one of them is missing waits until those before it are over, as does one that reads what they write. With
        ``writes`` it cannot store outside of the window of memory from the first to the last of them. That
        memory must not be given back or changed before the launch has ended.

        A program may write a resident table. If that has copies, no launch begins before they are equal again.
        """
        _ = self.target
        with self._launcher.turn:
            if self._uneven:
                self._launcher.wait_all()
                self._even_out()
            self._uneven = self._tables.copied(writes)
            if self._uneven:
                ended = self._evened_before(ended)
            return self._launcher.submit(program, arguments, reads=reads, writes=writes, ended=ended)

    def _evened_before(self, ended: Callable[[Record | None], None] | None) -> Callable[[Record | None], None]:
        def settle(record: Record | None) -> None:
            self._even_out()
            if ended is not None:
                ended(record)

        return settle

    def _even_out(self) -> None:
        """Make the copies of tables equal again that a launch may have written."""
        for table in self._uneven if self._open is not None else ():
            self._memory.even_out(table.address, table.rows * table.pitch)
        self._uneven = []

    def finish(self, launch: Launch, timeout: float | None = None) -> Record:
        """Wait for a launch; unlike its ``result``, an interrupt or ``timeout`` stops it: see ``Launcher.finish``."""
        _ = self.target
        return self._launcher.finish(launch, timeout)

    def withdraw(self, launches: Sequence[Launch], why: str) -> None:
        """Cancel launches that have not ended, for this reason; see ``Launcher.withdraw``."""
        _ = self.target
        self._launcher.withdraw(launches, why)

    def run(self, raw: bytes, arguments: Sequence[int] = ()) -> Record:
        """Load a program, if it is not resident, and launch it."""
        return self.launch(self.load_program(raw), arguments)

    def reset(self) -> None:
        """Stop whatever runs; tables and programs stay. Launches that have not ended are cancelled."""
        _ = self.target
        self._launcher.reset()


_devices: "WeakSet[Device]" = WeakSet()


@atexit.register
def _close_all() -> None:
    """Threads that Python leaves behind may still be at work in a machine that is about to go."""
    for device in list(_devices):
        device.leave()
