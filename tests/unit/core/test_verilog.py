"""What of a core's Verilog is kept from one process to the next."""

from pathlib import Path

import pytest

from daedal.base import coverage
from daedal.hw import verilog
from daedal.hw.config.core import Config


def test_text_that_names_its_sources_is_not_taken_for_the_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made: list[bool] = []

    def generate(config: Config) -> str:
        made.append(coverage.is_wanted())
        return f"module {config.name}; // {coverage.is_wanted()}"

    monkeypatch.setattr(verilog, "generate_verilog", generate)
    monkeypatch.setenv("DAEDAL_CACHE", str(tmp_path / "cache"))
    config, folder = Config.preset("minimum"), str(tmp_path / "counts")
    for name in ("", folder, "", folder):
        monkeypatch.setenv(coverage.VARIABLE, name)
        assert verilog.core_verilog(config).endswith(str(coverage.is_wanted()))
    assert made == [False, True]
