"""What needs a process of its own: Keras on PyTorch, and the example."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.frameworks.tensorflow.models import dlrm, fill, two_towers

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("ignore")]

ROOT = Path(__file__).resolve().parents[3]


def run(*arguments: str) -> str:
    """What a program writes; it must end well."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *arguments]
    found = subprocess.run(command, capture_output=True, text=True, timeout=500, env=environment, cwd=ROOT)
    assert found.returncode == 0, found.stderr[-2000:]
    return found.stdout


def test_files_of_keras_on_pytorch(tmp_path: Path) -> None:
    files = []
    for make in (two_towers, dlrm):
        model, data = make()
        fill(model)
        given = {key: np.abs(each) if each.dtype == np.int32 else each for key, each in data(9, 1).items()}
        model.save(path := str(tmp_path / f"{make.__name__}.keras"))
        np.savez(f"{path}.npz", **given, result=np.asarray(model(given)))
        files.append(path)
    assert run("-m", "tests.frameworks.tensorflow.keras_on_torch", *files).strip().endswith("equal, in one launch")


def test_the_example() -> None:
    said = run("examples/keras_recommender.py")
    assert "64 samples: 768 rows, the bits of TensorFlow" in said
    assert said.strip().endswith("device: 5 of 5 operations, in 1 launch")
