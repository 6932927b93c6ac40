"""A device that is closed while other threads use it, left at the end of a process, collected, or forked."""

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal.driver.memory.regions import Region
from tests.driver.test_driver_targets import CONFIG, FOR_EVER, copy_program

RTL = (pytest.mark.rtl, pytest.mark.slow)
TARGETS = ["emulator", pytest.param("verilator", marks=RTL)]


class Use:
    """A device with an executable and a resident table, and what threads do with it again and again."""

    def __init__(self, device: daedal.Device) -> None:
        self.device = device
        self.module, self.inputs = nn.EmbeddingBag(50, 8, mode="sum"), (torch.arange(40).view(8, 5),)
        with torch.no_grad():
            self.executable = daedal.compile(self.module, self.inputs, device=device)
            self.executable(*self.inputs)
        self.table = device.bind_table("other", np.ones((4, 8), np.float32))

    def call(self) -> None:
        assert torch.equal(self.executable(*self.inputs), self.module(*self.inputs))

    def submit(self) -> None:
        futures = [self.executable.submit(*self.inputs) for _ in range(3)]
        for future in futures:
            future.done()
            assert torch.equal(future.result(), self.module(*self.inputs))

    def wait_for_what_never_ends(self) -> None:
        program = self.device.load_program(copy_program())
        self.device.submit(program, [16, 0, FOR_EVER, 16, 0], reads=[], writes=[Region(0, 16)]).result()

    def memory(self) -> None:
        self.device.memory.write(self.table.address, bytes(128))
        assert len(self.device.memory.read(self.table.address, 128)) == 128

    def target(self) -> None:
        self.device.target.csr_read(0)
        self.device.target.mem_write(0, b"x")
        self.device.target.mem_read(0, 1)

    def reset(self) -> None:
        with suppress(daedal.LaunchCancelled):
            self.device.reset()

    def look(self) -> None:
        assert self.device.free_bytes and self.device.table_uploads and len(self.device.tables)
        assert self.executable.stats.launches <= 1


def until_closed(act: Callable[[], None], said: list[BaseException]) -> None:
    try:
        with torch.no_grad():
            while True:
                with suppress(daedal.LaunchCancelled):
                    act()
    except BaseException as error:
        said.append(error)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "doing",
    [
        ("call", "call", "memory", "look"), ("submit", "submit", "target"),
        ("wait_for_what_never_ends", "memory", "call"), ("reset", "call", "submit", "target"),
    ],
)  # fmt: skip
def test_closed_while_others_use_it(target: str, doing: tuple[str, ...]) -> None:
    for number in range(4):
        device = daedal.Device.open(target, CONFIG, memory_bytes=1 << 22)
        use, said = Use(device), list[BaseException]()
        threads = [threading.Thread(target=until_closed, args=(getattr(use, name), said)) for name in doing]
        for thread in threads:
            thread.start()
        time.sleep(0.01 * number)
        closers = [threading.Thread(target=device.close) for _ in range(2)]
        for thread in closers:
            thread.start()
        for thread in (*closers, *threads):
            thread.join(20)
            assert not thread.is_alive()
        for error in said:
            assert isinstance(error, daedal.DeviceClosed), "".join(traceback.format_exception(error))
        assert len(said) == len(doing) and device.closed and device.flying == 0


@pytest.mark.parametrize("target", TARGETS)
def test_the_target_alone(target: str) -> None:
    """It guards itself: whoever has it, and uses it past the device."""
    device = daedal.Device.open(target, CONFIG, memory_bytes=1 << 22)
    opened, said = device.target, list[BaseException]()
    acts: list[Callable[[], Any]] = [
        lambda: opened.csr_read(0), lambda: opened.csr_write(0, 0), lambda: opened.mem_read(0, 1 << 20),
        lambda: opened.mem_write(0, bytes(1 << 20)), lambda: opened.wait(0.02),
    ]  # fmt: skip
    threads = [threading.Thread(target=until_closed, args=(act, said)) for act in acts]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    opened.close()
    opened.close()
    for thread in threads:
        thread.join(20)
    assert [type(error) for error in said] == [daedal.DeviceClosed] * len(acts)


AT_THE_END = """
import sys, threading, time
import daedal
from daedal.driver.memory.regions import Region
from tests.driver.test_driver_targets import CONFIG, FOR_EVER, copy_program

devices = [daedal.Device.open(sys.argv[1], CONFIG, memory_bytes=1 << 22) for _ in range(2)]
for device in devices:
    program = device.load_program(copy_program())
    arguments = [16, 0, FOR_EVER, 16, 0]
    threading.Thread(target=device.launch, args=(program, arguments), daemon=True).start()
    threading.Thread(target=lambda: [device.memory.read(0, 1 << 20) for _ in iter(int, 1)], daemon=True).start()
threading.excepthook = lambda *_: None
time.sleep(0.1)
print("right", flush=True)
"""


