"""Shared libraries built on demand from Verilog and C++ by Verilator, and kept as those of C++ alone are."""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from daedal.base import coverage
from daedal.base.cache import BuildError, cache_directory, is_whole
from daedal.cosim.builder import profile
from daedal.cosim.builder.initial_words import loops_over_words
from daedal.cosim.builder.library import COMPILE_FLAGS, Runner, keep_built, read_sources, source_key
from daedal.cosim.builder.toolchain import compiler_identity, find_tool, find_verilator

FEWER_QUERIES = "-fno-semantic-interposition --param sccvn-max-alias-queries-per-access="
"""With as many as g++ makes by itself, 1000, it takes half of its time to compare loads with stores in functions that
have thousands of them, for code that is not quicker.
"""

OPTIMIZE = {"1": f"-O1 -fno-tree-dse {FEWER_QUERIES}30", "2": f"-O2 {FEWER_QUERIES}100"}
"""Optimisation of the model's code that runs in every cycle, by ``DAEDAL_OPTIMIZE``.

Models of the core are built in half the time with 1, and run a tenth slower, which is right for those that run for
seconds, such as those of tests. A seventh of its time would go to stores that are written over, of which there are few.
A model that is kept from 2 is not built again with 1.
"""

OPTIMIZE_LEAST = f"-Og {FEWER_QUERIES}30"
"""The same for models that wait for Python in every cycle: two thirds of the time to build, a third slower."""

NO_PRECOMPILED_HEADER = ("VK_PCH_I_FAST=", "VK_PCH_I_SLOW=", "CFG_CXXFLAGS_PCH=--version")
"""Keeps a model's makefile from precompiling its header, twice, for the few sources that a model has.

With ``--version``, g++ passes over all else that the makefile tells it there.
"""

MAKE_OPTIONS = ("OPT_SLOW=-O0", "OPT_GLOBAL=-O2", *NO_PRECOMPILED_HEADER)
"""Optimisation of the model's other code, and of Verilator's library."""

QUICK_OPTIONS = (
    "-fno-merge-cond-motion",  # would take 80 % of the time on the core, for 3 % less code
    "--unroll-count", "1",  # loops that set memories stay loops
    "--output-split-cfuncs", "5000",  # the time that g++ takes for a function is not linear in its size
)  # fmt: skip
"""Options of Verilator that make it, or the compiler behind it, quick on the core."""

HARNESS = Path(__file__).parents[1] / "harness"

PACKAGES = Path(__file__).parents[3]
"""The folder that the package ``daedal`` lies in."""

COUNT_LINES = ("--coverage-line",)
"""Options with which Verilator counts lines, and the branches of if, case and ``?:``."""

_OBJECT_CACHE = (  # a makefile wants it to be one line
    "import sys; sys.path.append(sys.argv[1]); from daedal.cosim.builder.object_cache import main; "
    "sys.exit(main(sys.argv[2:]))"
)
"""A program that is started without anything else, and told where the package is."""

ALL = "all_of_the_harness"
"""Name of the source that has all others of a harness in it."""

JOBS = 2
"""Compilers that run at the same time."""


def optimization() -> str:
    """The compiler's options for what a model does in every cycle: those of ``DAEDAL_OPTIMIZE``, 1 or 2 (default)."""
    chosen = os.environ.get("DAEDAL_OPTIMIZE") or "2"
    if chosen not in OPTIMIZE:
        raise BuildError(f"DAEDAL_OPTIMIZE must be one of {', '.join(OPTIMIZE)}, not {chosen!r}")
    return OPTIMIZE[chosen]


def make_environment() -> dict[str, str]:
    """The environment in which a model's makefile runs: what is in every model is compiled once.

    See :mod:`daedal.cosim.builder.object_cache`; an ``OBJCACHE`` that is set already stays.
    """
    objects = cache_directory() / f"objects-{compiler_identity()[:12]}"
    command = [sys.executable, "-I", "-S", "-c", _OBJECT_CACHE, str(PACKAGES), str(objects)]
    return {"OBJCACHE": shlex.join(command), **find_verilator().environment()}


