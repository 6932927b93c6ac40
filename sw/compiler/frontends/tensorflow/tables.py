"""Contents of variables as arrays, and whether they have changed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.driver.tables.digests import address_of
from daedal.driver.tables.table_sources import have_same_bytes, stand_in


class HeldContents:
    """The contents that variables had in the last call.

    TensorFlow writes no memory that somebody holds: while a tensor is held, a variable that changes goes elsewhere. So
    one that is read at the same address has not changed. One that is read elsewhere may not have either, as TensorFlow
    copies variables of which some rows were changed in each reading: then the bytes tell.
    """

    def __init__(self) -> None:
        self._held: dict[object, tuple[Any, NDArray[Any]]] = {}

    def array(self, key: object, tensor: Any) -> NDArray[Any]:
        """The content, the same array as long as it is the same."""
        array = array_over(tensor)
        held = self._held.get(key)
        if held is not None:
            before = held[1]
            is_alike = before.shape == array.shape and before.dtype == array.dtype
            if is_alike and (address_of(before) == address_of(array) or have_same_bytes(before, array)):
                return before
        self._held[key] = tensor, array
        return array


def array_over(tensor: Any) -> NDArray[Any]:
    """The array over a tensor's memory, in order; of bfloat16, over a copy."""
    if tensor.dtype.name == "bfloat16":
        return stand_in(np.asarray(tensor.numpy()).view(np.uint16), "bfloat16")
    return np.asarray(memoryview(tensor))
