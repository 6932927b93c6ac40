"""Every level is text: it is read as it was printed, and passes on text lead to the same next level."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from xdsl.parser import Parser

import daedal
from daedal.compiler.backend.program_builder import program_bytes
from daedal.compiler.context import make_context
from daedal.compiler.pass_table import LEVELS, make_pass
from daedal.hw.isa.tools.assembler import disassemble
from tests.compiler.kernels.test_kernels import KERNELS, arguments
from tests.compiler.layers.compiler_support import ddr3

__all__ = ["ddr3"]

ORDER = ("emb", "scf", "slc", "slcv", "dlc")


def check_levels(device: daedal.Device, texts: dict[str, str]) -> None:
    """Texts by level, in the order of the levels."""
    for level, text in texts.items():
        module = Parser(make_context(), text).parse_module()
        module.verify()
        assert str(module) == text.rstrip("\n"), level
        following = ORDER[ORDER.index(level) + 1] if level != "dlc" else None
        for name in LEVELS[following] if following else ():
            make_pass(name, device.config, "fatal").apply(make_context(), module)
        assert following is None or str(module) == texts[following], following


CASES = [(name, 12) for name in KERNELS] + [
    (name, 600) for name in ("pooled", "bags", "weighted", "products", "siblings")
]


@pytest.mark.parametrize(("name", "width"), CASES)
def test_kernels(ddr3: daedal.Device, name: str, width: int, rng: np.random.Generator) -> None:
    executable = daedal.compile(KERNELS[name], arguments(name, rng, width), device=ddr3)
    check_levels(ddr3, {level: executable.ir(level) for level in ORDER[1:]})


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_layers(ddr3: daedal.Device, mode: str) -> None:
    layer = nn.EmbeddingBag(9, 20, mode=mode, padding_idx=3)
    executable = daedal.compile(layer, (torch.tensor([1, 2, 3]), torch.tensor([0, 2])), device=ddr3)
    check_levels(ddr3, {level: executable.ir(level) for level in ORDER})


@pytest.mark.parametrize("name", KERNELS)
def test_words_come_from_mach(ddr3: daedal.Device, name: str, rng: np.random.Generator) -> None:
    executable = daedal.compile(KERNELS[name], arguments(name, rng, 12), device=ddr3)
    text = executable.ir("mach")
    module = Parser(make_context(), text).parse_module()
    module.verify()
    assert str(module) == text
    assert program_bytes(module) == executable.program


def test_other_text_has_other_words(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    executable = daedal.compile(KERNELS["weighted"], arguments("weighted", rng, 12), device=ddr3)
    text = executable.ir("mach")
    other = Parser(make_context(), text.replace('"mul_add"', '"fma"')).parse_module()
    assert disassemble(program_bytes(other)) == disassemble(executable.program).replace("op=mul_add", "op=fma")
    unnumbered = Parser(make_context(), text.replace("!mach.stream<r1>", "!mach.stream")).parse_module()
    message = "%off_value must have a register, not !mach.stream: allocate registers first"
    with pytest.raises(daedal.UnsupportedOperation, match=re.escape(message)):
        program_bytes(unnumbered)
    make_pass("allocate-stream-registers", ddr3.config, "fatal").apply(make_context(), unnumbered)
    assert program_bytes(unnumbered) == executable.program


def test_the_tool_gives_the_levels(ddr3: daedal.Device, tmp_path: Path, rng: np.random.Generator) -> None:
    executable = daedal.compile(KERNELS["pooled"], arguments("pooled", rng, 600), device=ddr3)
    options = {"tile-columns": f"tile-columns{{elements={ddr3.config.vl_max} levels={ddr3.config.levels}}}"}
    path = tmp_path / "pooled.mlir"
    path.write_text(executable.ir("scf"))
    passes = [options.get(name, name) for level in ORDER[2:] for name in LEVELS[level]]
    command = [sys.executable, "-m", "daedal.compiler.opt_main", "-p", ",".join(passes), str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.rstrip("\n") == executable.ir("dlc")
