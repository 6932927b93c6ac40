"""Runs the tests of the IR (``tests/ir/**/*.mlir``) with lit, each as a test of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
FILES = sorted(path.relative_to(HERE).as_posix() for path in HERE.rglob("*.mlir"))


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest) -> dict[str, str]:
    """File -> what lit printed about it, all chosen ones run at once; an empty text for one that passed."""
    chosen = [item.callspec.params["file"] for item in request.session.items if "results" in item.fixturenames]
    paths = [str(HERE / file) for file in chosen]
    command = [sys.executable, "-c", "from lit.main import main; main()", "-v", "-j", "2", *paths]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    found = {}
    for line in run.stdout.splitlines():
        for file in FILES:
            if f":: {file} " in line:
                found[file] = "" if line.startswith("PASS:") else run.stdout + run.stderr
    return found


@pytest.mark.parametrize("file", FILES)
def test_ir(file: str, results: dict[str, str]) -> None:
    assert results.get(file, "lit did not run it") == ""


def test_there_is_a_test_for_every_pass() -> None:
    from daedal.compiler.transforms import PASSES

    assert {f"transforms/{name.replace('-', '_')}.mlir" for name in PASSES} <= set(FILES)


def test_there_are_tests_for_every_dialect() -> None:
    from daedal.compiler.context import OWN_DIALECTS

    for name in OWN_DIALECTS:
        assert {f"dialects/{name}.mlir", f"dialects/{name}_invalid.mlir"} <= set(FILES)
