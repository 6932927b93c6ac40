"""The device: tables, programs, launches, faults; on a target that answers as told."""

import asyncio
import gc

import numpy as np
import pytest

import daedal
from daedal.base.process_resource import Owned
from daedal.driver.device import Device
from daedal.driver.launch.launch import POLL_SECONDS, Launch
from daedal.driver.launch.launcher import LAUNCH_MODULUS, Launcher
from daedal.driver.launch.record import Stats
from daedal.driver.memory.allocator import Allocator
from daedal.driver.memory.layout import row_pitch
from daedal.driver.memory.regions import Region
from daedal.driver.targets.registers import Registers
from daedal.hw.config.core import LAUNCH_QUEUE_DEPTH, PRESETS, Config
from daedal.hw.isa.address_mapping import PLAIN
from daedal.hw.isa.launch import (
    Cause,
    Counter,
    EmulatedCause,
    LaunchFlags,
    LaunchWord,
    Queue,
    RecordHead,
    RecordWord,
    State,
)
from daedal.hw.isa.program import Program, pack, unpack
from daedal.hw.isa.registers import Control, Register
from daedal.runtime.futures import Pending, Submitted
from daedal.system.stats import together
from tests.driver.fake_target import FakeTarget

CONFIG = Config.preset("edge")
PROGRAM = Program(CONFIG.hash, []).to_bytes()


@pytest.fixture
def target():
    return FakeTarget(CONFIG)


@pytest.fixture
def dev(target):
    with Device(target, CONFIG) as device:
        yield device


@pytest.mark.parametrize("mixed", [False, True])
def test_the_machine_is_told_whether_memory_loses_time_between_reads_and_writes(target, mixed):
    target.mixed = mixed
    with Device(target, CONFIG) as device:
        assert target.control.mixed == mixed
        target.control = Control.from_bits(0)
        target.outcome = {"state": State.FAULTED, "cause": Cause.PROGRAM, "nest": 1, "level": 2}
        with pytest.raises(daedal.errors.ProgramError):
            device.run(PROGRAM)
        assert target.control.mixed == mixed, "it is told again after a reset"


@pytest.mark.parametrize(
    ("row_bytes", "pitch"),
    [
        (1, 4),
        (4, 4),
        (8, 8),
        (12, 16),
        (16, 16),
        (20, 20),
        (24, 24),
        (28, 32),
        (30, 32),
        (52, 52),
        (64, 64),
        (260, 272),
    ],
)
def test_pitch_on_a_16_byte_bus(row_bytes, pitch):
    assert row_pitch(row_bytes, CONFIG) == pitch


