"""The specification of the execute unit, with a record of what it was given and gave."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from daedal.hw.config.core import Config
from daedal.hw.isa.elements import UNSTORED
from daedal.hw.isa.instructions import Instruction
from daedal.hw.isa.program import pack
from daedal.hw.isa.spec.binary32 import from_bits
from daedal.hw.isa.spec.execute import ExecuteUnit
from daedal.hw.isa.spec.narrow import Patterns, narrow, patterns_in
from daedal.hw.isa.words import LengthField

MakeRow = Callable[[int], np.ndarray]
MakeScalar = Callable[[bool, int], int]


@dataclass
class Row:
    """Elements of a row that an instruction stores or pops: uint32, uint16 if it is of such, or bytes."""

    bits: np.ndarray

    def beats(self, config: Config) -> list[dict[str, int]]:
        """The beats that carry it."""
        beats = []
        raw = self.bits.tobytes()
        for at in range(0, len(raw), config.lane_bytes):
            part = raw[at : at + config.lane_bytes]
            last = at + config.lane_bytes >= len(raw)
            beats.append({"data": int.from_bytes(part, "little"), "bytes": len(part), "last": int(last)})
        return beats


class Model:
    """An execute unit whose rows and scalars are made when they are popped."""

    def __init__(self, config: Config, lengths: list[int], kinds: Sequence[LengthField] | None = None) -> None:
        self.rows: tuple[list[Row], list[Row]] = ([], [])
        self.scalars: list[int] = []
        self.stores: list[Row] = []
        self._unit = ExecuteUnit(config, lengths, self, kinds)
        self._below = 0
        self._heads: tuple[list[int], list[int]] = ([], [])

    @property
    def beats(self) -> int:
        return self._unit.lane_beats

    def execute(self, code: dict[str, Any], make_row: MakeRow, make_scalar: MakeScalar, context: int = 0) -> None:
        """Do one instruction; what it pops is made by ``make_row(elements)``, ``make_scalar(is_count, below)``.

        A member ``below`` of ``code``: the scalar that it pops is an integer less than that.
        """
        self._make_row, self._make_scalar, self._below = make_row, make_scalar, code.get("below", 0)
        members = {name: value for name, value in code.items() if name != "below"}
        self._unit.execute(pack(Instruction, members), context)

    def row(self, queue: int, elements: int, kind: LengthField) -> Patterns:
        """A row of the vector queue, which is recorded: of 16-bit elements with what is behind an odd one."""
        is_odd = kind not in (LengthField.ELEMENTS, *UNSTORED) and elements % 2
        made = self._make_row(elements + 1 if is_odd else elements)
        if kind in UNSTORED:
            made = made.astype(np.uint8)[: patterns_in(elements, kind)]
        else:
            made = narrow(from_bits(made), kind)
        head = np.array(self._heads[queue], np.uint32).view(np.uint8)
        self.rows[queue].append(Row(np.concatenate([head, made.view(np.uint8)]) if len(head) else made))
        self._heads[queue].clear()
        return made[:-1].copy() if is_odd else made.copy()

    def head(self, queue: int) -> int:
        """A number of the head of the row that will be popped next from a vector queue."""
        self._heads[queue].append(int(self._make_row(1)[0]))
        return self._heads[queue][-1]

    def scalar(self, *, is_count: bool) -> int:
        """A scalar, which is recorded."""
        self.scalars.append(self._make_scalar(is_count, 0 if is_count else self._below))
        return self.scalars[-1]

    def store(self, row: Patterns) -> None:
        """Record what is stored."""
        self.stores.append(Row(row.copy()))
