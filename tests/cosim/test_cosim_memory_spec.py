"""Memory models by text."""

import pytest

from daedal.cosim.memory_spec import MemorySpec


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("ideal", MemorySpec()),
        ("ideal:", MemorySpec()),
        ("ideal:latency=7", MemorySpec(latency=7)),
        ("ideal:stall=0.2,seed=3", MemorySpec(stall=0.2, seed=3)),
        ("ideal:pause_after=0", MemorySpec(pause_after=0)),
        ("ideal:pause_after=9,pause=70000", MemorySpec(pause_after=9, pause=70_000)),
        ("ideal:lines=0.5,latency=400", MemorySpec(latency=400, lines=0.5)),
        ("ideal:mixed=0", MemorySpec(mixed=0)),
        ("litedram-ddr3-x16", MemorySpec("litedram-ddr3-x16")),
        ("litedram-ddr4-x64:stall=0.1,seed=3,checks=1", MemorySpec("litedram-ddr4-x64", stall=0.1, seed=3, checks=1)),
    ],
)
def test_good(text, spec):
    assert MemorySpec.parse(text) == spec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "memory must be one of ideal, litedram-ddr3-x16, litedram-ddr3-x64, litedram-ddr4-x64, not ''"),
        (
            "dram:latency=1",
            "memory must be one of ideal, litedram-ddr3-x16, litedram-ddr3-x64, litedram-ddr4-x64, not 'dram'",
        ),
        (
            "ideal:x=1",
            "must be one of latency, lines, stall, pause_after, pause, seed, mixed, not 'x'",
        ),
        ("ideal:latency", "latency of memory ideal must be a whole number, not ''"),
        ("ideal:latency=1.5", "latency of memory ideal must be a whole number, not '1.5'"),
        ("ideal:stall=often", "stall of memory ideal must be a number, not 'often'"),
        ("ideal:seed=1,seed=2", "option seed of memory ideal must be given once, not again as '2'"),
        ("ideal:latency=0", "latency must be from 1 to 10000 cycles, not 0"),
        ("ideal:latency=18446744073709551617", "latency must be from 1 to 10000 cycles, not 18446744073709551617"),
        ("ideal:lines=0", "lines must be from 0.01 to 64 per cycle, not 0.0"),
        ("ideal:lines=nan", "lines must be from 0.01"),
        ("ideal:stall=1", "stall must be from 0 to 0.95, not 1.0"),
        ("ideal:stall=-0.1", "stall must be from 0 to 0.95, not -0.1"),
        ("ideal:pause_after=-1", "pause_after must be from 0 to 1099511627775, not -1"),
        ("ideal:pause=7", "pause must come with pause_after, not alone as 7"),
        (
            "litedram-ddr3-x16:latency=3",
            "of memory litedram-ddr3-x16 must be one of stall, seed, checks, not 'latency'",
        ),
        ("ideal:mixed=2", "mixed must be 0 or 1, not 2"),
        ("litedram-ddr3-x64:checks=2", "checks must be 0 or 1, not 2"),
        ("litedram-ddr3-x64:checks=yes", "checks of memory litedram-ddr3-x64 must be a whole number, not 'yes'"),
        ("ideal:seed=-1", "seed must be from 0 to 4294967295, not -1"),
    ],
)
def test_bad(text, message):
    with pytest.raises(ValueError, match=message):
        MemorySpec.parse(text)


def test_what_is_random():
    assert not MemorySpec().random
    assert MemorySpec(seed=0).random
    assert MemorySpec(stall=0.1).random


def test_which_models_are_drams():
    assert MemorySpec().dram is None
    dram = MemorySpec.parse("litedram-ddr3-x64").dram
    assert dram is not None
    assert (dram.name, dram.word_bytes) == ("litedram-ddr3-x64", 64)
    with pytest.raises(ValueError, match=r"memory must be one of ideal, .* not 'rambus'"):
        MemorySpec("rambus")
