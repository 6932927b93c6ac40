"""The command line: versions, errors as one line, and their status."""

import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import daedal
from daedal import cli


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch):
    """Run the command with one extra subcommand, ``fail``, that raises what it is made with."""

    def run(*arguments: str, error: Exception | None = None) -> Result:
        @click.command()
        def fail() -> None:
            if error is not None:
                raise error

        get_command = cli.LazyGroup.get_command
        monkeypatch.setattr(
            cli.LazyGroup,
            "get_command",
            lambda self, ctx, name: fail if name == "fail" else get_command(self, ctx, name),
        )
        return CliRunner().invoke(cli.cli, arguments, prog_name="daedal")

    return run


def test_version(invoke) -> None:
    result = invoke("--version")
    assert (result.exit_code, result.output) == (0, f"daedal, version {daedal.__version__}\n")


def test_success_is_status_0(invoke) -> None:
    assert invoke("fail").exit_code == 0


def test_an_error_is_one_line_and_status_1(invoke) -> None:
    result = invoke("fail", error=daedal.IndexOutOfRange("index 7 at 3\nmust be below 5"))
    assert (result.exit_code, result.stderr, result.stdout) == (
        1,
        "daedal: index 7 at 3 must be below 5\n",
        "",
    )


def test_traceback_on_request(invoke) -> None:
    error = daedal.DeviceClosed("closed")
    assert invoke("--traceback", "fail", error=error).exception is error


def test_a_defect_is_not_hidden(invoke) -> None:
    error = ValueError("not one of ours")
    assert invoke("fail", error=error).exception is error


@pytest.mark.parametrize("arguments", [("nonsense",), ("--nonsense",), ("sim", "--nonsense")])
def test_wrong_usage_is_status_2(invoke, arguments: tuple[str, ...]) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert "Error: No such" in result.stderr


def test_help_lists_every_subcommand(invoke) -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    assert "sim " in result.output


def test_version_imports_no_subcommand() -> None:
    lines = (
        "import sys; from daedal.cli import main",
        "try: main()",
        "finally: print([name for name in sys.modules if name.startswith('daedal.cli.')])",
    )
    command = [sys.executable, "-c", "\n".join(lines), "--version"]
    assert subprocess.run(command, capture_output=True, text=True).stdout.splitlines()[-1] == "[]"


def test_module_runs_as_the_command(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "daedal", "--version"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == f"daedal, version {daedal.__version__}\n"


@pytest.mark.parametrize("late", [False, True], ids=["at once", "at work"])
def test_terminated_it_ends_what_it_has_started(late: bool, tmp_path: Path) -> None:
    code = (
        "import sys, daedal.cli as c; from daedal.fpga.flow import tools; from pathlib import Path;"
        "tools.find = lambda program: Path('/bin/sleep');"
        "c.cli = lambda prog_name: tools.run('sleep', ['100'], Path(sys.argv[1]), 'log', timeout=100); c.main()"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    end = time.monotonic() + 60
    while not (started := children.read_text().split()):
        assert process.poll() is None and time.monotonic() < end
    if late:  # the tool itself
        while not Path(f"/proc/{started[0]}/task/{started[0]}/children").read_text():
            assert process.poll() is None and time.monotonic() < end
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGTERM
    end = time.monotonic() + 30
    while session_runs(started[0]):
        assert time.monotonic() < end
        time.sleep(0.05)


def session_runs(session: str) -> bool:
    """Whether a process of this session goes on; one that has ended may be listed until its new parent looks."""
    for listed in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            state, _, _, its_session = listed.read_text().rpartition(")")[2].split()[:4]
            if its_session == session and state not in "ZX":
                return True
    return False


CLOSED = "daedal: standard output cannot be written: it is closed\n"
EMPTY = "daedal: standard input cannot be read: it is closed\n"
FULL = "daedal: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("asm empty.s --config edge -o - >&-", CLOSED),
        ("asm empty.s --config edge -o - >/dev/full", FULL),
        ("asm - -o - <&-", EMPTY),
        ("disasm - <&-", EMPTY),
        ("compile - <&-", EMPTY),
        ("doctor >/dev/full", FULL),
    ],
)
def test_closed_and_full_standard_streams_are_one_line(line: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "empty.s").write_text("control 0 run = 0\n")
    command = ["sh", "-c", f"{sys.executable} -m daedal {line}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


def test_a_reader_that_has_seen_enough_is_no_error_to_speak_of() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m daedal doctor --json | exec true; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == ("1\n", "")
