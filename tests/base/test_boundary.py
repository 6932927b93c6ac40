"""Whatever goes wrong in a command is one line and a status that means something; what is read has a size."""

import subprocess
import sys
from pathlib import Path
from runpy import run_module

import numpy as np
import pytest

import daedal
from daedal.base.boundary import DEFECT, line_of, one_line, status_of
from daedal.base.files import parse_json, read_json, read_text, read_whole
from daedal.base.messages import one_line_of, shown
from daedal.errors import FileError, InvalidConfig
from daedal.hw.config.core import Config
from daedal.hw.config.file import read_config


def deep() -> list[object]:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    return value


ERRORS = [
    (daedal.ProgramError("word 3\nis wrong"), 1, "word 3 is wrong"),
    (FileError("a cannot be read"), 1, "a cannot be read"),
    (ValueError("x must be 1, not 2"), 1, "x must be 1, not 2"),
    (FileNotFoundError(2, "No such file or directory", "a.s"), 1, "[Errno 2] No such file or directory: 'a.s'"),
    (RecursionError("maximum"), 1, "what was given is nested too deeply: make it flatter, or split it"),
    (MemoryError(), 1, "this computer has not enough memory for what was given: make it smaller"),
    (
        KeyError("k"),
        DEFECT,
        "KeyError: 'k'. This is a defect of Daedal's: DAEDAL_TRACEBACK=1 shows all of it to report",
    ),
]


@pytest.mark.parametrize(("error", "status", "line"), ERRORS, ids=[type(each[0]).__name__ for each in ERRORS])
def test_errors_have_one_line_and_a_status(
    error: Exception, status: int, line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAEDAL_TRACEBACK", raising=False)
    assert (line_of(error), status_of(error)) == (line, status)
    with pytest.raises(SystemExit) as end, one_line("daedal-x"):
        raise error
    said = capsys.readouterr().err
    assert end.value.code == status
    assert said.startswith("daedal-x: ") and said.count("\n") == 1
    for wanted in ({"traceback": True}, {}):
        monkeypatch.setenv("DAEDAL_TRACEBACK", "" if wanted else "1")
        with pytest.raises(type(error)), one_line("daedal-x", **wanted):
            raise error


def test_a_defect_says_where() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        Config.preset("edge").ports // int("0")
    assert line_of(caught.value).startswith("ZeroDivisionError at test_boundary.py:")


@pytest.mark.parametrize("asked", [[], ["--traceback"]])
def test_the_command_has_no_traceback_unless_it_is_wanted(asked: list[str]) -> None:
    code = "import sys, daedal.cli as c; c.cli = lambda prog_name: {}['a defect']; c.main()"
    run = subprocess.run([sys.executable, "-c", code, *asked], capture_output=True, text=True, check=False)
    assert ("Traceback" in run.stderr) == bool(asked)
    assert asked or (run.returncode, run.stderr.count("\n")) == (DEFECT, 1)


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    code = (
        "from daedal.base.boundary import one_line\nwith one_line('x'):\n    for _ in range(100_000): print('a' * 80)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 1


SHOWN = [
    (5, "5"), (True, "True"), ("x", "'x'"), (10**5000, "0x"), ([1, 2], "[1, 2]"), (deep(), "[[[[...]]]]"),
    (np.zeros((3, 4)), "array([[0., 0., 0., 0.], [0."),
    ("a" * 10_000, "'aaa"), ({"a": 10**5000}, "{'a': 0x"), (float("nan"), "nan"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), SHOWN, ids=range(len(SHOWN)))
def test_values_are_short_in_messages(value: object, text: str) -> None:
    assert shown(value).startswith(text) and len(shown(value)) < 130 and "\n" not in shown(value)


def test_messages_are_text_for_a_terminal() -> None:
    assert one_line_of("a\n  b\t\x1b[31m\x00\x85c\u2028d\ud800") == "a b \\x1b[31m\\x00 c d\\ud800"
    assert len(one_line_of("é" * 10**6)) < 1600 and one_line_of(f"{'x' * 5000} way out").endswith(" way out")


def test_what_is_read_has_a_size(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"/dev/zero cannot be read: it must have at most 1,000 bytes"):
        read_whole(Path("/dev/zero"), "/dev/zero", 1000)
    (tmp_path / "a").write_bytes(b"1" * 1000)
    assert len(read_whole(tmp_path / "a", "a", 1000)) == 1000
    for path, message in ((tmp_path, "Is a directory"), (tmp_path / "x", "No such file"), (Path("a\0"), "null byte")):
        with pytest.raises(FileError, match=message):
            read_text(path)
    (tmp_path / "a").write_bytes(b"abc\xff")
    with pytest.raises(FileError, match=r"a must be text in UTF-8, not bytes \(from byte 3 on\)"):
        read_text(tmp_path / "a")


JSON = [
    ("[" * 100_000, "it must be a table, not nested so deeply"), ('{"a": 1, "b": 2, "a": 3}', "a must be given once"),
    (f"[{'9' * 5000}]", "must have at most 400 digits, not 5000"), ("[NaN]", "a number must be finite, not NaN"),
    ("[-Infinity]", "a number must be finite, not -Infinity"), ("[1e999]", "a number must be finite, not 1e999"),
    ('{"a": "\0"}', "Invalid control character"), ("", "Expecting value"), ("\ufeff{}", "Unexpected UTF-8 BOM"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), JSON, ids=[message for _, message in JSON])
def test_json_is_what_json_says(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        parse_json(text, "a table")
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=rf"x\.json cannot be used: .*{message}"):
        read_json(tmp_path / "x.json", "a table")
    with pytest.raises(InvalidConfig, match=r"x\.json cannot be read: "):
        read_config(tmp_path / "x.json")


def test_keys_that_are_many_or_deep_take_no_time(tmp_path: Path) -> None:
    names = ", ".join(f'"k{number}": 0' for number in range(5000))
    with pytest.raises(ValueError, match="k4999 must be given once"):
        parse_json(f'{{{names}, "k4999": 1}}', "a table")
    (tmp_path / "x.toml").write_text("a" + ".a" * 6000 + " = 1")
    with pytest.raises(InvalidConfig, match="must be a table of fields, not nested so deeply"):
        read_config(tmp_path / "x.toml")


def test_modules_of_the_bench_end_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = "bench.results"
    (tmp_path / "x.json").write_text("[1")
    monkeypatch.delenv("DAEDAL_TRACEBACK", raising=False)
    monkeypatch.setattr(sys, "argv", [module, "--board", str(tmp_path / "x.json")])
    monkeypatch.delitem(sys.modules, f"{module}.__main__", raising=False)
    with pytest.raises(SystemExit) as end:
        run_module(module, run_name="__main__")
    said = capsys.readouterr().err
    assert end.value.code == 1 and said.count("\n") == 1
    assert said.startswith(f"python -m {module}: ") and "x.json cannot be used: Expecting" in said