@pytest.mark.parametrize("config", ["minimum", "edge", "ddr3", "wide"])
def test_the_pitch_is_the_least_at_which_no_row_takes_a_line_more(config):
    machine = PRESETS[config]
    line = machine.bus_bytes

    def grows(pitch, size):
        """Whether some row takes more lines than its bytes fill; places in a line repeat after a line of rows."""
        return any(n * pitch % line + size > -(-size // line) * line for n in range(line))

    for size in range(4, 4 * machine.vl_max + 4, 4):
        pitch = row_pitch(size, machine)
        assert pitch >= size and not grows(pitch, size), size
        assert all(grows(less, size) for less in range(size, pitch, 4)), f"{size} bytes have padding at {pitch}"


@pytest.mark.parametrize("row_bytes", [0, -4, 1 << 24])
def test_impossible_pitch(row_bytes):
    with pytest.raises(ValueError, match="a row must"):
        row_pitch(row_bytes, CONFIG)


@pytest.mark.parametrize("dim", [1, 3, 4, 5, 64])
def test_table_lies_in_memory_row_by_row(dev, target, dim):
    source = np.arange(7 * dim, dtype=np.float32).reshape(7, dim)
    table = dev.bind_table("t", source)
    assert (table.rows, table.dim, table.dtype) == (7, dim, "float32")
    assert table.address % dev.config.superblock_bytes == 0
    for row in range(7):
        raw = dev.memory.read(table.address + row * table.pitch, 4 * dim)
        assert np.array_equal(np.frombuffer(raw, np.float32), source[row])
    assert dev.tables == {"t": table}


def test_long_table_is_uploaded_in_pieces(dev, target, monkeypatch):
    monkeypatch.setattr("daedal.driver.tables.table_store.UPLOAD_CHUNK", 100)
    source = np.random.default_rng(1).random((50, 5), np.float32)
    table = dev.bind_table("t", source)
    raw = np.frombuffer(dev.memory.read(table.address, 50 * table.pitch), np.float32).reshape(50, -1)
    assert np.array_equal(raw[:, :5], source)


def test_array_is_uploaded_once_and_again_when_changed(dev):
    source = np.zeros((4, 4), np.float32)
    table = dev.bind_table("t", source)
    assert dev.bind_table("t", source) == table
    assert dev.table_uploads == 1
    source[2, 1] = 5
    assert dev.bind_table("t", source) == table
    assert dev.table_uploads == 2


def test_tensor_is_uploaded_once_and_again_when_changed(dev, target):
    import torch

    source = torch.zeros(4, 8, requires_grad=True)
    table = dev.bind_table("t", source)
    assert dev.bind_table("other name", source) == table
    assert dev.table_uploads == 1
    with torch.no_grad():
        source[3, 7] = 2
    assert dev.bind_table("t", source) == table
    assert dev.table_uploads == 2
    assert dev.memory.read(table.address + 127 - 3, 4) == np.float32(2).tobytes()


def test_new_tensor_is_not_taken_for_a_freed_one(dev, target):
    import torch

    for value in range(5):
        source = torch.full((4, 4), float(value))
        table = dev.bind_table("t", source)
        assert dev.memory.read(table.address, 4) == np.float32(value).tobytes()
        del source
        gc.collect()
    assert list(dev.tables) == ["t"]


def test_same_name_of_two_living_tensors(dev):
    import torch

    one, two = torch.zeros(4, 4), torch.ones(4, 4)
    tables = [dev.bind_table("t", source) for source in (one, two, one, two)]
    assert tables[0] == tables[2] != tables[1] == tables[3]
    assert sorted(dev.tables) == ["t", "t#2"]
    assert dev.table_uploads == 2


def test_inference_tensor(dev):
    import torch

    with torch.inference_mode():
        source = torch.zeros(4, 4)
        for uploads in (1, 1, 2):
            source[0, 0] = uploads
            dev.bind_table("t", source)
            assert dev.table_uploads == uploads


def test_transposed_tensor(dev, target):
    import torch

    source = torch.arange(12.0).reshape(3, 4).t()
    table = dev.bind_table("t", source)
    assert dev.memory.read(table.address + table.pitch, 12) == np.array([1, 5, 9], np.float32).tobytes()


def test_resized_table_moves_and_memory_is_given_back(dev):
    free = dev.free_bytes
    dev.bind_table("t", np.zeros((4, 4), np.float32))
    gc.collect()
    dev.bind_table("t", np.zeros((400, 4), np.float32))
    dev.drop_table("t")
    assert dev.free_bytes == free
    assert not dev.tables


def test_table_that_moves_makes_room_for_itself(dev):
    """There is none for both, before and after."""
    rows = dev.free_bytes * 3 // 4 // 64
    table = np.zeros((rows, 16), np.float32)
    assert dev.bind_table("t", table).pitch == 64
    changed = dev.bind_table("t", table, mapping=PLAIN)
    assert changed.mapping == PLAIN and dev.tables == {"t": changed}


@pytest.mark.parametrize("source", [np.zeros(4, np.float32), np.zeros((2, 0), np.float32)])
def test_table_of_wrong_shape(dev, source):
    with pytest.raises(ValueError, match="a table must have two dimensions"):
        dev.bind_table("t", source)


def test_table_of_wrong_type(dev):
    with pytest.raises(TypeError, match="must be a torch tensor or a NumPy array, not list"):
        dev.bind_table("t", [[1.0]])


def test_table_that_does_not_fit_leaves_the_others(dev):
    small = np.ones((4, 4), np.float32)
    table = dev.bind_table("small", small)
    with pytest.raises(daedal.OutOfDeviceMemory, match=r"table 'big' of 1600000 bytes"):
        dev.bind_table("big", np.zeros((100_000, 4), np.float32))
    assert dev.tables == {"small": table}
    assert dev.bind_table("small", small) == table
    assert dev.table_uploads == 1


def test_program_stays_resident(dev, target):
    address = dev.load_program(PROGRAM)
    assert dev.load_program(bytearray(PROGRAM)) == address
    assert address % 64 == 0
    assert target.mem_read(address, len(PROGRAM)) == PROGRAM


@pytest.mark.parametrize("position", range(0, len(PROGRAM), 5))
def test_altered_program(dev, position):
    altered = bytearray(PROGRAM)
    altered[position] ^= 0x10
    with pytest.raises(daedal.ProgramError):
        dev.load_program(altered)


@pytest.mark.parametrize("raw", [b"", PROGRAM[:-8], PROGRAM[:-1], PROGRAM + b"\0" * 8])
def test_truncated_program(dev, raw):
    with pytest.raises(daedal.ProgramError):
        dev.load_program(raw)


def test_program_of_another_configuration(dev):
    with pytest.raises(daedal.ConfigMismatch, match=r"configuration edge .* compile it for this device"):
        dev.load_program(Program(PRESETS["ddr3"].hash, []).to_bytes())


def test_arena_gives_everything_back(dev):
    free = dev.free_bytes
    data = np.arange(10, dtype=np.int64)
    with dev.arena() as arena:
        address = arena.upload(data)
        empty = arena.upload(np.zeros(0, np.float32))
        assert address % 64 == 0
        assert address != empty
        assert np.array_equal(arena.download(address, (2, 5), np.int64), data.reshape(2, 5))
        assert arena.download(empty, (0, 3)).shape == (0, 3)
        assert dev.free_bytes < free
    assert dev.free_bytes == free


def test_launch_passes_arguments_and_reads_the_record(dev, target):
    target.counters = {Counter.CYCLES: 100, Counter.LINES_READ: 50}
    target.counters |= {Counter.STALL_LOAD: 7, Counter.MARK_TOKEN: 3}
    record = dev.run(PROGRAM, [1, (1 << 40) - 1, -2])
    assert target.arguments[:4] == [1, (1 << 40) - 1, (1 << 40) - 2, 0]
    stats = record.stats
    assert (stats.cycles, stats.launches, stats.lines_read, stats.bytes_read) == (100, 1, 50, 800)
    assert (stats.stalls["load"], stats.marks["token"]) == (7, 3)
    assert (stats.main_stall, stats.line_share) == ("load", 0.5)
    assert dev.run(PROGRAM).launch == record.launch + 1


@pytest.mark.parametrize(
    ("stalls", "main"),
    [
        ({}, ""),
        ({"load": 0}, ""),
        ({"load": 1, "hazard": 2, "token_empty": 9}, "hazard"),
        ({"token_empty": 1}, "token_empty"),
    ],
)
def test_main_stall(stalls, main):
    assert Stats(stalls=stalls).main_stall == main


def test_figures_without_a_clock() -> None:
    """What is printed of a target without a clock has no cycles; of no launch there are none."""
    assert repr(Stats(launches=2, rows=3)).startswith("Stats(cycles=–, launches=2, rows=3, ")
    assert str(Stats(cycles=5, launches=1)).startswith("Stats(cycles=5, launches=1, ")
    assert str(Stats()).startswith("Stats(cycles=0, launches=0, ")
    tiles = together([Stats(launches=1), Stats()])
    assert repr(tiles).startswith("SystemStats(cycles=–, ") and "Stats(cycles=–, launches=1" in repr(tiles.per_tile)


def test_stats_add_up():
    both = Stats(cycles=1, launches=1, stalls={"a": 1}, marks={"q": 5}) + Stats(
        cycles=2, launches=1, rows=3, stalls={"a": 2, "b": 1}, marks={"q": 4}
    )
    assert both == Stats(cycles=3, launches=2, rows=3, stalls={"a": 3, "b": 1}, marks={"q": 5})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([0] * 33, "at most 32 arguments, not 33"), ([1 << 40], "argument 0 must fit 40 bits")],
)
def test_impossible_arguments(dev, arguments, message):
    with pytest.raises(ValueError, match=message):
        dev.run(PROGRAM, arguments)


