"""The bench of bags in turn."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bench import turns
from bench.pages import END


@pytest.mark.parametrize("mean", turns.MEANS)
def test_lengths_have_their_mean(mean: float, rng: np.random.Generator) -> None:
    lengths = turns.bag_lengths(mean, 1024, rng)
    assert lengths.mean() == mean and lengths.max() - lengths.min() <= 1


@pytest.mark.rtl
@pytest.mark.slow
def test_a_quick_run(tmp_path: Path) -> None:
    file = tmp_path / "turns.json"
    result = CliRunner().invoke(turns.main, ["--quick", "--json", str(file)])
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())["results"]["turns"]
    assert [row["columns"] for row in rows] == [1, 16], "rows of 32 columns are never in turn on ddr3"
    for row in rows:
        for mean in turns.MEANS:
            in_turn, one_by_one = row["cycles"][str(mean)]
            assert in_turn > 500 < one_by_one and row[str(mean)] == in_turn / one_by_one


def test_results_that_differ_end_with_status_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "bench.md"
    page.write_text(f"before\n{turns.BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(turns, "PAGE", page)

    def measured(preset: str, memory: str, columns: int, **_: int) -> dict[str, object]:
        verdict = "the results differ" if columns == 16 and preset == "wide" else ""
        row = {str(mean): 1.25 for mean in turns.MEANS}
        return {
            "config": preset,
            "memory": memory,
            "columns": columns,
            "cycles": {"1": [5, 4]},
            "verdict": verdict,
        } | row

    monkeypatch.setattr(turns, "measured", measured)
    result = CliRunner().invoke(turns.main, ["--page"])
    assert result.exit_code == 1
    text = page.read_text(encoding="utf-8")
    assert "| wide | ideal | 16 | 1.25 |" in text and "the results differ" in text and "old" not in text
    assert CliRunner().invoke(turns.main, ["--page", "--quick"]).exit_code == 2
