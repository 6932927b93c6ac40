"""The suite ``types``: what it measures on which machine, and runs on the emulator and the model of a small machine."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from bench.results import files, types_page
from daedal.bench import registry
from daedal.bench.host import Host
from daedal.bench.suite import Machine, Order, Row, is_broken
from daedal.bench.suites import element_types
from daedal.bench.suites.element_types import GOALS, QUICK, measure, operations, with_types
from daedal.bench.workloads.runner import first_difference
from daedal.bench.workloads.typed import MadeTyped, Typed
from daedal.cli import cli
from daedal.hw.config.core import Config
from tests.fuzz.configs import TYPES

EDGE = Config.preset("edge")


def rows_of(config: Config, target: str = "emulator", **changes: Any) -> list[Row]:
    order = replace(Order(((config, "ideal"),), quick=True, target=target, host=False), **changes)
    return list(registry.run("types", order, lambda text: None))


def test_presets_are_measured_with_converters() -> None:
    found = with_types(Config.preset("ddr3"))
    assert (found.name, found.binary16, found.bfloat16, found.quantised) == ("ddr3-types", 1, 1, 1)
    assert with_types(found) is found and with_types(TYPES) is TYPES
    own = replace(EDGE, name="own")
    assert with_types(own) is own
    assert with_types(Config.preset("wide")).quantised
    assert with_types(Config.preset("narrow16")) == Config.preset("narrow16")
    assert not with_types(Config.preset("minimum")).quantised or Config.preset("minimum").scalars


def test_bytes_of_rows() -> None:
    """As PyTorch's tables have them, and lines as they lie on the device: with a head of two words."""
    expected = {"fp32": 256, "bf16": 128, "fp16": 128, "fp8": 64, "int8": 72, "int4": 36, "int2": 20}
    lines = {"fp32": 16, "bf16": 8, "fp16": 8, "fp8": 4, "int8": 5, "int4": 3, "int2": 2}
    for kind, size in expected.items():
        assert Typed(kind, "sum", 64).row_bytes == size
        assert Typed(kind, "sum", 64).device_lines(16) == lines[kind]
    weighted = Typed("int4", "weighted", 64, bags=4, pooling=5)
    assert weighted.useful_bytes == 20 * (36 + 8 + 4) + 4 * (8 + 256)
    assert Typed("bf16", "weighted", 64, bags=4, pooling=5).useful_bytes == 20 * (128 + 8 + 2) + 4 * (8 + 128)
    assert Typed("int2", "gather", 16, bags=4, pooling=5).useful_bytes == 20 * (8 + 8 + 8)
    assert Typed("fp8", "weighted", 64, bags=4, pooling=5).useful_bytes == 20 * (64 + 8 + 4) + 4 * (8 + 256)


def test_what_is_measured() -> None:
    found = list(operations())
    assert len(found) == len(set(found)) == 3 * 4 * 4 + 4 * 4 * 3
    for kind in ("int8", "fp8"):
        assert {typed.mode for typed in found if typed.type == kind} == {"sum", "weighted", "gather"}
    assert all((typed.type, typed.mode, typed.dim) != ("int2", "mean", 64) for typed in found)
    assert all(goals.keys() <= set(element_types.MODES) for goals in GOALS.values())


def test_some_are_chosen_by_name() -> None:
    assert [typed.name for typed in operations(["int4 * 64"])] == ["int4 sum 64", "int4 weighted 64", "int4 gather 64"]
    run = CliRunner().invoke(cli, ["bench", "types", "--only", "int5 *"])
    assert run.exit_code == 2 and "must fit a name such as 'fp32 sum 16', not 'int5 *'" in run.output