FAULTS = [
    (Cause.INDEX, daedal.IndexOutOfRange, IndexError, "index -3 is out of range"),
    (Cause.OFFSET, daedal.InvalidOffsets, ValueError, "offset -3 points outside"),
    (Cause.BOUNDS_ORDER, daedal.InvalidOffsets, ValueError, "must not decrease, but -3"),
    (Cause.ALIGNMENT, daedal.ProgramError, daedal.DaedalError, "row at 0x50"),
    (Cause.FRAMING, daedal.ProgramError, daedal.DaedalError, "a row of 18446744073709551613 bytes was to be stored"),
    (Cause.PROGRAM, daedal.ProgramError, daedal.DaedalError, "does not exist on this machine"),
    (Cause.MEMORY_ERROR, daedal.MemoryFault, daedal.DaedalError, "answered with an error at address 0x50"),
    (Cause.MEMORY_SILENT, daedal.MemoryFault, daedal.DaedalError, "did not answer in launch"),
    (Cause.HANG, daedal.DeviceHang, daedal.DaedalError, "waits for the store data queue"),
    (Cause.STORE_WINDOW, daedal.ProgramError, daedal.DaedalError, "a store at 0x50 is outside of the memory"),
    (
        EmulatedCause.READ_AFTER_STORE,
        daedal.ReadAfterStore,
        daedal.ProgramError,
        "reads and stores the byte at 0x50 .nest 1",
    ),
]


