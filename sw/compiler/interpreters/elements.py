"""Elements of rows in memory and the f32 that they are, as the operations of dialect ``narrow`` have it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute

from daedal.compiler.dialects.elements import LANE, row_element
from daedal.hw.isa.elements import HEAD_WORDS, LENGTH_ELEMENTS, UNSIGNED
from daedal.hw.isa.spec.narrow import narrow, pattern_type, widen
from daedal.hw.isa.words import LengthField


def field_of(kind: Attribute, *, away: bool = False) -> LengthField:
    """The type of elements of memory, as a length register says it."""
    element = row_element(kind)
    fields = [field for field, each in LENGTH_ELEMENTS.items() if each is element]
    return fields[-1] if away else fields[0]


def widened(values: Any, kind: Attribute) -> Any:
    """f32, of elements of this type: an array of them, one, or the integer that is the pattern of one."""
    if kind == LANE:
        return values
    field = field_of(kind)
    size = pattern_type(field)
    patterns = np.asarray(values, size) if isinstance(values, int) else np.asarray(values).view(size)
    found = widen(np.atleast_1d(patterns), field)
    return found if patterns.ndim else found[0]


def unpacked(words: NDArray[np.float32], bits: int) -> tuple[np.float32, np.float32, NDArray[np.float32]]:
    """Scale, bias and integers of ``bits`` bits of a row of words, as dialect ``narrow`` has them."""
    kind = next(kind for kind in UNSIGNED if LENGTH_ELEMENTS[kind].bits == bits)
    return words[0], words[1], widen(np.ascontiguousarray(words[HEAD_WORDS:]).view(np.uint8), kind)


def rounded(values: Any, kind: Attribute, *, away: bool = False) -> NDArray[Any]:
    """Elements of this type, of f32; ``away`` as of ``narrow.round``."""
    element = row_element(kind)
    assert element is not None
    return narrow(np.asarray(values, np.float32), field_of(kind, away=away)).view(element.array)


def shortened(values: Any, kind: Attribute, *, away: bool = False) -> Any:
    """What f32 are rounded to, as f32; themselves if elements are f32."""
    return values if kind == LANE else widened(rounded(values, kind, away=away), kind)
