"""Which tests should notice a mutation: those of the mirrored folder, the nearest and quickest first."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path, PurePath

from tests.conftest import ROOT
from tests.mutate.fault import SLOW

FEW = 4
"""Tests that import a module are not its own if they are more files than this."""

QUICK = "-m 'not slow and not full'"

_ACCESS = (
    f"tests/unit/access_unit/test_access_unit.py -k odd {SLOW}",
    f"tests/unit/access_unit/test_access_unit.py -k serial {SLOW}",
    f"tests/unit/access_unit/test_access_unit.py -k ddr3 {SLOW}",
    f"tests/unit/access_unit/test_throughput.py {SLOW}",
)
_SERIAL = (_ACCESS[1], _ACCESS[0], *_ACCESS[2:])
_FLOAT = (f"tests/unit/float {QUICK} {SLOW}",)
_EXECUTE = (
    f"tests/unit/execute_unit/test_execute_unit.py -k odd {SLOW}",
    f"tests/unit/execute_unit/test_execute_unit.py -k edge {SLOW}",
)
_FABRIC = (
    f"tests/unit/memory/test_fabric.py -k odd {SLOW}",
    f"tests/unit/memory/test_fabric.py -k edge {SLOW}",
    f"tests/unit/memory/test_row_groups.py {SLOW}",
    f"tests/formal/test_axi_proof.py tests/formal/test_row_groups_proof.py {SLOW}",
)
_STORE = (
    f"tests/unit/memory/test_store_unit.py -k odd {SLOW}",
    f"tests/unit/memory/test_store_unit.py -k edge {SLOW}",
    f"tests/formal/test_store_unit_proof.py {SLOW}",
)
_QUEUES = (
    f"tests/unit/queues/test_queue.py tests/unit/queues/test_converters.py {SLOW}",
    f"tests/unit/queues/test_vector_queues.py -k odd {SLOW}",
    f"tests/formal -k 'queue or converters' {SLOW}",
)

_RTL_FILES: dict[str, tuple[str, ...]] = {
    "daedal/hw/queues": _QUEUES,
    "daedal/hw/access_unit": _ACCESS,
    "daedal/hw/access_unit/levels/serial": _SERIAL,
    "daedal/hw/execute_unit/fpu": _FLOAT,
    "daedal/hw/execute_unit": _EXECUTE,
    "daedal/hw/memory/store": _STORE,
    "daedal/hw/control/records": (f"tests/unit/control/records/test_records.py {SLOW}",),
    "daedal/hw/memory": _FABRIC,
}

_RTL_UNITS: dict[str, tuple[str, ...]] = {
    "access": _ACCESS,
    "execute": _EXECUTE,
    "fabric": _FABRIC,
    "store": _STORE,
    "vectors": _QUEUES,
}
"""By the name of the unit within the core; tests of the others simulate Amaranth's own design, which is no netlist."""

_CORES: dict[str, tuple[str, ...]] = {
    "minimum": (
        f"tests/unit/core/test_core.py -k minimum {SLOW}",
        f"tests/system/test_rtl_configs.py -k minimum {SLOW}",
    ),
    "small": (
        f"tests/fuzz/test_fuzz.py -k '(random_programs or kept_on_the_rtl) and small' {SLOW}",
        f"tests/system/test_rtl_configs.py -k small {SLOW}",
    ),
    "edge": (
        f"tests/fuzz/test_fuzz.py -k '(random_programs or kept_on_the_rtl) and edge' {SLOW}",
        f"tests/system/test_rtl_layers.py -k edge {SLOW}",
    ),
}

CONFIGS = tuple(_CORES)
"""The configurations whose cores mutations of RTL are drawn from."""

_ANY_CORE = (
    "tests/fuzz/test_launch_blocks.py tests/fuzz/test_bit_flips.py tests/driver/test_driver_targets.py "
    f"tests/driver/launch/test_launches.py tests/driver/memory/test_store_window.py -k verilator {SLOW}",
    f"tests/system/test_rtl_watchdog.py tests/system/test_rtl_hangs.py {SLOW}",
)

_EMULATOR = (
    "tests/unit/emulator", "tests/fuzz -k emulator", "tests/driver -k 'emulator and not board'",
    f"tests/compiler/layers/test_compiler_layers.py tests/compiler/levels/test_handwritten.py {QUICK}",
)  # fmt: skip
_HARNESS = (
    f"tests/cosim/test_cosim_access.py {SLOW}", f"tests/cosim/test_cosim_harness.py {SLOW}",
    f"tests/cosim/test_cosim_dram.py {SLOW}", f"tests/queued {SLOW}", f"tests/system/test_rtl_dram.py {SLOW}",
    f"tests/driver -k 'verilator and not board' {SLOW}", f"tests/bench {QUICK}",
)  # fmt: skip
_LAYERS = (f"tests/compiler/layers {QUICK}",)
_KERNELS = (f"tests/compiler/kernels {QUICK}", f"tests/compiler/scalars {QUICK}", f"tests/compiler/levels {QUICK}")
_TORCH = (f"tests/compiler/torch {QUICK}",)
_DRIVER = (f"tests/driver --ignore=tests/driver/link {QUICK}",)
_CLI = (f"tests/cli {QUICK}",)