@pytest.mark.parametrize(("cause", "kind", "also", "message"), FAULTS, ids=[case[0].name for case in FAULTS])
def test_fault_becomes_an_exception_and_the_device_stays(dev, target, cause, kind, also, message):
    table = dev.bind_table("t", np.ones((4, 4), np.float32))
    resets = target.resets
    target.outcome = {
        "state": State.FAULTED, "cause": cause, "nest": 1, "level": 2, "queue": Queue.STORE_DATA,
        "value": (1 << 64) - 3, "address": 0x50,
    }  # fmt: skip
    with pytest.raises(kind, match=message) as caught:
        dev.run(PROGRAM)
    assert isinstance(caught.value, also)
    assert (caught.value.record.cause, caught.value.record.nest, caught.value.record.level) == (cause, 1, 2)
    assert target.resets == resets + 1
    target.outcome = {"state": State.DONE}
    assert dev.run(PROGRAM).state is State.DONE
    assert dev.tables == {"t": table}


def test_the_table_is_named_of_which_a_byte_is_read_and_stored(dev, target):
    table = dev.bind_table("t", np.ones((4, 4), np.float32))
    head = {"state": State.FAULTED, "cause": EmulatedCause.READ_AFTER_STORE}
    for address, named in ((table.address, True), (table.address + 4 * table.pitch, False)):
        target.outcome = {**head, "address": address}
        with pytest.raises(daedal.ReadAfterStore, match=f"{address:#x}{' of table .t.' if named else ''} .nest"):
            dev.run(PROGRAM)


def test_every_cause_is_tested():
    assert {cause for cause, *_ in FAULTS} == {*Cause, *EmulatedCause} - {Cause.NONE}


def test_cancelled_launch(dev, target):
    target.outcome = {"state": State.CANCELLED}
    with pytest.raises(daedal.DaedalError, match="was cancelled"):
        dev.run(PROGRAM)


def test_numbers_of_launches_and_completed_come_round(target):
    """Both have 32 bits. A machine that has been at work for long is opened, and its launches end one by one."""
    target.registers[Register.COMPLETED] = LAUNCH_MODULUS - 3
    with Device(target, CONFIG) as device:
        device._launcher._launch = LAUNCH_MODULUS - 4
        numbers = [device.run(PROGRAM).launch for _ in range(7)]
    assert numbers == [*range(LAUNCH_MODULUS - 3, LAUNCH_MODULUS), *range(4)]


def test_several_launches_end_while_completed_comes_round(target):
    """The host reads COMPLETED once for all of them, as it is behind its largest value."""
    target.registers[Register.COMPLETED] = LAUNCH_MODULUS - 2
    with Device(target, CONFIG) as device:
        program = device.load_program(PROGRAM)
        launches = [device.submit(program, []) for _ in range(LAUNCH_QUEUE_DEPTH)]
        for launch in launches:
            head = pack(RecordHead, {"state": State.DONE, "launch": launch.number})
            target.mem_write(launch.record_address + 8 * RecordWord.HEAD.value, head.to_bytes(8, "little"))
        target.registers[Register.COMPLETED] = LAUNCH_QUEUE_DEPTH - 2
        assert all(launch.done() for launch in launches)
        assert [launch.result().launch for launch in launches] == [launch.number for launch in launches]


A, B, C = (Region(0x10000 * n, 64) for n in range(1, 4))
FENCED = {
    "the first one's": ([([], [A]), ([], [B]), ([A], [C])], [0, 0, 1]),
    "the second one's": ([([], [A]), ([], [B]), ([B], [C])], [0, 0, 1]),
    "nobody's": ([([], [A]), ([], [B]), ([C], [])], [0, 0, 0]),
    "its last byte": ([([], [A]), ([], [B]), ([C, Region(A.address + 63, 1)], [])], [0, 0, 1]),
    "its first byte": ([([], [A]), ([], [B]), ([Region(A.address - 7, 8)], [])], [0, 0, 1]),
    "the byte before": ([([], [A]), ([], [B]), ([Region(A.address - 8, 8)], [])], [0, 0, 0]),
    "the byte behind": ([([], [A]), ([], [B]), ([Region(A.address + 64, 8)], [])], [0, 0, 0]),
    "one that nobody knows": ([([], None), ([], [B]), ([C], [])], [0, 1, 1]),
    "it does not say": ([([], [A]), (None, [B]), ([C], [])], [0, 1, 0]),
    "what it writes too": ([([], [A]), ([], [A]), ([], [A])], [0, 0, 0]),
}
"""What three launches read and write, and which of them must be fenced."""


