"""Many devices with links, and the picture of a plan."""

import re
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal.hw.config.core import Config
from daedal.system.fleet import estimate
from tests.tiles.test_planner import demand

DDR3, MEMORY = Config.preset("ddr3"), "litedram-ddr3-x16"


def test_links_limit_what_has_many_results() -> None:
    """Bags of 80 rows send an 80th of what they read; rows one by one as much as they read."""
    long = [demand(f"t{n:02}", 10_000, 128, 512, 80) for n in range(32)]
    short = [demand(f"t{n:02}", 10_000, 128, 512, 1) for n in range(32)]
    for demands, limit in ((long, "memory"), (short, "links")):
        found = estimate(demands, DDR3, MEMORY, 1 << 30, devices=8, link=4.0, extra_bytes=0.1)
        assert found.limit == limit
        assert found.link_bytes == 4 * 512 * 128 * 7 // 8
        assert found.link_cycles == found.link_bytes / 4
        assert found.time == max(found.cycles, found.link_cycles)
        assert found.speed_up == pytest.approx(found.one / found.time)
        assert ("limited by " + limit) in str(found)
    assert estimate(long, DDR3, MEMORY, 1 << 30, devices=1, link=4.0, extra_bytes=0).link_bytes == 0


def test_more_devices_than_tables_give_less_each() -> None:
    demands = [demand(f"t{n}", 10_000, 64, 512, 20) for n in range(4)]
    found = [estimate(demands, DDR3, MEMORY, 1 << 30, devices=n, link=1e9, extra_bytes=0.1) for n in (2, 4, 64)]
    assert [each.limit for each in found] == ["memory", "memory", "tables"]
    assert found[0].speed_up == pytest.approx(2, rel=0.05)
    assert found[2].speed_up < 16
    assert all(each.extra <= 0.1 for each in found)
    copied = estimate(demands, DDR3, MEMORY, 1 << 30, devices=64, link=1e9, extra_bytes=16)
    assert copied.speed_up > 50


def test_a_model(rng: np.random.Generator) -> None:
    model, inputs = nn.EmbeddingBag(500, 64, mode="sum"), (torch.from_numpy(rng.integers(0, 500, (256, 20))),)
    with daedal.System.open("emulator", config="ddr3", tiles=1) as system:
        found = daedal.fleet(model, system, sample=inputs, link=125.0, devices=(1, 8, 64), extra_bytes=100)
        assert [each.devices for each in found] == [1, 8, 64]
        assert found[0].speed_up == 1
        assert 1 < found[1].speed_up < found[2].speed_up <= 64
        for given, message in (
            ({"devices": (0,)}, "devices must be from 1 to 1024, not 0"),
            ({"link": 0}, "link must be bytes per cycle, more than 0, not 0"),
            ({"extra_bytes": -1}, "extra_bytes must be a share .*, not -1"),
        ):
            with pytest.raises(daedal.InvalidSystem, match=message):
                daedal.fleet(model, system, **{"sample": inputs, "link": 1.0, **given})  # type: ignore[arg-type]


def test_the_picture_shows_each_load(rng: np.random.Generator, tmp_path: Path) -> None:
    class Tables(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bags = nn.ModuleList(nn.EmbeddingBag(100, 64, mode="sum") for _ in range(12))

        def forward(self, indices: torch.Tensor) -> list[torch.Tensor]:
            return [bag(indices) for bag in self.bags]

    inputs = (torch.from_numpy(rng.integers(0, 100, (64, 5))),)
    with daedal.System.open("emulator", config="ddr3", tiles=5) as system:
        plan = daedal.plan(Tables(), system, sample=inputs)
    plan.picture(tmp_path / "plan.svg")
    root = ElementTree.parse(tmp_path / "plan.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    bars = [each for each in root.iter(f"{space}rect") if each.find(f"{space}title") is not None]
    assert len(bars) == len(plan.pieces)
    lengths: dict[str, float] = {}
    for bar in bars:
        lengths[bar.attrib["y"]] = lengths.get(bar.attrib["y"], 0.0) + float(bar.attrib["width"])
    unit = max(lengths.values()) / max(plan.load)
    assert sorted(lengths.values()) == pytest.approx([unit * each for each in sorted(plan.load)], abs=0.5)
    texts = [each.text or "" for each in root.iter(f"{space}text")]
    assert "other tables" in texts
    assert {f"{each:,}" for each in plan.load} <= set(texts)
    assert re.search(rf"plan {plan.hash}: 12 tables on 5 tiles", texts[0])
    with pytest.raises(daedal.FileError, match="cannot be written"):
        plan.picture(tmp_path / "no" / "plan.svg")


def test_a_thousand_devices_are_planned_in_seconds() -> None:
    demands = [demand(f"t{n:02}", 10_000 * (n + 1), 64 << n % 4, 512, 1 + 3 * n) for n in range(26)]
    for extra in (0.1, 1.0, 10.0):
        start = time.process_time()
        found = estimate(demands, DDR3, MEMORY, 1 << 36, devices=1000, link=12.5, extra_bytes=extra)
        assert time.process_time() - start <= 3
        assert found.extra <= extra


def test_devices_that_do_not_hold_the_tables() -> None:
    demands = [demand(f"t{n}", 1 << 16, 256, 64, 8) for n in range(8)]
    message = "3 devices of 33,554,432 bytes must hold all tables: table 't3' must fit a tile, but"
    with pytest.raises(daedal.OutOfDeviceMemory, match=message):
        estimate(demands, DDR3, MEMORY, 32 << 20, devices=3, link=12.5, extra_bytes=0.1)
