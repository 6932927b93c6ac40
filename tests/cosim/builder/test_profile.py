"""Models that are compiled with a profile of a run: ``cosim.profile`` and ``daedal tune``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from daedal.bench import tuning
from daedal.bench.tuning import TuningFailed, tune
from daedal.cli import cli
from daedal.cosim.builder import profile
from daedal.cosim.builder.rtl_library import build_verilated, make_environment
from daedal.hw.config.core import Config
from tests.cosim.builder.counter_model import HARNESS, VERILOG, build, run


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OBJCACHE", make_environment()["OBJCACHE"])  # Verilator's own library is not built anew
    monkeypatch.setenv("DAEDAL_CACHE", str(tmp_path))
    return tmp_path


def train() -> int:
    code = "from tests.cosim.builder.counter_model import build, run; print(run(build()))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=profile.training_environment(), capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.slow
def test_a_model_with_a_profile_computes_the_same(cache: Path) -> None:
    plain = build()
    expected = run(plain)
    assert train() == expected
    (folder,) = cache.glob("*.profile")
    assert list(folder.glob("*.gcda"))
    tuned = build()
    assert tuned != plain
    assert run(tuned) == expected
    assert [path for path in cache.glob("*.log") if "-fprofile-use" in path.read_text()] == [model_log(cache)]
    train()  # the run was the same, so is the profile
    assert list(cache.glob("*.profile")) == [folder]
    assert build() == tuned
    build_verilated("counter", VERILOG.replace("250", "200"), HARNESS, top="counter", ours=False)
    assert "-fprofile-use" not in model_log(cache).read_text()  # a profile is of one model only


@pytest.mark.slow
def test_a_profile_that_does_not_fit_stops_no_build(cache: Path) -> None:
    """Such as one whose functions have moved in their files, or a file that was cut off."""
    expected = run(build())
    train()
    (folder,) = cache.glob("*.profile")
    notes = sorted(folder.glob("*.gcda"))
    for note in notes:
        note.write_bytes(with_functions_moved(note.read_bytes()))
    assert run(build()) == expected
    assert model_log(cache).read_text().count("-fprofile-use") > 0
    for note in notes:
        note.write_bytes(note.read_bytes()[:40])
    assert run(build()) == expected


def with_functions_moved(notes: bytes) -> bytes:
    """g++'s notes with another digest of where each function is written.

    The record of a function is its tag, the length of the rest in bytes or words, its number, that digest, and that of
    its graph.
    """
    raw = bytearray(notes)
    tag = (0x01000000).to_bytes(4, sys.byteorder)
    heads = [tag + length.to_bytes(4, sys.byteorder) for length in (3, 12)]
    found = [at for at in range(0, len(raw), 4) if raw[at : at + 8] in heads]
    assert found
    for at in found:
        raw[at + 12] ^= 0xFF
    return bytes(raw)


def model_log(cache: Path) -> Path:
    """The log of the model that was built last."""
    return max(cache.glob("*.model"), key=lambda path: path.stat().st_mtime).with_suffix(".log")


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it runs and tells; three models of a core would take minutes here."""
    runs: list[bool] = []

    def run(config: Config, memory: str, *, train: bool) -> float:
        assert (config.name, memory) == ("minimum", "ideal:latency=3")
        runs.append(train)
        return 1000.0 * len(runs)

    monkeypatch.setattr(tuning, "_run", run)
    words = ["tune", "--config", "minimum", "--memory", "ideal:latency=3"]
    told = CliRunner().invoke(cli, words)
    assert (told.exit_code, runs) == (0, [False, True, False]), told.output
    assert told.stdout == "minimum, ideal:latency=3: 1,000 -> 3,000 simulated cycles per second\n"
    made = CliRunner().invoke(cli, [*words, "--json"])
    assert json.loads(made.stdout)["cycles_per_second"] == {"before": 4000, "after": 6000}


def test_a_run_that_fails_is_told() -> None:
    with pytest.raises(TuningFailed, match=r"edge on nonsense could not be run: .*nonsense"):
        tune(Config.preset("edge"), "nonsense", print)