_SOURCES: dict[str, tuple[str, ...]] = {
    "cosim/emulator": _EMULATOR,
    "cosim/harness": _HARNESS,
    "cosim/oracle": (f"tests/cosim/test_oracle.py {SLOW}",),
    "cosim/litedram": (f"tests/cosim/test_cosim_dram.py tests/cosim/test_cosim_memory_spec.py {SLOW}", *_HARNESS),
    "cosim/board": (f"tests/driver/link {SLOW}",),
    "cosim/builder": (f"tests/cosim/builder {SLOW}", f"tests/cosim/test_cosim_harness.py {SLOW}", *_CLI),
    "cosim/waveform": (f"tests/cli/test_cli_wave.py {SLOW}",),
    "cosim": (f"tests/cosim {SLOW} --ignore=tests/cosim/builder", "tests/driver/test_driver_device.py", *_CLI),
    "hw/isa/tools": (f"tests/unit/isa {QUICK}", f"tests/cli -k 'asm or verilog' {QUICK}", *_EMULATOR[:1]),
    "hw/isa/spec": (
        "tests/unit/access_unit/test_contract.py tests/unit/emulator/test_contract.py",
        "tests/unit/float/test_float_model.py",
        f"tests/compiler/levels {QUICK}", "tests/fuzz -k 'emulator or judge'",
    ),
    "hw/isa": (f"tests/unit/isa {QUICK}", *_EMULATOR[:2], *_DRIVER, f"tests/unit/control -k loader {SLOW}"),
    "hw/config": (
        "tests/unit/test_config.py",
        f"tests/cli -k 'hostile or misuse or verilog' {QUICK}",
        f"tests/unit/isa {QUICK}",
    ),
    "sw/compiler/dialects": ("tests/ir", *_KERNELS, *_LAYERS),
    "sw/compiler/transforms": ("tests/ir", *_KERNELS, *_LAYERS),
    "sw/compiler/analysis": ("tests/ir", *_KERNELS, *_LAYERS),
    "sw/compiler/interpreters": (*_KERNELS[1:], "tests/fuzz/kernels"),
    "sw/compiler/backend": (*_LAYERS, *_KERNELS, "tests/fuzz/kernels"),
    "sw/compiler/frontends/python": _KERNELS,
    "sw/compiler/frontends/torch": (*_TORCH, *_LAYERS),
    "sw/compiler/kernel": _KERNELS,
    "sw/compiler": (*_LAYERS, *_KERNELS[:1], *_TORCH, f"tests/cli -k 'opt or compile' {QUICK}"),
    "sw": (*_LAYERS, *_KERNELS[:1], *_DRIVER, *_TORCH),
    "sw/driver/link": (f"tests/driver/link {QUICK}", f"tests/driver/link {SLOW}"),
    "sw/driver": (*_DRIVER, "tests/driver/link -k board", *_LAYERS, *_TORCH),
    "daedal/bench/handwritten": (f"tests/compiler/levels/test_handwritten.py {QUICK}", f"tests/bench {QUICK}"),
    "daedal/base": (f"tests/base {QUICK}", *_CLI, *_DRIVER),
    "daedal/bench": (f"tests/bench {QUICK}", f"tests/bench {SLOW}", f"tests/cli -k sim {SLOW}"),
    "daedal/cli": (*_CLI, f"tests/bench/test_bench_command.py {SLOW}", f"tests/cli {SLOW}"),
    "daedal": (*_CLI, "tests/package/test_public_api.py tests/package/test_sources.py", *_DRIVER, *_TORCH),
}  # fmt: skip

ALL = frozenset(
    suite
    for table in (_RTL_FILES, _RTL_UNITS, _CORES, {"": _ANY_CORE}, _SOURCES)
    for row in table.values()
    for suite in row
)
"""Every suite of these tables."""


def suites_of_source(file: str) -> tuple[str, ...]:
    """Suites for a file of Python or C++: the tests that import it, then those of the longest start of its path."""
    start = max((start for start in _SOURCES if f"{file}/".startswith(start)), key=len)
    stem = Path(file).stem
    ir = (f"tests/ir -k {stem}",) if (ROOT / "tests" / "ir" / "transforms" / f"{stem}.mlir").exists() else ()
    importing = _importing(_module_of(file)) if file.endswith(".py") else []
    own = (f"{' '.join(importing)} {QUICK}",) if 0 < len(importing) <= FEW else ()
    return (*ir, *own, *_SOURCES[start])


def _module_of(file: str) -> str:
    """The name by which a file is imported: ``sw/compiler`` is ``daedal.compiler``."""
    parts = [part for part in PurePath(file).with_suffix("").parts if part not in ("daedal", "sw", "__init__")]
    return ".".join(["daedal", *parts])


@cache
def _importing(module: str) -> list[str]:
    """Files of tests that import a module."""
    name = re.compile(rf"\b{re.escape(module)} import|import {re.escape(module)}\b")
    return [file for file, text in _tests().items() if name.search(text)]


@cache
def _tests() -> dict[str, str]:
    """Every file of tests and its text."""
    files = sorted(ROOT.glob("tests/**/test_*.py"))
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


def suites_of_cell(config: str, place: Sequence[str], source: str) -> tuple[str, ...]:
    """Suites for a cell of a core: of the file that made it, of the unit in which it is, of the core."""
    near = max((start for start in _RTL_FILES if source.startswith(start)), key=len, default=None)
    unit = _RTL_UNITS.get(place[1], ()) if len(place) > 1 else ()
    return tuple(dict.fromkeys((*(_RTL_FILES[near] if near else ()), *unit, *_CORES[config], *_ANY_CORE)))
