"""Devices opened as ``uart:…`` and ``etherbone:…``, with the emulator as the core of a board in Python."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import daedal
from daedal.cosim.emulator import EmulatorTarget
from daedal.driver.targets import board as boards
from daedal.errors import ConfigMismatch, LinkLost
from daedal.hw.config.core import Config
from tests.driver.link.link_peer import EtherbonePeer, GateModel, Peer, uart_peer

CONFIG = Config.preset("minimum")
MEMORY_BYTES, MEMORY_BASE, REGISTERS_BASE = 1 << 20, 0x4000_0000, 0x8000_0000
BAUD, PORT = 3_000_000, 21236
DESIGN = 0xABCD

DESCRIPTION = {
    "board": "python", "design": DESIGN, "baud": BAUD, "clock_hz": 75e6, "sdram": None, "soc": {},
    "memory": {"base": MEMORY_BASE, "size": MEMORY_BYTES}, "registers": {"base": REGISTERS_BASE, "size": 256},
}  # fmt: skip


class CoreModel(GateModel):
    """A gate with the emulator behind it, which works while it is asked for its interrupt."""

    def __init__(self) -> None:
        super().__init__(design=DESIGN)
        self.core = EmulatorTarget(CONFIG, MEMORY_BYTES)

    def bus_write(self, address: int, value: int, lanes: int) -> None:
        raw = value.to_bytes(4, "little")
        if REGISTERS_BASE <= address < REGISTERS_BASE + 256:
            self.core.csr_write(address - REGISTERS_BASE, value)
            return
        for byte in range(4):
            if lanes >> byte & 1:
                self.core.mem_write(address - MEMORY_BASE + byte, raw[byte : byte + 1])

    def bus_read(self, address: int) -> int:
        if REGISTERS_BASE <= address < REGISTERS_BASE + 256:
            return self.core.csr_read(address - REGISTERS_BASE)
        if MEMORY_BASE <= address < MEMORY_BASE + MEMORY_BYTES:
            return int.from_bytes(self.core.mem_read(address - MEMORY_BASE, 4), "little")
        return 0xFFFF_FFFF  # a garbled command; what LiteX's bus gives

    def _register(self, number: int) -> int:
        self.interrupt = self.core.wait(0.0)
        return super()._register(number)


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lost answers are given up soon."""
    serial = boards.SerialTransport
    monkeypatch.setattr(boards, "SerialTransport", lambda device, baud: serial(device, baud, slack=0.08))


@pytest.fixture
def peer() -> Iterator[Peer]:
    with uart_peer(CoreModel(), over_pty=True) as found:
        yield found


@pytest.fixture
def description(tmp_path: Path) -> str:
    path = tmp_path / "board.json"
    path.write_text(json.dumps(DESCRIPTION))
    return str(path)


def check_bag(device: daedal.Device) -> None:
    module = nn.EmbeddingBag(200, 16, mode="sum", include_last_offset=True)
    indices, offsets = torch.randint(0, 200, (64,)), torch.tensor([0, 10, 10, 30, 64])
    run = daedal.compile(module, (indices, offsets), device=device)
    assert torch.equal(run(indices, offsets), module(indices, offsets))


@pytest.mark.parametrize("rate", ["", f"@{BAUD}"])
def test_an_embedding_bag_over_a_serial_device(peer: Peer, description: str, rate: str) -> None:
    with daedal.Device.open(f"uart:{peer.device}{rate}", config=CONFIG, board=description) as device:
        assert device.target.memory_bytes == MEMORY_BYTES
        check_bag(device)


def test_an_embedding_bag_over_a_bad_serial_device(peer: Peer, description: str) -> None:
    with daedal.Device.open(f"uart:{peer.device}", config=CONFIG, board=description) as device:
        peer.up.drop, peer.down.flip = {peer.up.count + 1000}, {peer.down.count + 500: 2}
        check_bag(device)
        assert isinstance(device.target, boards.BoardTarget)
        assert device.target.link.retries >= 2


