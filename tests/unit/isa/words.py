"""Random words of every kind, without a thought for what they would do."""

import numpy as np

from daedal.hw.isa.program import FIELD_STRUCTS, UNIT_FIELDS, Word, struct_width
from daedal.hw.isa.words import VALUE_BITS, ControlField

FIELDS = [field for kind in UNIT_FIELDS.values() for field in kind if field is not ControlField.END]


def random_word(rng: np.random.Generator) -> Word:
    field = FIELDS[int(rng.integers(len(FIELDS)))]
    structured = field in FIELD_STRUCTS and rng.random() < 0.8
    width = struct_width(FIELD_STRUCTS[field]) if structured else int(rng.integers(1, VALUE_BITS + 1))
    argument = int(rng.integers(32)) if rng.random() < 0.3 else None
    return Word(field, int(rng.integers(64)), int(rng.integers(1 << width)), argument)


def random_words(rng: np.random.Generator, count: int) -> list[Word]:
    return [random_word(rng) for _ in range(count)]
