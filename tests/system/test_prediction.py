"""What boards would do: memory models, energies and rows from known inputs."""

from dataclasses import asdict

import pytest

from bench import prediction
from bench.pages import insert
from daedal.driver.record import Stats
from daedal.errors import DaedalError
from daedal.hw.boards import find_board
from daedal.measure.workloads import WORKLOADS, Made

CONFIG = find_board("ecpix5").config
REPORT = {"board": "ecpix5", "config": asdict(CONFIG) | {"hash": 1}, "clock_mhz": 25.0, "fmax_mhz": 30.0}
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
    board = find_board("ecpix5")
    assert prediction.memory_of(board, CONFIG, 25e6) == "ideal:latency=10,lines=1.335"
    assert prediction.memory_of(board, CONFIG, 50e6) == "ideal:latency=20,lines=0.667"


def test_energy_of_a_run() -> None:
    spent = prediction.energy(STATS, 1000, 500, 16)
    assert spent.arithmetic == pytest.approx((1000 * 0.9 + 500 * 3.7) * 14 / 1000)
    assert spent.on_chip == pytest.approx(16_000 * 10 / 8 * 4 / 1000)
    assert spent.dram == pytest.approx(16_000 / 8 * 2.6)
    assert spent.total == pytest.approx(spent.arithmetic + spent.on_chip + spent.dram)


def made(name: str) -> Made:
    return Made(WORKLOADS[name], None, (), 1000, 10, "")  # type: ignore[arg-type]


def test_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(workload, config, memory):
        asked.append((workload, config.hash, memory))
        return STATS, made("rm3")

    monkeypatch.setattr(prediction, "run", run)
    row = prediction.predict(REPORT, "rm3")
    assert asked == [("rm3", CONFIG.hash, prediction.memory_of(find_board("ecpix5"), CONFIG, 30e6))]
    assert (row["rate"], row["rate_fmax"]) == pytest.approx((25 / 60, 30 / 60))
    dim = WORKLOADS["rm3"].dim
    assert row["nj"] == pytest.approx(prediction.energy(STATS, 1000 * dim, 1000 * dim, 16).total / 1000)
    assert row["nj_dram"] == pytest.approx(16_000 / 8 * 2.6 / 1000)


def test_what_cannot_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_):
        raise DaedalError("it has too few levels")

    monkeypatch.setattr(prediction, "run", run)
    assert prediction.predict(REPORT, "rm1")["note"] == "it has too few levels"
    small = find_board("icebreaker").config
    report = REPORT | {"board": "icebreaker", "config": asdict(small)}
    assert "no DRAM: its 131,072 bytes" in prediction.predict(report, "rm1")["note"]


def test_the_page_has_a_place_for_it() -> None:
    assert insert(prediction.PAGE.read_text(encoding="utf-8"), prediction.BEGIN, "x")
