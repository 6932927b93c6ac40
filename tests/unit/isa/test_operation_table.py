"""The table of operations: what loses its row is lost to RTL decode, to the emulator's legality and to the docs."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from daedal.cosim import emulator
from daedal.cosim.builder.library import build_library, read_sources
from daedal.hw.config.core import Config
from daedal.hw.execute_unit.frontend.decode import Decode
from daedal.hw.isa.instructions import KEPT, Instruction, Mode, OperandKind, VectorOp
from daedal.hw.isa.operations import OPERATIONS, Operation, operations_in
from daedal.hw.isa.program import pack
from daedal.hw.isa.spec.execute import is_legal
from daedal.hw.isa.spec.reduction import reduce
from daedal.hw.isa.tools import c_header, docs

Table = Mapping[VectorOp, Operation]
Judge = Callable[[Sequence[int]], list[bool]]

PROBE = """
#include "legality.h"
extern "C" bool legal(const daedal::Config* config, std::uint64_t bits) {
  return daedal::is_legal(*config, daedal::Instruction::decode(bits));
}
"""


def by_decode(config: Config, table: Table) -> Judge:
    """What the decoder that is elaborated from this table says."""

    def judge(words: Sequence[int]) -> list[bool]:
        decode, found = Decode(config, table), []

        async def ask(ctx: Any) -> None:
            for word in words:
                ctx.set(decode.i.code, Instruction.from_bits(word))
                found.append(not ctx.get(decode.o.illegal))

        simulator = Simulator(decode)
        simulator.add_testbench(ask)
        simulator.run()
        return found

    return judge


def by_header(config: Config, table: Table) -> Judge:
    """What the emulator's legality says with the header that is generated from this table."""
    sources = read_sources(emulator.FOLDER, "legality.h")
    files = {**sources, "encodings.h": c_header.generate(table), "probe.cpp": PROBE}
    library = ctypes.CDLL(str(build_library("legality", files)))
    library.legal.argtypes, library.legal.restype = [ctypes.c_void_p, ctypes.c_uint64], ctypes.c_bool
    values = c_header.config_values(config)
    array = (ctypes.c_int64 * len(values))(*values)
    return lambda words: [library.legal(array, word) for word in words]


def by_specification(config: Config, table: Table) -> Judge:
    """What the specification says."""
    return lambda words: [is_legal(word, config, table) for word in words]


JUDGES = (by_decode, by_header, by_specification)


def plainest(op: VectorOp, mode: Mode) -> int:
    """A legal instruction of this operation on registers."""
    own = {"kind": OperandKind.SCALAR_REGISTER if mode is Mode.SCALAR else OperandKind.REGISTER}
    row = OPERATIONS[op]
    a = {"kind": OperandKind.QUEUE} if row.takes_head else own
    members: dict[str, object] = {"op": op, "mode": mode, "c": 1, "last": 1, "a": a}
    return pack(Instruction, members | ({"b": own} if "b" in row.operands else {}))


CONFIGS = {name: Config.preset(name) for name in ("ddr3", "edge", "minimum")}
CONFIGS |= {"halves": replace(CONFIGS["edge"], name="halves", binary16=1)}
CONFIGS |= {"affine": replace(CONFIGS["edge"], name="affine", quantised=1, preadder=1)}
CONFIGS |= {"two-pass": replace(CONFIGS["edge"], name="two-pass", quantised=1, two_pass=1)}


@pytest.mark.parametrize("config", ["ddr3", "edge", "halves", "affine", "two-pass"])
@pytest.mark.parametrize("judges", JUDGES)
def test_every_row_is_legal_in_its_modes_only(judges: Callable[[Config, Table], Judge], config: str) -> None:
    asked = [(op, mode) for op in OPERATIONS for mode in Mode]
    found = judges(CONFIGS[config], OPERATIONS)([plainest(op, mode) for op, mode in asked])
    assert [pair for pair, legal in zip(asked, found, strict=True) if legal] == [
        (op, mode) for op, mode in asked if op in operations_in(mode) and OPERATIONS[op].is_of(CONFIGS[config])
    ]


@pytest.mark.parametrize("gone", [VectorOp.SELECT, VectorOp.SQUARE_ROOT])
def test_what_has_no_row_is_no_operation(gone: VectorOp) -> None:
    """In a copy of the table, of which everything is made anew."""
    table = {op: row for op, row in OPERATIONS.items() if op is not gone}
    mode = Mode.SCALAR
    words = [plainest(gone, mode), plainest(VectorOp.FMA, mode)]
    for judges in JUDGES:
        assert judges(Config.preset("ddr3"), OPERATIONS)(words) == [True, True], judges
        assert judges(Config.preset("ddr3"), table)(words) == [False, True], judges
    whole, less = (docs.generate(each)["operations.md"] for each in (OPERATIONS, table))
    assert f"`{gone.name}`" in whole and f"`{gone.name}`" not in less
    assert "`FMA`" in less


def some_instructions(rng: np.random.Generator, count: int) -> list[int]:
    """Instructions with little that is wrong, so that many are legal; and plain bits."""

    def number() -> int:
        return int(rng.choice([0, 1, 1, 2, 3, 7, 8, 15, KEPT]))

    def operand() -> dict[str, int]:
        return {"kind": int(rng.choice([0, 0, 1, 2, 3])), "number": number()}

    def instruction() -> int:
        members: dict[str, object] = {"op": int(rng.integers(26)), "mode": int(rng.choice([0, 0, 1, 1, 2, 2, 3]))}
        members |= {"a": operand(), "c": number(), "destination": number(), "last": 1}
        members |= {"b": operand()} if rng.random() < 0.6 else {}
        members |= {"length": int(rng.integers(8))} if rng.random() < 0.3 else {}
        members |= {"indexed": 1, "element": number()} if rng.random() < 0.1 else {}
        members |= {"octets": 1} if rng.random() < 0.05 else {}
        return pack(Instruction, members)

    return [instruction() for _ in range(count)] + [int(rng.integers(1 << 40)) for _ in range(count // 10)]


@pytest.mark.parametrize("config", CONFIGS)
def test_all_judge_alike(config: str, rng: np.random.Generator) -> None:
    """RTL decode, the emulator and the specification, of thousands of instructions."""
    words = some_instructions(rng, 1500)
    decode, header, specification = (judges(CONFIGS[config], OPERATIONS)(words) for judges in JUDGES)
    assert 3 < sum(specification) < len(words) * 0.8
    for word, *said in zip(words, decode, header, specification, strict=True):
        assert len(set(said)) == 1, f"{word:#x}: decode, emulator, specification say {said}"


def test_every_code_has_a_row() -> None:
    assert list(OPERATIONS) == list(VectorOp)


def test_what_does_not_reduce_says_so() -> None:
    with pytest.raises(ValueError, match=r"op must be one of ADD, FMA, .* not SELECT"):
        reduce(VectorOp.SELECT, np.zeros(3, np.float32))
