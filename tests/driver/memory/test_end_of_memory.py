"""Rows, arrays and programs that go on behind the end of memory: the fault names the first line that is not there."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import daedal
from daedal.cosim.emulator import EmulatorTarget
from daedal.hw.config.core import Config
from daedal.hw.isa.address_mapping import COPIED, HASHED, PLAIN, in_class
from daedal.hw.isa.launch import Cause
from daedal.hw.isa.program import Program, Word
from daedal.hw.isa.words import (
    ControlField,
    Destination,
    EventField,
    EventKind,
    FetchQueue,
    LevelField,
    LoadIndex,
    StepField,
)
from tests.system.test_rtl_configs import CONFIGS

RTL = (pytest.mark.rtl, pytest.mark.slow)
OPENED = [
    *(pytest.param((config, "emulator", "ideal"), id=f"{config}-emulator") for config in CONFIGS),
    pytest.param(("ddr3", "verilator", "ideal"), id="ddr3", marks=RTL),
    pytest.param(("small", "verilator", "ideal:latency=7"), id="small", marks=RTL),
    pytest.param(("broad", "verilator", "ideal:mixed=0"), id="broad", marks=(*RTL, pytest.mark.full)),
    pytest.param(("edge", "verilator", "ideal"), id="edge", marks=(*RTL, pytest.mark.full)),
    pytest.param(("uneven", "verilator", "ideal"), id="uneven", marks=(*RTL, pytest.mark.full)),
    pytest.param(("minimum", "verilator", "ideal"), id="minimum", marks=(*RTL, pytest.mark.full)),
]
INSIDE = 1 << 19
"""An address in the middle of memory, for the other end of a copy; the driver begins with the lowest."""

SOME_CLASSES = (PLAIN, 1, HASHED[-1], COPIED)

Body = Callable[[int, int, Config], list[Word]]


@pytest.fixture(scope="module", params=OPENED)
def device(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    config, target, memory = request.param
    with daedal.Device.open(target, CONFIGS[config], memory, memory_bytes=(1 << 20) + 4321) as opened:
        yield opened


def once(*words: Word, **control: int) -> list[Word]:
    """A nest of one iteration of the outermost level, R0 = 0, with this step."""
    return [
        Word.packed(LevelField.CONTROL, 0, enable=1, induction=Destination.R0),
        Word(LevelField.LOWER, 0, 0),
        Word(LevelField.UPPER, 0, 1),
        Word(LevelField.STEP, 0, 1),
        Word.packed(EventField.CONTROL, EventKind.ITER.value, first=0, count=1),
        Word.packed(StepField.CONTROL, 0, **control),
        *words,
        Word(ControlField.RUN),
    ]


def copy(source: int, target: int, size: int) -> list[Word]:
    """One row by way of the store stream."""
    return once(
        Word(StepField.FETCH_BASE, 0, source),
        Word(StepField.FETCH_SIZE, 0, size),
        Word(StepField.STORE_BASE, 0, target),
        Word(StepField.STORE_SIZE, 0, size),
        fetch_enable=1,
        store_enable=1,
        stream=1,
        queue=FetchQueue.STORE.value,
    )


def streamed(address: int, size: int, config: Config) -> list[Word]:
    return copy(address, INSIDE, size)


def stored(address: int, size: int, config: Config) -> list[Word]:
    return copy(INSIDE, address, size)


def fetched(address: int, size: int, config: Config) -> list[Word]:
    """For the execute unit, to which it does not come."""
    row = Word(StepField.FETCH_BASE, 0, address), Word(StepField.FETCH_SIZE, 0, size)
    return once(*row, fetch_enable=1, queue=FetchQueue.VECTOR0.value)


def loaded_in_order(address: int, size: int, config: Config) -> list[Word]:
    """An array of 32-bit elements by a sequential slot."""
    return [
        Word.packed(LevelField.CONTROL, 0, enable=1),
        Word(LevelField.LOWER, 0, 0),
        Word(LevelField.UPPER, 0, size // 4),
        Word(LevelField.STEP, 0, 1),
        Word.packed(LevelField.LOAD0, 0, enable=1, size=2, destination=Destination.R1),
        Word(LevelField.LOAD0_BASE, 0, address),
        Word(LevelField.LOAD0_LIMIT, 0, address + size),
        Word(ControlField.RUN),
    ]


def loaded_at_random(address: int, size: int, config: Config) -> list[Word]:
    """The element of 32 bits at the end of that array, or where the array begins, by a random slot."""
    slot, element = config.sequential_loads[0], (size - 4) // 4
    return [
        Word.packed(LevelField.CONTROL, 0, enable=1, induction=Destination.R0),
        Word(LevelField.LOWER, 0, element),
        Word(LevelField.UPPER, 0, element + 1),
        Word(LevelField.STEP, 0, 1),
        Word.packed(LevelField[f"LOAD{slot}"], 0, enable=1, size=2, index=LoadIndex.R0, destination=Destination.R1),
        Word(LevelField[f"LOAD{slot}_BASE"], 0, address),
        Word(ControlField.RUN),
    ]


def named(device: daedal.Device, body: list[Word]) -> int:
    """The address that the fault of this program names."""
    with pytest.raises(daedal.MemoryFault) as caught:
        device.run(Program(device.config.hash, body).to_bytes())
    record = caught.value.record
    assert record is not None and record.cause is Cause.MEMORY_ERROR
    assert f"{record.address:#x}" in str(caught.value)
    return record.address


def test_memory_ends_with_a_superblock(device: daedal.Device) -> None:
    """So no burst goes on behind it, and the driver's buffers may have any class."""
    superblock = device.config.superblock_bytes
    assert device.target.memory_bytes == ((1 << 20) + 4321) // superblock * superblock


