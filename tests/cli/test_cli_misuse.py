"""Command lines that cannot be meant: one line that says why, before anything is done."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from daedal.cli import cli

KERNEL = """
import daedal
from daedal.language import f32, i32


@daedal.kernel
def scaled(t: f32["R", "D"], out: f32["R", "D"]):
    for r in range(R):
        for d in range(D):
            out[r, d] = t[r, d]
"""

REFUSED = [
    (["compile", "k.py", "--shape", "D=" + "9" * 5000], 2, "must be a size and its value, as D=64"),
    (["compile", "k.py", "--shape", "D=64", "--shape", "D=32"], 2, "D must be given once, not as 64 and as 32"),
    *(
        (
            ["bitstream", "--board", "ecpix5", "--core-mhz", mhz],
            1,
            f"must be from 3.125 to 400 MHz, which clock generators make, not {mhz}",
        )
        for mhz in ("-5", "0", "nan", "401", "inf")
    ),
    (["verilog", "-o", "same.x", "--map", "same.x"], 2, "--output, --map and --json must name different files"),
    (["verilog", "--json", "-"], 2, "--output, --map and --json must name different files"),
    (["tune", "--memory", "bogus"], 2, "memory must be one of ideal"),
    (["report", "--json", "list.json"], 1, "must be a result of `daedal bench`"),
    (["report", "--json", "rows.json"], 1, "must be a result of `daedal bench`"),
    (["report", "--json", "text.json"], 1, "text.json cannot be used: Expecting value"),
    (["report", "--json", "deep.json"], 1, "must be a result of `daedal bench`, not nested so deeply"),
    (["report", "-o", "."], 2, "File '.' is a directory"),
    (["report", "-o", "none/page.html"], 2, "the folder of 'none/page.html' must exist: make it first"),
    (["tune", "--json", "."], 2, "File '.' is a directory"),
    (["tune", "--json", "none/x.json"], 2, "the folder of 'none/x.json' must exist: make it first"),
    (["bitstream", "--board", "ecpix5", "--output", "k.py"], 2, "'k.py' is a file"),
    (["bitstream", "--board", "ecpix5", "--output", "k.py/x"], 1, "k.py/x must be a folder to write to, or a new one"),
]


@pytest.mark.parametrize(
    ("line", "status", "why"), REFUSED, ids=lambda value: value[0] if isinstance(value, list) else ""
)
def test_refused(line: list[str], status: int, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = {"k.py": KERNEL, "list.json": "[1]", "rows.json": '{"schema": 1, "results": [1]}', "text.json": "nothing"}
    texts["deep.json"] = "[" * 100_000
    for name, text in texts.items():
        Path(name).write_text(text, encoding="utf-8")
    result = CliRunner().invoke(cli, line)
    assert (result.exit_code, result.stdout) == (status, "")
    assert why in result.stderr
    assert "Traceback" not in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == set(texts)
