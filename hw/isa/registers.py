"""The AXI4-Lite register file: 32-bit registers at byte addresses."""

from collections.abc import Mapping

from amaranth.lib import data, enum

IDENTITY = 0x4C454144
"""Value of register IDENTITY: ``DAEL`` in ASCII, little endian."""

REVISION = 2
"""Value of register REVISION: the revision of the programming interface. 2: store windows, checksums of 16 bits."""

REGISTER_ADDRESS_BITS = 8

SYSTEM_IDENTITY = 0x53454144
"""Value of IDENTITY in the page of a system: ``DAES`` in ASCII, little endian."""

PAGE_BYTES = 4096
"""Bytes of a page of a system's registers: page 0 is the system's own, page n + 1 has the registers of tile n."""

MOST_SYSTEM_TILES = 64
"""Tiles of the largest system with one register window: as many as two words have bits."""


class Register(enum.Enum, shape=REGISTER_ADDRESS_BITS):
    """Byte addresses of the registers; ``ACCESS`` says which can be read and written."""

    IDENTITY = 0x00
    """Constant ``IDENTITY``: that this is such a machine."""
    REVISION = 0x04
    """Constant ``REVISION``: the revision of the programming interface."""
    CONFIG_HASH = 0x08
    """``Config.hash`` of this machine; a program for another one does not run."""
    CONTROL = 0x10
    """Reset and interrupt enable, see Control."""
    STATUS = 0x14
    """What the machine does now, see Status."""
    LAUNCH_LOW = 0x18
    """Bits 31 to 0 of the address of the launch block that the next doorbell queues."""
    LAUNCH_HIGH = 0x1C
    """Bits 39 to 32 of that address, in bits 7 to 0."""
    DOORBELL = 0x20
    """A write of any value queues the launch at LAUNCH_HIGH:LAUNCH_LOW. It is dropped, and STATUS.overflow set, if
    the queue is full or the machine is faulted.
    """
    COMPLETED = 0x24
    """Launches that have ended (also by a fault or cancelled), modulo 2**32."""
    INTERRUPT = 0x28
    """Bit 0 is set when a launch ends; writing 1 to it clears it. Where both happen in one cycle it is set, so no end
    of a launch is lost: clear it first, then look at COMPLETED.
    """
    FAULT = 0x2C
    """The Cause of the present fault, 0 if there is none."""


ACCESS: Mapping[Register, str] = {
    Register.IDENTITY: "read",
    Register.REVISION: "read",
    Register.CONFIG_HASH: "read",
    Register.CONTROL: "read, write",
    Register.STATUS: "read",
    Register.LAUNCH_LOW: "read, write",
    Register.LAUNCH_HIGH: "read, write",
    Register.DOORBELL: "write",
    Register.COMPLETED: "read",
    Register.INTERRUPT: "read, write 1 to clear",
    Register.FAULT: "read",
}
"""What the host can do with each register. Reading one that cannot be read gives 0, writing one that cannot be written
does nothing.
"""


class SystemRegister(enum.Enum, shape=REGISTER_ADDRESS_BITS):
    """Byte addresses in page 0 of a system, whose registers can be read only."""

    IDENTITY = 0x00
    """Constant ``SYSTEM_IDENTITY``: that this is such a system."""
    REVISION = 0x04
    """Constant ``REVISION``, that of each tile."""
    CONFIG_HASH = 0x08
    """``Config.hash`` of each tile."""
    TILES = 0x0C
    """How many tiles there are."""
    INTERRUPTS_LOW = 0x10
    """Bit n: tile n raises its interrupt. The system's is raised while any tile's is: clear it in the tile's page."""
    INTERRUPTS_HIGH = 0x14
    """The same of tile n + 32."""


class Control(data.Struct):
    """Register CONTROL."""

    reset: 1
    """Written as 1: drain the memory ports, forget queued launches and clear a fault. Reads as 1 until that is done."""
    interrupt_enable: 1
    """Lets INTERRUPT drive the interrupt pin."""
    mixed: 1
    """Memory loses no time when it turns from reads to writes. Otherwise lines are written a batch at a time, and reads
    wait meanwhile: for DRAM."""
    reserved: 29
    """Write 0."""


class Status(data.Struct):
    """Register STATUS."""

    busy: 1
    """A launch runs or waits."""
    faulted: 1
    """Stopped by a fault, until the next reset; FAULT has the cause."""
    overflow: 1
    """A launch was dropped since the last reset."""
    reserved: 5
    """Reads as 0."""
    queued: 8
    """Launches waiting, not counting the one that runs."""
    padding: 16
    """Reads as 0."""
