"""What ``daedal.driver.targets.target_registry`` opens by name: the machines that run on this computer."""

from typing import Any

from daedal.driver.link.transport import Transport
from daedal.driver.targets.target import Target
from daedal.hw.config.core import Config


def open_emulator(config: Config, memory: str, memory_bytes: int, wave: str | None, *, sparse: bool) -> Target:
    """The golden model; ValueError for a waveform, which it does not have."""
    from daedal.cosim.emulator import EmulatorTarget
    from daedal.cosim.memory_spec import MemorySpec

    MemorySpec.parse(memory)  # means nothing here, but a mistake in it is one
    if wave is not None:
        raise ValueError(f"wave must be None for the emulator, which has no signals, not {wave!r}")
    return EmulatorTarget(config, memory_bytes, sparse=sparse)


def open_verilator(config: Config, memory: str, memory_bytes: int, wave: str | None, *, sparse: bool) -> Target:
    """The RTL with its memory; ValueError for one that is sparse, which it does not have."""
    from daedal.cosim.verilator import VerilatorTarget

    if sparse:
        raise ValueError("table_check must be 'contents' or 'versions' for target verilator, not 'shapes'")
    return VerilatorTarget(config, memory=memory, memory_bytes=memory_bytes, wave=wave)


def open_model(config: Config, memory: str, memory_bytes: int, wave: str | None, *, sparse: bool) -> Target:
    """The emulator with a clock; ValueError for a waveform, which it does not have."""
    from daedal.cosim.clock import ModelTarget

    if wave is not None:
        raise ValueError(
            f"wave must be None for target model, which has no signals, not {wave!r}: use target verilator"
        )
    return ModelTarget(config, memory=memory, memory_bytes=memory_bytes, sparse=sparse)


def open_line(config: Config, board: str) -> tuple[Transport, dict[str, Any]]:
    """The serial line of a board's own design under Verilator, and the design's description."""
    from daedal.cosim.board import SimulatedLine, build_board, generated_board

    verilog, description = generated_board(board, config)
    library = build_board(f"board-{board}-{config.name}", verilog, top=description["top"])
    return SimulatedLine(library, clock_hz=description["clock_hz"], baud=description["baud"]), description
