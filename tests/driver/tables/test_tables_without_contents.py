"""``table_check="shapes"``: tables that have their places and nothing in them, for cycles."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal.hw.config.core import PRESETS


def _cycles(module: nn.Module, inputs: tuple[Tensor, ...], check: Any, config: Any = "ddr3") -> tuple[int, int, int]:
    """Cycles of two calls on the model, and uploads."""
    with daedal.Device.open("model", config, "litedram-ddr3-x16", table_check=check) as device, torch.no_grad():
        executable = daedal.compile(module, inputs, device=device)
        found = []
        for _ in range(2):
            executable(*inputs)
            found.append(executable.stats.cycles)
            for parameter in module.parameters():
                parameter.data.add_(1)
                parameter.detach().mul_(0.5)
        return found[0], found[1], device.table_uploads


def test_cycles_are_those_of_tables_with_contents(rng: np.random.Generator) -> None:
    indices = torch.from_numpy(rng.integers(0, 900, 400))
    for config, mode in (("ddr3", "sum"), ("edge", "max"), ("narrow16", "mean")):
        module = nn.EmbeddingBag(900, 24, mode=mode)
        inputs = indices, torch.arange(0, 400, 8)
        *with_contents, _ = _cycles(module, inputs, "contents", config)
        *without, uploads = _cycles(module, inputs, "shapes", config)
        assert without == with_contents
        assert uploads == 0


@pytest.mark.filterwarnings("ignore:.*torch.quantize_per:UserWarning")
def test_quantised_tables_without_contents() -> None:
    config = replace(PRESETS["ddr3"], quantised=1)
    module = torch.ao.nn.quantized.EmbeddingBag(50, 64, mode="sum", include_last_offset=True)
    inputs = torch.arange(48) % 50, torch.arange(0, 49, 8)
    assert _cycles(module, inputs, "shapes", config)[:2] == _cycles(module, inputs, "contents", config)[:2]


def test_a_table_larger_than_the_host_has_a_place() -> None:
    """Its memory is there as far as it is touched: 96 GB of a table that nobody writes."""
    rows, dim = 3 << 28, 32
    zeros = np.broadcast_to(np.zeros((1, dim), np.float32), (rows, dim))
    with daedal.Device.open("model", memory_bytes=100 << 30, table_check="shapes") as device:
        table = device.bind_table("large", zeros)
        assert (table.rows, table.pitch) == (rows, 128)
        assert device.bind_table("large", zeros) == table
        assert device.memory.read(table.address + (rows - 1) * 128, 4) == bytes(4)
        assert not device.has_contents


def test_where_tables_must_have_contents() -> None:
    for target in ("verilator", "uart:/dev/null", "board-sim"):
        with pytest.raises(ValueError, match=f"'contents' or 'versions' for target {target[:4]}.*, not 'shapes'"):
            daedal.Device.open(target, table_check="shapes", board="ulx3s" if target != "verilator" else None)
    table = torch.zeros(4, 4)
    with daedal.Device.open("emulator", table_check="shapes") as device:
        device.bind_table("weight", table)
        with pytest.raises(daedal.UnsupportedOperation, match="whose launches change tables must be 'contents' or"):
            device.table_ahead(table, lambda: True)
