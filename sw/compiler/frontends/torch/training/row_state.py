"""What an optimizer keeps of a table, on the device."""

import numpy as np
import torch
from torch import Tensor

from daedal.driver.device import Device
from daedal.driver.memory.allocator import TABLE_ALIGNMENT, Address
from daedal.driver.memory.layout import row_mapping, row_pitch
from daedal.runtime.launch_arguments import Buffer


class RowState:
    """What belongs to a table's rows, in the host's memory and, from its first use by a launch, on the device.

    Parameters
    ----------
    host
        A number for each row, float32[N], or as many as the row has, float32[N, D]. They are the
        device's once a launch has changed them, until :meth:`sync`.
    name
        What the optimizer calls it.
    """

    def __init__(self, device: Device, host: Tensor, name: str) -> None:
        self._device, self.host, self.name = device, host, name
        self._address: Address | None = None
        self._is_ahead = self._is_there = False

    def buffer(self) -> Buffer:
        """Where it is on the device. OutOfDeviceMemory if there is no room."""
        device, host = self._device, self.host
        if self._address is None:
            mapping = device.memory.array_mapping if host.dim() == 1 else row_mapping(self._pitch, device.config)
            self._address = device.allocator.allocate(
                len(host) * self._pitch, TABLE_ALIGNMENT, mapping=mapping, what="the state of an optimizer"
            )
        if not self._is_there:
            rows = np.zeros((len(host), self._pitch // 4), np.float32)
            rows[:, : self._width] = host.reshape(len(host), -1).numpy()
            device.memory.write(self._address, rows.reshape(-1).view(np.uint8).data)
            self._is_there = True
        return Buffer(int(self._address), tuple(host.shape), (self._pitch, 4)[-host.dim() :])

    @property
    def _width(self) -> int:
        return self.host.shape[1] if self.host.dim() == 2 else 1

    @property
    def _pitch(self) -> int:
        return row_pitch(4 * self._width, self._device.config) if self.host.dim() == 2 else 4

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
            found = np.empty((len(self.host), self._pitch // 4), np.float32)
            self._device.memory.read_into(self._address, found)
            self.host.copy_(torch.from_numpy(found[:, : self._width]).reshape(self.host.shape))
            self._is_ahead = False

    def changed(self) -> None:
        """The host's numbers have changed: they count."""
        self._is_there = self._is_ahead = False