def test_an_embedding_bag_over_etherbone(description: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bridge = boards.EtherboneBridge
    monkeypatch.setattr(boards, "EtherboneBridge", lambda host, port: bridge(host, port, local="127.0.0.1"))
    with EtherbonePeer(CoreModel(), "127.0.0.2", PORT) as peer:
        peer.lose = {20, 31}
        with daedal.Device.open(f"etherbone:127.0.0.2:{PORT}", config=CONFIG, board=description) as device:
            check_bag(device)


def test_a_board_that_goes_silent_and_comes_back(peer: Peer, description: str) -> None:
    """The launch is lost, the error says so; the device can be opened again and works."""
    target = f"uart:{peer.device}"
    device = daedal.Device.open(target, config=CONFIG, board=description)
    check_bag(device)
    peer.up.silent_after = peer.up.count + 900
    with pytest.raises(LinkLost, match=r"does not answer: .*then open the device again"):
        check_bag(device)
    device.close()
    with pytest.raises(LinkLost):
        daedal.Device.open(target, config=CONFIG, board=description)
    peer.up.silent_after = None
    with daedal.Device.open(target, config=CONFIG, board=description) as device:
        check_bag(device)


def test_a_device_whose_line_came_back_works_on(peer: Peer, description: str) -> None:
    with daedal.Device.open(f"uart:{peer.device}", config=CONFIG, board=description) as device:
        peer.down.silent_after = peer.down.count + 100
        with pytest.raises(LinkLost):
            check_bag(device)
        peer.down.silent_after = None
        check_bag(device)


def test_another_core_and_another_bitstream_are_refused(peer: Peer, description: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigMismatch, match="must have configuration ddr3"):
        daedal.Device.open(f"uart:{peer.device}", config="ddr3", board=description)
    other = tmp_path / "other.json"
    other.write_text(json.dumps(DESCRIPTION | {"design": 1}))
    with pytest.raises(
        ConfigMismatch, match="must have design 0x00000001 of board python, not 0x0000abcd: load the bitstream"
    ):
        daedal.Device.open(f"uart:{peer.device}", config=CONFIG, board=str(other))


def test_nobody_at_the_other_end(description: str, tmp_path: Path) -> None:
    with pytest.raises(LinkLost, match="cannot be opened"):
        daedal.Device.open(f"uart:{tmp_path}/tty", config=CONFIG, board=description)
    with pytest.raises(LinkLost, match=r"board at 127.0.0.3:21237 does not answer"):
        daedal.Device.open("etherbone:127.0.0.3:21237", config=CONFIG, board=description)


@pytest.mark.parametrize(
    ("target", "board", "text"),
    [
        ("uart:", "FILE", "target must be uart:DEVICE or uart:DEVICE@BAUD, not 'uart:'"),
        ("uart:tty@fast", "FILE", "target must be uart:DEVICE or uart:DEVICE@BAUD, not 'uart:tty@fast'"),
        ("uart:tty@300", "FILE", "baud must be from 9600 to 12000000 bits per second, not 300"),
        ("etherbone:", "FILE", "target must be etherbone:HOST or etherbone:HOST:PORT, not 'etherbone:'"),
        ("etherbone:a:b", "FILE", "target must be etherbone:HOST or etherbone:HOST:PORT, not 'etherbone:a:b'"),
        ("etherbone:a:70000", "FILE", "target must be etherbone:HOST or etherbone:HOST:PORT, not 'etherbone:a:70000'"),
        ("uart:tty", None, "board must be the name of a board or the description from its build, not None"),
        ("uart:tty", "nowhere.json", "board must be a description that can be read, not 'nowhere.json'"),
        ("uart:tty", "EMPTY", "board must be a description from a board's build, not .*, which lacks 'design'"),
        ("board-sim", None, "board must be the name of a board, not None"),
        (
            "usb:1",
            "FILE",
            r"target must be one of emulator, model, verilator, board-sim, uart:DEVICE\[@BAUD\], etherbone:HOST",
        ),
        ("uart", "FILE", "target must be one of"),
        ("emulator", "ecpix5", "board must be None for target emulator, which is none, not 'ecpix5'"),
    ],
)
def test_bad_targets(target: str, board: str | None, text: str, description: str, tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text("[]")
    chosen = {"FILE": description, "EMPTY": str(tmp_path / "empty.json")}.get(board or "", board)
    with pytest.raises(ValueError, match=text):
        daedal.Device.open(target, config=CONFIG, board=chosen)


@pytest.mark.parametrize(("option", "text"), [
    ({"memory": "ideal:latency=3"}, "memory must be left out for target uart, which has its own, not 'ideal:latency"),
    ({"wave": "a.vcd"}, "wave must be None for target uart, not 'a.vcd'"),
])  # fmt: skip
def test_options_that_a_board_does_not_have(option: dict[str, Any], text: str, description: str) -> None:
    with pytest.raises(ValueError, match=text):
        daedal.Device.open("uart:tty", config=CONFIG, board=description, **option)


def test_an_unknown_board() -> None:
    with pytest.raises(daedal.DaedalError, match="board must be one of ecpix5"):
        daedal.Device.open("board-sim", config=CONFIG, board="unknown")
