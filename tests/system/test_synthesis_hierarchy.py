"""Where LUTs are: what modules take with all that is in them."""

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.synthesis.hierarchy import main, rows_of


def test_a_module_takes_what_is_in_it():
    """A part that is there twice counts twice; carries and distributed RAM are LUTs as well."""
    modules = {
        "unit": Counter({"part": 2, "$lut": 5, "TRELLIS_FF": 1}),
        "part": Counter({"inner": 1, "$lut": 10, "CCU2C": 3}),
        "inner": Counter({"TRELLIS_DPR16X4": 2, "TRELLIS_FF": 7, "DP16KD": 1}),
    }
    rows = {row["module"]: row for row in rows_of(modules)}
    assert list(rows) == ["unit", "  part", "    inner"]
    assert [row["lut"] for row in rows.values()] == [5 + 2 * (10 + 6 + 8), 10 + 6 + 8, 8]
    assert [row["own"] for row in rows.values()] == [5, 16, 8]
    assert [row["ff"] for row in rows.values()] == [15, 7, 7]
    assert rows["unit"]["bram"] == 2


def test_a_unit_of_a_machine_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("deep.toml").write_text("token_depth = 4096")
    sizes = []
    for config in ("ddr3", "deep.toml"):
        arguments = ["--unit", "token queue", "--config", config, "--json", "found.json"]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
        sizes.append(json.loads(Path("found.json").read_text())["rows"][0]["bram"])
    assert sizes[0] < sizes[1]


@pytest.mark.parametrize(
    ("config", "said"), [("none.toml", "none.toml cannot be read"), ("ddr9", "ddr9"), ("wrong.toml", "ports")]
)
def test_a_machine_that_there_is_not(config: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wrong.toml").write_text("ports = 3")
    result = CliRunner().invoke(main, ["--config", config])
    assert result.exit_code == 2
    assert said in result.output
