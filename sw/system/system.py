"""A system: several machines, each with its own memory, that share nothing and work side by side."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from typing import Any, Self, SupportsIndex

from daedal.base.messages import shown
from daedal.base.opened import Opened
from daedal.base.process_resource import Owned
from daedal.driver.device import MEMORY_BYTES, Device
from daedal.driver.tables.table_sources import Source, TableCheck
from daedal.driver.tables.table_store import Table
from daedal.driver.targets.target_registry import TARGETS
from daedal.errors import DaedalError, DeviceClosed, InvalidSystem, UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.system.plan import MOST_TILES


class System(Opened):
    """Tiles, each a core with its own memory. Make one with :meth:`open`; use it in a ``with`` block or call
    :meth:`close`.

    It is a ``device`` for ``daedal.compile`` and ``torch.compile``: each tile has the tables, or parts of them, that a
    plan gives it (``daedal.plan``). Its tiles are devices of their own as well. Calls take turns if they come from
    several threads; in a call, each tile with work has a thread.

    Parameters
    ----------
    tiles
        The machines, all of one configuration.
    memory
        The memory model of each.

    InvalidSystem for no tiles, and for several configurations.
    """

    def __init__(self, tiles: Sequence[Device], memory: str) -> None:
        if not tiles or not all(isinstance(tile, Device) for tile in tiles):
            raise InvalidSystem(f"tiles must be one device or more, not {shown(tiles)}")
        if len({tile.config.hash for tile in tiles}) > 1:
            names = ", ".join(sorted({tile.config.name for tile in tiles}))
            raise InvalidSystem(f"tiles must be of one configuration, not of {names}")
        self._tiles, self._memory = tuple(tiles), memory
        self._owned = Owned("the system")
        self._threads = ThreadPoolExecutor(2 * len(tiles), thread_name_prefix="daedal-tile")

    @classmethod
    def open(
        cls,
        target: str = "verilator",
        config: str | Config = "ddr3",
        memory: str = "ideal",
        *,
        tiles: int,
        memory_bytes: int = MEMORY_BYTES,
        table_check: TableCheck | None = None,
    ) -> Self:
        """Start ``tiles`` machines that run on this computer; all else is as for ``Device.open``, for each of them.

        ``memory_bytes`` are those of each tile. Raises InvalidSystem for an option that does not exist and for
        another number of tiles, and what ``Device.open`` raises.
        """
        if isinstance(tiles, bool) or not isinstance(tiles, SupportsIndex):
            raise InvalidSystem(f"tiles must be a whole number, not {tiles!r}")
        if not 1 <= tiles.__index__() <= MOST_TILES:
            raise InvalidSystem(f"tiles must be from 1 to {MOST_TILES}, not {tiles!r}")
        if not isinstance(target, str) or target not in TARGETS:
            raise InvalidSystem(
                f"target of a system must be one of {', '.join(TARGETS)}, of which there are as many as are wanted, "
                f"not {target!r}"
            )
        opened: list[Device] = []
        try:
            for _ in range(tiles.__index__()):
                opened.append(Device.open(target, config, memory, memory_bytes=memory_bytes, table_check=table_check))
            return cls(opened, memory)
        except BaseException as error:
            for device in opened:
                device.close()
            if isinstance(error, ValueError) and not isinstance(error, DaedalError):
                raise InvalidSystem(str(error)) from error
            raise

    def close(self) -> None:
        """Stop all tiles; may be called again, by any thread at any time. Calls in work end with DeviceClosed."""
        for tile in self._tiles:
            tile.close()
        if not self._owned.forked:
            self._threads.shutdown(wait=False)

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{sum(len(tile.tables) for tile in self._tiles)} tables"
        return f"<System of {len(self._tiles)} × {self.config.name} {self.config.hash:#010x}, {state}>"

    @property
    def closed(self) -> bool:
        """Whether the system, or one of its tiles, was closed."""
        return any(tile.closed for tile in self._tiles)

    @property
    def tiles(self) -> tuple[Device, ...]:
        """The machines."""
        return self._tiles

    @property
    def config(self) -> Config:
        """The configuration of each tile."""
        return self._tiles[0].config

    @property
    def memory(self) -> str:
        """The memory model of each tile."""
        return self._memory

    @property
    def turn(self) -> AbstractContextManager[Any]:
        """To be held while a call prepares, launches and waits."""
        return self._owned.lock

    def check_open(self) -> None:
        """Raise DeviceClosed if it, or one of its tiles, was closed, DeviceForked in a forked process."""
        for number, tile in enumerate(self._tiles):
            if tile.closed:
                raise DeviceClosed(f"tile {number} of the system is closed: open a new system and compile for it")
            _ = tile.target

    @property
    def tables(self) -> Mapping[str, Table]:
        """The resident tables, and parts of tables, by number of the tile and name, as ``"0:bags.0.weight"``."""
        self.check_open()
        return {f"{n}:{name}": table for n, tile in enumerate(self._tiles) for name, table in tile.tables.items()}

    @property
    def free_bytes(self) -> int:
        """Bytes of all tiles' memories that are not in use."""
        self.check_open()
        return sum(tile.free_bytes for tile in self._tiles)

    @property
    def table_uploads(self) -> int:
        """How often a table, or a part of one, was uploaded so far."""
        return sum(tile.table_uploads for tile in self._tiles)

    def table_changed(self, tensor: Source) -> None:
        """The content of a tensor or array has changed, on all tiles; see ``Device.table_changed``."""
        self.check_open()
        for tile in self._tiles:
            tile.table_changed(tensor)

    def reset(self) -> None:
        """Stop whatever runs on all tiles; tables and programs stay. Launches that have not ended are cancelled."""
        self.check_open()
        for tile in self._tiles:
            tile.reset()

    def in_threads(self, works: Sequence[Callable[[], None]]) -> Sequence[BaseException | None]:
        """Run these side by side, and wait for all; what each of them raised."""
        if len(works) == 1 or self.closed or self._owned.forked:
            return [_raised(work) for work in works]
        futures = [self._threads.submit(work) for work in works]
        wait(futures)
        return [future.exception() for future in futures]


def _raised(work: Callable[[], None]) -> BaseException | None:
    try:
        work()
    except Exception as error:
        return error
    return None


def check_device(device: object) -> None:
    """Raise UnsupportedOperation for what is no device, and for a system: what else is done for one is for a tile."""
    if isinstance(device, Device):
        return
    way_out = ": a System takes PyTorch modules only, so give one of its tiles" if isinstance(device, System) else ""
    raise UnsupportedOperation(f"device must be what daedal.Device.open gives, not {shown(device)}{way_out}")
