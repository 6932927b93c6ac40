"""The Verilog that is kept is that of the sources that a process imported."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from daedal.hw import verilog
from daedal.hw.config.core import PRESETS


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[int]:
    numbers = count()
    monkeypatch.setenv("DAEDAL_CACHE", str(tmp_path))
    monkeypatch.setattr(verilog, "generate_verilog", lambda config: f"text {next(numbers)}")
    return numbers


def test_a_text_is_made_once(texts: Iterator[int]) -> None:
    config = PRESETS["minimum"]
    assert verilog.core_verilog(config) == verilog.core_verilog(config) == "text 0"


def test_a_text_is_not_kept_when_sources_changed_meanwhile(
    texts: Iterator[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = PRESETS["minimum"]
    with monkeypatch.context() as patch:
        patch.setattr(verilog, "_IMPORTED", 0)
        assert [verilog.core_verilog(config) for _ in range(2)] == ["text 0", "text 1"]
    assert verilog.core_verilog(config) == "text 2"
