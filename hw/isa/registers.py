"""The AXI4-Lite register file: 32-bit registers at byte addresses."""

from amaranth.lib import data, enum

IDENTITY = 0x4C454144
"""Value of register IDENTITY: ``DAEL`` in ASCII, little endian."""

REVISION = 1
"""Value of register REVISION: the revision of the programming interface."""

REGISTER_ADDRESS_BITS = 8


class Register(enum.Enum, shape=REGISTER_ADDRESS_BITS):
    """Byte addresses of the registers.

    DOORBELL: a write queues a launch whose block is at LAUNCH_HIGH:LAUNCH_LOW; it is dropped, and
    STATUS.overflow set, if the queue is full or the machine is faulted. COMPLETED counts launches that have
    ended (also by a fault or cancelled), modulo 2**32. INTERRUPT: bit 0 is set when a launch ends; writing
    1 clears it. FAULT: the Cause of the present fault.
    """

    IDENTITY = 0x00
    REVISION = 0x04
    CONFIG_HASH = 0x08
    CONTROL = 0x10
    STATUS = 0x14
    LAUNCH_LOW = 0x18
    LAUNCH_HIGH = 0x1C
    DOORBELL = 0x20
    COMPLETED = 0x24
    INTERRUPT = 0x28
    FAULT = 0x2C


class Control(data.Struct):
    """Register CONTROL. ``reset`` written as 1 drains the memory ports, forgets queued launches and clears
    a fault.

    It reads as 1 until that is done. ``interrupt_enable`` lets INTERRUPT drive the interrupt pin.
    """

    reset: 1
    interrupt_enable: 1
    reserved: 30


class Status(data.Struct):
    """Register STATUS. ``queued``: launches waiting, not counting the one that runs."""

    busy: 1
    faulted: 1
    overflow: 1
    reserved: 5
    queued: 8
    padding: 16
