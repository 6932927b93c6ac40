"""What boards would do: memory models, energies and rows from known inputs."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from daedal.bench import registry
from daedal.bench.suite import Order, Row
from daedal.bench.suites import prediction
from daedal.bench.workloads.made import Made
from daedal.bench.workloads.models import WORKLOADS
from daedal.cli import cli
from daedal.driver.launch.record import Stats
from daedal.errors import DaedalError
from daedal.fpga.boards import BOARDS, find_board
from daedal.hw.config.core import PRESETS, Config

CONFIG = find_board("ecpix5").config
REPORT = prediction.Report(find_board("ecpix5"), CONFIG, 30.0, True)
STATS = Stats(cycles=60_000, launches=1, lines_read=900, lines_written=100)


@pytest.mark.parametrize(
    ("board", "mega_bytes"),
    [
        ("ecpix5", 600),  # 16 bits, 150 MHz, both edges
        ("ulx3s", 100),  # 16 bits, 50 MHz
        ("tangnano20k", 108),  # 32 bits, 27 MHz
    ],
)
def test_bandwidth_of_a_board(board: str, mega_bytes: float) -> None:
    found = find_board(board)
    lines = prediction.lines_per_cycle(found, found.config, 10e6)
    assert lines * 10 * found.config.bus_bytes == pytest.approx(0.89 * mega_bytes)


def test_a_faster_core_sees_a_slower_memory() -> None:
    board = replace(find_board("ecpix5"), clock_hz=75e6)
    assert prediction.memory_of(board, CONFIG, 25e6) == "ideal:latency=10,lines=1.335"
    assert prediction.memory_of(board, CONFIG, 50e6) == "ideal:latency=20,lines=0.667"


def test_energy_of_a_run() -> None:
    spent = prediction.energy(STATS, 1000, 500, 16)
    assert spent.arithmetic == pytest.approx((1000 * 0.9 + 500 * 3.7) * 14 / 1000)
    assert spent.on_chip == pytest.approx(16_000 * 10 / 8 * 4 / 1000)
    assert spent.dram == pytest.approx(16_000 / 8 * 2.6)
    assert spent.total == pytest.approx(spent.arithmetic + spent.on_chip + spent.dram)


def made(name: str) -> Made:
    return Made(WORKLOADS[name], torch.nn.Identity(), (), 1000, 10, "")


def test_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(*arguments):
        asked.append(arguments)
        return STATS, made("rm3")

    monkeypatch.setattr(prediction, "simulate", run)
    row = prediction.predict(REPORT, WORKLOADS["rm3"])
    assert asked == [(WORKLOADS["rm3"], CONFIG, prediction.memory_of(find_board("ecpix5"), CONFIG, 30e6), 512 << 20)]
    assert (row["fmax"], row["clock"], row["rate"], row["note"]) == (30, "routed", pytest.approx(30 / 60), "")
    dim = WORKLOADS["rm3"].dim
    assert row["nj"] == pytest.approx(prediction.energy(STATS, 1000 * dim, 1000 * dim, 16).total / 1000)
    assert row["nj_dram"] == pytest.approx(16_000 / 8 * 2.6 / 1000)
    assert prediction.predict(replace(REPORT, routed=False), WORKLOADS["rm3"])["clock"] == "estimated before routing"


def test_what_cannot_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_):
        raise DaedalError("it has too few levels")

    monkeypatch.setattr(prediction, "simulate", run)
    assert prediction.predict(REPORT, WORKLOADS["rm1"])["note"] == "it has too few levels"
    small = find_board("icebreaker")
    report = prediction.Report(small, small.config, 12.0, True)
    assert "no DRAM: its 131,072 bytes" in prediction.predict(report, WORKLOADS["rm1"])["note"]


def test_memory_of_the_boards() -> None:
    sizes = {board: prediction.memory_bytes(find_board(board)) for board in BOARDS}
    assert sizes == {"ecpix5": 512 << 20, "ulx3s": 32 << 20, "tangnano20k": 8 << 20, "icebreaker": 128 << 10}


def described(config: Config) -> dict[str, Any]:
    return asdict(config) | {"hash": config.hash}


GOOD = {"board": "ecpix5", "config": described(CONFIG), "fmax_mhz": 30.0, "routed": True}
LACKING = {name: value for name, value in described(CONFIG).items() if name != "lanes"}
WRONG = [
    ("{", "cannot be read (Expecting property name"),
    ([1], "must hold the keys of a report, not list"),
    *(({name: value for name, value in GOOD.items() if name != key}, f"must have the key {key!r}") for key in GOOD),
    (GOOD | {"fmax_mhz": "30"}, "must have an fmax_mhz from 0 to 10000, not '30'"),
    (GOOD | {"fmax_mhz": 0}, "must have an fmax_mhz from 0 to 10000, not 0"),
    (GOOD | {"routed": 1}, "must have a routed that is true or false, not 1"),
    (GOOD | {"board": "none"}, "board must be one of ecpix5, ulx3s, tangnano20k, icebreaker, not 'none'"),
    (GOOD | {"config": 5}, "config must be a table of fields, not 5"),
    (GOOD | {"config": LACKING}, "it lacks 'lanes'"),
    (GOOD | {"config": described(CONFIG) | {"colour": 1}}, "it also has 'colour'"),
    (GOOD | {"config": described(CONFIG) | {"lanes": 3}}, "lanes must be a power of two, not 3"),
    (GOOD | {"config": described(CONFIG) | {"alus": 3}}, "alus must be a list with one entry per level, not 3"),
    (GOOD | {"config": described(CONFIG) | {"hash": 1}}, f"hash must be {CONFIG.hash}, that of the fields, not 1"),
]


def written(folder: Path, report: object) -> Path:
    path = folder / "report.json"
    path.write_text(report if isinstance(report, str) else json.dumps(report))
    return path


@pytest.mark.parametrize(("report", "message"), WRONG)
def test_wrong_reports_are_one_line(tmp_path: Path, report: object, message: str) -> None:
    path = written(tmp_path, report)
    result = CliRunner().invoke(cli, ["bench", "prediction", "--report", str(path)])
    said = result.stderr.splitlines()[-1]
    assert (result.exit_code, result.stdout) == (2, "")
    assert said.startswith(f"daedal: {path} ") and message in said
    assert said.endswith(": make it again with daedal bitstream")


@pytest.mark.parametrize("words", [["prediction"], ["rm1", "--report", "{}"], ["--report", "{}"]])
def test_reports_are_for_the_prediction_which_needs_some(tmp_path: Path, words: list[str]) -> None:
    path = written(tmp_path, GOOD)
    result = CliRunner().invoke(cli, ["bench", *(word.format(path) for word in words)])
    assert result.exit_code == 2 and "give both" in result.stderr


def predicted(path: Path, monkeypatch: pytest.MonkeyPatch, workload: str) -> Row:
    monkeypatch.setattr(prediction, "SHOWN", (WORKLOADS[workload],))
    order = Order(((CONFIG, "ideal"),), reports=(path,))
    (row,) = registry.run("prediction", order, lambda text: None)
    return row


@pytest.mark.rtl
def test_from_a_report_to_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    core = PRESETS["edge"]
    row = predicted(written(tmp_path, GOOD | {"config": described(core)}), monkeypatch, "gather")
    assert (row["what"], row["workload"], row["lookups"], row["launches"]) == ("ecpix5, edge", "gather", 8192, 1)
    assert row["fmax"] == 30 and row["rate"] == pytest.approx(30 * 8192 / row["cycles"])
    most = 0.89 * 600 / (2 * 256 + 8)  # a row read and written, and an index
    assert 0.8 * most < row["rate"] <= most
    small = GOOD | {"board": "tangnano20k", "config": described(core)}
    assert "of the device's memory 8388608 are left" in predicted(written(tmp_path, small), monkeypatch, "rm2")["note"]
