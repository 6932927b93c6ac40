"""Sums of blocks at every level and optimisation level: in the interpreter and on the machine, bit for bit."""

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import daedal
from daedal.compiler.frontends.requests.emb_builder import build
from daedal.compiler.frontends.requests.orders import Order, ordered_request
from daedal.compiler.interpreters import interpret
from daedal.compiler.opt_levels import OPT_LEVELS
from daedal.compiler.pipeline import compile_emb
from daedal.compiler.text import read_module
from daedal.hw.config.core import Config
from daedal.runtime.operations import BagList, BlockKind, Kind
from tests.compiler.layers.compiler_support import ddr3
from tests.compiler.orders.order_support import numbers, run
from tests.reference.tensorflow_sums import bags, by_lanes, chain

__all__ = ["ddr3"]

LEVELS = ("emb", "scf", "slc", "slcv", "dlc")
WIDTH, PITCH, ROWS = 6, 8, 9
TABLES, RESULTS = (0, 1024), (2048, 3072, 4096, 5120)
"""Addresses."""


def expected(
    table: NDArray[Any], indices: NDArray[Any], weights: NDArray[Any] | None, ends: NDArray[Any]
) -> list[NDArray[Any]]:
    """The sum of each block."""
    rows = table[indices] if weights is None else table[indices] * weights[:, None]
    nothing = np.zeros(WIDTH, np.float32)
    return [chain(each, nothing) for each in bags(rows, ends)]


@pytest.mark.parametrize("opt", OPT_LEVELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_level(rng: np.random.Generator, opt: int, *, weighted: bool) -> None:
    """Two tables, each with two bags of one walk and two results of the other, of two blocks and of three."""
    kind = Kind("sum", WIDTH, PITCH, WIDTH, 64, is_weighted=weighted, is_fused=False, padding=None)
    sums = BlockKind(WIDTH, PITCH, WIDTH, 64, weighted, is_fused=False)
    tables = [numbers(rng, ROWS, WIDTH) for _ in TABLES]
    tables[1][:3] = -0.0
    lengths = np.array([2, 0, 3, 1, 4, 2, 0] * 2)
    lengths[7:9] = 3, 1
    ends = np.concatenate([[0], lengths.cumsum()])
    indices = rng.integers(0, ROWS, int(ends[-1]))
    indices[ends[7] : ends[8]] = 0, 1, 2
    weights = rng.standard_normal(len(indices)).astype(np.float32)
    offsets = np.concatenate([ends[0:3], ends[7:10]])
    block_ends = np.concatenate([ends[2:8], ends[7:8], ends[9:15], ends[14:15]])
    places = np.array([0, 0, 1, 0, 0, 2, 0] * 2)
    memory = np.zeros(8192, np.uint8)
    for address, table in zip(TABLES, tables, strict=True):
        rows = np.zeros((ROWS, PITCH), np.float32)
        rows[:, :WIDTH] = table
        memory[address : address + rows.nbytes] = rows.reshape(-1).view(np.uint8)
    row = 4 * WIDTH
    buffers = {
        "list": np.array([[ROWS] * 2, TABLES, [RESULTS[0], RESULTS[1] - 3 * row]]),
        "sums": np.array([[ROWS] * 2, TABLES, [RESULTS[2] - row, RESULTS[3] - row]]),
        "offsets": offsets, "block_ends": block_ends, "places": places, "indices64": indices, "weights64": weights,
    }  # fmt: skip
    if not weighted:
        del buffers["weights64"]
    levels = compile_emb(build(BagList(((kind, 2),), (), ((sums, 2),))), Config.preset("ddr3"), opt=opt).levels
    for level in LEVELS:
        given = {**{name: array.copy() for name, array in buffers.items()}, "memory": memory.copy()}
        after = interpret(levels[level], given, {"bags": 2, "blocks": 6})["memory"]
        for n, table in enumerate(tables):
            parts = expected(table, indices, weights if weighted else None, ends)[7 * n : 7 * n + 7]
            nothing = np.zeros(WIDTH, np.float32)
            results = {
                RESULTS[n]: parts[:2],
                RESULTS[n + 2]: [chain(np.stack(parts[a:b]), nothing) for a, b in ((2, 4), (4, 7))],
            }
            for address, rows in results.items():
                assert after[address : address + 2 * row].tobytes() == np.stack(rows).tobytes(), (level, n, address)


@pytest.mark.parametrize("opt", OPT_LEVELS)
def test_every_optimisation_level_on_the_machine(ddr3: daedal.Device, rng: np.random.Generator, opt: int) -> None:
    table, many = numbers(rng, 30, 9), np.array([3, 20, 0, 17, 1])
    keys = np.repeat(np.arange(len(many)), many)
    indices, weights = rng.integers(0, 30, len(keys)), rng.standard_normal(len(keys)).astype(np.float32)
    request = ordered_request("op", table, indices, weights, keys, len(many), "sum", Order.LANES)
    rows = bags(table[indices] * weights[:, None], np.concatenate([[0], many.cumsum()]))
    assert run(ddr3, request, opt=opt)[0].tobytes() == np.stack([by_lanes(each) for each in rows]).tobytes()


def test_a_total_is_left_in_a_register_of_its_own() -> None:
    """A maximum of a later nest begins with an empty register, as a block's sum leaves its own; behind the last block
    there is +0.0 in the total's.
    """
    text = """
      func.func @kernel(%l: tensor<3x1xi64>, %i: tensor<?xi64>, %o: tensor<?xi64>, %p: tensor<?xi64>, %n: index) {
        emb.block_list %l[0 for 1] width 8 pitch 8 to 8 %i ends %o places %p blocks %n
          : tensor<3x1xi64>, tensor<?xi64> ends tensor<?xi64> places tensor<?xi64>
        emb.bag_list "max" %l[0 for 1] width 8 pitch 8 to 8 %i offsets %o bags %n
          : tensor<3x1xi64>, tensor<?xi64> offsets tensor<?xi64>
        func.return
      }"""
    made = compile_emb(read_module(text, "text"), Config.preset("ddr3")).levels["mach"]
    sums = r'"add" a %v\w+ : !mach.vector<(v\d)> c %v\w+ : !mach.vector<(v\d)> length 0 clear'
    ((block, total),) = re.findall(sums, made)
    (maximum,) = re.findall(r'"max" .* c %v\w+ : !mach.vector<(v\d)>', made)
    assert maximum == block != total
