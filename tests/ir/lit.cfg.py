"""How lit runs the tests of the compiler's IR: every ``.mlir`` file is one, with ``RUN`` lines."""

import sys
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here.parents[1]))

from tests.ir.in_process import InProcess  # noqa: E402

config.name = "daedal-ir"
config.test_format = InProcess()
config.suffixes = [".mlir"]
config.test_exec_root = str(here.parents[1] / "build" / "ir")
