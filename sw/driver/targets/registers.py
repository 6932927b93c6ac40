"""The machine's registers by name."""

from typing import Any

from daedal.base.handle import Handle
from daedal.driver.targets.target import Target
from daedal.errors import ConfigMismatch, DeviceHang
from daedal.hw.config.core import Config
from daedal.hw.isa.program import pack, unpack
from daedal.hw.isa.registers import IDENTITY, REVISION, Control, Register, Status

RESET_POLLS = 20_000
"""Reads of CONTROL after which a reset that does not end is given up."""


class Registers(Handle):
    """Registers of a target, by name instead of address."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def read(self, register: Register) -> int:
        """The value of ``register``."""
        return self._target.csr_read(register.value)

    def write(self, register: Register, value: int) -> None:
        """Write ``register``."""
        self._target.csr_write(register.value, value)

    def status(self) -> dict[str, int]:
        """The members of STATUS by name."""
        return unpack(Status, self.read(Register.STATUS))

    def set_control(self, **members: Any) -> None:
        """Write CONTROL with these members and what the target's memory wants, the others 0."""
        self.write(Register.CONTROL, pack(Control, {"mixed": int(self._target.mixed), **members}))

    def check(self, config: Config) -> None:
        """Raise ConfigMismatch unless this is a machine of ours with exactly this configuration."""
        found = self.read(Register.IDENTITY), self.read(Register.REVISION)
        if found != (IDENTITY, REVISION):
            raise ConfigMismatch(
                f"the device must identify itself as {IDENTITY:#010x} revision {REVISION}, "
                f"not {found[0]:#010x} revision {found[1]}: rebuild it with this version of Daedal"
            )
        found_hash = self.read(Register.CONFIG_HASH)
        if found_hash != config.hash:
            raise ConfigMismatch(
                f"the device must have configuration {config.name} ({config.hash:#010x}), "
                f"not {found_hash:#010x}: open it with its own configuration, or rebuild it"
            )

    def reset(self) -> None:
        """Stop whatever runs, drain the memory ports and clear a fault; memory stays as it is.

        Raises DeviceHang if the machine does not come out of it.
        """
        self.set_control(reset=1, interrupt_enable=1)
        for _ in range(RESET_POLLS):
            if not unpack(Control, self.read(Register.CONTROL))["reset"]:
                break
        else:
            raise DeviceHang("the device did not come out of reset: its memory does not answer; open it again")
        self.set_control(interrupt_enable=1)
        self.clear_interrupt()

    def clear_interrupt(self) -> None:
        """Take the interrupt back."""
        self.write(Register.INTERRUPT, 1)
