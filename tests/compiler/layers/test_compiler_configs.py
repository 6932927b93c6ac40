"""Other configurations: small machines, and what is said when a program does not fit."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal.compiler.backend.interleave_bags import Turns
from daedal.compiler.frontends.requests.emb_builder import build
from daedal.compiler.pipeline import compile_emb, compile_scf, forget_kernels
from daedal.hw.config.core import Config
from daedal.runtime.kernel import Kernel
from daedal.runtime.operations import Bag
from tests.compiler.layers.compiler_support import random_bags, same_bits, wild_table
from tests.unit.harness import ODD

WEIGHTED = Bag("sum", 600, 64, 64, is_weighted=True, padding=3)


@pytest.mark.parametrize("width", [1, 3, 16, 17, 64, 100])
@pytest.mark.parametrize(("mode", "padding"), [("sum", None), ("sum", 3), ("mean", None)])
def test_a_machine_with_little_of_everything(
    width: int, mode: str, padding: int | None, rng: np.random.Generator
) -> None:
    table = wild_table(20, width, rng)
    module = nn.EmbeddingBag.from_pretrained(table, mode=mode, padding_idx=padding, include_last_offset=True)
    inputs = random_bags(20, 6, rng, types=(torch.int64, torch.int64))
    with daedal.Device.open("emulator", config=ODD) as device:
        assert same_bits(daedal.compile(module, inputs, device=device)(*inputs), module(*inputs))
        words = nn.Embedding.from_pretrained(table)
        assert same_bits(daedal.compile(words, inputs[:1], device=device)(inputs[0]), words(inputs[0]))


def test_three_registers_are_too_few_for_a_mean_with_padding() -> None:
    with pytest.raises(daedal.UnsupportedOperation, match=r"3 stream registers of configuration odd, for %count"):
        compile_emb(build(Bag("mean", 8, 64, 64, padding=3)), ODD)


def kernel(**changes: Any) -> Kernel:
    config = dataclasses.replace(Config.preset("ddr3"), name="small", **changes)
    return compile_emb(build(WEIGHTED), config)


def test_a_full_machine_takes_it() -> None:
    first = kernel()
    forget_kernels()
    again = kernel()
    assert again is not first
    assert again == first
    assert len(first.arguments) <= 16


def test_a_kernel_is_compiled_once() -> None:
    module = build(WEIGHTED)
    text, config = str(module), Config.preset("ddr3")
    first = compile_emb(module, config)
    assert str(module) == text
    assert compile_emb(build(WEIGHTED), Config.preset("ddr3")) is first
    others = [
        compile_emb(module, config, opt=0),
        compile_emb(module, config, "none"),
        compile_emb(module, Config.preset("edge")),
        compile_emb(build(dataclasses.replace(WEIGHTED, width=64)), config),
        compile_emb(module, config, turns=Turns.SHORT),
    ]
    assert all(first != other for other in others[:4])
    assert all(first is not other for other in others)
    assert compile_scf(first.ir("scf"), config) is compile_scf(first.ir("scf"), config)
    assert compile_scf(first.ir("scf"), config) != compile_scf(first.ir("scf"), config, 0)


SHORT: dict[str, tuple[dict[str, object], str]] = {
    "registers": (
        {"registers": 5},
        r"loop %p needs more than the 5 stream registers .* for %counted beside %out_base, %table_base, %b",
    ),
    "loads": (
        {"sequential_loads": (2, 1, 1, 1), "random_loads": (0, 0, 0, 0)},
        r"loop %b needs 1 random loads beside 1 sequential ones; level 1 of configuration small has 0",
    ),
    "alus": ({"alus": (2, 0, 0, 0)}, r"loop %p needs 1 ALU operations; level 2 .* has 0"),
    "callbacks": ({"callbacks": 3}, r"the callbacks need 4 callbacks; configuration small has 3"),
    "lengths": ({"lengths": 1}, r"the callbacks need 2 lengths of rows; configuration small has 1"),
}


@pytest.mark.parametrize("case", SHORT)
def test_what_there_is_too_little_of_is_named(case: str) -> None:
    changes, message = SHORT[case]
    with pytest.raises(daedal.UnsupportedOperation, match=message):
        kernel(**changes)
