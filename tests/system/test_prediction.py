"""What boards would do: memory models, energies and rows from known inputs."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

from bench import prediction
from bench.pages import END, insert
from daedal.driver.record import Stats
from daedal.errors import DaedalError
from daedal.hw.boards import BOARDS, find_board
from daedal.hw.config import PRESETS, Config
from daedal.measure.workloads import WORKLOADS, Made

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

    monkeypatch.setattr(prediction, "run", run)
    row = prediction.predict(REPORT, "rm3")
    assert asked == [("rm3", CONFIG, prediction.memory_of(find_board("ecpix5"), CONFIG, 30e6), 512 << 20)]
    assert (row["fmax"], row["rate"], row["note"]) == (30, pytest.approx(30 / 60), "")
    dim = WORKLOADS["rm3"].dim
    assert row["nj"] == pytest.approx(prediction.energy(STATS, 1000 * dim, 1000 * dim, 16).total / 1000)
    assert row["nj_dram"] == pytest.approx(16_000 / 8 * 2.6 / 1000)
    assert "estimated" in prediction.predict(replace(REPORT, routed=False), "rm3")["note"]


def test_what_cannot_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_):
        raise DaedalError("it has too few levels")

    monkeypatch.setattr(prediction, "run", run)
    assert prediction.predict(REPORT, "rm1")["note"] == "it has too few levels"
    small = find_board("icebreaker")
    report = prediction.Report(small, small.config, 12.0, True)
    assert "no DRAM: its 131,072 bytes" in prediction.predict(report, "rm1")["note"]


def test_memory_of_the_boards() -> None:
    sizes = {board: prediction.memory_bytes(find_board(board)) for board in BOARDS}
    assert sizes == {"ecpix5": 512 << 20, "ulx3s": 32 << 20, "tangnano20k": 8 << 20, "icebreaker": 128 << 10}


@pytest.fixture
def command(tmp_path: Path):
    """Runs the command with a report, on a page of its own."""

    def run(report: object, *options: str) -> tuple[Result, Path, Path]:
        path, page = tmp_path / "report.json", tmp_path / "boards.md"
        path.write_text(report if isinstance(report, str) else json.dumps(report))
        page.write_text(f"before\n{prediction.BEGIN}\n{END}\nafter\n")
        return CliRunner().invoke(prediction.main, [str(path), "--page", str(page), *options]), path, page

    return run


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


@pytest.mark.parametrize(("report", "message"), WRONG)
def test_wrong_reports_are_one_line(command, report: object, message: str) -> None:
    result, path, _ = command(report)
    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)
    assert result.stderr.startswith(f"Error: {path} ") and message in result.stderr
    assert result.stderr.endswith(": make it again with daedal bitstream\n")


@pytest.mark.rtl
def test_from_a_report_to_the_page(command) -> None:
    core = PRESETS["edge"]
    result, _, page = command(GOOD | {"config": described(core)}, "--workload", "gather")
    assert result.exit_code == 0, result.output
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    cells = [cell.strip() for cell in lines[4].split("|")[1:-1]]
    assert cells[:4] == ["`ecpix5`, `edge`", "`gather`", "8,192", "1"]
    cycles, fmax, rate = (float(cell.replace(",", "")) for cell in cells[4:7])
    assert fmax == 30 and rate == pytest.approx(30 * 8192 / cycles, abs=0.005)
    most = 0.89 * 600 / (2 * 256 + 8)  # a row read and written, and an index
    assert 0.8 * most < fmax * 8192 / cycles <= most
    small = command(GOOD | {"board": "tangnano20k", "config": described(core)}, "--workload", "rm2")
    assert "device memory" in small[2].read_text()


def test_the_page_has_a_place_for_it() -> None:
    assert insert(prediction.PAGE.read_text(encoding="utf-8"), prediction.BEGIN, "x")
