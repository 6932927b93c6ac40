"""ECPIX-5's own design under Verilator, reached over the bytes of its serial line: results, line rate, a bad line."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import nn

import daedal
from daedal.cosim.board import SimulatedLine, build_board, generated_board
from daedal.driver.link import uartbone
from daedal.driver.link.uartbone import UartBridge
from daedal.driver.targets.board import BoardTarget, open_simulated
from daedal.errors import ConfigMismatch, LinkLost
from daedal.hw.config.core import Config
from daedal.hw.isa.registers import Register
from tests.driver.link.link_peer import Faults

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

CONFIG = replace(Config.preset("minimum"), name="board", page_bytes=2048, banks=8, bus_bytes=16)
"""The smallest machine that goes with this board's memory."""

LEAST_SHARE = 0.9
"""Of the line's rate, for bulk transfers."""


def line_of(device: daedal.Device) -> SimulatedLine:
    target = device.target
    assert isinstance(target, BoardTarget)
    bridge = target.link._bridge
    assert isinstance(bridge, UartBridge)
    line = bridge._transport
    assert isinstance(line, SimulatedLine)
    return line


def retries(device: daedal.Device) -> int:
    assert isinstance(device.target, BoardTarget)
    return device.target.link.retries


@pytest.fixture(scope="module")
def device() -> Iterator[daedal.Device]:
    with daedal.Device.open("board-sim", config=CONFIG, board="ecpix5") as found:
        yield found


def bag() -> tuple[nn.EmbeddingBag, torch.Tensor, torch.Tensor]:
    module = nn.EmbeddingBag(24, 8, mode="sum", include_last_offset=True)
    return module, torch.randint(0, 24, (14,)), torch.tensor([0, 3, 3, 7, 14])


def test_an_embedding_bag_is_that_of_pytorch_bit_for_bit(device: daedal.Device) -> None:
    module, indices, offsets = bag()
    run = daedal.compile(module, (indices, offsets), device=device)
    assert torch.equal(run(indices, offsets), module(indices, offsets))
    with pytest.raises(daedal.IndexOutOfRange, match="index 24 is out of range"):
        run(indices + (24 - indices.max()), offsets)
    assert torch.equal(run(indices, offsets), module(indices, offsets)), "usable after the fault"
    assert retries(device) == 0


@pytest.mark.parametrize("access", ["write", "read"])
def test_bulk_transfers_reach_the_line_rate(device: daedal.Device, access: str) -> None:
    target, line = device.target, line_of(device)
    data = torch.randint(0, 256, (2048,), dtype=torch.uint8).numpy().tobytes()
    start = line.cycles
    if access == "write":
        target.mem_write(1 << 16, data)
    else:
        target.mem_read(1 << 16, len(data))
    seconds = (line.cycles - start) / line.clock_hz
    share = len(data) * line.byte_seconds / seconds
    print(f"{access}: {share:.3f} of the line rate")
    assert LEAST_SHARE <= share < 1


@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("fault", ["flip", "drop"])
def test_a_result_over_a_line_that_changes_and_loses_bytes(
    device: daedal.Device, way: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults, line = Faults(), line_of(device)
    before = retries(device)
    if fault == "flip":
        faults.flip = {40: 0x10, 700: 0x01}
    else:
        faults.drop = {25, 800}
    monkeypatch.setattr(line, way, faults.pass_on)
    module, indices, offsets = bag()
    run = daedal.compile(module, (indices, offsets), device=device)
    assert torch.equal(run(indices, offsets), module(indices, offsets))
    assert retries(device) > before


def test_a_doorbell_rings_once_whatever_the_line_does(device: daedal.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to it is lost, so it is asked for again, but the write is not done again."""
    target, line = device.target, line_of(device)
    faults = Faults()
    faults.drop = {0}
    before = target.csr_read(Register.COMPLETED.value)
    with monkeypatch.context() as patch:
        patch.setattr(line, "down", faults.pass_on)
        module, indices, offsets = bag()
        daedal.compile(module, (indices, offsets), device=device)(indices, offsets)
    assert target.csr_read(Register.COMPLETED.value) == before + 1


def test_a_line_that_goes_silent_in_the_middle(device: daedal.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    target, line = device.target, line_of(device)
    data = bytes(range(256))
    with monkeypatch.context() as patch:
        silent = Faults()
        silent.silent_after = 150
        patch.setattr(line, "up", silent.pass_on)
        patch.setattr(uartbone, "RECOVERIES", 1)
        with pytest.raises(LinkLost, match="does not answer: check that it is powered"):
            target.mem_write(1 << 17, data)
    target.mem_write(1 << 17, data)
    assert target.mem_read(1 << 17, len(data)) == data, "the line is back"


def test_another_bitstream_and_another_core_are_refused() -> None:
    verilog, description = generated_board("ecpix5", CONFIG)
    library = build_board("board-ecpix5-board", verilog, top=description["top"])
    for change, config, text in (
        (
            {"design": 5},
            CONFIG,
            r"must have design 0x00000005 of board ecpix5, not 0x.*load the bitstream that belongs",
        ),
        ({}, replace(CONFIG, steps=5), "must have configuration board"),
    ):
        line = SimulatedLine(library, clock_hz=description["clock_hz"], baud=description["baud"])
        with pytest.raises(ConfigMismatch, match=text):
            BoardTarget(UartBridge(line), description | change, config)
        line.close()


def test_an_access_outside_of_the_memory(device: daedal.Device) -> None:
    size = device.target.memory_bytes
    with pytest.raises(
        ValueError, match=f"an access must lie within {size} bytes of memory, not 4 bytes at {size - 2:#x}"
    ):
        device.target.mem_read(size - 2, 4)


def test_a_closed_simulation() -> None:
    target = open_simulated("", CONFIG, "ecpix5")
    target.close()
    target.close()
    with pytest.raises(daedal.DeviceClosed, match="the board must be open to be used"):
        target.csr_read(0)
