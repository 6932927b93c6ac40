"""The driver on the emulator and on the RTL, with a program written by hand."""

import os
import signal
import threading

import numpy as np
import pytest

import daedal
from daedal.driver.launch.launcher import LAUNCH_MODULUS
from daedal.hw.config.core import PRESETS, Config
from daedal.hw.isa import words
from daedal.hw.isa.launch import Cause
from daedal.hw.isa.program import Program, Word
from daedal.hw.isa.registers import Register

CONFIG = PRESETS["edge"]
SOURCE, TARGET, COUNT, SIZE, PITCH = range(5)
"""Launch arguments of the copy program: two addresses, the number of rows, their size and pitch in bytes."""

FOR_EVER = (1 << 31) - 1
"""The largest upper bound of machines with 32 bits."""


def copy_program(config: Config = CONFIG) -> bytes:
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


RTL = (pytest.mark.rtl, pytest.mark.slow)
OPENED = [
    pytest.param(("emulator", "ideal"), id="emulator"),
    pytest.param(("verilator", "ideal"), id="verilator", marks=RTL),
    pytest.param(("verilator", "ideal:stall=0.3,seed=5"), id="verilator-stalls", marks=RTL),
]


@pytest.fixture(params=OPENED)
def dev(request):
    target, memory = request.param
    with daedal.Device.open(target, CONFIG, memory, memory_bytes=1 << 24) as device:
        yield device


def copy(dev, source: np.ndarray, *, size: int | None = None, origin: int | None = None) -> np.ndarray:
    with dev.arena() as arena:
        address = arena.upload(source) if origin is None else origin
        target = arena.reserve(source.nbytes)
        row_bytes = source.nbytes // len(source) if size is None else size
        record = dev.run(copy_program(dev.config), [address, target, len(source), row_bytes, row_bytes])
        assert record.stats.rows == len(source)
        return arena.download(target, source.shape, source.dtype)


@pytest.mark.parametrize("shape", [(1, 4), (9, 64), (100, 8)])
def test_rows_are_copied(dev, rng, shape):
    source = rng.random(shape, np.float32)
    assert np.array_equal(copy(dev, source), source)
    assert dev.target.csr_read(Register.INTERRUPT.value) == 0, "the interrupt is still there"


def test_numbers_of_launches_come_round(dev):
    """After 2^32 - 1 comes 0, in the record as in the launch block."""
    program = dev.load_program(copy_program(dev.config))
    dev._launcher._launch = LAUNCH_MODULUS - 3
    launches = [dev.submit(program, [0, 0, 0, 16, 16]) for _ in range(4)]
    assert [launch.result().launch for launch in launches] == [LAUNCH_MODULUS - 2, LAUNCH_MODULUS - 1, 0, 1]


def test_fault_leaves_device_and_tables_usable(dev, rng):
    table = rng.random((10, 16), np.float32)
    resident = dev.bind_table("t", table)
    with pytest.raises(daedal.ProgramError) as caught:
        copy(dev, table, size=6)
    assert caught.value.record.cause is Cause.ALIGNMENT
    assert np.array_equal(copy(dev, table, origin=resident.address), table)
    assert dev.bind_table("t", table) == resident
    assert dev.table_uploads == 1


def test_memory_beyond_the_end(dev, rng):
    with pytest.raises(daedal.MemoryFault, match="0x1000000"):
        copy(dev, rng.random((4, 16), np.float32), origin=1 << 24)


def test_program_that_lies_about_its_length_is_refused_by_the_machine_too(dev):
    raw, address = bytearray(copy_program()), 1 << 20
    raw[8 * 5 : 8 * 6] = b"\xff" * 8
    dev.target.mem_write(address, bytes(raw))
    with pytest.raises(daedal.ProgramError):
        dev.launch(address, [0] * 5)


def test_interrupt_from_the_keyboard(dev, rng):
    table = rng.random((10, 16), np.float32)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    address = dev.load_program(copy_program())
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        dev.launch(address, [16, 0, FOR_EVER, 16, 0])
    timer.join()
    assert np.array_equal(copy(dev, table), table)


def test_time_limit(dev, rng):
    table = rng.random((10, 16), np.float32)
    with pytest.raises(daedal.DeviceHang, match=r"did not end within 0.1 s"):
        dev.launch(dev.load_program(copy_program()), [16, 0, FOR_EVER, 16, 0], timeout=0.1)
    assert np.array_equal(copy(dev, table), table)


def test_device_of_another_configuration():
    from daedal.cosim.emulator import EmulatorTarget
    from daedal.driver.device import Device

    target = EmulatorTarget(PRESETS["ddr3"], 1 << 20)
    with pytest.raises(daedal.ConfigMismatch, match="must have configuration edge"):
        Device(target, CONFIG)
    target.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": "slow"}, "memory must be one of ideal"),
        ({"memory": None}, "memory must be a memory model as text.*not None"),
        ({"wave": "x.vcd"}, "wave must be None for the emulator"),
    ],
)
def test_options_that_the_emulator_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        daedal.Device.open("emulator", CONFIG, **options)
