"""Tables that fit into a page have a copy for each port, which nobody sees but by the clock.

The emulator fetches rows from each copy in turn, so one that is not like the others gives wrong results.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal import f32, i64
from daedal.driver.memory.regions import Region
from daedal.driver.tables.table_store import Table
from daedal.hw.config.core import Config
from daedal.hw.isa import words
from daedal.hw.isa.address_mapping import COPIED, HASHED, class_of, place_of
from daedal.hw.isa.program import Program, Word
from tests.compiler.layers.compiler_support import same_bits

RTL = (pytest.mark.rtl, pytest.mark.slow)
OPENED = [
    pytest.param(("ddr3", "emulator", "ideal"), id="ddr3-emulator"),
    pytest.param(("wide", "emulator", "ideal"), id="wide-emulator"),
    pytest.param(("edge", "emulator", "ideal"), id="edge-emulator"),
    pytest.param(("ddr3", "verilator", "ideal:latency=30,stall=0.1,seed=2"), id="ddr3-stalls", marks=RTL),
    pytest.param(("edge", "verilator", "litedram-ddr3-x16:stall=0.2,seed=1"), id="edge-x16", marks=RTL),
]
SOURCE, TARGET, COUNT, SIZE, PITCH = range(5)
B, D, N = daedal.dims("B D N")


@pytest.fixture(scope="module", params=OPENED)
def device(request: pytest.FixtureRequest) -> Iterator[daedal.Device]:
    config, target, memory = request.param
    with daedal.Device.open(target, config, memory, memory_bytes=1 << 21) as opened:
        yield opened


@pytest.fixture(autouse=True)
def clean(device: daedal.Device) -> None:
    """Tables of other tests are not in the way."""
    for name in list(device.tables):
        device.drop_table(name)


def rows_of(device: daedal.Device, table: Table) -> list[bytes]:
    """What each port has of the table."""
    config, place = device.config, place_of(table.address, device.config)
    step = config.page_bytes
    return [device.target.mem_read(place + port * step, table.rows * table.pitch) for port in range(config.ports)]


def copy_program(config: Config) -> bytes:
    """``COUNT`` rows from SOURCE to TARGET as a store stream."""
    body = [
        Word.packed(words.LevelField.CONTROL, 0, enable=1, induction=words.Destination.R0),
        Word(words.LevelField.LOWER, 0, 0),
        Word(words.LevelField.UPPER, 0, 0, COUNT),
        Word(words.LevelField.STEP, 0, 1),
        Word.packed(words.EventField.CONTROL, words.EventKind.ITER.value, first=0, count=1),
        Word.packed(
            words.StepField.CONTROL, 0, store_enable=1, fetch_enable=1, stream=1,
            queue=words.FetchQueue.STORE, store_index=words.Source.R0, fetch_index=words.Source.R0,
        ),
        Word(words.StepField.STORE_BASE, 0, 0, TARGET),
        Word(words.StepField.STORE_PITCH, 0, 0, PITCH),
        Word(words.StepField.STORE_SIZE, 0, 0, SIZE),
        Word(words.StepField.FETCH_BASE, 0, 0, SOURCE),
        Word(words.StepField.FETCH_PITCH, 0, 0, PITCH),
        Word(words.StepField.FETCH_SIZE, 0, 0, SIZE),
        Word(words.ControlField.RUN),
    ]  # fmt: skip
    return Program(config.hash, body).to_bytes()


@pytest.mark.parametrize(("count", "dim"), [(1, 1), (3, 4), (7, 16), (5, 9), (2, 100), (11, 3)])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_read_every_row_from_the_copies(device: daedal.Device, count: int, dim: int, mode: str) -> None:
    rng = np.random.default_rng(count * dim)
    bag = nn.EmbeddingBag(count, dim, mode=mode, include_last_offset=True)
    indices = torch.from_numpy(rng.integers(0, count, 40))
    offsets = torch.tensor([0, 1, 1, 4, 21, 40])
    executable = daedal.compile(bag, (indices, offsets), device=device)
    for _ in range(2):
        with torch.no_grad():
            assert same_bits(executable(indices, offsets), bag(indices, offsets))
        parts = -(-dim // device.config.vl_max)
        assert executable.stats.rows == parts * len(indices), "each index counts, whichever copy it reads"
        with torch.no_grad():
            bag.weight.mul_(-3)  # which all copies must follow
    (table,) = device.tables.values()
    fits = count * table.pitch <= device.config.page_bytes
    assert table.mapping == class_of(table.address, device.config)
    assert (table.mapping == COPIED) == fits


def test_there_is_one_table_and_no_more_memory(device: daedal.Device) -> None:
    free, page = device.free_bytes, device.config.page_bytes
    arrays = [np.full((page // 16, 4), n, np.float32) for n in range(3)]
    tables = [device.bind_table(f"small {n}", array) for n, array in enumerate(arrays)]
    assert set(device.tables) == {"small 0", "small 1", "small 2"}
    assert free - device.free_bytes <= 4 * device.config.superblock_bytes, "a superblock each, as without copies"
    for array, table in zip(arrays, tables, strict=True):
        assert rows_of(device, table) == [array.tobytes()] * device.config.ports
        assert device.memory.read(table.address, array.nbytes) == array.tobytes()
    larger = device.bind_table("larger", np.ones((page // 16 + 1, 4), np.float32))
    assert larger.mapping in HASHED
    for name in list(device.tables):
        device.drop_table(name)
    assert device.free_bytes == free


def test_a_program_may_write_a_table(device: daedal.Device) -> None:
    """By itself, or named by what it writes, and with a launch behind it that reads what it wrote."""
    rng = np.random.default_rng(2)
    table = device.bind_table("written", rng.random((5, 4), np.float32))
    size = 5 * table.pitch
    assert table.mapping == COPIED
    program = device.load_program(copy_program(device.config))
    with device.arena() as arena:
        out = arena.reserve(size)
        for known in (False, True, False):
            content = rng.random((5, 4), np.float32)
            arguments = [arena.upload(content), table.address, 5, 16, table.pitch]
            regions = {"reads": [], "writes": [Region(table.address, size)]} if known else {}
            device.submit(program, arguments, **regions)
            reads = {"reads": [Region(table.address, size)], "writes": [Region(out, size)]} if known else {}
            device.submit(program, [table.address, out, 5, 16, table.pitch], **reads).result()
            assert arena.download(out, (5, 4)).tobytes() == content.tobytes()
            record = device.launch(program, [table.address, out, 5, 16, table.pitch])
            assert record.stats.rows == 5
            assert arena.download(out, (5, 4)).tobytes() == content.tobytes()
            assert rows_of(device, table) == [content.tobytes()] * device.config.ports


def test_a_launch_that_fails_leaves_equal_copies(device: daedal.Device) -> None:
    """It has written rows when it fetches one that memory does not have."""
    table = device.bind_table("half written", np.zeros((4, 4), np.float32))
    program = device.load_program(copy_program(device.config))
    with device.arena() as arena:
        source = arena.upload(np.ones((4, 4), np.float32))
        pitch = (device.target.memory_bytes - source) // 3 // 16 * 16 + 16  # the last row is not there
        with pytest.raises(daedal.MemoryFault):
            device.launch(program, [source, table.address, 4, 16, pitch])
    assert len(set(rows_of(device, table))) == 1


def test_a_table_that_fits_without_copies_fits_with_them() -> None:
    """Memory of a few superblocks, all of which small tables take, each of them as many as it would without copies."""
    config = Config.preset("ddr3")
    with daedal.Device.open("emulator", config, memory_bytes=8 * config.superblock_bytes) as device:
        room = device.free_bytes // config.superblock_bytes
        arrays = [np.full((3, 4), n, np.float32) for n in range(room)]
        tables = [device.bind_table(f"t{n}", array) for n, array in enumerate(arrays)]
        assert {table.mapping for table in tables} == {COPIED}
        with pytest.raises(daedal.OutOfDeviceMemory):
            device.bind_table("one more", np.zeros((3, 4), np.float32))
        for array, table in zip(arrays, tables, strict=True):
            assert rows_of(device, table) == [array.tobytes()] * config.ports


def test_a_machine_with_one_port_has_no_copies() -> None:
    config = replace(Config.preset("edge"), name="one-port", ports=1)
    with daedal.Device.open("emulator", config) as device:
        assert device.bind_table("t", np.ones((3, 4), np.float32)).mapping in HASHED


class Many(nn.Module):
    """Bags over many small tables and a large one."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [(1 + n % 9, 1 + 5 * n % 23) for n in range(30)] + [(5000, 16)]
        self.bags = nn.ModuleList(nn.EmbeddingBag(rows, dim, mode="sum") for rows, dim in sizes)

    def forward(self, indices: Tensor) -> Tensor:
        return torch.cat([bag(indices % bag.num_embeddings) for bag in self.bags], 1)


