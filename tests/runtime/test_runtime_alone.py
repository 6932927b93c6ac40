"""The runtime runs a program that was kept, on NumPy arrays, without the compiler, xDSL and PyTorch."""

import subprocess
import sys
from pathlib import Path

ALONE = """
import importlib, pkgutil, sys
from pathlib import Path

import numpy as np

import daedal.runtime
for module in pkgutil.walk_packages(daedal.runtime.__path__, "daedal.runtime."):
    importlib.import_module(module.name)

from daedal.driver.device import Device
from daedal.hw.isa.tools.assembler import assemble
from daedal.runtime.futures import Pending, Submitted, promise, wait_for
from daedal.runtime.kernel import BufferSpec, Kernel
from daedal.runtime.kernel_launch import run_kernel, submit_kernel
from daedal.runtime.launch_arguments import Compound, Leaf

specs = [("offsets", "int32", (None,)), ("indices", "int32", (None,)), ("table", "float32", (None, 64)),
         ("out", "float32", (None, 64))]
buffers = tuple(BufferSpec(name, dtype, shape, name == "out", name == "table", False) for name, dtype, shape in specs)
arguments = (
    Leaf("value", "bags"), Leaf("base", "offsets"), Leaf("base", "indices"), Leaf("end", "indices"),
    Leaf("base", "table"), Leaf("base", "out"), Leaf("size", "table", 0),
    Compound("addi", Leaf("size", "indices", 0), 1), Leaf("end", "offsets"),
)
rng = np.random.default_rng(0)
table = rng.standard_normal((50, 64), np.float32)
offsets, indices = np.array([0, 3, 3, 8], np.int32), rng.integers(0, 50, 8).astype(np.int32)
wanted = np.zeros((3, 64), np.float32)
for bag in range(3):
    for index in indices[offsets[bag] : offsets[bag + 1]]:
        wanted[bag] += table[index]

with Device.open("emulator", config="ddr3") as device:
    program = assemble(Path(sys.argv[1]).read_text(), config_hash=device.config.hash)
    kernel = Kernel(program, arguments, buffers, ("bags",), {}, 3)
    given = {"offsets": offsets, "indices": indices, "table": device.bind_table("table", table), "out": (3, 64)}
    run = run_kernel(device, kernel, given, {"bags": 3})
    assert (run.outputs["out"] == wanted).all() and run.stats.rows == 8
    later = submit_kernel(device, kernel, given, {"bags": 3})
    promise(device, later.launch, [later.outputs["out"]])
    submitted = Submitted(device.finish)
    submitted.add(Pending(later.launch, lambda error: error, lambda record: None))
    wait_for(device, [later.outputs["out"]])
    submitted.settle()
    assert (later.outputs["out"] == wanted).all() and submitted.stats.launches == 1

print(*sorted({name.split(".")[0] for name in sys.modules}), *(name for name in sys.modules if "daedal." in name))
"""


def test_the_runtime_needs_no_compiler(root: Path) -> None:
    program = root / "daedal" / "bench" / "handwritten" / "bag_sum.asm"
    done = subprocess.run([sys.executable, "-c", ALONE, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert "daedal.runtime.executable" in loaded and "daedal.runtime.loops.kernel_executable" in loaded
    assert not {"torch", "xdsl"} & set(loaded)
    assert [name for name in loaded if name.startswith("daedal.compiler")] == []
