"""Loading takes little: no PyTorch, no compiler, some processor time, and some memory."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

import daedal
from tests.compiler.saved.test_saved_kernels import given, pooled

ALONE = """
import sys, time
import numpy as np

def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS")) / 1024

before, started = resident(), time.process_time()
import daedal

with daedal.Device.open("emulator", config="ddr3") as device:
    tables = dict(np.load(sys.argv[2]))
    model = daedal.load(sys.argv[1], device=device, tables=tables)
    ids = np.arange(12).reshape(4, 3)
    assert (model(ids) == tables["weight"][ids].sum(1)).all() and model.stats.launches == 1
    kernel, arrays = daedal.load(sys.argv[3], device=device), np.load(sys.argv[4])
    out = np.zeros_like(arrays["arr_0"])
    kernel(out, *(arrays[f"arr_{n}"] for n in range(1, 4)), np.float32(1.25))
    assert (out == arrays["arr_0"]).all()
    with daedal.System.open("emulator", config="ddr3", tiles=2) as system:
        for name in (sys.argv[1], sys.argv[5]):
            model = daedal.load(name, device=system, tables=tables)
            assert (model(ids) == tables["weight"][ids].sum(1)).all() and model.stats.per_tile[0].launches
        out[:] = 0
        daedal.load(sys.argv[3], device=system)(out, *(arrays[f"arr_{n}"] for n in range(1, 4)), np.float32(1.25))
        assert (out == arrays["arr_0"]).all()
    print(time.process_time() - started, resident() - before)
    print(*sorted(sys.modules))
"""


def test_loading_alone(rng: np.random.Generator, tmp_path: Path) -> None:
    """A module, of a device and of a system, and a kernel: neither torch nor xDSL nor what compiles; less than 0.5 s
    and 60 MB beside NumPy's.
    """
    module = nn.EmbeddingBag(20, 64, mode="sum")
    arrays = given(64, rng)
    with torch.no_grad(), daedal.Device.open("emulator", config="ddr3") as device:
        module.weight.copy_(torch.from_numpy(rng.integers(-9, 9, (20, 64))))
        daedal.compile(module, (torch.zeros(2, 3).long(),), device=device).save(tmp_path / "model.daedal")
        kernel = daedal.compile(pooled, arrays, device=device)
        kernel(*arrays)
        kernel.save(tmp_path / "kernel.daedal")
    with torch.no_grad(), daedal.System.open("emulator", config="ddr3", tiles=2) as system:
        daedal.compile(module, (torch.zeros(2, 3).long(),), device=system).save(tmp_path / "system.daedal")
    np.savez(tmp_path / "tables.npz", weight=module.weight.detach().numpy())
    np.savez(tmp_path / "arrays.npz", *arrays[:4])
    names = ("model.daedal", "tables.npz", "kernel.daedal", "arrays.npz", "system.daedal")
    done = subprocess.run(
        [sys.executable, "-c", ALONE, *(tmp_path / name for name in names)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    figures, loaded = (line.split() for line in done.stdout.splitlines())
    seconds, megabytes = map(float, figures)
    assert not {"torch", "xdsl", "daedal.compiler.api", "daedal.compiler.pipeline"} & set(loaded)
    assert megabytes < 60 and seconds < 1.0, figures  # 0.3 s and 26 MB where nothing else runs
