"""``daedal inspect``: what is shown of saved executables and of programs, and what is said of other files."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result
from torch import nn

import daedal
from daedal.cli import cli
from daedal.hw.config.core import PRESETS
from daedal.hw.isa.program import Program
from daedal.hw.isa.tools.assembler import assemble
from tests.compiler.saved.test_saved_kernels import given, pooled
from tests.unit.isa.words import random_words


@pytest.fixture
def folder(tmp_path: Path, rng: np.random.Generator) -> Path:
    """A folder with a module, a kernel, a program and a damaged module."""
    module = nn.EmbeddingBag(20, 64, mode="sum")
    with daedal.Device.open("emulator", config="ddr3") as device:
        daedal.compile(module, (torch.zeros(2, 3).long(),), device=device).save(tmp_path / "module")
        daedal.compile(pooled, given(64, rng), device=device).save(tmp_path / "kernel")
    raw = (tmp_path / "module").read_bytes()
    (tmp_path / "damaged").write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    (tmp_path / "program").write_bytes(Program(PRESETS["edge"].hash, random_words(rng, 9)).to_bytes())
    return tmp_path


def inspect(folder: Path, *words: str) -> Result:
    name, *options = words
    return CliRunner().invoke(cli, ["inspect", str(folder / name), *options])


def test_what_is_shown(folder: Path) -> None:
    shown = inspect(folder, "module").stdout
    assert "for ddr3 (0x" in shown and "bounds fatal, O3; format 3, written by Daedal" in shown
    assert "weight  float32 (20, 64)" in shown
    assert "per_sample_weights  any" in shown and "launch: embedding_bag of weight" in shown
    described = json.loads(inspect(folder, "module", "--json").stdout)
    assert described["tables"] == [{"name": "weight", "dtype": "float32", "shape": [20, 64]}]
    assert described["bytes"] == (folder / "module").stat().st_size
    assert described["traces"][0]["launches"] == [["embedding_bag of weight"]]
    programs = inspect(folder, "module", "--asm").stdout
    assert sum(each["bytes"] for each in described["programs"]) == len(assemble(programs))


def test_kernels_and_programs(folder: Path) -> None:
    shown = inspect(folder, "kernel").stdout
    assert shown.startswith("kernel, ") and "off       i64[B + 1]" in shown and "sizes: D = 64" in shown
    assert json.loads(inspect(folder, "kernel", "--json").stdout)["writes"] == ["out"]
    assert inspect(folder, "program").stdout.startswith("program, 96 bytes, for edge (0x")
    assert assemble(inspect(folder, "program", "--asm").stdout) == (folder / "program").read_bytes()


def test_other_files(folder: Path) -> None:
    for name, message in (("damaged", "is damaged: save it again"), ("nothing", "cannot be read: No such file")):
        result = inspect(folder, name)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.count("\n") == 1 and message in result.stderr
    (folder / "text").write_text("no program")
    assert "a program must be whole words" in inspect(folder, "text").stderr
