"""The tensors and arrays that tables come from: where they lie in the host's memory, and whether they have changed."""

import ctypes
import weakref
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from daedal.driver.tables.digests import address_of, digest_of
from daedal.hw.isa.elements import FLOATS8

if TYPE_CHECKING:  # the driver does without PyTorch where there are no tensors
    from torch import Tensor
    from torch.optim import Optimizer
    from typing_extensions import TypeIs

TableCheck: TypeAlias = Literal["contents", "versions", "shapes"]
"""What is looked at in each launch: the bytes of the tables, what PyTorch counts of changes, or nothing, for tables
that have no content on the device.
"""

TABLE_CHECKS: tuple[TableCheck, ...] = ("contents", "versions", "shapes")

Source: TypeAlias = "Tensor | NDArray[Any]"

STAND_INS = {
    "bfloat16": "uint16",
    "complex32": "uint32",
    "float8_e4m3fn": "uint8",
    "float8_e4m3fnuz": "uint8",
    "float8_e5m2": "uint8",
    "float8_e5m2fnuz": "uint8",
    "float8_e8m0fnu": "uint8",
}
"""Types that PyTorch has and NumPy does not -> the integers as which arrays have their elements, bit for bit."""

_INTEGERS = STAND_INS | {element.dtype: element.array for element in FLOATS8}
"""The same, and of rows on devices that PyTorch does not have either."""

Place: TypeAlias = tuple[object, ...]
"""Address, sizes, strides and type of a source, and whether its signs are still to be changed."""

COMPARED_BYTES = 1 << 20
"""Most bytes of a source that are put in order at a time to be compared, where its rows do not follow each other."""

same_memory = ctypes.CDLL(None).memcmp
same_memory.argtypes, same_memory.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t), ctypes.c_int
"""0 if so many bytes at two addresses are the same."""


class Origin:
    """A source as it was when its table was uploaded.

    If its contents are looked at, which finds every change, that is by a digest (``digests.py``) of elements that
    follow each other in memory, in the time in which they come out of it. Of others, or where there are no digests,
    ``content`` is a copy that they are compared with: another stream out of memory, and as much memory as the table
    takes on the device. NumPy arrays and inference tensors, of which nothing counts the changes, are looked at with
    ``versions`` too. With ``shapes`` nothing is: the table is as it should be as long as it is there.
    """

    def __init__(self, source: Source, check: TableCheck) -> None:
        self.place = place_of(source)
        self.dtype = dtype_name(source)
        self.memory = memory_of(source)
        self.is_stale = False
        """Somebody said that the source has changed."""
        self.ahead: Callable[[], bool] | None = None
        """Of a table that launches have changed: whether its rows, not the source's, are those that count. Raises
        StaleParameter if the source has changed as well.
        """
        self._own(source)
        self._has_content = check != "shapes"
        self._state = _counted(source) if check == "versions" else None
        array = array_of(source)
        self.is_in_order = array.flags.c_contiguous and address_of(array) == self.place[0]
        """Its elements follow each other in memory, where they are."""
        self.is_looked_at = self._has_content and self._state is None
        """Its contents are, in each launch."""
        self.region = address_of(array), array.nbytes
        """Where it is if it is in order."""
        is_digested = self.is_looked_at and self.is_in_order
        self.digest = digest_of(self.region) if is_digested else None  # before it is uploaded: what changes is noticed
        is_copied = self.is_looked_at and self.digest is None
        self.content = np.array(array, order="C", copy=True) if is_copied else None

    def is_current(self, source: Source) -> bool:
        """Whether ``source``, which lies where this one did, has the content that was uploaded, or the device a later
        one. Raises StaleParameter if both have changed.
        """
        if self.ahead is not None and not self.is_stale:
            return self.ahead()
        if self.is_stale:
            return False
        if self._state is not None:
            return self._state == _counted(source)
        if _number(source) != self._owner or not self.alive():
            self._own(source)
        if not self._has_content:
            return True
        if self.content is None:
            return digest_of(self.region) == self.digest
        return have_same_bytes(self.content, array_of(source))

    def _own(self, source: Source) -> None:
        self._owner = _number(source)
        self.alive: Callable[[], bool] = _life(source)
        """Whether there still is what has the memory: a tensor's storage, or an array."""


def is_tensor(source: object) -> "TypeIs[Tensor]":
    """Whether this is a torch tensor."""
    return hasattr(type(source), "untyped_storage")


class StandIn(np.ndarray[Any, Any]):
    """An array whose elements stand, bit for bit, for those of a type that NumPy does not have."""

    _dtype = ""

    def __array_finalize__(self, source: object) -> None:
        """A view, or a copy, stands for the same."""
        self._dtype = getattr(source, "_dtype", "")

    @property
    def stands_for(self) -> str:
        """What PyTorch calls the type; nothing if the elements are others by now."""
        return self._dtype if self._dtype and self.dtype == _INTEGERS[self._dtype] else ""


