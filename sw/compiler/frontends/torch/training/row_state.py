"""What an optimizer keeps for each row of a table, on the device."""

import numpy as np
import torch
from torch import Tensor

from daedal.driver.device import Device
from daedal.driver.memory.allocator import BUFFER_ALIGNMENT, Address
from daedal.runtime.launch_arguments import Buffer


class RowState:
    """A number for each row, float32[N], in the host's memory and, from its first use by a launch, on the device.

    Parameters
    ----------
    host
        The numbers. They are the device's once a launch has changed them, until :meth:`sync`.
    """

    def __init__(self, device: Device, host: Tensor) -> None:
        self._device, self.host = device, host
        self._address: Address | None = None
        self._is_ahead = self._is_there = False

    def buffer(self) -> Buffer:
        """Where it is on the device. OutOfDeviceMemory if there is no room."""
        if self._address is None:
            size = self.host.numel() * 4
            self._address = self._device.allocator.allocate(
                size, BUFFER_ALIGNMENT, mapping=self._device.memory.array_mapping, what="the state of an optimizer"
            )
        if not self._is_there:
            self._device.memory.write(self._address, self.host.numpy().view(np.uint8).data)
            self._is_there = True
        return Buffer(int(self._address), (self.host.numel(),), (4,))

    def go_ahead(self) -> None:
        """A launch has changed it."""
        self._is_ahead = True

    def lose(self) -> bool:
        """A launch that changes it has failed; whether the host has it as it was before."""
        self._is_there = False
        return not self._is_ahead

    def sync(self) -> None:
        """Let the host have what the device has."""
        if self._is_ahead and self._address is not None:
            found = np.empty(self.host.numel(), np.float32)
            self._device.memory.read_into(self._address, found)
            self.host.copy_(torch.from_numpy(found))
            self._is_ahead = False

    def changed(self) -> None:
        """The host's numbers have changed: they count."""
        self._is_there = self._is_ahead = False
