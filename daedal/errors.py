"""Every exception that Daedal raises on purpose, and the one warning.

All exceptions derive from :class:`DaedalError`, so one ``except`` catches what the library reports itself. Those
that stand for an error which PyTorch or Python users already know derive from that built-in class too. A
message gives the offending value and says what to do next.
"""

from enum import Enum
from typing import Protocol

__all__ = [
    "BoundsWarning",
    "BuildFailed",
    "ClockTooSlow",
    "ConfigMismatch",
    "CountMismatch",
    "DaedalError",
    "DesignTooLarge",
    "DeviceClosed",
    "DeviceForked",
    "DeviceHang",
    "FileError",
    "IndexOutOfRange",
    "InvalidConfig",
    "InvalidOffsets",
    "InvalidSystem",
    "LaunchCancelled",
    "LevellingFailed",
    "LinkLost",
    "MemoryFault",
    "OutOfDeviceMemory",
    "PlanMismatch",
    "ProgramError",
    "ReadAfterStore",
    "StaleParameter",
    "ToolchainNotFound",
    "UnknownBoard",
    "UnsupportedOperation",
]


class FaultRecord(Protocol):
    """What an error says of the launch that failed: a completion record (``daedal.driver.launch.record.Record``)."""

    @property
    def launch(self) -> int:
        """The launch's number."""
        ...

    @property
    def state(self) -> Enum:
        """How it ended, a ``State``."""
        ...

    @property
    def cause(self) -> Enum:
        """Why it ended, a ``Cause``."""
        ...

    @property
    def signed_value(self) -> int:
        """The value that was wrong, such as an index."""
        ...

    @property
    def address(self) -> int:
        """The memory address at which something was wrong."""
        ...


class DaedalError(Exception):
    """Base of every error below; the ``daedal`` command prints it as one line and exits with status 1.

    ``record`` is the completion record of the launch that failed, if that is why; ``tile`` is the number of the tile
    of a system on which it was.
    """

    record: FaultRecord | None = None
    tile: int | None = None


class IndexOutOfRange(DaedalError, IndexError):
    """An index lies outside its table.

    Raised when the hardware's bounds check (or the emulator's) stopped a launch; PyTorch raises an
    ``IndexError`` for the same input. The message gives the index in full, its position and the table's rows.
    The outputs of that launch are not handed out; the device stays usable. Correct the indices and
    call again.
    """


class BoundsWarning(UserWarning):
    """Indices lay outside their table, and row 0 was taken in their place.

    Issued, once per launch, for modules that were compiled with ``bounds="warn"``. The message gives the operation, how
    many lookups it were, the first index in full and the table's rows. Correct the indices, or compile with
    ``bounds="fatal"`` to have the launch stopped.
    """


class FileError(DaedalError, ValueError):
    """A file that a user names cannot be read or written, or is not what it should be.

    Raised when the file is read or written. The message gives the file and what is wrong with it. Correct the file, or
    name another one.
    """


class InvalidConfig(DaedalError, ValueError):
    """A configuration file that cannot be read, or that describes no machine.

    Raised when the file is read. The message gives the file, the field, its value and what it may be. Correct the
    file.
    """


class InvalidSystem(DaedalError, ValueError):
    """A system, a plan or a fleet that cannot be: a number of tiles, a memory, a share of bytes, a link.

    Raised before anything is opened or planned, by ``System.open``, ``daedal.plan``, ``daedal.fleet`` and ``Plan``. The
    message gives the option, its value and what it may be. Call again with another value.
    """


class InvalidOffsets(DaedalError, ValueError):
    """The offsets of a bag layout are not a valid list.

    Raised for offsets that do not start at zero, decrease, or point past the indices. The message gives the
    first offending pair. Correct the offsets and call again.
    """


class UnsupportedOperation(DaedalError):
    """A module, dtype, shape or option that Daedal cannot run.

    Raised by the compiler, before anything reaches a device. The message names the node and its reason.
    Change the option it names, or leave that node to PyTorch.
    """


class OutOfDeviceMemory(DaedalError):
    """An allocation does not fit into the device's memory.

    Raised when a table or a buffer is placed. The message gives the bytes asked for and the bytes free. Free
    tables, shrink the model, or open a device with more memory; tables already resident are untouched.
    """