@pytest.mark.parametrize("target", TARGETS)
def test_the_end_of_a_process_with_launches_at_work(target: str, root: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END, target], cwd=root, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr


@pytest.mark.parametrize("target", TARGETS)
def test_a_device_that_nobody_keeps(target: str) -> None:
    """A launch of it is still at work; its memory goes with it."""
    for _ in range(3):
        device = daedal.Device.open(target, CONFIG, memory_bytes=1 << 22)
        device.submit(device.load_program(copy_program()), [16, 0, FOR_EVER, 16, 0])
        del device
        gc.collect()


# ---------------------------------------------------------------------- forked processes


@pytest.fixture(params=TARGETS)
def use(request: pytest.FixtureRequest) -> Iterator[Use]:
    with daedal.Device.open(request.param, CONFIG, memory_bytes=1 << 22) as device, torch.no_grad():
        yield Use(device)


def forked(act: Callable[[], object]) -> list[str]:
    """What a forked process says: the type and the text of the exception that ``act`` ends with, or nothing."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def child() -> None:
        try:
            act()
        except BaseException as error:
            there.send([type(error).__name__, str(error)])
        else:
            there.send([])

    process = context.Process(target=child)
    process.start()
    there.close()
    try:
        assert here.poll(20), "it hangs"
        found: list[str] = here.recv()
        process.join(20)
        assert process.exitcode == 0
    finally:
        process.kill()
    return found


def test_every_use_in_a_forked_process_says_so(use):
    future = use.executable.submit(*use.inputs)
    acts = [
        use.call, use.submit, use.memory, use.target, use.look, use.device.reset, future.result, future.done,
        lambda: use.device.bind_table("x", np.ones((2, 2), np.float32)), lambda: use.device.drop_table("other"),
        lambda: use.device.load_program(copy_program()), use.device.__enter__,
    ]  # fmt: skip
    for act in acts:
        name, text = forked(act)
        assert name == "DeviceForked", text
        assert f"belongs to process {os.getpid()}, which opened it" in text and "open a device in here" in text
    assert forked(lambda: (use.device.close(), use.device.close(), gc.collect())) == []
    assert forked(lambda: pytest.fail(repr(use.device)))[1].endswith("of another process>")
    assert torch.equal(future.result(), use.module(*use.inputs))
    use.call()


def test_what_was_there_before_the_fork_stays(use):
    future = use.executable.submit(*use.inputs)
    expected = future.result()
    assert forked(lambda: future.result() if torch.equal(future.result(), expected) else pytest.fail("other")) == []


def test_forked_while_threads_use_it(use):
    """They hold locks, which nobody gives back in the child."""
    said, stop = list[BaseException](), threading.Event()

    def work(act: Callable[[], None]) -> None:
        try:
            with torch.no_grad():
                while not stop.is_set():
                    act()
        except BaseException as error:
            said.append(error)

    threads = [threading.Thread(target=work, args=(act,)) for act in (use.call, use.submit, use.memory)]
    for thread in threads:
        thread.start()
    future = use.executable.submit(*use.inputs)
    try:
        for act in (use.call, use.submit, use.memory, future.exception, use.device.reset):
            for _ in range(2):
                found = forked(act)
                assert found[:1] == ["DeviceForked"] or (act == future.exception and not found), found
        assert forked(use.device.close) == []
    finally:
        stop.set()
        for thread in threads:
            thread.join(20)
    assert said == []
    use.call()


def test_a_device_of_its_own_in_a_forked_process(use):
    def act() -> None:
        with daedal.Device.open("emulator", CONFIG, memory_bytes=1 << 22) as device, torch.no_grad():
            Use(device).call()

    assert forked(act) == []
    use.call()


class Looked(torch.utils.data.Dataset):
    """A data set that looks things up on the device."""

    def __init__(self, executable: Any) -> None:
        self.executable = executable

    def __len__(self) -> int:
        return 4

    def __getitem__(self, item: int) -> torch.Tensor:
        found: torch.Tensor = self.executable(torch.full((8, 5), item))
        return found


def test_workers_of_a_data_loader(use):
    loader = torch.utils.data.DataLoader(Looked(use.executable), num_workers=1, multiprocessing_context="fork")
    with pytest.raises(daedal.DeviceForked, match="open a device in here"):
        next(iter(loader))
    use.call()
