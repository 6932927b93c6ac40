"""The machine's parameters: one frozen, validated ``Config`` used by RTL, compiler, emulator and driver."""

import hashlib
import re
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import SupportsIndex

from daedal.base.messages import shown
from daedal.hw.isa.elements import LANE, ROW_GRANULE, STORE_STEP, UNSIGNED
from daedal.hw.isa.words import LengthField

MOST_ADDRESS_BITS = 40
"""Most bits of a byte address and of a stream register."""

MAPPING_BITS = 3
"""The highest bits of an address: the mapping class of what is there (``hw/isa/address_mapping.py``)."""

SMALLEST_GRANULE = 64
"""Bytes of the smallest granule of a mapping class, which is no smaller than a line."""

MAX_BURST = 16
"""Most beats in one read or write burst of the memory ports."""

LONGEST_NAME = 64
"""Most characters of a configuration's name, which names files."""

MAX_LEVELS = 6
"""Most loop levels."""

LAUNCH_QUEUE_DEPTH = 4
"""Launches that a machine queues behind the present one."""

WATCHDOG_CYCLES = 1 << 16
"""Cycles without any progress after which a machine reports a hang, and without an answer after which it reports a
silent memory.
"""

CONTEXT_BITS = 3
"""Bits of a context's number, in tokens and bundles."""

MAX_CONTEXTS = 1 << CONTEXT_BITS
"""Most activations that one level runs side by side."""

LEAST_DEALT = 128
"""Least places for bundles that are dealt: an eighth of them outlasts the steps on their way."""

LEAST_AFFINE_LANES = 4
"""Least lanes for which a row's head comes with elements of it, so that it takes no cycle of its own."""

MAX_REGISTERS = 7
"""Most stream registers: an operand source is 3 bits wide and 0 means the constant."""