def build_verilated(
    name: str, verilog: str, files: Mapping[str, str], *, top: str, trace: bool = False, ours: bool = True,
    named: bool = False,
) -> Path:  # fmt: skip
    """Compile Verilog and a C++ harness into a shared library, or find it in the cache.

    The verilated class is called ``Vmodel`` (header ``Vmodel.h``). With ``trace``, the model can write VCD
    files; with ``named``, its functions are named for the lines of the Verilog that they come from. Every harness can
    include ``coverage.h``; see :mod:`daedal.base.coverage`. Verilog that is not ``ours`` is not counted there.
    Otherwise as :func:`build_library`.

    The model takes nearly all of the time, so it is kept for other harnesses. If there is a profile of it, it is
    compiled with that; see :mod:`daedal.cosim.builder.profile`.
    """
    find_tool("make")
    verilog = loops_over_words(verilog)
    counted = (f"-DDAEDAL_MODEL='\"{coverage.keep_text(verilog)}\"'",) if ours and coverage.is_wanted() else ()
    flags = [*COMPILE_FLAGS, "-I..", *counted]
    options = [
        "--cc", "--top-module", top, "--prefix", "Vmodel", "--Mdir", "obj", "-O3",
        "--x-assign", "fast", "--x-initial", "fast", "--no-assert", "--no-timing",
        *QUICK_OPTIONS, "-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wno-COMBDLY",
        "--output-split", "20000", "--output-groups", str(JOBS),
        *(["--trace-vcd"] if trace else []), *(["--prof-cfuncs"] if named else []), *(COUNT_LINES if counted else ()),
        "-CFLAGS", " ".join(flags),
    ]  # fmt: skip
    files = {**files, **read_sources(HARNESS, "coverage.h")}
    models = _models(name, verilog, options)

    def library_of(model: "_Model") -> str:
        return f"{name}-{source_key(files, [model.name])}.so"

    for model in models:
        if is_whole(cache_directory() / library_of(model)):
            return cache_directory() / library_of(model)
    model = next((each for each in models[:-1] if is_whole(cache_directory() / each.name)), models[-1])

    def build(folder: Path, run: Runner) -> Path:
        # All as one: reading the model's and the standard headers takes longer than compiling any of them.
        sources = [f'#include "{file}"\n' for file in files if file.endswith(".cpp")]
        (folder / f"{ALL}.cpp").write_text("".join(sources), encoding="utf-8")
        shutil.copytree(_build_model(model, verilog, options), folder / "obj")
        run([*_make("obj"), "VPATH=..", f"{ALL}.o"], make_environment())
        parts = [f"obj/{ALL}.o", "obj/libVmodel.a", "obj/libverilated.a"]
        run([str(find_tool("g++")), "-shared", *profile.link_options(), "-o", "library.so", *parts])
        return folder / "library.so"

    return keep_built(library_of(model), files, build)


@dataclass(frozen=True)
class _Model:
    """A folder in the cache with headers, makefile and archives of a verilated model; what is known of its runs."""

    name: str
    notes: profile.Profile


def _models(name: str, verilog: str, options: Sequence[str]) -> list[_Model]:
    """A model by how it may be compiled: first those that are optimised more, which are taken if they are kept."""
    verilator = find_verilator()
    parts = [*options, *MAKE_OPTIONS, verilator.version, compiler_identity(), source_key({"model.v": verilog}, [])]

    def kept_as(optimize: str) -> _Model:
        notes = cache_directory() / f"{name}-{source_key({}, [*parts, optimize, str(verilator.program)])}.profile"
        known = profile.Profile(notes)
        return _Model(f"{name}-{source_key({}, [*parts, optimize, *known.identity()])}.model", known)

    least, levels = optimization(), list(OPTIMIZE.values())
    if profile.is_training():
        model = kept_as(least)
        model.notes.clear()
        return [model]
    return [kept_as(level) for level in reversed(levels[levels.index(least) :])]


def _build_model(model: _Model, verilog: str, options: Sequence[str]) -> Path:
    """Where it is kept, compiled if it is not."""
    verilator = find_verilator()

    def build(folder: Path, run: Runner) -> Path:
        run([str(verilator.program), *options, "model.v"], verilator.environment())
        made = folder / "obj"
        model.notes.copy_to(made)
        run(_make("obj", model.notes.options()), make_environment())
        for file in made.iterdir():
            if file.suffix not in (".h", ".a", ".mk"):
                file.unlink()
        return made

    return keep_built(model.name, {"model.v": verilog}, build)


def _make(folder: str, options: str = "") -> list[str]:
    """The command that compiles a model, with further ``options`` for what runs in every cycle.

    A model's makefile says where Verilator was when it was made; a model that is kept may outlive that place.
    """
    root = find_verilator().root
    place = [] if root is None else [f"VERILATOR_ROOT={root}"]
    fast = f"OPT_FAST={optimization()}{options}"
    return ["make", "-C", folder, "-f", "Vmodel.mk", f"-j{JOBS}", *place, fast, *MAKE_OPTIONS]
