"""The table of elements is the one place that says what rows are made of."""

import ast
from pathlib import Path

import numpy as np
import torch

import daedal
from daedal.compiler.dialects import elements as types
from daedal.compiler.interpreters import interpret
from daedal.compiler.pipeline import compile_emb
from daedal.compiler.text import read_module
from daedal.hw.isa.elements import BFLOAT16, ELEMENTS
from tests.compiler.layers.compiler_support import ddr3, run

__all__ = ["ddr3"]

GATHER = """
func.func @kernel(%table: tensor<?x48xbf16>, %indices: tensor<?xi64>) -> tensor<?x48xbf16> {
  %out = emb.lookup %table[%indices] : tensor<?x48xbf16>, tensor<?xi64> -> tensor<?x48xbf16>
  func.return %out : tensor<?x48xbf16>
}
"""

FLOATS = {"AnyFloat", "BFloat16Type", "Float16Type", "Float32Type", "Float64Type", "bf16", "f16", "f32", "f64"}


def test_what_the_table_says() -> None:
    for element in ELEMENTS:
        assert element.bytes == np.dtype(element.array).itemsize == getattr(torch, element.dtype).itemsize
        assert types.row_element(types.type_of(element)) is element
    assert len({element.mlir for element in ELEMENTS}) == len(ELEMENTS)


def test_rows_of_another_element(ddr3: daedal.Device) -> None:
    """A machine that cannot convert them moves them, in memory and on the way as wide as they are."""
    assert not ddr3.config.bfloat16
    kernel = compile_emb(read_module(GATHER, "the gather"), ddr3.config)
    assert 'dlc.fetch "store"' in kernel.ir("dlc")
    assert f"bytes {48 * BFLOAT16.bytes}" in kernel.ir("dlc")
    rng = np.random.default_rng(3)
    table = rng.integers(0, 1 << 16, (100, 48), dtype=np.uint16)
    indices = rng.integers(0, 100, 12)
    out = run(ddr3, kernel, table=table, indices=indices, out=(12, 48))
    assert out.dtype == table.dtype
    assert np.array_equal(out, table[indices])
    kernels = (kernel, compile_emb(read_module(GATHER, "the gather"), ddr3.config, opt=1))
    for level in [each.ir(level) for each in kernels for level in each.levels if level != "mach"]:
        buffers = {"table": table, "indices": indices, "out": np.zeros_like(out)}
        assert np.array_equal(interpret(level, buffers)["out"], out)


def test_dialects_name_no_type_of_elements(root: Path) -> None:
    """They ask ``dialects/elements.py``."""
    modules = [path for path in (root / "sw/compiler/dialects").glob("*.py") if path.name != "elements.py"]
    assert len(modules) > 5
    for path in modules:
        imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
        assert not FLOATS & {name.name for node in imports for name in node.names}, path.name
