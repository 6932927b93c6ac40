"""The order of a callback's instructions: what must stay in order stays, and slow results are waited for little."""

from itertools import combinations

import numpy as np
import pytest

from daedal.compiler.backend.instruction_order import LANE, Runs, in_good_order, reads_of, writes_of
from daedal.compiler.backend.operands import STORES, Code, Instruction, mode
from daedal.hw.config.core import Config
from daedal.hw.isa.instructions import Mode, OperandKind, VectorOp

CONFIG = Config.preset("ddr3")
ROW = 16
VECTOR, SCALAR, QUEUE = OperandKind.REGISTER, OperandKind.SCALAR_REGISTER, OperandKind.QUEUE


def beats(one: Instruction) -> int:
    return 1 if mode(one) is Mode.SCALAR else ROW


def scalar(op: VectorOp, destination: int, a: int, **more: object) -> Instruction:
    return {"op": op, "mode": Mode.SCALAR, "destination": destination, "a": {"kind": SCALAR, "number": a}, **more}


def row(op: VectorOp, destination: int, kind: OperandKind, a: int, **more: object) -> Instruction:
    return {"op": op, "destination": destination, "a": {"kind": kind, "number": a}, **more}


def store(kind: OperandKind, a: int) -> Instruction:
    return {"op": VectorOp.STORE, "a": {"kind": kind, "number": a}}


def cycles(code: Code) -> int:
    return Runs(code, beats, CONFIG, 0).cycles(list(range(len(code))))


def drawn(rng: np.random.Generator) -> Code:
    """Instructions on few registers, so that most of them must stay in order."""

    def one() -> int:
        return int(rng.integers(8, 11))

    kinds = [
        lambda: scalar(VectorOp.ADD, one(), one(), c=one()),
        lambda: scalar(VectorOp.SQUARE_ROOT, one(), one()),
        lambda: scalar(VectorOp.DIVIDE, one(), one(), b={"kind": SCALAR, "number": one()}),
        lambda: {"op": VectorOp.MOVE, "mode": Mode.SCALAR, "destination": one(), "a": {"kind": OperandKind.SCALAR}},
        lambda: row(VectorOp.MOVE, int(rng.integers(4, 7)), QUEUE, 0),
        lambda: row(VectorOp.ADD, int(rng.integers(4, 7)), VECTOR, int(rng.integers(4, 7)), c=5),
        lambda: store(VECTOR, int(rng.integers(4, 7))),
        lambda: {**store(SCALAR, one()), "mode": Mode.SCALAR},
    ]
    return [kinds[int(rng.integers(len(kinds)))]() for _ in range(9)]


def pops(one: Instruction) -> set[object]:
    return {a["kind"] for a in (one.get("a"), one.get("b")) if isinstance(a, dict)} & {QUEUE, OperandKind.SCALAR}


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_what_must_stay_in_order_does(seed: int, is_reversed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the other way round would be best."""
    code = [{**one, "last": n} for n, one in enumerate(drawn(np.random.default_rng(seed)))]
    with monkeypatch.context() as patch:
        if is_reversed:
            patch.setattr(Runs, "cycles", lambda runs, order: sum(n * place for n, place in enumerate(order)))
        ordered = in_good_order(code, beats, CONFIG, 0)
    assert sorted(one["last"] for one in ordered) == list(range(len(code)))
    for one, other in combinations(ordered, 2):
        is_swapped = one["last"] > other["last"]
        reads, writes = ({*map(repr, found(one))} for found in (reads_of, writes_of))
        other_reads, other_writes = ({*map(repr, found(other))} for found in (reads_of, writes_of))
        touches = reads & other_writes or writes & (other_reads | other_writes) or pops(one) & pops(other)
        stores = one["op"] in STORES and other["op"] in STORES
        assert not (is_swapped and (touches or stores))
    assert is_reversed or cycles(ordered) <= cycles(code)


def test_slow_results_are_for_the_next_run() -> None:
    """A root and a quotient of it, each of which a row could wait for, and rows to be moved meanwhile."""
    code = [
        scalar(VectorOp.SQUARE_ROOT, 8, 10),
        scalar(VectorOp.DIVIDE, 11, 12, b={"kind": SCALAR, "number": 13}),
        *(row(VectorOp.MOVE, n, QUEUE, 0) for n in (4, 5, 6, 7)),
    ]
    at_once = cycles(code)
    ordered = in_good_order(code, beats, CONFIG, 0)
    places = [n for n, one in enumerate(ordered) if mode(one) is Mode.SCALAR]
    assert places[1] - places[0] == 3 and cycles(ordered) < at_once - 3 * LANE


def test_a_row_that_is_stored_keeps_its_register() -> None:
    """What writes it waits until the store port has read it, which rows that were stored before keep busy."""
    rows = [row(VectorOp.MOVE, 4, QUEUE, 0), store(VECTOR, 4), row(VectorOp.MOVE, 4, QUEUE, 0)]
    ahead = [store(VECTOR, 5), store(VECTOR, 6)]
    assert cycles([*ahead, *rows]) > cycles(rows)
