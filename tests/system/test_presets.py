"""The sweep of a preset's sizes."""

from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from bench import presets
from bench.pages import END
from daedal.hw.config import Config
from daedal.measure.document import load


def test_every_variant_is_a_machine_that_differs_in_its_size():
    found = list(presets.variants(Config.preset("ddr3"), tuple(presets.SIZES)))
    assert found[0].config == Config.preset("ddr3")
    assert {variant.size for variant in found[1:]} == set(presets.SIZES)
    assert len({variant.config.hash for variant in found}) == len(found)
    assert len(found) == 1 + sum(map(len, presets.SIZES.values())), "all values are legal, and none is the preset's"


def test_variants_that_are_not_legal_are_left_out():
    edge = Config.preset("edge")
    values = [variant.value for variant in presets.variants(edge, ["ports"])]
    assert values == ["", "4"]
    one_bank = replace(edge, ports=1, banks=1, name="one-bank")
    assert len(list(presets.variants(one_bank, ["ports"]))) == 1


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    def cycles(variant: presets.Variant, memory: str, workloads: list[str], **_: Any) -> dict[str, Any]:
        taken = 1000 + 16 * (8 - variant.config.ports)
        return {"size": variant.size, "value": variant.value, "verdict": "", **dict.fromkeys(workloads, taken)}

    monkeypatch.setattr(presets, "measured", cycles)


@pytest.mark.usefixtures("fake")
def test_the_table_says_how_many_cycles_more(tmp_path, monkeypatch):
    page = tmp_path / "memory.md"
    page.write_text(f"before\n{presets.BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(presets, "PAGE", page)
    file = tmp_path / "presets.json"
    result = CliRunner().invoke(presets.main, ["--json", str(file), "--page"])
    assert result.exit_code == 0, result.output
    rows = load(file)["results"]["presets"]
    assert {row["rm1"] for row in rows} == {1000, 1064} and len(rows) == 1 + sum(map(len, presets.SIZES.values()))
    text = page.read_text(encoding="utf-8")
    assert "| ports | 4 | +6.4% |" in text and "rm1 1,000" in text and "old" not in text
    assert "Memory litedram-ddr3-x16: DDR3" in text, "what figures depend on stands beside them"
    assert text.startswith("before") and text.endswith("after\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--memory", "dram"], "memory must be one of ideal"),
        (["--memory", "ideal:latency=x"], "must be a whole number"),
        (["--config", "wide"], "litedram-ddr3-x16"),
        (["--page", "--quick"], "--page is for the whole sweep"),
        (["--page", "--size", "ports"], "--page is for the whole sweep"),
        (["--seed", "-1"], "-1"),
    ],
)
def test_bad_arguments_are_one_line_before_anything_is_built(arguments, message, monkeypatch):
    monkeypatch.setattr(presets, "measured", lambda *_, **__: pytest.fail("something was built"))
    result = CliRunner().invoke(presets.main, arguments)
    assert result.exit_code == 2 and message in " ".join(result.output.split())


def test_a_wrong_result_is_an_error(monkeypatch):
    monkeypatch.setattr(presets, "measured", lambda variant, *_, **__: {
        "size": variant.size, "value": variant.value, "rm1": 5, "verdict": "rm1: not PyTorch's"})  # fmt: skip
    result = CliRunner().invoke(presets.main, ["--size", "ports", "--workload", "rm1"])
    assert result.exit_code == 1 and "not PyTorch's" in result.output
