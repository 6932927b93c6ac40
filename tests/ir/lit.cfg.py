"""How lit runs the tests of the compiler's IR: every ``.mlir`` file is one, with ``RUN`` lines."""

import sys
from importlib import import_module
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here.parents[1]))

config.name = "daedal-ir"
config.test_format = import_module("tests.ir.in_process").InProcess()
config.suffixes = [".mlir"]
config.test_exec_root = str(here.parents[1] / "build" / "ir")