def test_many_tables(device: daedal.Device) -> None:
    module, indices = Many(), torch.arange(21).reshape(7, 3)
    executable = daedal.compile(module, (indices,), device=device)
    for change in (1, 2):
        with torch.no_grad():
            module.bags[change].weight.add_(change)
            assert same_bits(executable(indices), module(indices))


@daedal.kernel
def picked(out: f32[B, D], table: f32[N, D], idx: i64[B]):
    for b in range(B):
        for d in range(D):
            out[b, d] = table[idx[b], d]


def test_a_kernel_reads_copies_and_writes_none(device: daedal.Device) -> None:
    table, idx = np.arange(15, dtype=np.float32).reshape(3, 5), np.array([2, 0, 1, 1, 2, 2, 0])
    out = np.zeros((7, 5), np.float32)
    run = daedal.compile(picked, (out, table, idx), device=device)
    for _ in range(2):
        run(out, table, idx)
        assert np.array_equal(out, table[idx])
        table *= -2
    run(table, out, np.array([4, 5, 6]))  # what was a table is written
    assert np.array_equal(table, out[[4, 5, 6]])


def test_what_is_copied_must_fit_a_page(device: daedal.Device) -> None:
    page = device.config.page_bytes
    with pytest.raises(ValueError, match=rf"what is copied must have at most {page} bytes, not {page + 16}"):
        device.bind_table("long", np.zeros((page // 16 + 1, 4), np.float32), mapping=COPIED)
    table = device.bind_table("full", np.ones((page // 16, 4), np.float32), mapping=COPIED)
    with pytest.raises(ValueError, match="what is copied must lie in a superblock's first page, not at"):
        device.memory.read(table.address + 16, page)
