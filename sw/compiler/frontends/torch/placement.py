"""Which operations a user wants on the device: by patterns of names, and within a budget of its memory."""

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from operator import attrgetter

from torch import Tensor, fx

from daedal.compiler.frontends.torch.examples import example_of
from daedal.compiler.frontends.torch.names import name_of
from daedal.compiler.frontends.torch.ops.operation import Operation
from daedal.driver.device import Device
from daedal.driver.memory.layout import row_pitch
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.system.system import System


@dataclass(frozen=True)
class Placement:
    """What a user says of it.

    Attributes
    ----------
    config
        The machine, whose memory tables take whole superblocks of.
    memory_bytes
        Its memory: a table that is larger stays in PyTorch.
    offload
        Patterns as of file names; operations whose names, and whose tables', match none stay in PyTorch. None
        leaves nothing out.
    budget
        Bytes of device memory for tables of the module, which get some in the order of the graph; None sets no limit.
    """

    config: Config
    memory_bytes: int
    offload: tuple[str, ...] | None = None
    budget: int | None = None

    @classmethod
    def read(cls, device: Device | System, offload: object, budget: object) -> "Placement":
        """The same for a device, or all tiles of a system; ValueError for patterns that are no texts, and for a budget
        that is no number of bytes.
        """
        if isinstance(offload, str) or not (offload is None or isinstance(offload, Collection)):
            raise ValueError(f"offload must be a list of patterns, such as ['tables.*'], not {offload!r}")
        if offload is not None and not all(isinstance(each, str) for each in offload):
            raise ValueError(f"offload must be a list of patterns, such as ['tables.*'], not {offload!r}")
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 0):
            raise ValueError(f"budget must be a number of bytes of device memory, not {budget!r}")
        tiles = device.tiles if isinstance(device, System) else (device,)
        memory_bytes = sum(tile.target.memory_bytes for tile in tiles)
        return cls(device.config, memory_bytes, None if offload is None else tuple(offload), budget)

    def ledger(self) -> "Ledger":
        """What decides for one graph."""
        return Ledger(self)


@dataclass
class Ledger:
    """Tables of a graph that have a place on the device."""

    placement: Placement
    taken: dict[object, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    matched: set[str] = field(default_factory=set)

    def why_not(self, operation: Operation) -> str | None:
        """Why an operation stays in PyTorch; None if it has a place."""
        patterns, path = self.placement.offload, name_of(operation.table)
        self.names.append(operation.label)
        if patterns is not None:
            found = [p for p in patterns if any(fnmatchcase(name, p) for name in (operation.name, path) if name)]
            self.matched.update(found)
            if not found:
                return (
                    f"none of offload's patterns, {', '.join(patterns) or 'of which there are none'}, matches its name"
                )
        return None if path is None else self._why_no_room(operation.table, path)

    def check(self) -> None:
        """Raise UnsupportedOperation for a pattern that matches nothing."""
        for pattern in self.placement.offload or ():
            if pattern not in self.matched:
                raise UnsupportedOperation(
                    f"a pattern of offload must match an operation or its table, not {pattern!r}: there are "
                    f"{', '.join(self.names[:5]) or 'none'}" + (" and others" if len(self.names) > 5 else "")
                )

    def _why_no_room(self, node: object, path: str) -> str | None:
        table = _tensor(node)
        if table is None or path in self.taken:
            return None
        placement, size = self.placement, self._bytes(table)
        limit = min(placement.memory_bytes, placement.memory_bytes if placement.budget is None else placement.budget)
        free = limit - (sum(self.taken.values()) if placement.budget is not None else 0)
        if size > free:
            what, way_out = f"budget of {placement.budget} bytes", "give a larger budget"
            if placement.budget is None:
                what, way_out = "device's memory", "open the device with a larger memory_bytes"
            return f"its table takes {size} bytes, and of the {what} {max(free, 0)} are left: {way_out}"
        self.taken[path] = size
        return None

    def _bytes(self, table: Tensor) -> int:
        config, row_bytes = self.placement.config, math.prod(table.shape[1:]) * table.element_size()
        if table.dim() < 2 or not row_bytes:
            return 0
        try:
            pitch = row_pitch(row_bytes, config)
        except ValueError:  # the operation says what is wrong with it
            return 0
        return -(-len(table) * pitch // config.superblock_bytes) * config.superblock_bytes


def _tensor(node: object) -> Tensor | None:
    """The table of a module that a node of a graph stands for, or what is known of it."""
    if not isinstance(node, fx.Node):
        return None
    owner = node.graph.owning_module
    found = example_of(node) if node.op != "get_attr" or owner is None else attrgetter(str(node.target))(owner)
    return found if isinstance(found, Tensor) and all(isinstance(size, int) for size in found.shape) else None