def stand_in(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    """The array, over the same memory, as elements of the type by this name."""
    if dtype not in _INTEGERS:
        return array
    found = array.view(StandIn)
    found._dtype = dtype
    return found


def dtype_name(source: Source) -> str:
    """What PyTorch, or NumPy, calls the type of a source's elements."""
    return (isinstance(source, StandIn) and source.stands_for) or name_of(source.dtype)


@cache
def name_of(dtype: object) -> str:
    """What PyTorch, or NumPy, calls a type."""
    return str(dtype).removeprefix("torch.")


def array_type(dtype: str) -> np.dtype[Any]:
    """The type that arrays have for elements of a type by this name; TypeError if there is none."""
    return np.dtype(_INTEGERS.get(dtype, dtype))


def place_of(source: Source) -> Place:
    """Where a source lies, and how: the same for all that have the same elements in the same memory.

    Raises TypeError for what is neither a torch tensor nor a NumPy array, ValueError for a tensor that is not dense or
    not on the CPU.
    """
    if is_tensor(source):
        if not _has_memory(source):
            where = f"on {source.device}" if source.device.type != "cpu" else f"of layout {source.layout}"
            raise ValueError(f"a table must be dense and on the CPU, not {where}: move it there, or use to_dense()")
        signs = source.is_neg(), source.is_conj()
        return source.data_ptr(), source.shape, source.stride(), source.dtype, signs
    if not isinstance(source, np.ndarray):
        raise TypeError(f"a table must be a torch tensor or a NumPy array, not {type(source).__name__}")
    return address_of(source), source.shape, source.strides, source.dtype


def memory_of(source: Source) -> tuple[int, int]:
    """The first byte of the host's memory in which a source lies, and the one behind its last: of a tensor, all of its
    storage. Raises what ``place_of`` raises.
    """
    place_of(source)
    if is_tensor(source):
        storage = source.untyped_storage()
        return storage.data_ptr(), storage.data_ptr() + storage.nbytes()
    return np.lib.array_utils.byte_bounds(source)


def array_of(source: Source) -> NDArray[Any]:
    """The source as an array of two dimensions, of ``array_type`` of its type.

    ValueError for another shape, or a type that is neither NumPy's nor one of ``STAND_INS``.
    """
    if is_tensor(source):
        plain = source.detach().resolve_conj().resolve_neg()
        try:
            array: NDArray[Any] = with_bits(plain).numpy()
        except TypeError:
            raise ValueError(
                f"a table must be of a type whose elements are whole bytes of their own, not {source.dtype}: convert it"
            ) from None
    else:
        array = source
    if array.ndim != 2 or array.shape[1] < 1:
        raise ValueError(f"a table must have two dimensions, the second at least 1, not shape {array.shape}")
    return array


def with_bits(tensor: "Tensor") -> "Tensor":
    """The same memory with elements of a type that NumPy has."""
    name = dtype_name(tensor)
    if name not in STAND_INS:
        return tensor
    import torch

    return tensor.view(getattr(torch, STAND_INS[name]))


def have_same_bytes(kept: NDArray[Any], now: NDArray[Any]) -> bool:
    """Whether two arrays of one shape and type have the same bytes; ``kept`` is contiguous."""
    if now.flags.c_contiguous:
        return not same_memory(address_of(kept), address_of(now), kept.nbytes)
    step = max(1, COMPARED_BYTES // (kept.shape[1] * kept.itemsize))
    return all(
        have_same_bytes(kept[first : first + step], np.ascontiguousarray(now[first : first + step]))
        for first in range(0, len(kept), step)
    )


def _has_memory(tensor: "Tensor") -> bool:
    return tensor.device.type == "cpu" and str(tensor.layout) == "torch.strided"


def _number(source: Source) -> int:
    """What tells a storage, or an array, from all others that there are."""
    return source.untyped_storage()._cdata if is_tensor(source) else id(source)


def _life(source: Source) -> Callable[[], bool]:
    """Tells whether a storage, or an array, is still there. No other storage gets its number while this is kept.

    PyTorch does not swap tensors (``torch.utils.swap_tensors``) to which there are weak references, so there is none.
    """
    if is_tensor(source):
        from torch.multiprocessing.reductions import StorageWeakRef  # only where tensors are, so PyTorch is there

        make: Any = StorageWeakRef
        storage = make(source.untyped_storage())
        return lambda: not storage.expired()
    array = weakref.ref(source)
    return lambda: array() is not None


def _counted(source: Source) -> object:
    """What is counted of the changes of a tensor, and in which memory it is; None if nothing counts them."""
    if not is_tensor(source) or source.is_inference():
        return None
    number = _number(source)
    return id(source), source._version, optimizer_steps().get(number, 0), number


@cache
def optimizer_steps() -> dict[int, int]:
    """The number of steps that optimizers took on the memory of tensors, by the number of their storage.

    PyTorch does not count all of their changes: ``fused=True`` leaves ``Tensor._version`` as it was, and so do
    optimizers that write ``p.data``. Counted are beginnings and ends of steps after this was called first: one that
    is interrupted counts as well.
    """
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    steps: dict[int, int] = {}

    def count(optimizer: "Optimizer", *_: object) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if _has_memory(parameter):  # an optimizer may have others as well, of which no table is made
                    number = _number(parameter)
                    steps[number] = steps.get(number, 0) + 1

    register_optimizer_step_pre_hook(count)
    register_optimizer_step_post_hook(count)
    return steps
