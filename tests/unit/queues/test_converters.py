# amaranth: UnusedElaboratable=no
"""Between lines and the narrower or wider beats of the execute unit."""

import dataclasses

import pytest

from daedal.hw.config.core import Config
from daedal.hw.queues.beats_to_line import BeatsToLine, LinesToBeats
from daedal.hw.queues.line_to_beats import LineToBeats
from tests.unit.harness import run_cocotb

CONVERTERS = {"cutter": LineToBeats, "packer": BeatsToLine, "packers": LinesToBeats}


@pytest.mark.rtl
@pytest.mark.parametrize(
    ("name", "bus_bytes", "lanes"),
    [
        *((name, *sizes) for sizes in ((8, 1), (64, 4), (16, 16)) for name in ("cutter", "packer")),
        ("packers", 16, 16),
        ("packers", 8, 4),
    ],
)
def test_converter(name: str, bus_bytes: int, lanes: int) -> None:
    config = dataclasses.replace(Config.preset("ddr3"), bus_bytes=bus_bytes, lanes=lanes)
    parameters = {"config": config, "name": name}
    run_cocotb(CONVERTERS[name](config), name, "tests.unit.queues.bench_converters", parameters=parameters)
