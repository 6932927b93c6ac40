"""How lit runs the tests of the compiler's IR: every ``.mlir`` file is one, with ``RUN`` lines."""

import os
import sys
from pathlib import Path

import lit.formats

here = Path(__file__).resolve().parent

config.name = "daedal-ir"  # noqa: F821
config.test_format = lit.formats.ShTest(False)  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.test_source_root = str(here)  # noqa: F821
config.test_exec_root = str(here.parents[1] / "build" / "ir")  # noqa: F821
config.environment["PYTHONPATH"] = str(here.parents[1])  # noqa: F821
config.environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # noqa: F821
config.substitutions.append(("daedal-opt", f"{sys.executable} -m daedal.compiler.opt_main"))  # noqa: F821
