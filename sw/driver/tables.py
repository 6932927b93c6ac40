"""Tables that stay in device memory, and the tensors they were uploaded from."""

import hashlib
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.driver.allocator import TABLE_ALIGNMENT, Allocator
from daedal.driver.layout import row_mapping, row_pitch
from daedal.hw.config import Config
from daedal.hw.isa.mapping import PLAIN, class_of

UPLOAD_CHUNK = 1 << 24
"""Most bytes of padded rows that are made at a time."""


@dataclass(frozen=True)
class Table:
    """A table in device memory: ``rows`` rows of ``dim`` elements, ``pitch`` bytes apart.

    ``mapping`` is its mapping class, which is in the highest bits of ``address`` as well.
    """

    address: int
    rows: int
    dim: int
    pitch: int
    dtype: str
    mapping: int = PLAIN


@dataclass(frozen=True)
class _Origin:
    """Where a table came from: the object, and what changes when its content does."""

    source: "weakref.ref[Any]"
    state: object

    def is_of(self, other: Any) -> bool:
        return self.source() is other

    @property
    def alive(self) -> bool:
        return self.source() is not None


class TableStore(Mapping[str, Table]):
    """The resident tables by name.

    Parameters
    ----------
    config
        The machine's configuration, for the pitch.
    allocator
        Where tables are placed.
    write
        Writes bytes to device memory at an address (which has a mapping class).
    """

    def __init__(self, config: Config, allocator: Allocator, write: Callable[[int, memoryview], None]) -> None:
        self._config, self._allocator, self._write = config, allocator, write
        self._tables: dict[str, Table] = {}
        self._origins: dict[str, _Origin] = {}
        self.uploads = 0
        self.changes = 0
        """Uploads and drops: while this stays, so do all tables."""

    def __repr__(self) -> str:
        return repr(self._tables)

    def __getitem__(self, name: str) -> Table:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def bind(self, name: str, source: Any, *, mapping: int | None = None) -> Table:
        """The resident table with the content of ``source``, uploaded if it is not there as it is now.

        ``source`` is a 2-D torch tensor on the CPU or NumPy array. Its table is found again whatever the
        name; a changed source is uploaded again. A name that another living source holds gets a number
        appended. ``mapping`` is the mapping class; left out, it is that of the table where it is already, else
        ``row_mapping`` of its pitch.

        Raises OutOfDeviceMemory, TypeError for something else, ValueError for other shapes.
        """
        state = _state(source)
        held = next((key for key, origin in self._origins.items() if origin.is_of(source)), None)
        same = held is not None and self._origins[held].state == state
        if held is not None and same and mapping in (None, self._tables[held].mapping):
            return self._tables[held]
        array = _array(source)
        key = held or self._free_name(name)
        self._place(key, array, mapping)
        self._origins[key] = _Origin(weakref.ref(source), state)
        return self._tables[key]

    def drop_dead(self) -> bool:
        """Give back the memory of tables whose sources are gone; whether there were any."""
        dead = [name for name, origin in self._origins.items() if not origin.alive]
        for name in dead:
            self.drop(name)
        return bool(dead)

    def drop(self, name: str) -> None:
        """Give back the memory of the table ``name``; KeyError if there is none."""
        self.changes += 1
        self._allocator.free(self._tables.pop(name).address)
        del self._origins[name]

    def _free_name(self, name: str) -> str:
        key, number = name, 1
        while key in self._origins and self._origins[key].alive:
            number += 1
            key = f"{name}#{number}"
        return key

    def _place(self, name: str, array: NDArray[Any], mapping: int | None) -> None:
        rows, dim = array.shape
        pitch = row_pitch(dim * array.itemsize, self._config)
        present = self._tables.get(name)
        keeps = present is not None and mapping in (None, present.mapping)
        if present is None or not keeps or (present.rows, present.pitch) != (rows, pitch):
            if present is not None:
                self.drop(name)
            mapping = row_mapping(pitch, self._config) if mapping is None else mapping
            address: int = self._allocator.allocate(
                rows * pitch, TABLE_ALIGNMENT, mapping=mapping, what=f"table {name!r}"
            )
        else:
            address = present.address
        self._tables[name] = Table(address, rows, dim, pitch, str(array.dtype), class_of(address, self._config))
        self._upload(self._tables[name], array)
        self.uploads += 1
        self.changes += 1

    def _upload(self, table: Table, array: NDArray[Any]) -> None:
        row_bytes = table.dim * array.itemsize
        step = max(1, UPLOAD_CHUNK // table.pitch)
        for first in range(0, table.rows, step):
            rows = np.ascontiguousarray(array[first : first + step])
            if row_bytes != table.pitch:
                padded = np.zeros((len(rows), table.pitch), np.uint8)
                padded[:, :row_bytes] = rows.view(np.uint8).reshape(len(rows), row_bytes)
                rows = padded
            self._write(table.address + first * table.pitch, rows.reshape(-1).view(np.uint8).data)


def _is_tensor(source: Any) -> bool:
    return type(source).__module__.partition(".")[0] == "torch" or hasattr(source, "_version")


def _has_memory(tensor: Any) -> bool:
    return str(tensor.layout) == "torch.strided" and tensor.device.type == "cpu"


def _state(source: Any) -> object:
    """What differs when the content of ``source`` has changed: a tensor's version, an array's digest.

    PyTorch does not count changes through ``tensor.data`` or a NumPy array that shares the memory; nor does
    it keep versions of inference tensors, which get a digest as well.
    """
    if _is_tensor(source) and not _has_memory(source):
        where = f"on {source.device}" if source.device.type != "cpu" else f"of layout {source.layout}"
        raise ValueError(f"a table must be dense and on the CPU, not {where}: move it there, or use to_dense()")
    if _is_tensor(source) and not source.is_inference():
        layout = source.data_ptr(), tuple(source.shape), tuple(source.stride()), source.dtype
        return source._version, fused_steps()(source), storage_of(source), layout
    if not _is_tensor(source) and not isinstance(source, np.ndarray):
        raise TypeError(f"a table must be a torch tensor or a NumPy array, not {type(source).__name__}")
    array = np.ascontiguousarray(_array(source))
    return hashlib.blake2b(array.view(np.uint8).data, digest_size=16).digest(), array.shape, array.dtype


def storage_of(tensor: Any) -> object:
    """What is equal for two tensors if they share their memory; kept, it is not equal to that of any later memory."""
    from torch.multiprocessing.reductions import StorageWeakRef  # only where tensors are, so PyTorch is there

    reference: Any = StorageWeakRef
    return reference(tensor.untyped_storage())


@cache
def fused_steps() -> Callable[[Any], int]:
    """A function that gives the number of steps that fused optimizers took on a tensor's memory.

    PyTorch does not count these changes: ``fused=True`` leaves ``Tensor._version`` as it was. Counted are steps
    after this was called first.
    """
    from torch.optim.optimizer import register_optimizer_step_post_hook

    steps: dict[int, int] = {}

    def count(optimizer: Any, *_: object) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"] if group.get("fused") else ():
                if _has_memory(parameter):  # an optimizer may have others as well, of which no table is made
                    number = parameter.untyped_storage()._cdata
                    steps[number] = steps.get(number, 0) + 1

    register_optimizer_step_post_hook(count)

    def steps_of(tensor: Any) -> int:
        return steps.get(tensor.untyped_storage()._cdata, 0) if steps else 0

    return steps_of


def _array(source: Any) -> NDArray[Any]:
    if _is_tensor(source):
        try:
            source = source.detach().resolve_conj().resolve_neg().numpy()
        except TypeError:
            raise ValueError(f"a table must be of a type that NumPy has, not {source.dtype}: convert it") from None
    array: NDArray[Any] = source
    if array.ndim != 2 or array.shape[1] < 1:
        raise ValueError(f"a table must have two dimensions, the second at least 1, not shape {array.shape}")
    return array