@pytest.mark.parametrize(("launches", "fenced"), FENCED.values(), ids=FENCED)
def test_a_launch_waits_for_whichever_writes_what_it_reads(dev, target, launches, fenced):
    program = dev.load_program(PROGRAM)
    flags = []
    for reads, writes in launches:
        dev.submit(program, [], reads=reads, writes=writes)
        block = target.registers[Register.LAUNCH_LOW] | target.registers[Register.LAUNCH_HIGH] << 32
        word = target.mem_read(block + 8 * LaunchWord.FLAGS.value, 8)
        flags.append(unpack(LaunchFlags, int.from_bytes(word, "little"))["fence"])
    assert flags == fenced


@pytest.mark.parametrize("kind", ["Launch", "Submitted"])
def test_others_of_the_event_loop_go_on_while_one_waits(dev, target, kind):
    """The machine needs several times as long as an awaited launch may keep the event loop."""
    turns, waited, end = [0], [0], target.wait

    def wait(timeout):
        assert timeout is not None and timeout <= POLL_SECONDS
        waited[0] += 1
        return waited[0] > 5 and end()

    target.wait = wait
    launch = dev.submit(dev.load_program(PROGRAM), [])
    future = launch
    if kind == "Submitted":
        future = Submitted(Launch.result)
        future.add(Pending(launch, lambda error: error, lambda record: None))
        future.value = "its result"

    async def others():
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    async def run():
        task = asyncio.ensure_future(others())
        found = await future
        task.cancel()
        return found

    found = asyncio.run(run())
    assert found == "its result" if kind == "Submitted" else found.launch == launch.number
    assert waited[0] == 6 and turns[0] >= 5
    assert future.done()


def test_a_result_of_several_launches_is_done_with_the_last(dev, target):
    program = dev.load_program(PROGRAM)
    submitted, launches = Submitted(Launch.result), [dev.submit(program, []) for _ in range(2)]
    for launch in launches:
        submitted.add(Pending(launch, lambda error: error, lambda record: None))
    for launch in launches:
        assert not submitted.done()
        head = pack(RecordHead, {"state": State.DONE, "launch": launch.number})
        target.mem_write(launch.record_address + 8 * RecordWord.HEAD.value, head.to_bytes(8, "little"))
        target.registers[Register.COMPLETED] += 1
    assert submitted.done()
    assert submitted.result() is None
    assert submitted.stats.launches == 2


def test_a_record_that_was_never_written(dev, target):
    """That of the launch before is not taken for it."""
    for _ in range(LAUNCH_QUEUE_DEPTH):  # one for each place that records are written to
        dev.run(PROGRAM)

    def end() -> bool:
        target.registers[Register.COMPLETED] += 1
        return True

    target.on_wait = end
    with pytest.raises(daedal.MemoryFault, match="completion record did not reach the memory"):
        dev.run(PROGRAM)


def test_a_launch_block_beyond_4_gib(target):
    def stop() -> bool:
        raise TimeoutError

    target.on_wait = stop
    launcher = Launcher(target, Registers(target), Allocator(1 << 33, 1 << 34, CONFIG), CONFIG, Owned("it"))
    with pytest.raises(TimeoutError):
        launcher.run(0, [])
    assert target.registers[Register.LAUNCH_HIGH] << 32 | target.registers[Register.LAUNCH_LOW] == 1 << 33


@pytest.mark.parametrize(
    "outcome", [{"state": 77}, {"state": State.DONE, "cause": 200}, {"state": State.DONE, "launch": 0}]
)
def test_nonsense_record(dev, target, outcome):
    target.outcome = outcome
    with pytest.raises(daedal.DaedalError, match="the completion record must be"):
        dev.run(PROGRAM)


