"""``daedal sim``, on results that are made up."""

import errno
import json

import pytest
from click.testing import CliRunner

from daedal.bench.workloads.runner import Result
from daedal.cli import cli
from daedal.cosim.simulator_time import Part, Profile
from daedal.driver.device import Device
from daedal.hw.config.core import PRESETS
from tests.driver.fake_target import FakeTarget

KEYS = {
    "workload", "target", "config", "memory", "bit_exact", "cycles", "lookups", "bytes_read", "bytes_written",
    "line_share", "stalls", "sim_kcycles_per_s",
}  # fmt: skip


@pytest.fixture
def run(monkeypatch):
    """Runs the command; ``differences`` (operation -> text) are found by the comparison."""
    differences = {}

    def open_target(name, config, *, memory, memory_bytes, wave, board, sparse):
        return FakeTarget(config)

    def run_case(case, device, *, target, memory):
        difference = differences.get(case.operation, "")
        return Result(
            case.workload, case.operation, case.shape, target, device.config.name, memory, not difference,
            difference, cycles=differences.get("cycles", 1000), launches=1, lookups=5, rows=5,
            bytes_read=160, bytes_written=16, line_share=0.011, main_stall="load", stalls={"load": 7},
            seconds=0.1, sim_kcycles_per_s=10.0,
        )  # fmt: skip

    monkeypatch.setattr("daedal.driver.device.open_target", open_target)
    monkeypatch.setattr("daedal.bench.workloads.runner.run_case", run_case)

    def invoke(*arguments):
        return CliRunner().invoke(cli, ["sim", *map(str, arguments)])

    invoke.differences = differences
    return invoke


def test_all_workloads_and_the_json_file(run, tmp_path):
    path = tmp_path / "sim.json"
    result = run("--json", path, "--config", "edge", "--target", "emulator", "--memory", "ideal:latency=5")
    assert result.exit_code == 0, result.output
    document = json.loads(path.read_text())
    assert document["schema"] == 1
    assert [entry["workload"] for entry in document["results"]] == ["text", "text", "dlrm", "dlrm", "gather"]
    for entry in document["results"]:
        assert entry.keys() >= KEYS
        assert (entry["config"], entry["target"], entry["memory"]) == ("edge", "emulator", "ideal:latency=5")
        assert entry["bit_exact"] is True
    assert result.output.count("equal") == 5


def test_cycles_that_are_not_counted_are_said_to_be_so(run):
    assert "1,000" in run("gather", "--target", "emulator").stdout
    run.differences["cycles"] = 0
    assert run("gather", "--target", "emulator").stdout.count("–") == 3, "cycles, share and stall"


def test_without_a_terminal_the_build_is_announced(run):
    said = "the model of ddr3 takes minutes to build the first time"
    assert said in run("gather").stderr
    assert said not in run("gather", "--target", "emulator").stderr


def test_json_on_the_standard_output_is_alone_there(run, tmp_path):
    result = run("gather", "--json", "-", "--wave", tmp_path / "run.vcd")
    assert result.exit_code == 0
    assert [entry["workload"] for entry in json.loads(result.stdout)["results"]] == ["gather"]
    assert "equal" in result.stderr and "gtkwave" in result.stderr


def test_a_profile_is_printed_and_in_the_json(run, tmp_path, monkeypatch):
    profile = Profile([Part("access.level1", True, 6, 0.75), Part("host: Python", False, 2, 0.25)], 4.0, 8)
    monkeypatch.setattr(FakeTarget, "profile", lambda self: profile, raising=False)
    monkeypatch.setenv("DAEDAL_PROFILE", "")
    path = tmp_path / "sim.json"
    result = run("gather", "--profile", "--json", path)
    assert result.exit_code == 0, result.output
    assert "access.level1" in result.output and "75.0%" in result.output
    assert json.loads(path.read_text())["simulator_time"] == profile.as_dict()
    assert "simulator_time" not in json.loads(run("gather", "--json", "-").stdout)
    result = run("gather", "--profile", "--target", "emulator")
    assert result.exit_code == 2
    assert "--profile must go with target verilator, which simulates the RTL, not emulator" in result.output


def test_a_waveform_says_how_to_look_at_it(run, tmp_path):
    result = run("gather", "--wave", tmp_path / "run.vcd")
    assert result.exit_code == 0
    assert f"gtkwave {tmp_path}/run.gtkw" in result.output
    assert f"surfer -c {tmp_path}/run.sucl {tmp_path}/run.vcd" in result.output


def test_a_configuration_file_does_as_well(run, tmp_path):
    (tmp_path / "mine.toml").write_text('base = "edge"\nports = 4\n')
    result = run("gather", "--config", tmp_path / "mine.toml", "--json", tmp_path / "sim.json")
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "sim.json").read_text())["results"][0]["config"] == "mine"


def test_inequality_fails_and_names_the_element(run, tmp_path):
    path = tmp_path / "sim.json"
    run.differences["Embedding"] = "element [3, 5] must be 0x1.0p+0"
    result = run("gather", "--json", path)
    assert result.exit_code == 1
    assert "gather: Embedding differs from PyTorch: element [3, 5] must be 0x1.0p+0" in result.output
    assert json.loads(path.read_text())["results"][0]["bit_exact"] is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chess"], "'chess' is not one of"),
        (["--config", "hbm3"], "'hbm3' is not one of"),
        (["--target", "quantum"], "'quantum' is not one of"),
    ],
)
def test_wrong_command_line(run, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize("option", ["--json", "--wave"])
def test_a_file_without_a_folder_is_said_before_the_run(run, tmp_path, option):
    result = run("gather", option, tmp_path / "none" / "file")
    assert result.exit_code == 2
    text = "".join(result.output.split())
    assert "mustexist" in text
    assert "equal" not in text
    assert run("gather", option, tmp_path).exit_code == 2


def test_a_full_disk_is_one_line(run):
    result = run("gather", "--json", "/dev/full")
    assert result.exit_code == 1
    assert "/dev/full" in result.stderr
    assert "No space left" in result.stderr


def test_a_table_on_a_full_disk_is_one_line(run, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("daedal.cli.sim._print_table", full)
    result = run("gather", "--target", "emulator")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "daedal: standard output cannot be written: No space left on device\n" in result.stderr


def test_wrong_memory_is_a_wrong_command_line():
    result = CliRunner().invoke(cli, ["sim", "--target", "emulator", "--memory", "ideal:speed=2"])
    assert result.exit_code == 2
    assert "must be one of latency, lines, stall, pause_after, pause, seed" in " ".join(result.output.split())


def test_fake_device_is_one():
    assert not Device(FakeTarget(PRESETS["edge"]), PRESETS["edge"]).closed
