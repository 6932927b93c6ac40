"""The emulator as a target: memory, waiting, closing."""

import time

import numpy as np
import pytest

from daedal.cosim.emulator import EmulatorTarget
from daedal.errors import DeviceClosed, OutOfDeviceMemory
from daedal.hw.config.core import Config
from daedal.hw.isa.program import Program, Word
from daedal.hw.isa.registers import Register
from daedal.hw.isa.words import LevelField
from tests.unit.emulator.programs import Bench, level, run_nest
from tests.unit.emulator.test_faults import reset, status

CONFIG = Config()


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, np.frombuffer])
def test_memory_takes_any_buffer(kind: type) -> None:
    raw = bytes(range(64))
    data = np.frombuffer(raw, dtype=np.uint8).copy() if kind is np.frombuffer else kind(raw)
    with EmulatorTarget(CONFIG, 4096) as target:
        target.mem_write(100, data)
        assert target.mem_read(98, 68) == bytes(2) + raw + bytes(2)
        target.mem_write(0, b"")
        assert target.mem_read(4096, 0) == b""


@pytest.mark.parametrize(("address", "size"), [(-1, 1), (4096, 1), (4095, 2), (1 << 64, 1)])
def test_accesses_stay_in_memory(address: int, size: int) -> None:
    with EmulatorTarget(CONFIG, 4096) as target:
        with pytest.raises(ValueError, match="must lie within 4096 bytes"):
            target.mem_read(address, size)
        with pytest.raises(ValueError, match="must lie within 4096 bytes"):
            target.mem_write(address, bytes(size))


def test_too_much_memory() -> None:
    with pytest.raises(OutOfDeviceMemory, match="memory_bytes must be"):
        EmulatorTarget(CONFIG, 1 << 62)


def test_closed() -> None:
    target = EmulatorTarget(CONFIG, 4096)
    target.close()
    target.close()
    for use in (lambda: target.csr_read(0), lambda: target.mem_read(0, 1), target.wait, target.trace):
        with pytest.raises(DeviceClosed):
            use()


def test_wait_without_a_launch(bench: Bench) -> None:
    assert not bench.target.wait()
    bench.run([run_nest()])
    assert bench.target.wait()
    bench.target.csr_write(Register.INTERRUPT.value, 1)
    assert not bench.target.wait()


def test_a_long_launch_can_be_waited_for_in_parts_and_reset(bench: Bench) -> None:
    nest = [*level(0), Word(LevelField.LOWER, 0), Word(LevelField.UPPER, 0, (1 << 31) - 1), run_nest()]
    bench.queue(Program(bench.config.hash, nest).to_bytes())
    start = time.monotonic()
    assert not bench.target.wait(0.05)
    assert not bench.target.wait(0.05)
    assert time.monotonic() - start < 5
    assert status(bench)["busy"]
    reset(bench)
    assert not status(bench)["busy"]
    assert bench.target.csr_read(Register.COMPLETED.value) == 0


def test_several_machines_do_not_meet() -> None:
    with EmulatorTarget(CONFIG, 4096) as one, EmulatorTarget(Config.preset("edge"), 8192) as other:
        one.mem_write(0, b"one")
        assert other.mem_read(0, 3) == bytes(3)
        assert one.csr_read(Register.CONFIG_HASH.value) != other.csr_read(Register.CONFIG_HASH.value)
