"""Several tiles as ``daedal verilog --tiles`` writes them, on the RTL: one window, one interrupt."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import daedal
from daedal.cosim.system_rtl import SystemRtl
from daedal.driver.device import Device
from daedal.hw.config.core import PRESETS
from daedal.hw.isa.registers import Register, SystemRegister
from tests.tiles.models import same

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

CONFIG = replace(PRESETS["minimum"], name="four-ports", ports=4)
MEMORY_BYTES = 1 << 22
ROWS = 300


@pytest.fixture(
    scope="module",
    params=[(2, "ports", "ideal"), (3, "single", "ideal:seed=3"), (3, "single-axi3", "ideal:stall=0.3,seed=5")],
    ids=lambda param: f"{param[0]}-{param[1]}",
)
def rtl(request: pytest.FixtureRequest) -> Iterator[SimpleNamespace]:
    """The system, and a device on each tile; joined ports have a memory that answers in any order between them."""
    tiles, axi, memory = request.param
    opened = SystemRtl(CONFIG, tiles, axi, memory=memory, memory_bytes=MEMORY_BYTES)
    yield SimpleNamespace(system=opened, devices=[Device(each, CONFIG) for each in opened.targets], memory=memory)
    opened.close()


def bags(rng: np.random.Generator, bags: int = 12) -> tuple[torch.nn.Module, torch.Tensor]:
    table = torch.from_numpy(rng.standard_normal((ROWS, 20), dtype=np.float32))
    return torch.nn.EmbeddingBag(ROWS, 20, mode="sum", _weight=table), torch.from_numpy(
        rng.integers(0, ROWS, (bags, 5))
    )


def test_a_system_on_it_gives_what_pytorch_gives(rtl: SimpleNamespace, rng: np.random.Generator) -> None:
    models, indices = zip(*[bags(rng) for _ in range(4)], strict=True)

    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tables = torch.nn.ModuleList(models)

        def forward(self, *given: torch.Tensor) -> torch.Tensor:
            return torch.cat([table(each) for table, each in zip(self.tables, given, strict=True)], 1)

    model, found = Both(), []
    for devices in (rtl.devices, [Device.open("emulator", CONFIG) for _ in rtl.devices]):
        system = daedal.System(devices, rtl.memory)  # the tiles stay open for other tests
        executable = daedal.compile(model, indices, device=system)
        futures = [executable.submit(*indices) for _ in range(3)]
        assert all(same([each.result()], [model(*indices)]) for each in futures)
        stats = futures[-1].stats
        assert sum(each.lookups > 0 for each in stats.per_tile) == len(devices)
        found.append([(each.lookups, each.rows, each.bytes_written) for each in stats.per_tile])
    assert found[0] == found[1]


def test_a_fault_in_one_tile_does_not_stop_another(rtl: SimpleNamespace, rng: np.random.Generator) -> None:
    model, indices = bags(rng)
    compiled = [daedal.compile(model, indices, device=each) for each in rtl.devices]
    wrong = indices.clone()
    wrong[1, 2] = ROWS + 7
    for faulty in range(len(compiled)):
        others = [(each, each.submit(indices)) for n, each in enumerate(compiled) if n != faulty]
        failing = compiled[faulty].submit(wrong)
        with pytest.raises(daedal.IndexOutOfRange, match=f"index {ROWS + 7} is out of range"):
            failing.result()
        assert all(same([future.result()], [model(indices)]) for _, future in others)
        assert same([compiled[faulty](indices)], [model(indices)])


def test_a_reset_is_one_tiles(rtl: SimpleNamespace, rng: np.random.Generator) -> None:
    model, indices = bags(rng, 40)
    compiled = [daedal.compile(model, indices, device=each) for each in rtl.devices[:2]]
    futures = [each.submit(indices) for each in compiled]
    rtl.devices[0].reset()
    with pytest.raises(daedal.LaunchCancelled):
        futures[0].result()
    assert same([futures[1].result()], [model(indices)])
    assert same([compiled[0](indices)], [model(indices)])


def test_the_bits_say_whose_interrupt_it_is(rtl: SimpleNamespace, rng: np.random.Generator) -> None:
    model, indices = bags(rng, 2)
    last = rtl.system.targets[-1]
    compiled = daedal.compile(model, indices, device=rtl.devices[-1])
    compiled(indices)
    before = last.csr_read(Register.COMPLETED.value)
    future = compiled.submit(indices)
    assert last.wait(60)
    assert rtl.system.register(SystemRegister.INTERRUPTS_LOW) == 1 << len(rtl.devices) - 1
    assert rtl.system.interrupt
    assert rtl.system.targets[0].csr_read(Register.INTERRUPT.value) == 0
    assert last.csr_read(Register.COMPLETED.value) == before + 1
    assert same([future.result()], [model(indices)])
    last.csr_write(Register.INTERRUPT.value, 1)
    assert rtl.system.register(SystemRegister.INTERRUPTS_LOW) == 0
    assert not rtl.system.interrupt


@pytest.mark.full
@pytest.mark.parametrize("memory", ["ideal:latency=200,lines=0.9,mixed=0", "ideal:latency=200,seed=3"])
@pytest.mark.parametrize("axi", ["single", "single-axi3"])
def test_one_master_takes_as_long_as_ports_of_their_own(axi: str, memory: str) -> None:
    """On memories that are as far away as HBM: in order at less than a line per cycle, and in any order."""
    config, cycles = PRESETS["hbm"], []
    shapes = [(torch.nn.EmbeddingBag(900, dim, mode="sum"), (48, 20)) for dim in (8, 64)]
    models = [*shapes, (torch.nn.Embedding(900, 64), (1200,))]
    for ways in ("ports", axi):
        system = SystemRtl(config, 1, ways, memory=memory, memory_bytes=MEMORY_BYTES)
        with Device(system.targets[0], config) as device, torch.no_grad():
            for model, sizes in models:
                indices = torch.from_numpy(np.random.default_rng(1).integers(0, 900, sizes))
                executable = daedal.compile(model, indices, device=device)
                assert same([executable(indices)], [model(indices)])
                cycles.append(executable.stats.cycles)
        system.close()
    assert all(own >= 0.95 * joined for own, joined in zip(cycles[:3], cycles[3:], strict=True)), cycles
