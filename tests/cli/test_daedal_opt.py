"""``daedal-opt`` says what it does not take in one message."""

import subprocess
import sys
from pathlib import Path

import pytest

from daedal.errors import UnsupportedOperation
from tests.ir.in_process import run_command

KERNEL = """
func.func @f(%out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %x = memref.load %out[%c0] : memref<?xf32>
  memref.store %x, %out[%c0] : memref<?xf32>
  func.return
}
"""


@pytest.mark.parametrize(
    ("passes", "text", "message"),
    [
        ("no-such-pass", KERNEL, "Unrecognized passes: ['no-such-pass']"),
        ("loop-invariant-code-motion{deep=1}", KERNEL, "not found in expected arguments"),
        ("loop-invariant-code-motion", "func.func @f(", "Expected"),
        ("convert-scf-to-slc", KERNEL, "outside of all loops"),
    ],
)
def test_what_is_refused(passes: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.mlir"
    path.write_text(text)
    command = [sys.executable, "-m", "daedal.compiler.opt_main", "-p", passes, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "daedal-opt: " in run.stderr and message in run.stderr and "Traceback" not in run.stderr


HOSTILE = {
    "open string": ('\n"x.y"() {a = "' + "a" * 60 + "\n} : () -> ()\n", ':2:14: what a " begins must end with a'),
    "open string after others": ('"x.y"() {a = "b", c = "' + 'd"\\' * 50, 'what a " begins must end'),
    "float beyond f32": ("%c = arith.constant 1.0e+39 : f32\n", "'1.0e+39' does not fit its type"),
    "long number": (f"%c = arith.constant {'9' * 6000} : i64\n", "does not fit its type"),
    "long width": ("%c = arith.constant 1 : i99999999999999\n", "i99999999999999 must have at most 16,777,215 bits"),
    "long width in a shape": ("func.func private @f(memref<4xi999999999>)", "i999999999 must have at most"),
    "deep": ("module {\n" * 3000, "it is nested too deeply"),
    "deep types": (f"%c = arith.constant 1 : {'tuple<' * 3000}", "text.mlir:1:"),
    "no UTF-8": (b"\xff\xfe", "text.mlir must be text in UTF-8, not bytes (from byte 0 on)"),
    "NUL": ("func.func @f\0()", "text.mlir:1:13: "),
    "huge constant": ("%c = arith.constant dense<1> : tensor<17000000xi32>\n", "at most 16,777,216 elements"),
    "huge constant by name": (
        "!t = tensor<5000x5000xi8>\n%c = arith.constant dense<1> : !t\n",
        "elements, not '5000x5000'",
    ),
    "unknown dialect": ('%c = "foo.bar"() : () -> i32\n', "foo.bar is not registered"),
    "used before": ("func.func @f() {\n  func.return %x : i32\n}\n", "text.mlir:"),
    "empty": ("", "text.mlir:1:1: "),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_any_text_ends_in_one_line(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, message = HOSTILE[case]
    monkeypatch.chdir(tmp_path)
    Path("text.mlir").write_bytes(text if isinstance(text, bytes) else text.encode())
    status, printed, said = run_command(["daedal-opt", "text.mlir"], "")
    assert (status, printed) == (1, "")
    assert message in said and said.count("\n") == 1 and len(said) < 1600


@pytest.mark.parametrize(("words", "message"), [
    (["-p", "loop-invariant-code-motion{"], "pass-pipeline:1:28 loop-invariant-code-motion{ ^ Expected argument name"),
    (["-p", "canonicalize"], "passes 'canonicalize' cannot be run: a number does not fit its type"),
    (["."], "Is a directory: '.'"),
])  # fmt: skip
def test_any_command_line_ends_in_one_line(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sum_of_large = "%c = arith.constant 3.0e+38 : f32\n%d = arith.addf %c, %c : f32\n"
    Path("a.mlir").write_text(f"func.func @f() -> f32 {{\n{sum_of_large}func.return %d : f32\n}}\n")
    status, printed, said = run_command(["daedal-opt", *words, *([] if "." in words else ["a.mlir"])], "")
    assert (status, printed) == (1, "")
    assert message in said and said.count("\n") == 1


def test_values_that_are_no_numbers_pass() -> None:
    text = "%a = arith.constant 0x7FC00000 : f32\n%b = arith.constant 0xFF800000 : f32\n"
    status, printed, said = run_command(["daedal-opt"], text)
    assert (status, said) == (0, "") and "0x7fc00000" in printed and "0xff800000" in printed


def test_a_traceback_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAEDAL_TRACEBACK", "1")
    with pytest.raises(UnsupportedOperation):
        run_command(["daedal-opt"], '"')
