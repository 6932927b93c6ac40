"""Tables of every row length side by side in one launch, and outputs, each of a mapping class of its own."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal.driver.launch.record import RECORD_BYTES
from daedal.driver.memory.layout import table_mapping
from daedal.hw.config.core import LAUNCH_QUEUE_DEPTH
from daedal.hw.isa import words
from daedal.hw.isa.address_mapping import CLASSES, COPIED, PLAIN, granule_bytes, memory_address
from daedal.hw.isa.launch import BLOCK_REGION
from daedal.hw.isa.program import Program, Word
from tests.system.test_rtl_configs import CONFIGS

FIRST_FREE = 4096 + BLOCK_REGION + LAUNCH_QUEUE_DEPTH * (BLOCK_REGION + RECORD_BYTES)
"""Where the launch blocks and the records, which the driver makes first, end."""

ROW_BYTES = (64, 72, 200, 1024, 4)
ROWS, FETCHED = 37, 96
MEMORY_BYTES = 1 << 20

STALLS = "ideal:latency=30,stall=0.1,seed=2"
RTL = (pytest.mark.rtl, pytest.mark.slow)
OPENED = [
    *(pytest.param((config, "emulator", "ideal"), id=f"{config}-emulator") for config in CONFIGS),
    pytest.param(("ddr3", "verilator", "ideal"), id="ddr3-verilator", marks=RTL),
    pytest.param(("edge", "verilator", "ideal:latency=20,stall=0.3,seed=5"), id="edge-stalls", marks=RTL),
    pytest.param(("ddr3", "verilator", "litedram-ddr3-x16:stall=0.2,seed=1"), id="ddr3-x16", marks=RTL),
    pytest.param(("broad", "verilator", "litedram-ddr3-x64"), id="broad-ddr3-x64", marks=RTL),
    pytest.param(("broad", "verilator", "litedram-ddr4-x64:stall=0.2,seed=2"), id="broad-ddr4-x64", marks=RTL),
    pytest.param(("small", "verilator", STALLS), id="small-stalls", marks=RTL),
    pytest.param(("wide", "verilator", STALLS), id="wide-stalls", marks=(*RTL, pytest.mark.full)),
    pytest.param(("uneven", "verilator", STALLS), id="uneven-stalls", marks=(*RTL, pytest.mark.full)),
]


@pytest.fixture(scope="module", params=OPENED)
def device(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    config, target, memory = request.param
    with daedal.Device.open(target, CONFIGS[config], memory, memory_bytes=MEMORY_BYTES) as opened:
        yield opened


@dataclass(frozen=True)
class Gather:
    """Rows ``indices`` of ``table`` that go one behind the other to ``out``; the indices lie at ``index``."""

    table: Any
    size: int
    content: np.ndarray
    indices: np.ndarray
    index: int
    out: int

    def body(self, odd: int) -> list[Word]:
        """A nest that does it; rows are stored ``odd`` bytes behind ``out``."""
        limit = self.index + self.indices.nbytes
        return [
            Word.packed(words.LevelField.CONTROL, 0, enable=1, induction=words.Destination.R0),
            Word(words.LevelField.LOWER, 0, 0),
            Word(words.LevelField.UPPER, 0, len(self.indices)),
            Word.packed(words.LevelField.LOAD0, 0, enable=1, size=2, destination=words.Destination.R1),
            Word(words.LevelField.LOAD0_BASE, 0, self.index),
            Word(words.LevelField.LOAD0_LIMIT, 0, limit),
            Word.packed(words.EventField.CONTROL, words.EventKind.ITER.value, first=0, count=1),
            Word.packed(
                words.StepField.CONTROL, 0, store_enable=1, fetch_enable=1, stream=1, queue=words.FetchQueue.STORE,
                store_index=words.Source.R0, fetch_index=words.Source.R1,
            ),
            Word(words.StepField.STORE_BASE, 0, self.out + odd),
            Word(words.StepField.STORE_PITCH, 0, self.size),
            Word(words.StepField.STORE_SIZE, 0, self.size),
            Word(words.StepField.FETCH_BASE, 0, self.table.address),
            Word(words.StepField.FETCH_PITCH, 0, self.table.pitch),
            Word(words.StepField.FETCH_SIZE, 0, self.size),
            Word(words.ControlField.RUN),
        ]  # fmt: skip


def any_class(rng: np.random.Generator, size: int, device: daedal.Device) -> int:
    """A class for so many bytes that programs read."""
    return int(rng.integers(CLASSES if size <= device.config.page_bytes else COPIED))


def gathers(device: daedal.Device, arena: Any, seed: int) -> list[Gather]:
    """A gather for each length of rows; tables, indices and outputs of any class."""
    rng = np.random.default_rng(seed)
    made = []
    for size in ROW_BYTES:
        content = rng.integers(0, 1 << 32, (ROWS, size // 4), np.uint32)
        indices = rng.integers(0, ROWS, FETCHED, np.int32)
        mapping = None if seed == 0 else any_class(rng, size * ROWS, device)
        table = device.bind_table(f"rows of {size}", content.view(np.float32), mapping=mapping)
        index = arena.upload(indices, mapping=any_class(rng, indices.nbytes, device))
        out = arena.reserve(FETCHED * size + 8, mapping=int(rng.integers(COPIED)))
        made.append(Gather(table, size, content, indices, index, out))
    return made


@pytest.mark.parametrize("seed", range(4))
def test_one_launch_gathers_rows_of_every_length(device: daedal.Device, seed: int) -> None:
    """And of the whole memory nothing changes but the outputs, where the map says that they are."""
    config, target = device.config, device.target
    with device.arena() as arena:
        made = gathers(device, arena, seed)
        if seed == 0:
            assert {gather.table.mapping for gather in made} == {
                table_mapping(ROWS, gather.table.pitch, config) for gather in made
            }
        body = [word for gather in made for word in gather.body(odd=4)]
        program = device.load_program(Program(config.hash, body).to_bytes())
        picture = np.frombuffer(target.mem_read(0, MEMORY_BYTES), np.uint8).copy()
        record = device.launch(program)
        assert record.counters[daedal.hw.isa.launch.Counter.ROWS] == FETCHED * len(made)
        for gather in made:
            rows = gather.content[gather.indices]
            assert device.memory.read(gather.out + 4, rows.nbytes) == rows.tobytes()
            for n, element in enumerate(rows.reshape(-1)):
                at = memory_address(gather.out + 4 + 4 * n, config)
                picture[at : at + 4] = np.frombuffer(element.tobytes(), np.uint8)
        after = np.frombuffer(target.mem_read(0, MEMORY_BYTES), np.uint8)
        differing = np.flatnonzero(after != picture)
        assert all(place < FIRST_FREE for place in differing), f"changed at {differing[-1]:#x}"
    for name in list(device.tables):
        device.drop_table(name)


def test_bags_over_rows_of_every_length(device: daedal.Device, rng: np.random.Generator) -> None:
    """The same tables, compiled: equal to PyTorch bit for bit, whatever the classes are."""
    widths = [size // 4 for size in ROW_BYTES]
    bags = [nn.EmbeddingBag(ROWS, dim, mode="sum", include_last_offset=True) for dim in widths]

    class SideBySide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bags = nn.ModuleList(bags)

        def forward(self, indices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
            return torch.cat([bag(indices, offsets) for bag in self.bags], dim=1)

    module = SideBySide()
    indices = torch.from_numpy(rng.integers(0, ROWS, 60, np.int32))
    offsets = torch.from_numpy(np.array([0, 3, 3, 20, 33, 60], np.int32))
    executable = daedal.compile(module, (indices, offsets), device=device)
    with torch.no_grad():
        expected = module(indices, offsets)
        assert torch.equal(executable(indices, offsets), expected)
        classes = {table.dim: table.mapping for table in device.tables.values()}
        assert PLAIN not in classes.values()
        if device.config.page_bytes >= 1024:
            assert granule_bytes(classes[256], device.config) == 1024
        for number, bag in enumerate(bags):  # any other class does as well
            device.bind_table("", bag.weight, mapping=(number * 3 + 2) % COPIED)
        assert torch.equal(executable(indices, offsets), expected)
    for name in list(device.tables):
        device.drop_table(name)