@dataclass(frozen=True)
class Config:
    """Everything that shapes a core. Two configurations are the same machine if their ``hash`` is equal.

    Per-level tuples are given outermost level first and have ``levels`` entries.

    Attributes
    ----------
    name
        Name of the preset; not part of the hash.
    bus_bytes
        Bytes of a line, which is the width of every memory port: 8, 16, 32 or 64.
    lanes
        binary32 lanes, a power of two from 1 to 16. The execute unit's beats are of ``lane_bytes``: with fewer lanes
        than a line has elements of binary32, a line takes it several cycles; with more, which are for narrower
        elements, several lines are one beat.
    ports
        AXI4 read masters, a power of two from 1 to 16.
    levels
        Loop levels of the access unit, 1 to 6.
    address_bits
        Bits of a byte address and of a stream register, 32 to 40. The highest three of an address are its mapping
        class, so memory has at most ``1 << (address_bits - 3)`` bytes; programs compute with integers of so many bits.
    registers
        Stream registers, 3 to 7.
    sequential_loads, random_loads
        Scalar load slots of each level; slots are numbered sequential first; at most 4 in a level.
    alus
        ALU operations of each level, at most 4.
    shifters
        Whether each level's ALUs can shift (costly in LUTs).
    serial
        Whether each level does one thing at a time: some ten cycles for an iteration instead of one, and a fifth of the
        LUTs. For levels of which iterations are rare, such as the outermost; left out, none is.
    contexts
        Activations that each level can run side by side, a row of each in turn: 0, 2, 4 or 8; in one level at most.
        Left out, none can.
        A register of the execute unit is then shared out, ``register_beats / contexts`` beats to each.
    context_ahead
        Activations held for each of these, 2 or 4: the one that runs and those whose lines are on their way. Of bags of
        one row, no more than ``context_ahead * contexts`` are begun in the time that memory takes to answer.
    dealt_bundles
        Places for bundles at the event unit, a power of two from 128 to 1024, of which seven in eight can be dealt to
        contexts; 0: it deals none.
    arguments
        Launch arguments, 16 to 32.
    steps
        Event steps, at most 32.
    callbacks, instructions
        Entries of the callback table (at least 2) and of the execute unit's instruction memory (at least 4), at most 64
        each. With 0 there is no execute unit: the machine gathers rows, and computes with integers only.
    lengths
        Vector length registers, 1 to 8; 0 without an execute unit.
    vector_registers, register_beats
        Vector registers (at most 16) and the beats of ``lane_bytes`` of each: the longest ``vl`` is
        ``register_beats * lanes`` elements.
    binary16, bfloat16
        1: the execute unit also pops and stores rows of these elements, which takes two lanes or more.
    quantised
        1: it also pops rows of unsigned integers of 8, 4 and 2 bits, and their heads; that takes scalars.
    preadder
        1: each lane has an adder in front of it, and the machine has AFFINE; on 4 lanes or more, with quantised.
        Results of all operations come later then.
    two_pass
        1: the machine has AFFINE without pre-adders: its lanes take such a row twice, first to add the bias. On 4 lanes
        or more, with quantised and not with preadder. Results of all operations come later then.
    scalars
        Scalar registers, at most 16. With 0 there are no scalar operations and no reductions.
    kept_beats
        Beats of ``lane_bytes`` of rows that the execute unit can keep for a second reading, at least 2; with 0 it keeps
        none.
    vector_beats
        Slots of each of the two vector queues and of the store stream's queue, lines; a power of two.
    reorder_beats
        Budget of slots reserved and not yet drained over all of these queues, lines.
    token_depth, scalar_depth, store_address_depth
        Entries of these queues.
    store_beats
        Entries of the store data queue, beats of ``lane_bytes``; at least ``2 * register_beats`` (a store reserves a
        whole row).
    lookahead_lines
        Lines buffered for each sequential load; a power of two.
    lookahead_burst
        Lines fetched by one burst of a sequential load.
    random_outstanding
        Random loads in flight in one level.
    port_requests, port_outstanding
        Requests queued at a port (with groups those for rows; loads have places of their own), and bursts in flight on
        it.
    row_groups
        Groups into which the requests for rows that wait at a port are put by their DRAM row (low bits of its number,
        below them the bank if the port has several); those of a group go to memory one after the other. A power of
        two; 1: all requests go in the order in which they come.
    banks, page_bytes
        Banks of the DRAM (a power of two from 1 to 16, no fewer than ports: port ``p`` has the banks that are ``p``
        modulo ``ports``), and bytes of a page of one of them (a power of two from 64 to 8192). Together they are the
        superblock, inside of which mapping classes move addresses.
    write_burst
        Lines of the longest write burst.
    write_batch
        Lines gathered before they are written, all of them together. Reads wait meanwhile, since a DRAM loses time
        whenever it turns from one to the other (unless CONTROL says ``mixed``). A quarter of ``vector_beats`` is
        enough while rows wait for the execute unit, or nothing is read. The memory for them has the next power
        of two that leaves room for what still comes: 2024 fill 2048 lines.
    """

    name: str = "ddr3"
    bus_bytes: int = 16
    lanes: int = 4
    ports: int = 8
    levels: int = 4
    address_bits: int = 40
    registers: int = 6
    sequential_loads: tuple[int, ...] = (2, 2, 2, 1)
    random_loads: tuple[int, ...] = (1, 1, 0, 0)
    alus: tuple[int, ...] = (2, 2, 1, 1)
    shifters: tuple[bool, ...] = (True, False, False, False)
    serial: tuple[bool, ...] = ()
    contexts: tuple[int, ...] = ()
    context_ahead: int = 2
    dealt_bundles: int = 0
    arguments: int = 32
    steps: int = 16
    callbacks: int = 16
    instructions: int = 64
    lengths: int = 8
    vector_registers: int = 8
    register_beats: int = 64
    binary16: int = 0
    bfloat16: int = 0
    quantised: int = 0
    preadder: int = 0
    two_pass: int = 0
    scalars: int = 0
    kept_beats: int = 0
    vector_beats: int = 512
    reorder_beats: int = 512
    token_depth: int = 256
    scalar_depth: int = 256
    store_address_depth: int = 64
    store_beats: int = 128
    lookahead_lines: int = 64
    lookahead_burst: int = 16
    random_outstanding: int = 16
    port_requests: int = 8
    port_outstanding: int = 16
    row_groups: int = 1
    banks: int = 8
    page_bytes: int = 2048
    write_burst: int = 16
    write_batch: int = 2024

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ValueError(
                f"name must be up to {LONGEST_NAME} letters, digits, '.', '-' and '_', not {shown(self.name)}"
            )
        for name, low, high in _RANGES:
            value = getattr(self, name)
            given = int(value) if name in FLAGS and isinstance(value, bool) else value
            self._set(name, _number(name, given, low, high))
        for name in _POWERS_OF_TWO:
            value = getattr(self, name)
            if value & (value - 1):
                raise ValueError(f"{name} must be a power of two, not {value!r}")
        for name, low, high in _PER_LEVEL:
            values = getattr(self, name)
            if name in ("contexts", "serial") and values in ((), []):
                values = (0,) * self.levels
            if not isinstance(values, tuple | list) or len(values) != self.levels:
                raise ValueError(f"{name} must have {self.levels} entries (one per level), not {shown(values)}")
            kind = (
                bool if name in ("shifters", "serial") else int
            )  # equal machines have equal hashes, so a field has one type
            entries = [int(value) if kind is bool and isinstance(value, bool) else value for value in values]
            self._set(name, tuple(kind(_number(f"{name} of a level", value, low, high)) for value in entries))
        self._check_relations()

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_relations(self) -> None:
        for level, loads in enumerate(zip(self.sequential_loads, self.random_loads, strict=True)):
            if sum(loads) > 4:
                raise ValueError(
                    f"sequential_loads and random_loads of level {level} must be at most 4 in all, not {loads}"
                )
        if self.store_beats < 2 * self.register_beats:
            least = 2 * self.register_beats
            raise ValueError(f"store_beats must be at least 2 * register_beats, {least}, not {self.store_beats!r}")
        if self.lookahead_lines < 2 * self.lookahead_burst:
            least = 2 * self.lookahead_burst
            raise ValueError(
                f"lookahead_lines must be at least 2 * lookahead_burst, {least}, not {self.lookahead_lines!r}"
            )
        if self.write_batch < self.write_burst:
            raise ValueError(f"write_batch must be at least write_burst, {self.write_burst}, not {self.write_batch!r}")
        self._check_execute_unit()
        self._check_contexts()
        self._check_scalars()
        if self.banks < self.ports:
            raise ValueError(f"banks must be at least the ports, {self.ports}, not {self.banks!r}")
        for name in ("vector_beats", "reorder_beats"):
            if getattr(self, name) < 2 * MAX_BURST:
                raise ValueError(f"{name} must be at least {2 * MAX_BURST}, not {getattr(self, name)!r}")

    def _check_execute_unit(self) -> None:
        for name, least in (("callbacks", 2), ("instructions", 4), ("lengths", 1)):
            value = getattr(self, name)
            if self.executes and value < least:
                raise ValueError(f"{name} must be at least {least} where instructions are not 0, not {value!r}")
        if self.quantised and not self.scalars:
            raise ValueError(f"scalars must be at least 1 with quantised, not {self.scalars!r}")
        for name in ("preadder", "two_pass"):
            if getattr(self, name) and (self.lanes < LEAST_AFFINE_LANES or not self.quantised):
                there = f"{self.lanes} lanes and quantised {self.quantised}"
                raise ValueError(
                    f"{name} must be 0 but with at least {LEAST_AFFINE_LANES} lanes and quantised, not with {there}"
                )
        if self.preadder and self.two_pass:
            raise ValueError("two_pass must be 0 with preadder, which adds the bias in the same pass, not 1")
        if self.rounds and self.lanes < 2:
            raise ValueError(f"lanes must be at least 2 with binary16 or bfloat16, not {self.lanes!r}")
        for name in ("callbacks", "lengths", "scalars", "kept_beats", *_OPTIONAL):
            value = getattr(self, name)
            if value and not self.executes:
                raise ValueError(f"{name} must be 0 without an execute unit (instructions is 0), not {value!r}")

    def _check_scalars(self) -> None:
        if self.scalars and self.context_beats * self.lanes < 2:
            raise ValueError(
                f"register_beats must give each context 2 elements if there are scalars, not {self.register_beats!r}"
            )
        if self.kept_beats == 1:
            raise ValueError("kept_beats must be 0 or at least 2, not 1")

    def _check_contexts(self) -> None:
        if any(contexts not in (0, 2, 4, MAX_CONTEXTS) for contexts in self.contexts):
            raise ValueError(f"contexts of a level must be 0, 2, 4 or {MAX_CONTEXTS}, not {self.contexts!r}")
        if sum(contexts > 0 for contexts in self.contexts) > 1:
            raise ValueError(f"contexts must be 0 in all levels but one, not {self.contexts!r}")
        level = self.context_level
        if self.dealt_bundles and (level is None or self.dealt_bundles < LEAST_DEALT):
            where = f"0, or at least {LEAST_DEALT} in a machine with contexts"
            raise ValueError(f"dealt_bundles must be {where}, not {self.dealt_bundles!r}")
        if level is None:
            return
        if self.register_beats < self.context_count:
            raise ValueError(
                f"register_beats must be at least the contexts, {self.context_count}, not {self.register_beats!r}"
            )
        if self.serial[level]:
            raise ValueError(f"serial must be false for level {level}, since it has contexts")
        if not self.sequential_loads[level]:
            raise ValueError(f"sequential_loads of level {level} must be at least 1, since it has contexts")

    @property
    def executes(self) -> bool:
        """There is an execute unit; without one a machine gathers rows and does nothing else with them."""
        return self.instructions > 0

    @property
    def length_fields(self) -> tuple[LengthField, ...]:
        """The types of rows that length registers can have, ELEMENTS first."""
        has = (1, self.binary16, self.bfloat16, self.bfloat16, *[self.quantised] * len(UNSIGNED), *[self.float8] * 2)
        return tuple(kind for kind, there in zip(LengthField, has, strict=True) if there)

    @property
    def float8(self) -> bool:
        """Rows can have numbers of 8 bits: what takes bytes off a row is there, and what makes binary32 of binary16."""
        return bool(self.quantised and self.binary16)

    @property
    def has_affine(self) -> bool:
        """The machine has AFFINE, by pre-adders or in two passes."""
        return bool(self.preadder or self.two_pass)

    @property
    def rounds(self) -> bool:
        """Rows can have elements of 16 bits, which are rounded where they are stored."""
        return bool(self.binary16 or self.bfloat16)

    @cached_property
    def place_bits(self) -> int:
        """The bits of an address below its mapping class: memory has at most ``1 << place_bits`` bytes."""
        return self.address_bits - MAPPING_BITS

    @property
    def lane_bytes(self) -> int:
        """Bytes of a beat of the execute unit, which fills all lanes."""
        return self.lanes * LANE.bytes

    @property
    def line_granules(self) -> int:
        """Granules of rows in a line."""
        return self.bus_bytes // ROW_GRANULE

    @property
    def line_steps(self) -> int:
        """Parts of a line of which each is stored or not."""
        return self.bus_bytes // STORE_STEP

    @property
    def is_serial(self) -> bool:
        """All levels are serial: a machine of few LUTs at a slow clock, without registers that only serve the clock."""
        return all(self.serial)

    @property
    def context_level(self) -> int | None:
        """The level that can interleave activations, if there is one."""
        return next((level for level, contexts in enumerate(self.contexts) if contexts), None)

    @property
    def context_count(self) -> int:
        """Activations that can be interleaved; 1 if no level can."""
        return max(1, *self.contexts)

    @property
    def accumulate_cycles(self) -> int:
        """Cycles between two additions to one element that run at full rate: rows of so many beats need no
        interleaving.
        """
        return 10 if self.preadder else 5

    @property
    def dealt_block(self) -> int:
        """Bundles by which the window moves in which the event unit deals: an eighth of their places."""
        return self.dealt_bundles // 8

    @property
    def context_beats(self) -> int:
        """Beats of a vector register that belong to one context."""
        return self.register_beats // self.context_count

    @property
    def rotating_registers(self) -> int:
        """Vector registers whose names can rotate: at most half of them, a power of two."""
        return 1 << (self.vector_registers // 2).bit_length() - 1

    @property
    def rotating_scalars(self) -> int:
        """Scalar registers whose names can rotate: at most half of them, a power of two."""
        return 1 << max(1, self.scalars // 2).bit_length() - 1

    @property
    def octets(self) -> bool:
        """Whether there are reductions of eight partial results, neighbours first: they fill beats of 4 or 8 lanes."""
        return bool(self.scalars) and self.lanes in (4, 8)

    @property
    def hash(self) -> int:
        """32 bits that tell this machine from any other.

        Of ``_OPTIONAL`` fields only those that are 1 count, so that machines without have the hash of old.
        """
        text = repr(sorted((k, v) for k, v in asdict(self).items() if k != "name" and (v or k not in _OPTIONAL)))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")

    @property
    def vl_max(self) -> int:
        """Most elements that one instruction can work on."""
        return self.register_beats * self.lanes

    @property
    def burst_lines(self) -> int:
        """Lines of the longest burst of a sequential load: ``lookahead_burst``, but no more than a page has."""
        return min(self.lookahead_burst, self.page_bytes // self.bus_bytes)

    @cached_property
    def superblock_bytes(self) -> int:
        """Bytes of a page in each bank; addresses are mapped inside of multiples of this."""
        return self.banks * self.page_bytes

    @staticmethod
    def preset(name: str) -> "Config":
        """The preset called ``name``; ValueError names those there are."""
        if name not in PRESETS:
            raise ValueError(f"configuration must be one of {', '.join(PRESETS)}, not {name!r}")
        return PRESETS[name]


def _number(name: str, value: object, low: int, high: int) -> int:
    """``value`` if it is a whole number from ``low`` to ``high``, else ValueError."""
    if not isinstance(value, SupportsIndex) or isinstance(value, bool) or not low <= value.__index__() <= high:
        raise ValueError(f"{name} must be from {low} to {high}, not {shown(value)}")
    return value.__index__()


_OPTIONAL = ("binary16", "bfloat16", "quantised", "preadder", "two_pass")
"""Types of rows, and what the lanes do with these at once."""

_NAME = re.compile(rf"[\w.-]{{1,{LONGEST_NAME}}}")

_RANGES = (
    ("bus_bytes", 8, 64), ("lanes", 1, 16), ("ports", 1, 16), ("levels", 1, MAX_LEVELS),
    ("address_bits", 32, MOST_ADDRESS_BITS), ("registers", 3, MAX_REGISTERS), ("arguments", 16, 32),
    ("steps", 2, 32), ("callbacks", 0, 64), ("instructions", 0, 64),
    ("lengths", 0, 8), ("vector_registers", 2, 16), ("register_beats", 4, 256), ("scalars", 0, 16),
    ("binary16", 0, 1), ("bfloat16", 0, 1), ("quantised", 0, 1), ("preadder", 0, 1), ("two_pass", 0, 1),
    ("kept_beats", 0, 4096), ("vector_beats", 2, 4096),
    ("reorder_beats", 2, 8192), ("token_depth", 2, 4096), ("scalar_depth", 2, 4096), ("store_address_depth",
    2, 4096), ("store_beats", 4, 4096), ("lookahead_lines", 2, 256), ("lookahead_burst", 1, MAX_BURST),
    ("random_outstanding", 2, 64), ("port_requests", 2, 256), ("port_outstanding", 2, 64), ("row_groups", 1, 256),
    ("context_ahead", 2, 4), ("dealt_bundles", 0, 1024), ("banks", 1, 16),
    ("page_bytes", SMALLEST_GRANULE, 8192), ("write_burst", 1, MAX_BURST),
    ("write_batch", 1, 4096),
)  # fmt: skip
FLAGS = frozenset(name for name, *ends in _RANGES if ends == [0, 1])
"""Fields that are 0 or 1, and may be given as False or True."""

_POWERS_OF_TWO = (
    "bus_bytes",
    "lanes",
    "ports",
    "register_beats",
    "vector_beats",
    "lookahead_lines",
    "lookahead_burst",
    "row_groups",
    "context_ahead",
    "dealt_bundles",
    "banks",
    "page_bytes",
)
_PER_LEVEL = (("sequential_loads", 0, 4), ("random_loads", 0, 4), ("alus", 0, 4), ("shifters", 0, 1),
              ("serial", 0, 1), ("contexts", 0, MAX_CONTEXTS))  # fmt: skip

_DDR3 = Config(serial=(True, False, False, True), contexts=(0, 0, 8, 0), dealt_bundles=512, scalars=16,
               kept_beats=256, token_depth=512, store_address_depth=128, lookahead_lines=128, port_requests=64,
               port_outstanding=32, row_groups=32)  # fmt: skip
PRESETS = {
    "ddr3": _DDR3,
    "edge": replace(
        _DDR3, name="edge", ports=2, vector_beats=64, reorder_beats=64, token_depth=16, scalar_depth=16,
        store_address_depth=16, register_beats=16, kept_beats=0, store_beats=32, lookahead_lines=16, lookahead_burst=4,
        random_outstanding=4, port_requests=4, port_outstanding=8, row_groups=1, write_burst=4, write_batch=488,
    ),
    "wide": replace(
        _DDR3, name="wide", bus_bytes=64, lanes=16, page_bytes=8192,
        context_ahead=4, token_depth=4096, store_address_depth=2048, write_batch=1000,
        vector_beats=1024, reorder_beats=1024, port_requests=128, row_groups=64,
    ),
    "hbm": replace(_DDR3, name="hbm", bus_bytes=32, lanes=8, banks=16, page_bytes=1024),
    "narrow16": replace(_DDR3, name="narrow16", lanes=16, binary16=1, bfloat16=1, quantised=1, preadder=1),
    "minimum": Config(
        name="minimum", bus_bytes=8, lanes=1, ports=1, levels=2, address_bits=32, registers=4, sequential_loads=(1, 1),
        random_loads=(1, 1), alus=(2, 1), shifters=(False, False), serial=(True, True), arguments=16, steps=2,
        callbacks=4, instructions=6, lengths=2, vector_registers=3, register_beats=4, vector_beats=32, reorder_beats=32,
        token_depth=2, scalar_depth=2, store_address_depth=2, store_beats=8, lookahead_lines=2, lookahead_burst=1,
        random_outstanding=2, port_requests=2, port_outstanding=2, write_burst=1, write_batch=8,
    ),
}  # fmt: skip
"""The named configurations: ``ddr3`` (16-byte bus, 8 ports, 512-beat budget), ``edge`` (2 ports, small queues),
``wide`` (64-byte bus, 16 lanes), ``narrow16`` (``ddr3`` with 16 lanes, and rows of narrow elements), ``hbm`` (``ddr3``
with a 32-byte bus and 8 lanes, for a pseudo-channel of HBM) and ``minimum`` (1 port, 1 lane on an 8-byte bus, 2 levels,
the shortest queues there can be, and of everything else just what embedding bags and gathers need; addresses of 32
bits).
"""
