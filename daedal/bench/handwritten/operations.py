"""The operations that the programs do: their data, what they give, and the launches that it takes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daedal.bench.handwritten.arithmetic import Integers, fused_sums, sums
from daedal.driver.device import Device
from daedal.driver.launch.record import Stats
from daedal.driver.memory.arena import Arena
from daedal.hw.isa.instructions import VectorOp
from daedal.hw.isa.spec.binary32 import Floats
from daedal.hw.isa.spec.reduction import reduce
from daedal.hw.isa.tools.assembler import assemble

DIM = 64
"""Columns of all tables."""

ROW = 4 * DIM
"""Bytes of a row."""

BLOCK = 16
"""Rows of a block."""

LINE = 16
"""Bytes of a line of the configurations that the shares are of."""


@dataclass(frozen=True)
class Size:
    """How much there is to do: outputs, what adds up to each, rows of the tables."""

    outputs: int = 64
    pooling: int = 32
    rows: int = 65_536
    relations: int = 1_024
    ragged: bool = False
    """Whether bags are of all lengths from 0 on, ``pooling`` at most."""

    def offsets(self, rng: np.random.Generator) -> Integers:
        """Where bags begin and end."""
        if not self.ragged:
            return np.arange(self.outputs + 1, dtype=np.int32) * np.int32(self.pooling)
        lengths = rng.integers(0, self.pooling + 1, self.outputs)
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


SMALL = Size(outputs=5, pooling=6, rows=48, relations=7, ragged=True)
"""As little as shows that all runs."""


class Session:
    """Launches on a device, one behind the other, each after the writes of those before it."""

    def __init__(self, device: Device, arena: Arena) -> None:
        self.device, self.arena = device, arena
        self._launches: list[Any] = []

    def table(self, name: str, array: NDArray[Any]) -> int:
        """The address of a table."""
        return self.device.bind_table(name, array).address

    def array(self, array: NDArray[Any]) -> tuple[int, int]:
        """The address of an array and that after it."""
        first = self.arena.upload(array)
        return first, first + array.nbytes

    def launch(self, name: str, *arguments: int) -> None:
        """Queue the program of this name."""
        address = self.device.load_program(assemble(source(name), config_hash=self.device.config.hash))
        self._launches.append(self.device.submit(address, arguments))

    def finish(self) -> Stats:
        """Wait for all of them; what they did together."""
        records = [self.device.finish(launch) for launch in self._launches]
        return sum((record.stats for record in records[1:]), records[0].stats)


def source(name: str) -> str:
    """The text of a program."""
    return (Path(__file__).parent / f"{name}.asm").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Case:
    """An operation on data.

    Attributes
    ----------
    data
        Its arrays by name.
    expected
        Its result.
    lines
        Lines of ``LINE`` bytes that it has to read and write in any program: rows, index arrays, results.
    launch
        Queues its launches; gives the result's address.
    """

    data: dict[str, NDArray[Any]]
    expected: Floats
    lines: float
    launch: Callable[[Session], int]


def run(device: Device, case: Case) -> tuple[Floats, Stats]:
    """The result of the hand-written programs, and what their launches did."""
    with device.arena() as arena:
        session = Session(device, arena)
        address = case.launch(session)
        stats = session.finish()
        return arena.download(address, case.expected.shape), stats


@dataclass(frozen=True)
class Operation:
    """An operation with its programs in the order of their launches; ``make`` draws a case of it."""

    name: str
    programs: Sequence[str]
    make: Callable[[np.random.Generator, Size], Case]
    bound: str


def _table(rng: np.random.Generator, rows: int) -> Floats:
    return rng.standard_normal((rows, DIM), dtype=np.float32)


def _indices(rng: np.random.Generator, limit: int, count: int) -> Integers:
    return rng.integers(0, limit, count, dtype=np.int32)


def _traffic(*arrays: NDArray[Any], rows: int = 0) -> float:
    """Lines of these arrays and of so many rows."""
    return (sum(array.nbytes for array in arrays) + rows * ROW) / LINE


def bag_sum(rng: np.random.Generator, size: Size) -> Case:
    """An embedding bag."""
    table, offsets = _table(rng, size.rows), size.offsets(rng)
    indices = _indices(rng, size.rows, offsets[-1])
    expected = sums(offsets, table[indices])

    def launch(session: Session) -> int:
        return _bag(session, "bag_sum", table, offsets, indices)

    data = {"table": table, "offsets": offsets, "indices": indices}
    return Case(data, expected, _traffic(offsets, indices, expected, rows=len(indices)), launch)


def bag_weighted(rng: np.random.Generator, size: Size) -> Case:
    """An embedding bag with a weight for each row, product and sum rounded once."""
    table, offsets = _table(rng, size.rows), size.offsets(rng)
    indices = _indices(rng, size.rows, offsets[-1])
    weights = rng.standard_normal(len(indices), dtype=np.float32)
    expected = fused_sums(offsets, table[indices], weights)

    def launch(session: Session) -> int:
        return _bag(session, "bag_weighted", table, offsets, indices, *session.array(weights))

    data = {"table": table, "offsets": offsets, "indices": indices, "weights": weights}
    return Case(data, expected, _traffic(offsets, indices, weights, expected, rows=len(indices)), launch)


def csr(rng: np.random.Generator, size: Size) -> Case:
    """A sparse matrix times a dense one, product and sum rounded each."""
    x, pointers = _table(rng, size.rows), size.offsets(rng)
    columns = _indices(rng, size.rows, pointers[-1])
    values = rng.standard_normal(len(columns), dtype=np.float32)
    expected = sums(pointers, x[columns] * values[:, None])

    def launch(session: Session) -> int:
        return _bag(session, "csr", x, pointers, columns, *session.array(values))

    data = {"x": x, "pointers": pointers, "columns": columns, "values": values}
    return Case(data, expected, _traffic(pointers, columns, values, expected, rows=len(columns)), launch)


def _bag(session: Session, program: str, table: Floats, offsets: Integers, indices: Integers, *more: int) -> int:
    address = session.table("table", table)
    first, end = session.array(indices)
    at, offsets_end = session.array(offsets)
    out = session.arena.reserve(ROW * (len(offsets) - 1))
    session.launch(program, len(offsets) - 1, at, first, end, address, out, len(table), len(indices) + 1, offsets_end,
                   *more)  # fmt: skip
    return out


def distmult(rng: np.random.Generator, size: Size) -> Case:
    """Scores of triples: the sum of head * relation * tail."""
    return _triples(rng, size, "distmult", lambda h, r, t: h * r * t)


def transe(rng: np.random.Generator, size: Size) -> Case:
    """Scores of triples: the sum of |head + relation - tail|."""
    return _triples(rng, size, "transe", lambda h, r, t: np.abs(h + r - t))


def _triples(rng: np.random.Generator, size: Size, program: str, terms: Callable[..., Floats]) -> Case:
    count = size.outputs * size.pooling
    entities, relations = _table(rng, size.rows), _table(rng, size.relations)
    heads, tails = _indices(rng, size.rows, count), _indices(rng, size.rows, count)
    kinds = _indices(rng, size.relations, count)
    expected = reduce(VectorOp.ADD, terms(entities[heads], relations[kinds], entities[tails]))

    def launch(session: Session) -> int:
        out = session.arena.reserve(4 * count)
        (first, end), (kind, kinds_end), (tail, tails_end) = (session.array(array) for array in (heads, kinds, tails))
        session.launch(program, count, first, kind, tail, session.table("entities", entities),
                       session.table("relations", relations), out, len(entities), len(relations), end, kinds_end,
                       tails_end)  # fmt: skip
        return out

    data = {"entities": entities, "relations": relations, "heads": heads, "kinds": kinds, "tails": tails}
    return Case(data, expected, _traffic(heads, kinds, tails, expected, rows=3 * count), launch)


def messages(rng: np.random.Generator, size: Size) -> Case:
    """Message passing: the sum of dot(x[column], x[v]) * x[column] over the edges of v."""
    x, pointers = _table(rng, size.rows), size.offsets(rng)
    columns, nodes = _indices(rng, size.rows, pointers[-1]), np.repeat(np.arange(size.outputs), np.diff(pointers))
    dots = reduce(VectorOp.ADD, x[columns] * x[nodes])
    expected = sums(pointers, x[columns] * dots[:, None])

    def launch(session: Session) -> int:
        table, out = session.table("x", x), session.arena.reserve(ROW * size.outputs)
        at, pointers_end = session.array(pointers)
        first, end = session.array(columns)
        session.launch("messages", size.outputs, at, first, end, table, out, len(x), len(columns) + 1, pointers_end,
                       table)  # fmt: skip
        return out

    data = {"x": x, "pointers": pointers, "columns": columns}
    lines = _traffic(pointers, columns, expected, rows=len(columns) + size.outputs)
    return Case(data, expected, lines, launch)


def gather_blocks(rng: np.random.Generator, size: Size) -> Case:
    """The blocks that an index names, one behind the other."""
    table = _table(rng, size.rows).reshape(-1, BLOCK * DIM)
    blocks = _indices(rng, len(table), size.outputs * size.pooling // BLOCK)
    expected = table[blocks]

    def launch(session: Session) -> int:
        return _gather(session, table, blocks)

    return Case({"table": table, "blocks": blocks}, expected, _traffic(blocks, expected, expected), launch)


def _gather(session: Session, table: Floats, blocks: Integers) -> int:
    out = session.arena.reserve(BLOCK * ROW * len(blocks))
    first, end = session.array(blocks)
    session.launch("gather_blocks", len(blocks), first, end, session.table("blocks", table), out, len(table))
    return out


def block_scores(rng: np.random.Generator, size: Size) -> Case:
    """The scores of each query against all keys of its blocks, which lie one behind the other."""
    blocks = Size(size.outputs, max(1, size.pooling // BLOCK), ragged=size.ragged).offsets(rng)
    pointers = BLOCK * blocks
    keys, queries = _table(rng, int(pointers[-1])), _table(rng, size.outputs)
    expected = reduce(VectorOp.ADD, keys * np.repeat(queries, np.diff(pointers), axis=0))

    def launch(session: Session) -> int:
        out = session.arena.reserve(4 * len(keys))
        at, end = session.array(pointers)
        session.launch("block_scores", size.outputs, at, 0, 0, session.table("keys", keys), out, 0,
                       len(keys) + 1, end, session.table("queries", queries))  # fmt: skip
        return out

    data = {"keys": keys, "queries": queries, "pointers": pointers}
    return Case(data, expected, _traffic(pointers, keys, queries, expected), launch)


OPERATIONS = (
    Operation("embedding bag, sum", ("bag_sum",), bag_sum, "memory"),
    Operation("embedding bag, weighted sum", ("bag_weighted",), bag_weighted, "memory"),
    Operation("sparse x dense", ("csr",), csr, "memory"),
    Operation("DistMult", ("distmult",), distmult, "memory"),
    Operation("TransE, L1", ("transe",), transe, "lanes"),
    Operation("message passing", ("messages",), messages, "lanes"),
    Operation("gather of blocks", ("gather_blocks",), gather_blocks, "memory"),
    Operation("scores of blocks", ("block_scores",), block_scores, "lanes"),
)
"""What the suite measures."""