@pytest.mark.parametrize("difference", [1, -1])
@pytest.mark.parametrize("name", ["CYCLES", "LINES_READ", "BYTES_WRITTEN"])
def test_counters_that_disagree(dev, target, name, difference):
    target.counters = {Counter.CYCLES: 100, Counter.LINES_READ: 50, Counter.BYTES_WRITTEN: 8}
    target.counted_values = {"CYCLES": 100, "LINES_READ": 50, "BYTES_WRITTEN": 8}
    assert dev.run(PROGRAM).counters[Counter.CYCLES] == 100
    target.counted_values[name] += difference
    with pytest.raises(daedal.CountMismatch, match=f"counter {name}"):
        dev.run(PROGRAM)


def test_launch_that_takes_too_long(dev, target):
    resets = target.resets
    target.on_wait = lambda: False
    with pytest.raises(daedal.DeviceHang, match=r"did not end within 0.5 s"):
        dev.launch(dev.load_program(PROGRAM), timeout=0.5)
    assert target.resets == resets + 1


def test_keyboard_interrupt_resets(dev, target):
    resets = target.resets

    def interrupt():
        target.on_wait = None
        raise KeyboardInterrupt

    target.on_wait = interrupt
    with pytest.raises(KeyboardInterrupt):
        dev.run(PROGRAM)
    assert target.resets == resets + 1
    assert dev.run(PROGRAM).state is State.DONE


def test_reset_that_does_not_end(dev, target, monkeypatch):
    monkeypatch.setattr("daedal.driver.targets.registers.RESET_POLLS", 10)
    target.stuck_reset = True
    with pytest.raises(daedal.DeviceHang, match="did not come out of reset"):
        dev.reset()
    resets, program = target.resets, dev.load_program(PROGRAM)
    with pytest.raises(daedal.DeviceHang, match="did not come out of reset"):
        dev.launch(program)
    assert target.resets == resets + 1, "it is tried again before the next launch"
    target.stuck_reset = False
    assert dev.launch(program).state is State.DONE
    assert target.resets == resets + 2
    assert dev.launch(program).state is State.DONE
    assert target.resets == resets + 2, "once it has come out, no more"


USES = {
    "target": lambda dev: dev.target,
    "tables": lambda dev: dev.tables,
    "free_bytes": lambda dev: dev.free_bytes,
    "table_uploads": lambda dev: dev.table_uploads,
    "bind_table": lambda dev: dev.bind_table("t", np.zeros((2, 2), np.float32)),
    "table_changed": lambda dev: dev.table_changed(np.zeros((2, 2), np.float32)),
    "find_tables": lambda dev: dev.find_tables([]),
    "drop_table": lambda dev: dev.drop_table("t"),
    "load_program": lambda dev: dev.load_program(PROGRAM),
    "arena": lambda dev: dev.arena(),
    "launch": lambda dev: dev.launch(4096),
    "run": lambda dev: dev.run(PROGRAM),
    "reset": lambda dev: dev.reset(),
}


@pytest.mark.parametrize("use", USES.values(), ids=list(USES))
def test_closed_device(target, use):
    device = Device(target, CONFIG)
    device.close()
    device.close()
    assert device.closed
    assert target.closed
    with pytest.raises(daedal.DeviceClosed, match="the device is closed: open a new one"):
        use(device)


@pytest.mark.parametrize("register", [Register.IDENTITY, Register.REVISION, Register.CONFIG_HASH])
def test_device_of_another_kind(target, register):
    target.registers[register] ^= 1
    with pytest.raises(daedal.ConfigMismatch, match="the device must"):
        Device(target, CONFIG)


def test_a_device_of_another_kind_is_closed_again(target, monkeypatch):
    target.registers[Register.REVISION] ^= 1
    monkeypatch.setattr("daedal.driver.device.open_target", lambda *arguments, **options: target)
    with pytest.raises(daedal.ConfigMismatch):
        Device.open("emulator", CONFIG)
    assert target.closed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "quantum"}, "target must be one of emulator, model, verilator, board-sim, "),
        ({"config": "huge"}, f"configuration must be one of {', '.join(PRESETS)}, not 'huge'"),
        ({"config": 5}, "config must be a Config or the name of one, not 5"),
        ({"memory_bytes": 10}, "memory_bytes must be from"),
        ({"memory_bytes": 1e8}, "memory_bytes must be a whole number"),
        ({"memory_bytes": "1"}, "memory_bytes must be a whole number"),
        ({"memory_bytes": 1 << 41}, "memory_bytes must be from"),
    ],
)
def test_impossible_options(options, message):
    with pytest.raises(ValueError, match=message):
        Device.open(**{"target": "emulator", **options})
