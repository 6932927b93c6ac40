"""Tables that stay in device memory, and which of them go when there is no room."""

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.base.handle import Handle
from daedal.driver.memory.allocator import TABLE_ALIGNMENT, Allocator
from daedal.driver.memory.layout import row_pitch, table_mapping
from daedal.driver.memory.regions import Region
from daedal.driver.tables.quantised import Form
from daedal.driver.tables.table_sources import (
    Origin,
    Place,
    Source,
    TableCheck,
    array_of,
    array_type,
    memory_of,
    place_of,
)
from daedal.driver.tables.table_watch import Watch
from daedal.errors import StaleParameter
from daedal.hw.config.core import Config
from daedal.hw.isa.address_mapping import COPIED, PLAIN, class_of, in_class
from daedal.hw.isa.elements import Element

UPLOAD_CHUNK = 1 << 24
"""Most bytes of padded rows that are made at a time."""


@dataclass(frozen=True)
class Table:
    """A table in device memory: ``rows`` rows of ``dim`` elements of type ``dtype``, ``pitch`` bytes apart.

    Rows have the bytes that they have on the host, whatever the type, and zeros up to the pitch. ``mapping`` is the
    table's mapping class, which is in the highest bits of ``address`` as well.
    """

    address: int
    rows: int
    dim: int
    pitch: int
    dtype: str
    mapping: int = PLAIN

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, without those up to the pitch."""
        return self.dim * array_type(self.dtype).itemsize

    def made_of(self, element: Element) -> "Table":
        """The same rows as a program has them that copies them whatever they are, the last element with padding."""
        return replace(self, dim=-(-self.row_bytes // element.bytes), dtype=element.dtype)


class Use(enum.IntEnum):
    """What a table is to those who asked for it: when there is no room, the lowest goes first."""

    INPUT = 0
    PARAMETER = 1
    HELD = 2
    """Somebody has its address: it stays until it is dropped or its source is gone."""


def _in_form(place: Place, form: Form | None) -> Place:
    """What tells a source in this form from the same memory in another one."""
    return place if form is None else (*place, form)


@dataclass
class _Resident:
    """A table, where its content came from, and who used it when."""

    table: Table
    origin: Origin
    use: Use
    used: int


class _Preparing:
    """A launch is being prepared; half of the time of a generator, in every launch."""

    def __init__(self, store: "TableStore") -> None:
        self._store, self._before = store, store.needed

    def __enter__(self) -> None:
        self._store.needed = set()

    def __exit__(self, *error: object) -> None:
        self._store.needed = self._before


class TableStore(Handle, Mapping[str, Table]):
    """The resident tables by name.

    Parameters
    ----------
    config
        The machine's configuration, for the pitch.
    allocator
        Where tables are placed.
    write
        Writes bytes to device memory at an address (which has a mapping class).
    check
        How changed sources are found.
    """

    hint = "dict(device.tables) is a copy that stays as it is"

    def __init__(
        self, config: Config, allocator: Allocator, write: Callable[[int, memoryview], None], check: TableCheck
    ) -> None:
        self._config, self._allocator, self._write, self._check = config, allocator, write, check
        self._residents: dict[str, _Resident] = {}
        self._names: dict[Place, str] = {}
        """By where a source lies; an interrupt may leave some that are not so, see ``_key``."""
        self._clock = count()
        self.needed: set[str] | None = None
        """Tables of the launch that is being prepared; None while there is none."""
        self.has_contents = check != "shapes"
        """Whether tables have the contents of their sources, and not their places alone."""
        self.uploads = 0
        self._changes = 0
        """How often something happened to a table; what was seen before that has to be looked at again."""

    def __repr__(self) -> str:
        return repr(dict(self))

    def __getitem__(self, name: str) -> Table:
        return self._residents[name].table

    def name_at(self, address: int) -> str | None:
        """The table that has this address of a program; None if none has."""
        for name in self:
            table = self[name]
            if 0 <= address - table.address < table.rows * table.pitch:
                return name
        return None

    def __iter__(self) -> Iterator[str]:
        return iter(self._residents)

    def __len__(self) -> int:
        return len(self._residents)

    def bind(
        self,
        name: str,
        source: Source,
        *,
        mapping: int | None = None,
        use: Use = Use.HELD,
        form: Form | None = None,
    ) -> Table:
        """The resident table with the content of ``source``, uploaded if it is not there as it is now.

        ``source`` is a 2-D torch tensor on the CPU or NumPy array. Its table is found again by the memory in which it
        lies, whatever the name; a changed source is uploaded again. A name that another living source holds gets a
        number appended. ``mapping`` is the mapping class; left out, it is that of the table where it is already, else
        what ``table_mapping`` says. With a ``form`` the rows of the source, bytes, are packed as that says; the table
        is then one of words, and another one than that of the source as it is.

        Raises OutOfDeviceMemory, TypeError for something else, ValueError for other shapes.
        """
        key = self._key(source, form)
        if key is None:
            key = self._free_name(name)
            self._upload(key, source, mapping, form)
        else:
            resident = self._residents[key]
            is_mapped = mapping in (None, resident.table.mapping) or resident.origin.ahead is not None
            if not is_mapped or not resident.origin.is_current(source):
                self._upload(key, source, mapping, form)
        return self._used(key, use)

    def find(self, source: Source) -> Table | None:
        """The resident table with the content of ``source``, uploaded if that has changed; None if there is none."""
        key = self._key(source)
        if key is None:
            return None
        if not self._residents[key].origin.is_current(source):
            self._upload(key, source, None)
        return self._used(key)

    def watch(self, sources: Sequence[Source]) -> Watch | None:
        """The tables of these tensors, which were just found, to be looked at together; None if they cannot be."""
        names = [name for source in sources if (name := self._key(source)) is not None]
        origins = [self._residents[name].origin for name in names]
        if len(names) < len(sources) or not Watch.can_be_of(sources, origins):
            return None
        return Watch(names, sources, origins, self._changes)

    def are_current(self, watch: Watch) -> bool:
        """Whether all of these tables are in device memory where they were, with the content of their tensors."""
        if watch.changes != self._changes or not watch.are_as_before():
            return False
        now = next(self._clock)
        for name in watch.names:
            self._residents[name].used = now
        if self.needed is not None:
            self.needed.update(watch.names)
        return True

    def _key(self, source: Source, form: Form | None = None) -> str | None:
        """The name of the table of what lies where ``source`` does, in this form; None if there is none."""
        place = _in_form(place_of(source), form)
        resident = self._residents.get(self._names.get(place, ""))
        return self._names[place] if resident is not None and resident.origin.place == place else None

    def _used(self, name: str, use: Use = Use.INPUT) -> Table:
        """The table, of which is noted that it was used, and what for."""
        resident = self._residents[name]
        resident.use, resident.used = max(resident.use, use), next(self._clock)
        if self.needed is not None:
            self.needed.add(name)
        return resident.table

    def preparing(self) -> AbstractContextManager[None]:
        """Tables that are asked for in here, for a launch, stay in device memory until the end."""
        return _Preparing(self)

    def copied(self, writes: Sequence[Region] | None) -> list[Table]:
        """The tables of class COPIED into which a launch may write: of which parts are in ``writes``, or all (None)."""
        if writes is not None and (not writes or max(writes)[0] < in_class(0, COPIED, self._config)):
            return []
        found = [table for table in self.values() if table.mapping == COPIED]
        if writes is None:
            return found
        return [t for t in found if any(Region(t.address, t.rows * t.pitch).overlaps(Region(*each)) for each in writes)]

    def changed(self, source: Source) -> None:
        """The content of what shares memory with ``source`` has changed, whatever is counted or seen of it."""
        start, end = memory_of(source)
        self._changes += 1
        for resident in self._residents.values():
            first, last = resident.origin.memory
            resident.origin.is_stale |= start < last and first < end

    def go_ahead(self, source: Source, ahead: Callable[[], bool]) -> None:
        """Launches have changed the table of ``source``, which is resident: its rows count as long as ``ahead`` says
        so, whatever is in the source's memory; see ``Origin.ahead``.
        """
        key = self._key(source)
        assert key is not None
        self._residents[key].origin.ahead = ahead

    def is_ahead(self, name: str) -> bool:
        """Whether launches have changed the table ``name`` since it was uploaded, or the source got its rows."""
        return self._residents[name].origin.ahead is not None

    def meet(self, source: Source) -> None:
        """The source, whose table is ahead, has got the table's rows: they are the same again."""
        key = self._key(source)
        assert key is not None
        self._changes += 1
        self._residents[key].origin = Origin(source, self._check)

    def drop_dead(self) -> bool:
        """Give back the memory of tables whose sources are gone; whether there were any."""
        needed = self.needed or ()
        gone = [name for name, resident in self._residents.items() if not resident.origin.alive()]
        dead = [name for name in gone if name not in needed]
        for name in dead:
            self.drop(name)
        return bool(dead)

    def evict(self) -> bool:
        """Give back the memory of the table that was used longest ago, of an input if there is one, else of a
        parameter; whether there was any that no launch being prepared needs.
        """
        needed = self.needed or ()
        free = [(name, each) for name, each in self._residents.items() if name not in needed]
        free = [(name, each) for name, each in free if each.use is not Use.HELD]
        if not free:
            return False
        self.drop(min(free, key=lambda pair: (pair[1].use, pair[1].used))[0])
        return True

    def drop(self, name: str) -> None:
        """Give back the memory of the table ``name``; KeyError if there is none."""
        self._changes += 1
        resident = self._residents.pop(name)
        self._forget(resident.origin.place, name)
        self._allocator.free(resident.table.address)

    def _forget(self, place: Place, name: str) -> None:
        if self._names.get(place) == name:
            del self._names[place]

    def _free_name(self, name: str) -> str:
        key, number = name, 1
        while key in self._residents and self._residents[key].origin.alive():
            number += 1
            key = f"{name}#{number}"
        return key

    def _upload(self, name: str, source: Source, mapping: int | None, form: Form | None = None) -> None:
        """Make ``source`` the table ``name``, where that is if it fits there."""
        self._changes += 1
        self._check_overlap(name, source)
        origin = Origin(source, self._check)
        origin.place = _in_form(origin.place, form)
        array = array_of(source) if origin.content is None else origin.content
        dtype = origin.dtype
        rows = len(array)
        if form is not None:
            array, dtype = form.pack(array if self.has_contents else array[:1]), form.dtype
        before = self._residents.get(name)
        use = Use.INPUT if before is None or before.origin.place != origin.place else before.use
        table = self._place(name, rows, array, dtype, mapping)
        origin.is_stale = True  # until it is all written, whatever comes in between
        self._names[origin.place] = name
        self._residents[name] = _Resident(table, origin, use, next(self._clock))
        if before is not None and before.origin.place != origin.place:
            self._forget(before.origin.place, name)
        if self.has_contents:
            self._write_rows(table, array)
            self.uploads += 1
        origin.is_stale = False

    def _check_overlap(self, name: str, source: Source) -> None:
        """StaleParameter for a source in the memory of another one whose table is ahead: a view of it, for instance."""
        others = [(key, each) for key, each in self._residents.items() if each.origin.ahead is not None and key != name]
        if not others:
            return
        start, end = memory_of(source)
        for key, each in others:
            first, last = each.origin.memory
            if start < last and first < end:
                raise StaleParameter(
                    f"table {name!r} must not be in the memory of table {key!r}, whose later rows are on the device: "
                    "call opt.sync() first"
                )

    def _place(self, name: str, rows: int, array: NDArray[Any], dtype: str, mapping: int | None) -> Table:
        """The table of so many rows like those of an array, where it goes."""
        dim = array.shape[1]
        pitch = row_pitch(dim * array.itemsize, self._config)
        present = self[name] if name in self._residents else None
        keeps = present is not None and mapping in (None, present.mapping)
        if present is not None and keeps and (present.rows, present.pitch) == (rows, pitch):
            table = Table(present.address, rows, dim, pitch, dtype, present.mapping)
            return present if table == present else table
        if present is not None:
            self.drop(name)
        mapping = table_mapping(rows, pitch, self._config) if mapping is None else mapping
        address: int = self._allocator.allocate(rows * pitch, TABLE_ALIGNMENT, mapping=mapping, what=f"table {name!r}")
        return Table(address, rows, dim, pitch, dtype, class_of(address, self._config))

    def _write_rows(self, table: Table, array: NDArray[Any]) -> None:
        row_bytes = table.row_bytes
        step = max(1, UPLOAD_CHUNK // table.pitch)
        for first in range(0, table.rows, step):
            rows = np.ascontiguousarray(array[first : first + step])
            if row_bytes != table.pitch:
                padded = np.zeros((len(rows), table.pitch), np.uint8)
                padded[:, :row_bytes] = rows.view(np.uint8).reshape(len(rows), row_bytes)
                rows = padded
            self._write(table.address + first * table.pitch, rows.reshape(-1).view(np.uint8).data)
