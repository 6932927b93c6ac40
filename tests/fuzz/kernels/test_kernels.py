"""Random kernels: the machine does what Python does with the same loops, bit for bit, or they are refused."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import daedal
from tests.fuzz.kernels.reductions import tree_sum, with_trees
from tests.fuzz.kernels.sources import Outcome, at_levels, plain, random_source, run, shrunk

KERNELS = 240
AT_LEVELS = 20
ACCEPTED = 0.6
"""The share of kernels that must be accepted."""


def run_many(devices: list[daedal.Device], numbers: range, seed: int, folder: Path) -> Counter[str]:
    """Run kernels; what became of how many. A difference fails, with the kernel made as small as it goes."""
    found: Counter[str] = Counter()
    for number in numbers:
        data = 1000 * seed + number
        text = random_source(np.random.default_rng(data))
        outcome = run(text, data, devices, folder)
        if outcome.difference is not None:
            pytest.fail(report(text, data, devices, folder, outcome))
        found[outcome.refusal or "accepted"] += 1
    return found


def report(text: str, data: int, devices: list[daedal.Device], folder: Path, outcome: Outcome) -> str:
    def fails(fewer: str) -> bool:
        try:
            return run(fewer, data, devices, folder).difference is not None
        except (NameError, KeyError, ValueError):
            return False

    small = shrunk(text, fails)
    return f"seed {data}:\n{small}\n{run(small, data, devices, folder).difference or outcome.difference}"


@pytest.mark.rtl
@pytest.mark.slow
@pytest.mark.parametrize("config", ["ddr3", "edge"])
def test_random_kernels(config: str, seed: int, tmp_path: Path) -> None:
    """Python = emulator = RTL."""
    with (
        daedal.Device.open("verilator", config=config, memory="ideal:stall=0.2,seed=4") as rtl,
        daedal.Device.open("emulator", config=config) as emulator,
    ):
        found = run_many([emulator, rtl], range(KERNELS // 2), seed + (config == "edge"), tmp_path)
    text = "\n".join(f"{count:4} {what}" for what, count in found.most_common())
    assert found["accepted"] >= ACCEPTED * KERNELS / 2, text
    assert len(found) > 1, text


@pytest.mark.slow
def test_random_kernels_at_every_level(seed: int, tmp_path: Path) -> None:
    """Python = the interpreter of each level, at O0 to O3."""
    found: Counter[str] = Counter()
    with daedal.Device.open("emulator", config="ddr3") as device:
        for number in range(AT_LEVELS):
            data = 1000 * seed + number
            text = random_source(np.random.default_rng(data))
            outcome = at_levels(text, data, device, tmp_path)
            assert outcome.difference is None, f"seed {data}:\n{text}\n{outcome.difference}"
            found[outcome.refusal or "accepted"] += 1
    assert found["accepted"] >= ACCEPTED * AT_LEVELS, found


def test_sources_are_python_and_many(rng: np.random.Generator) -> None:
    texts = [random_source(rng) for _ in range(100)]
    for text in texts:
        plain(text)
    assert len(set(texts)) > 95
    for word in ("off[b + 1]", "lo[q], hi[q]", "if ip[p]", "daedal.zeros", "max(", "0, P, 2", "alpha", "+= "):
        assert any(word in text for text in texts), word
    assert any(text.count("\n    for ") > 1 for text in texts)
    assert any("\n                    for d" in text for text in texts)
    assert sum("tree_sum" in with_trees(text) for text in texts) > 3


def test_sums_along_rows_are_trees() -> None:
    loop = "    for d in range(D):\n        n += {}\n"
    for value in ("t[i[p], d]", "x[b, d] * w[p]", "abs(x[b, d]) - y[p, d]"):
        assert "tree_sum(n, (" in with_trees("def f(n):\n" + loop.format(value))
    for value in ("w[p]", "t[d, d]", "t[i[d], 0]", "x[b, d] * d"):
        assert "tree_sum" not in with_trees("def f(n):\n" + loop.format(value))
    big = np.float32(2.0**24)
    values = [big, 1, *[0] * 14, 1, 1]
    assert tree_sum(0.0, values) == big + np.float32(2)  # 2**24 + 1, rounded, and then 1 + 1 of another partial sum
    assert sum(map(np.float32, values), np.float32(0)) == big


def test_a_failure_is_made_small() -> None:
    loop = "    for j in range(N):\n        x[j] = 3.0\n"
    text = "def f(x: f32[N]):\n    for i in range(3):\n        a = 1\n        b = 2\n" + loop
    assert shrunk(text, lambda each: "b = 2" in each) == "def f(x: f32[N]):\n        b = 2\n"
    assert shrunk(text, lambda each: loop in each) == "def f(x: f32[N]):\n" + loop
