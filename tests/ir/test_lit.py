"""Runs the tests of the IR (``tests/ir/**/*.mlir``), which lit can run as well."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.ir.in_process import run_file

HERE = Path(__file__).resolve().parent
FILES = sorted(path.relative_to(HERE).as_posix() for path in HERE.rglob("*.mlir"))


@pytest.mark.parametrize("file", FILES)
def test_ir(file: str) -> None:
    assert run_file(HERE / file) == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("// RUN: daedal-opt %s | filecheck %s\n// CHECK: func.func\n", "filecheck ended with status 1"),
        ("// RUN: daedal-opt -p no-such-pass %s | filecheck %s\n// CHECK: module\n", "daedal-opt ended with status 1"),
        ("// RUN: daedal-opt %s\n// RUN: daedal-opt %s.other\n", "daedal-opt: [Errno 2] No such file"),
        ("// RUN: daedal-opt %s | sort\n", "must be one of daedal-opt, filecheck, not sort"),
        ("// CHECK: builtin.module\n", "has no line that begins with // RUN: "),
    ],
)
def test_what_fails(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "test.mlir"
    path.write_text(f"{text}builtin.module {{}}\n")
    assert message in run_file(path)


def test_lit_runs_them(tmp_path: Path) -> None:
    """As ``lit tests/ir`` does for somebody who works on a pass."""
    (tmp_path / "lit.cfg.py").write_text((HERE / "lit.cfg.py").read_text().replace("__file__", repr(str(HERE / "x"))))
    for name, expected in (("good", "module"), ("bad", "func.func")):
        text = f"// RUN: daedal-opt %s | filecheck %s\n// CHECK: {expected}\nbuiltin.module {{}}\n"
        (tmp_path / f"{name}.mlir").write_text(text)
    paths = [str(HERE / FILES[0]), str(tmp_path)]
    command = [sys.executable, "-c", "from lit.main import main; main()", "-v", "-j", "1", *paths]
    run = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 1
    verdicts = {line.split(" (")[0] for line in run.stdout.splitlines() if ":: " in line}
    assert verdicts >= {f"PASS: daedal-ir :: {FILES[0]}", "PASS: daedal-ir :: good.mlir", "FAIL: daedal-ir :: bad.mlir"}


def test_there_is_a_test_for_every_pass() -> None:
    from daedal.compiler.transforms import PASSES

    tested = {Path(file).stem for file in FILES if file.startswith("transforms/")}
    assert {name.replace("-", "_") for name in PASSES} <= tested


def test_there_are_tests_for_every_dialect() -> None:
    from daedal.compiler.context import OWN_DIALECTS

    for name in OWN_DIALECTS:
        assert {f"dialects/{name}.mlir", f"dialects/{name}_invalid.mlir"} <= set(FILES)
