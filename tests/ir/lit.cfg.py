"""How lit runs the tests of the compiler's IR: every ``.mlir`` file is one, with ``RUN`` lines."""

import os
import sys
from pathlib import Path

import lit.formats

here = Path(__file__).resolve().parent

config.name = "daedal-ir"
config.test_format = lit.formats.ShTest(False)
config.suffixes = [".mlir"]
config.test_source_root = str(here)
config.test_exec_root = str(here.parents[1] / "build" / "ir")
config.environment["PYTHONPATH"] = str(here.parents[1])
config.environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
config.substitutions.append(("daedal-opt", f"{sys.executable} -m daedal.compiler.opt_main"))
