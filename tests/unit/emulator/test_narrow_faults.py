"""Rows whose bytes are not those of a length of their type, and lengths that no such row has."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from daedal.cosim.emulator import EmulatorTarget
from daedal.hw.config.core import Config
from daedal.hw.isa.launch import Cause, Queue
from daedal.hw.isa.program import Word
from daedal.hw.isa.words import LengthField
from tests.unit.emulator.conftest import MEMORY_BYTES
from tests.unit.emulator.programs import Bench
from tests.unit.emulator.test_faults import DIM, run_changed

KINDS = (LengthField.BINARY16, LengthField.BFLOAT16, LengthField.BFLOAT16_AWAY)


@pytest.fixture
def halves() -> Iterator[Bench]:
    config = replace(Config.preset("edge"), name="edge-halves", binary16=1, bfloat16=1)
    with EmulatorTarget(config, MEMORY_BYTES) as target:
        yield Bench(target, config)


def fault_of(bench: Bench, kind: LengthField, elements: int) -> tuple[Cause, Queue, int]:
    """Of a bag whose rows have the bytes of ``DIM`` binary32, if its length is of this type and value."""

    def change(word: Word) -> Word:
        return Word(kind, 0, elements) if word.field is LengthField.ELEMENTS else word

    record = run_changed(bench, change)
    return record.cause, record.queue, record.value


@pytest.mark.parametrize("kind", KINDS)
def test_rows_have_the_bytes_of_their_type(halves: Bench, kind: LengthField) -> None:
    assert fault_of(halves, kind, 2 * DIM)[0] is Cause.NONE
    assert fault_of(halves, kind, DIM) == (Cause.FRAMING, Queue.VECTOR0, DIM)


@pytest.mark.parametrize("elements", [DIM // 2, 2 * DIM])
def test_rows_of_binary32_are_not_of_16_bits(halves: Bench, elements: int) -> None:
    assert fault_of(halves, LengthField.ELEMENTS, elements) == (Cause.FRAMING, Queue.VECTOR0, elements)


@pytest.mark.parametrize("kind", KINDS)
def test_odd_lengths(halves: Bench, kind: LengthField) -> None:
    assert fault_of(halves, kind, 2 * DIM - 1) == (Cause.PROGRAM, Queue.NONE, 2 * DIM - 1)
