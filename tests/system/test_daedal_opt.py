"""``daedal-opt`` says what it does not take in one message."""

import subprocess
import sys
from pathlib import Path

import pytest

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
        ("hoist-invariants{deep=1}", KERNEL, "not found in expected arguments"),
        ("hoist-invariants", "func.func @f(", "Expected"),
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
