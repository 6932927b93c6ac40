"""The examples run as they are, each of which compares its results and counts its launches."""

import sys
from pathlib import Path
from runpy import run_path

import pytest

FRAMEWORKS = {"keras_recommender"}
"""Those that other frameworks are needed for: tests/frameworks runs them."""

ALL = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
EXAMPLES = [path for path in ALL if path.stem not in FRAMEWORKS]

SAID = {
    "attention_kernel": "attention: on the device, in one launch",
    "graph_network": "device: 7 of 7 operations, in 6 launches",
    "knowledge_graph": "distances: on the device, in one launch",
    "recommender": "device: 6 of 6 operations, in 1 launch",
    "training": "4 tables went up once, in 8 steps; all parameters are PyTorch's",
}
"""What each says in the end."""

ARGUMENTS = {"training": ["8"]}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(path), *ARGUMENTS.get(path.stem, [])])
    run_path(str(path), run_name="__main__")
    assert SAID[path.stem] in capsys.readouterr().out


def test_all_are_there() -> None:
    assert {path.stem for path in ALL} == SAID.keys() | FRAMEWORKS
