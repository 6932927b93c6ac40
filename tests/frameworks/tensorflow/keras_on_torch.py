"""A model of Keras on PyTorch, in a process of its own: python -m tests.frameworks.tensorflow.keras_on_torch FILE…

Each file is a model made under TensorFlow, beside which `.npz` has inputs and results.
"""

import os
import sys
from collections.abc import Mapping
from typing import Any

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch

import daedal

torch.set_num_threads(1)


def check(path: str, device: daedal.Device) -> None:
    """One file, by ``daedal.compile`` and by ``torch.compile``."""
    model = keras.models.load_model(path)
    kept = np.load(f"{path}.npz")
    given = {key: torch.from_numpy(kept[key]) for key in kept.files if key != "result"}
    compiled = daedal.compile(model, (given,), device=device)
    dynamo: Any = torch.compile(model, backend="daedal", dynamic=True, options={"device": device})
    for name, call in (("daedal.compile", compiled), ("torch.compile", dynamo)):
        launches = []
        for samples in (len(kept["result"]), 2, 5):
            batch = {key: each[:samples] for key, each in given.items()}
            with torch.no_grad():
                found, expected = call(batch), model(batch)
            assert torch.equal(found, expected), (name, samples)
            launches.append(compiled.stats.launches if call is compiled else _launches(device))
        assert launches == [1, 1, 1], (name, launches)
    assert _are_close(compiled(given), kept)


def _launches(device: daedal.Device) -> int:
    return sum(graph.stats.launches for graph in daedal.graphs(device)[-1:])


def _are_close(found: torch.Tensor, kept: Mapping[str, Any]) -> bool:
    return bool(np.allclose(found.detach().numpy(), kept["result"], rtol=1e-4, atol=1e-5))


if __name__ == "__main__":
    with daedal.Device.open("emulator", config="ddr3") as opened:
        for each in sys.argv[1:]:
            check(each, opened)
    assert "tensorflow" not in sys.modules
    print("equal, in one launch")