def test_every_operation_is_pytorchs() -> None:
    rows = rows_of(EDGE)
    assert len(rows) == len(list(operations()))
    for row in rows:
        assert not is_broken(row) and row["config"] == "edge-types", row
        if row["type"].startswith("int") and row["dim"] > EDGE.vl_max and row["mode"] != "gather":
            assert row["note"] == "configuration edge-types has registers of 64 elements, shorter than a row"
            continue
        assert row["bit_exact"]
        parts = 1 if row["mode"] == "gather" else -(-row["dim"] // EDGE.vl_max)
        assert row["rows"] == parts * row["lookups"] and row["lookups"] == QUICK["bags"] * QUICK["pooling"]


def test_types_that_a_machine_has_not_have_a_note() -> None:
    config = replace(EDGE, name="halves", bfloat16=1)
    rows = rows_of(config)
    noted = {row["type"] for row in rows if row.get("note")}
    assert noted == {"fp16", "fp8", "int8", "int4", "int2"} and not any(is_broken(row) for row in rows)
    assert all(row["note"] == "configuration halves has no converter" for row in rows if row.get("note"))
    assert all(row["bit_exact"] for row in rows if row["mode"] == "gather")


def test_goals_stand_beside_figures() -> None:
    machine = Machine(with_types(Config.preset("ddr3")), "ideal", "model")
    small = Typed("int8", "sum", 64, rows=200, bags=16)
    row = measure(small, machine)
    assert 30 < row["cycles_each"] <= 36 and row["useful_share"] > 0.1 and row["outcome"].startswith("at most 34: ")
    assert "outcome" not in measure(replace(small, dim=32), machine)


@pytest.mark.rtl
@pytest.mark.slow
def test_rtl() -> None:
    """Limits, and lines of rows that are as narrow as their type."""
    for typed in (Typed("bf16", "mean", 64), Typed("int4", "weighted", 32), Typed("int2", "gather", 64)):
        row = measure(replace(typed, **QUICK), Machine(TYPES, "ideal"))
        assert not row["verdict"] and 0 < row["limit_share"] <= 1
        assert row["row_lines"] == 20 * typed.device_lines(16)


def test_landed_gathers_take_what_gathers_of_the_same_bytes_do() -> None:
    """A row of fewer elements of binary32, where one of as many bytes was measured."""
    documents = [document for name, document in files.results().items() if name.startswith("types")]
    rows = [row for document in documents for row in document["results"]["types"] if row["mode"] == "gather"]
    cycles = {(row["row_bytes"], row["memory"]): row["cycles"] for row in rows if row["type"] == "fp32"}
    checked = set()
    for row in (row for row in rows if row["type"] != "fp32" and (row["row_bytes"], row["memory"]) in cycles):
        same = cycles[row["row_bytes"], row["memory"]]
        assert abs(row["cycles"] - same) < 0.02 * same, row["workload"]
        checked.add((row["config"], row["type"], row["memory"]))
    assert {kind for _, kind, _ in checked} >= {"bf16", "fp16"} and len(checked) >= 2 * 2 * 2


@pytest.mark.parametrize("config", ["ddr3", "narrow16"])
def test_a_gather_takes_what_one_of_the_same_bytes_does(config: str) -> None:
    """Of every type: rows are words, whatever these are of."""
    machine = Machine(with_types(Config.preset(config)), "ideal", "model")
    for kind in ("bf16", "fp16", "fp8", "int8", "int4", "int2"):
        typed = Typed(kind, "gather", 64, bags=32)
        words = Typed("fp32", "gather", typed.row_bytes // 4, bags=32)
        narrow, wide = (measure(each, machine) for each in (typed, words))
        for figure in ("cycles", "lines_read"):
            assert abs(narrow[figure] - wide[figure]) <= 0.02 * wide[figure], (kind, figure)


def test_a_table_that_is_wider_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = element_types._verdict(Typed("int8", "sum", 64, bags=1, pooling=2), Machine(TYPES), "", 32)
    assert found == "32 lines were read out of tables for rows of 10"
    monkeypatch.setattr(element_types, "first_difference", lambda *_: "element [0] differs")
    row = measure(Typed("fp32", "sum", 16, **QUICK), Machine(EDGE, target="emulator"))
    assert row["verdict"] == "not PyTorch's: element [0] differs" and is_broken(row)


def test_differences_of_narrow_tensors() -> None:
    a = torch.tensor([1.0, 2.0]).bfloat16()
    assert not first_difference(a, a.clone())
    assert first_difference(a, torch.tensor([1.0, 2.015625]).bfloat16()).startswith("element [1] must be 0x1.02")
    assert first_difference(torch.tensor([1, 2], dtype=torch.uint8), torch.tensor([1, 3], dtype=torch.uint8))


def test_what_pytorch_has_not_is_fbgemms_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    class Beside(Host):
        def __init__(self) -> None:
            pass

        def beside(self, ours: Any, fused: Any, useful_bytes: int) -> Any:
            seen.append((ours, fused))
            return SimpleNamespace(as_row=lambda: {"torch_share": 0.5, "fbgemm_share": None, "triad_gb_s": 9.0})

    typed = Typed("fp8", "sum", 16, **QUICK)
    monkeypatch.setattr(MadeTyped, "in_fbgemm", lambda made: len)
    row = element_types._on_host(Beside(), typed)
    assert row == {"torch_share": None, "fbgemm_share": 0.5, "triad_gb_s": 9.0} and seen == [(len, None)]
    monkeypatch.setattr(MadeTyped, "in_fbgemm", lambda made: None)
    assert element_types._on_host(Beside(), typed) == {"torch_share": None, "fbgemm_share": None}
    assert "~1.00 / – / 0.50" in types_page.page([_document(typed, row)])
    assert "| fp8 | sum | – / 0.50 |" in types_page.page([_document(typed, row)])


def _document(typed: Typed, row: Row) -> dict[str, Any]:
    whole = {
        "type": typed.type,
        "mode": typed.mode,
        "dim": typed.dim,
        "memory": "ideal",
        "config": "edge",
        "target": "model",
    }
    whole |= {"cycles_each": 1.0, "limit_share": 0.5, "useful_share": 0.5, **row}
    return {"facts": {"revision": "abc", "processor": "P"}, "results": {"types": [whole]}}


def test_the_host_is_measured_once_for_each_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Typed] = []

    def on_host(host: Host, typed: Typed) -> Row:
        calls.append(typed)
        return {"torch_share": 0.5, "fbgemm_share": None}

    monkeypatch.setattr(element_types, "Host", SimpleNamespace)
    monkeypatch.setattr(element_types, "_on_host", on_host)
    monkeypatch.setattr(element_types, "operations", lambda only: [Typed("fp32", "sum", 16)])
    rows = rows_of(EDGE, host=True, machines=((EDGE, "ideal"), (EDGE, "ideal:latency=20")))
    assert len(rows) == 2 and len(calls) == 1 and all(row["torch_share"] == 0.5 for row in rows)


def test_even_tables_have_the_bytes_of_others() -> None:
    for typed in (Typed("fp16", "sum", 16, **QUICK), Typed("int4", "weighted", 16, **QUICK)):
        made, even = typed.make(1), typed.make(1, is_even=True)
        assert [t.shape for t in made.module.state_dict().values()] == [
            t.shape for t in even.module.state_dict().values()
        ]
        assert even.module(*even.inputs).isfinite().all()


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Order] = []

    def run(suite: str, order: Order, say: Any) -> Any:
        seen.append(order)
        yield {"workload": "x", "memory": "ideal", "bit_exact": True, "verdict": "", "type": "fp32"}

    monkeypatch.setattr(registry, "run", run)
    runner = CliRunner()
    assert runner.invoke(cli, ["bench", "types"]).exit_code == 0
    assert runner.invoke(cli, ["bench", "types", "--memory", "ideal:latency=20", "--config", "edge"]).exit_code == 0
    first, second = seen[0].machines, seen[1].machines
    assert [(config.name, memory) for config, memory in first] == [
        ("ddr3-types", memory) for memory in element_types.MEMORIES
    ]
    assert [(config.name, memory) for config, memory in second] == [("edge-types", "ideal:latency=20")]


def test_the_page() -> None:
    row = {
        "type": "int8", "mode": "sum", "dim": 64, "memory": "ideal", "config": "ddr3-types", "cycles_each": 33.25,
        "target": "verilator", "limit_share": 0.165, "useful_share": 0.15, "torch_share": 0.5, "fbgemm_share": 0.75,
        "outcome": "at most 34: reached",
    }  # fmt: skip
    document = {"facts": {"revision": "abc", "processor": "P"}, "results": {"types": [row, {**row, "type": "bf16"}]}}
    narrow = {**row, "config": "narrow16", "outcome": "at most 6.5: missed", "torch_share": None}
    other = {"facts": {"revision": "def", "processor": "P"}, "results": {"types": [narrow]}}
    text = types_page.page([document, other])
    assert (
        "| int8 | sum | 33.25 / 0.17 / 0.15 | at most 34: reached |" in text and "| int8 | sum | 0.50 / 0.75 |" in text
    )
    assert "2 of 3 goals" in text and "Commit: abc, def" in text
    assert "## narrow16 on ideal" in text and text.count("0.50 / 0.75") == 2