@pytest.mark.parametrize("lines", [1, 17, 24])
@pytest.mark.parametrize("kind", [fetched, streamed, loaded_in_order])
def test_reads_that_cross_the_end(device: daedal.Device, kind: Body, lines: int) -> None:
    """Of several lines that are not there, an idle port's may be answered before that of a port with work.

    Rows fit the shortest vector queues, for nobody takes them.
    """
    config, line = device.config, device.config.bus_bytes
    for mapping in SOME_CLASSES:
        end = in_class(device.target.memory_bytes, mapping, config)
        for more in (4, 5 * line + 4):
            found = named(device, kind(end - lines * line, lines * line + more, config))
            in_order = isinstance(device.target, EmulatorTarget) or mapping == PLAIN
            assert found in range(end, end + (4 if in_order else more), line)


@pytest.mark.parametrize("before", [4, 60, 2052])
def test_stores_that_cross_the_end(device: daedal.Device, before: int) -> None:
    line, end = device.config.bus_bytes, device.target.memory_bytes
    for mapping in SOME_CLASSES:
        for more in (4, 6 * line):
            address = in_class(end, mapping, device.config) - before
            assert named(device, stored(address, before + more, device.config)) == in_class(end, mapping, device.config)


@pytest.mark.parametrize("kind", [fetched, streamed, stored, loaded_in_order, loaded_at_random])
@pytest.mark.parametrize("lines", [0, 17])
def test_what_begins_behind_the_end(device: daedal.Device, kind: Body, lines: int) -> None:
    line = device.config.bus_bytes
    for mapping in SOME_CLASSES:
        start = in_class(device.target.memory_bytes + lines * line, mapping, device.config)
        assert named(device, kind(start, line, device.config)) == start
        assert named(device, kind(start + 4, 4, device.config)) == start


@pytest.mark.parametrize("element", [0, 7, 100])
def test_a_random_load_names_its_line(device: daedal.Device, element: int) -> None:
    line, end = device.config.bus_bytes, device.target.memory_bytes
    for mapping in SOME_CLASSES:
        start = in_class(end - 64, mapping, device.config)
        found = named(device, loaded_at_random(start, 64 + 4 * element + 4, device.config))
        assert found == in_class(end + 4 * element // line * line, mapping, device.config)


def test_a_program_that_crosses_the_end(device: daedal.Device) -> None:
    end, place = device.target.memory_bytes, device.target.memory_bytes - 1024
    raw = Program(device.config.hash, [*copy(INSIDE + 64, INSIDE, 4)] * 20).to_bytes()
    assert len(raw) > 1024 + 64
    device.target.mem_write(place, raw[:1024])
    with pytest.raises(daedal.MemoryFault) as caught:
        device.launch(place)
    assert caught.value.record is not None and caught.value.record.address == end


def test_what_ends_where_memory_ends_is_right(device: daedal.Device, rng: np.random.Generator) -> None:
    end, size = device.target.memory_bytes, 40 * device.config.bus_bytes
    data = rng.bytes(size)
    for mapping in SOME_CLASSES[:-1]:  # what is stored in one copy cannot be read from the others
        last = in_class(end - size, mapping, device.config)
        device.memory.write(INSIDE, data)
        device.run(Program(device.config.hash, copy(INSIDE, last, size)).to_bytes())
        assert device.memory.read(last, size) == data
        device.memory.write(INSIDE, bytes(size))
        device.run(Program(device.config.hash, copy(last, INSIDE, size)).to_bytes())
        assert device.memory.read(INSIDE, size) == data
