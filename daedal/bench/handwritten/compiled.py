"""The same operations from the compiler, as layers and as loops."""

import numpy as np
import torch
from torch import nn

import daedal
from daedal.bench.handwritten.kernels import KERNELS
from daedal.bench.handwritten.operations import Case, Operation
from daedal.bench.workloads.layers import Weighted
from daedal.driver.device import Device
from daedal.driver.launch.record import Stats
from daedal.hw.isa.spec.binary32 import Floats


def run(device: Device, operation: Operation, case: Case) -> tuple[Floats, Stats]:
    """The result of the compiled program, and what its launches did; UnsupportedOperation if it is refused."""
    if operation.name in KERNELS:
        out = np.zeros_like(case.expected)
        arguments = (out, *case.data.values())
        executable = daedal.compile(KERNELS[operation.name], arguments, device=device)
        executable(*arguments)
        return out, executable.stats
    arrays = {name: torch.from_numpy(array) for name, array in case.data.items()}
    bag = nn.EmbeddingBag.from_pretrained(arrays.pop("table"), mode="sum", include_last_offset=True)
    module: nn.Module = Weighted(bag) if "weights" in arrays else bag
    inputs = (arrays.pop("indices"), arrays.pop("offsets"), *arrays.values())
    layer = daedal.compile(module, inputs, device=device)
    result: Floats = layer(*inputs).numpy()
    return result, layer.stats
