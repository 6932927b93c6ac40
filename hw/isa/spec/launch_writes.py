"""A whole launch as an executable specification: the access unit's events, then what the execute unit makes of them.

All rows are read from memory as it was before the launch: a program must read what it stores before that. ``unordered``
says of which bytes that is not sure.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from daedal.hw.config.core import SMALLEST_GRANULE, Config
from daedal.hw.isa.address_mapping import memory_address
from daedal.hw.isa.elements import LANE, ROW_GRANULE
from daedal.hw.isa.program import Program
from daedal.hw.isa.spec.access import Fetch, NestTrace, Read, Scalar, StoreAddress, Token
from daedal.hw.isa.spec.execute import ExecuteUnit
from daedal.hw.isa.spec.narrow import Patterns, pattern_type, patterns_in
from daedal.hw.isa.words import CallbackField, FetchQueue, InstructionField, LengthField


@dataclass(frozen=True)
class Write:
    """Bytes that the store unit writes."""

    address: int
    data: bytes


@dataclass(frozen=True)
class _Pop:
    """A row that was popped when the execute unit had made so many rows to be stored."""

    fetch: Fetch
    stored: int


@dataclass
class _Queues:
    """What the access unit has enqueued, and what the execute unit stores."""

    read: Read
    rows: dict[FetchQueue, deque[Fetch]] = field(default_factory=lambda: {queue: deque() for queue in FetchQueue})
    scalars: deque[int] = field(default_factory=deque)
    tokens: list[Token] = field(default_factory=list)
    addresses: list[StoreAddress] = field(default_factory=list)
    stored: list[bytes] = field(default_factory=list)
    pops: list[_Pop] = field(default_factory=list)
    taken: dict[FetchQueue, int] = field(default_factory=dict)
    """Bytes of numbers that were taken off the row in front."""

    def fill(self, traces: Iterable[NestTrace]) -> None:
        """Put what nests have enqueued into the queues."""
        for trace in traces:
            for push in trace.pushes:
                match push:
                    case Fetch():
                        self.rows[push.queue].append(push)
                    case Scalar():
                        self.scalars.append(push.value)
                    case Token():
                        self.tokens.append(push)
                    case StoreAddress():
                        self.addresses.append(push)

    def bytes_of(self, queue: FetchQueue) -> bytes:
        """The next row of this queue."""
        fetch = self.rows[queue].popleft()
        taken = self.taken.pop(queue, 0)
        self.pops.append(_Pop(replace(fetch, address=fetch.address - taken, size=fetch.size + taken), len(self.stored)))
        return self.read(fetch.address, fetch.size)

    def row(self, queue: int, elements: int, kind: LengthField) -> Patterns:
        """The next row of a vector queue; ValueError if it has not so many elements."""
        row = np.frombuffer(self.bytes_of(FetchQueue(queue)), pattern_type(kind))
        count = patterns_in(elements, kind)
        if row.nbytes != _whole(count * row.itemsize):
            raise ValueError(f"a row of vector queue {queue} must have {elements} elements, not {len(row)} patterns")
        return row[:count]

    def head(self, queue: int) -> int:
        """The first number of the next row of a vector queue, taken off it."""
        row = self.rows[FetchQueue(queue)][0]
        self.taken[FetchQueue(queue)] = self.taken.get(FetchQueue(queue), 0) + LANE.bytes
        self.rows[FetchQueue(queue)][0] = replace(row, address=row.address + LANE.bytes, size=row.size - LANE.bytes)
        return int.from_bytes(self.read(row.address, LANE.bytes), "little")

    def scalar(self, *, is_count: bool) -> int:
        """The next scalar."""
        return self.scalars.popleft()

    def store(self, row: Patterns) -> None:
        """A row for the store unit."""
        self.stored.append(row.tobytes())


def run_launch(
    raw: bytes, config: Config, read: Read, arguments: Sequence[int], traces: Iterable[NestTrace]
) -> Iterator[Write]:
    """What a program writes that ends without a fault, in order; ``traces`` are those of its nests.

    Raises ValueError if rows do not fit, and IndexError if something is popped that was not pushed.
    """
    queues = _executed(raw, config, read, arguments, traces)
    stored = 0
    for address in queues.addresses:
        stored += not address.stream
        data = queues.bytes_of(FetchQueue.STORE) if address.stream else queues.stored[stored - 1]
        if len(data) != (_whole(address.size) if address.stream else address.size):
            raise ValueError(f"a store must have {address.size} bytes, not {len(data)}")
        yield Write(address.address, data[: address.size])


def unordered(
    raw: bytes, config: Config, read: Read, arguments: Sequence[int], traces: Iterable[NestTrace]
) -> set[int]:
    """Where in memory bytes are that the launch stores, and of which a row is not sure to be read before
    (docs/machine/launches.md). Of loads it says nothing. Raises as ``run_launch``.
    """
    queues = _executed(raw, config, read, arguments, traces)
    first: dict[int, tuple[int, int]] = {}
    """A byte's first store: how many rows of the execute unit, and how many at all, are stored with it or before."""
    streamed, stored = list[tuple[int, Fetch]](), 0
    for number, address in enumerate(queues.addresses):
        stored += not address.stream
        if address.stream:
            streamed.append((number, queues.rows[FetchQueue.STORE].popleft()))
        for at in _places(address.address, address.size, config):
            first.setdefault(at, (stored, number))
    found = set()
    for pop in queues.pops:  # it must be popped by the instruction that stores, or before
        places = first.keys() & _places(pop.fetch.address, pop.fetch.size, config)
        found |= {at for at in places if first[at][0] <= pop.stored}
    for number, fetch in streamed:
        places = first.keys() & _places(fetch.address, fetch.size, config)
        found |= {at for at in places if first[at][1] < number}
    return found


def _places(address: int, size: int, config: Config) -> set[int]:
    """Where in memory the bytes of a row are."""
    found = set[int]()
    end = address + size
    while address < end:
        following = min(end, (address // SMALLEST_GRANULE + 1) * SMALLEST_GRANULE)
        at = memory_address(address, config)
        found |= {*range(at, at + following - address)}
        address = following
    return found


def _executed(raw: bytes, config: Config, read: Read, arguments: Sequence[int], traces: Iterable[NestTrace]) -> _Queues:
    """The queues when the execute unit is through."""
    held: dict[object, dict[int, int]] = {InstructionField.CODE: {}, CallbackField.START: {}}
    lengths, kinds = [0] * config.lengths, [LengthField.ELEMENTS] * config.lengths
    for word in Program.from_bytes(raw).body:
        added = 0 if word.argument is None else arguments[word.argument]
        value = (word.value + added) % (1 << 40)
        if isinstance(word.field, LengthField):
            lengths[word.index], kinds[word.index] = value, word.field
        elif word.field in held:
            held[word.field][word.index] = value
    queues = _Queues(read)
    queues.fill(traces)
    unit = ExecuteUnit(config, lengths, queues, kinds)
    for token in queues.tokens:
        position = held[CallbackField.START][token.callback]
        while not unit.execute(held[InstructionField.CODE][position], token.context):
            position += 1
    return queues


def _whole(size: int) -> int:
    """Bytes of the granules that a row of so many bytes takes in a queue."""
    return -(-size // ROW_GRANULE) * ROW_GRANULE