class StaleParameter(DaedalError):
    """A parameter that an optimizer of ``daedal.optim`` updates on a device is not what its next use needs.

    Raised when it was written on the host while the device had later rows, or when the host's rows are to be used and
    the device's cannot be had. The message names the parameter; ``opt.sync()`` brings both together: rows that were
    written on the host stay as they were written, all others are the device's.
    """


class PlanMismatch(DaedalError):
    """A plan of who does what in a system does not belong to the model or to the system.

    Raised when a model is compiled, before anything runs. The message names the table, or what of the system, and both
    values. Make a plan with ``daedal.plan`` for this model and this system.
    """


class ProgramError(DaedalError):
    """Program bytes or assembly text that the machine does not accept.

    Raised for a truncated or altered program, an encoding that does not exist, or a fault of the program's
    own (a framing fault, for instance). The message gives the word or line. Compile or assemble it again.
    """


class ReadAfterStore(ProgramError):
    """A launch reads a byte that it stores, and it is not sure that it does so before.

    Raised by the emulator and the target ``model``, from the completion record of a launch; hardware reads what was
    there before or after, and says nothing. The message gives the address, and the table that is there. Read each row
    before its only store, or do it in two launches.
    """


class ConfigMismatch(DaedalError):
    """A program and a device were made for different hardware configurations.

    Raised before the launch, when the two configuration hashes differ. Compile again with this device, or
    open a device with the configuration that the program was compiled for.
    """


class MemoryFault(DaedalError):
    """The memory answered a transaction with an error, or did not answer at all.

    Raised from the completion record of a launch. The message gives the address and the port. Check that
    every buffer is inside of the device's memory; after a reset the device is usable again.
    """


class LaunchCancelled(DaedalError):
    """A launch was given up before its end: the device was reset, or it reads what a launch with a fault was to write.

    A launch of which it is not known what it reads counts as one that does; all others that were queued behind a fault
    run again by themselves. It has no result, and what it was to write is undefined; nothing is wrong with it. Submit
    it again.
    """


class LinkLost(DaedalError, ConnectionError):
    """The link to a board does not answer, or loses so much that an access did not get through after many attempts.

    Raised by whatever used the device. What a frame would have written is there whole or not at all. The message names
    the port or address and what to check. Open the device again; it is in the state in which the board is.
    """


class LevellingFailed(DaedalError):
    """A board's DRAM does not read back what was written, with no setting of its delays.

    Raised when the device is opened. The message names the lane and what was tried. Check the board's power, and that
    the bitstream is for this very board.
    """


class DeviceHang(DaedalError):
    """A launch made no progress for the watchdog's number of cycles, or ran past the host's time limit.

    The message names the queue or unit that blocked. Reset the device (or open it again); if the program came
    from the compiler, this is a defect of Daedal's and worth a report with the program attached.
    """


class CountMismatch(DaedalError):
    """A machine's counters and those of the simulation around it disagree.

    A defect of one of them, and worth a report with the program attached.
    """


class DeviceClosed(DaedalError):
    """A device, or something that lives on it, was used after the device had been closed.

    Open a new device and compile for it; keep the work inside of the ``with`` block.
    """


class DeviceForked(DaedalError):
    """A device, or something that lives on it, was used in a process that was forked from the one that opened it.

    Raised by every use but ``close``, which does nothing there; the device goes on in the process that opened it. Open
    a device in the forked process (in a worker of a ``DataLoader``: in its ``worker_init_fn``), or have processes
    spawned instead of forked.
    """


class ToolchainNotFound(DaedalError):
    """A tool that a build needs (Verilator, a C++ compiler, make, perl) is missing or too old.

    The message names the tool and the package that provides it. Install it and try again; builds that
    succeeded earlier stay cached.
    """


class UnknownBoard(DaedalError, ValueError):
    """A board that Daedal has no description of.

    The message names those there are; docs/boards.md says how to add one.
    """


class BuildFailed(DaedalError):
    """A tool that makes a board's configuration file stopped with an error, or took too long.

    The message has what the tool said and where its log is. No configuration file was written.
    """


class DesignTooLarge(DaedalError):
    """A core and the system around it need more than the board's FPGA has.

    The message gives what there is too much of, and the largest units. Choose a smaller configuration.
    """


class ClockTooSlow(DaedalError):
    """A design was placed and routed, but a clock does not reach what the board needs.

    The message gives the clocks and the slowest paths. Lower the core's clock, start the placement elsewhere, or choose
    a smaller configuration. The report was written, a configuration file was not.
    """
