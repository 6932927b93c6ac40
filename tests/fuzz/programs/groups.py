"""Groups of steps: what brings a callback all that it pops, or copies a row by the store stream.

The rules of docs/machine/machine.md on deadlock: what a callback pops is pushed in the order of its pops, after its
token, so the execute unit never waits for something that comes later. What is pushed before the token must fit the
queues.
"""

from dataclasses import dataclass, field
from typing import Any

from daedal.hw.config.core import Config
from daedal.hw.isa.address_mapping import CLASSES, COPIED, PLAIN, in_class
from daedal.hw.isa.elements import ROW_GRANULE, STORE_STEP
from daedal.hw.isa.program import Word
from daedal.hw.isa.words import INDEX_BITS, PITCH_BITS, VALUE_BITS, FetchQueue, StepField
from tests.fuzz.programs.callbacks import Callback, row_beats
from tests.fuzz.programs.dice import Dice
from tests.fuzz.programs.image import OUT, OUT_END, TABLE, TABLE_END
from tests.fuzz.programs.levels import Known

SCALAR, STORE, TOKEN, ROW = range(4)
"""What a step pushes, in its order."""

HIGHEST_INDEX = 40


@dataclass(frozen=True)
class Push:
    """Something to push; for rows and stores, where to and how many bytes."""

    kind: int
    size: int = 0
    queue: FetchQueue = FetchQueue.STORE
    stream: bool = False
    token: Callback | None = None


@dataclass
class Step:
    """A step while it is made."""

    members: dict[str, Any] = field(default_factory=dict)
    constants: dict[StepField, int] = field(default_factory=dict)


@dataclass
class Group:
    """Consecutive steps, to be done together or not at all; ``beats`` are moved each time."""

    steps: list[Step]
    beats: int


class GroupMaker:
    """Makes groups whose operands come from registers of which ``known`` holds."""

    def __init__(self, dice: Dice, known: Known) -> None:
        self.dice, self.known, self.config = dice, known, dice.config
        self.read: tuple[Step, int] | None = None
        """The step that fetches a row of the output for what is being made, and the row's bytes."""

    def for_callback(self, callback: Callback) -> Group:
        """The steps of one run of a callback."""
        pushes = self.in_order(callback)
        fitting = [k for k in range(len(pushes) + 1) if k == 0 or fits(self.config, pushes[:k])]
        at = self.dice.pick(fitting) if self.dice.chance(0.6) else 0
        pushes.insert(at, Push(TOKEN, token=callback))
        return Group(self.pack(pushes), max(1, callback.beats))

    def in_order(self, callback: Callback) -> list[Push]:
        """What a callback pops, in that order."""
        pushes = []
        for pop in callback.pops:
            size = pop.bytes
            pushes += [Push(SCALAR)] if pop.scalar else []
            queues = self.dice.shuffle(list(pop.queues))
            pushes += [Push(ROW, whole(pop.row_bytes(queue)), FetchQueue(queue)) for queue in queues]
            pushes += [Push(STORE, size)] if pop.store else []
        return pushes

    def stream(self, longest: int) -> Group:
        """The steps of a row copied by the store stream; it may be longer than the queue."""
        dice, bus = self.dice, self.config.bus_bytes
        few = dice.pick([4, dice.pick(dice.sizes), bus, 2 * bus, bus + 4, bus - 4, 4 * dice.between(1, 64)])
        few -= dice.pick([0, 0, few % ROW_GRANULE or STORE_STEP])
        size = max(STORE_STEP, min(longest, dice.pick([few, few, few, STORE_STEP * dice.between(1, longest // 2)])))
        address, row = Push(STORE, size, stream=True), Push(ROW, whole(size))
        before = dice.chance(0.2) and fits(self.config, [row])
        return Group(self.pack([row, address] if before else [address, row]), row_beats(self.config, size))

    def pack(self, pushes: list[Push]) -> list[Step]:
        """Steps that make these pushes in this order."""
        self.read = None
        steps, highest = [Step()], -1
        for push in pushes:
            if push.kind <= highest or self.dice.chance(0.1):
                steps.append(Step())
            highest = push.kind
            self.put(steps[-1], push)
        return steps

    def put(self, step: Step, push: Push) -> None:
        dice = self.dice
        if push.kind == SCALAR:
            source = dice.register() if dice.chance(0.7) else 0
            step.members |= {"scalar_enable": 1, "scalar": source}
            step.constants[StepField.SCALAR] = dice.pick([dice.below(1 << VALUE_BITS), dice.below(9), 0x3F800000])
        elif push.kind == TOKEN and push.token:
            tokens = push.token.tokens
            registers = self.known.within(tokens[0], tokens[-1])
            source = dice.pick(registers) if registers and dice.chance(0.7) else 0
            step.members |= {"token_enable": 1, "token": source}
            step.constants[StepField.TOKEN] = dice.pick(tokens)
        elif push.kind == STORE:
            if self.read is None or push.size > self.read[1] or dice.chance(0.2):
                self.place(step, "store", OUT, OUT_END, push.size, STORE_STEP, 0)
            else:  # where a row was read
                for name in ("base", "index", "pitch"):
                    step.members[f"store_{name}"] = self.read[0].members[f"fetch_{name}"]
                    step.constants[StepField[f"STORE_{name.upper()}"]] = self.read[0].constants[
                        StepField[f"FETCH_{name.upper()}"]
                    ]
                step.members["store_size"], step.constants[StepField.STORE_SIZE] = 0, push.size
            step.members |= {"store_enable": 1, "stream": int(push.stream)}
        else:
            bus = self.config.bus_bytes
            align, offset, last = bus, 0, (push.size - 1) % bus + 1
            if dice.chance(0.5):
                align = 1 << (last - 1).bit_length()
            elif dice.chance(0.7):
                offset = 4 * dice.between(0, (bus - last) // 4)
            updates = dice.updates and dice.chance(0.6)
            self.place(step, "fetch", *((OUT, OUT_END) if updates else (TABLE, TABLE_END)), push.size, align, offset)
            self.read = (step, push.size) if updates else self.read
            step.members |= {"fetch_enable": 1, "queue": push.queue}

    def place(self, step: Step, row: str, low: int, high: int, size: int, align: int, offset: int) -> None:
        """Operands of an address in [low, high) that is ``offset`` above a multiple of ``align``.

        Of any mapping class where whole superblocks are there; of several classes rows only name the same memory. The
        table's pages differ, so rows are not fetched from copies.
        """
        dice, mapping = self.dice, PLAIN
        first_whole, last_whole = (at // self.config.superblock_bytes for at in (low - 1, high))
        whole = (first_whole + 1) * self.config.superblock_bytes, last_whole * self.config.superblock_bytes
        if whole[1] - whole[0] >= size + offset + align and dice.chance(0.6):
            (low, high), mapping = whole, dice.below(CLASSES if row == "store" else COPIED)
        room = (high - low - size - offset) // align
        sources = dict.fromkeys(("base", "index", "pitch", "size"), 0)
        listed = self.known.within(0, HIGHEST_INDEX)
        sources["index"] = dice.pick(listed) if listed and dice.chance(0.8) else 0
        if sources["index"]:
            known = self.known.of(sources["index"])
            first, last, index = known.low, known.high, dice.below(1 << VALUE_BITS)
        else:
            index = dice.pick([dice.below(8), dice.below(1 << INDEX_BITS), dice.below(1 << VALUE_BITS)])
            first = last = index % (1 << INDEX_BITS)
        most = room if last == first else room // (last - first)
        pitch = align * dice.between(0, min(most, (1 << PITCH_BITS) // align - 1))
        pitch = min(pitch, align * (-(-size // align))) if dice.chance(0.5) else pitch
        pitches = [r for r in range(1, self.config.registers + 1) if self.pitch(r, align, most)]
        if pitches and dice.chance(0.5):
            sources["pitch"] = dice.pick(pitches)
            pitch = self.known.of(sources["pitch"]).low
        spread = pitch * (last - first)
        free = (high - low - size - offset - spread) // align
        base = in_class(0, mapping, dice.config) + low + offset + align * dice.between(0, free) - first * pitch
        base_registers = [
            r for r in self.known.within(low + offset - first * pitch, high - size - spread - first * pitch)
            if (self.known.of(r).align >= align and not offset)
        ]  # fmt: skip
        if base_registers and dice.chance(0.6):
            sources["base"], base = dice.pick(base_registers), dice.below(1 << VALUE_BITS)
        sizes = self.known.within(size, size)
        if sizes and dice.chance(0.5):
            sources["size"] = dice.pick(sizes)
        junk = dice.below(1 << 16)
        values = {"base": base, "index": index, "pitch": pitch | junk << PITCH_BITS, "size": size | junk << 20}
        for name, value in values.items():
            step.constants[StepField[f"{row}_{name}".upper()]] = value
            step.members[f"{row}_{name}"] = sources[name]

    def pitch(self, register: int, align: int, most: int) -> bool:
        """Whether a register holds one value that can be a pitch: a multiple of ``align``, not above ``most`` of it."""
        known = self.known.of(register)
        return known.single and 0 <= known.low <= most * align < 1 << PITCH_BITS and known.low % align == 0


def whole(size: int) -> int:
    """Bytes of the granules of a row of so many bytes: what is fetched of it."""
    return -(-size // ROW_GRANULE) * ROW_GRANULE


def fits(config: Config, pushes: list[Push]) -> bool:
    """Whether the queues can hold all of this before anything is popped."""
    rows = [push for push in pushes if push.kind == ROW]
    beats = [sum(row_beats(config, row.size) for row in rows if row.queue is queue) for queue in FetchQueue]
    return (
        sum(push.kind == SCALAR for push in pushes) <= config.scalar_depth
        and sum(push.kind == STORE for push in pushes) <= config.store_address_depth
        and max(beats) <= config.vector_beats
        and sum(beats) <= config.reorder_beats
    )


def words(dice: Dice, number: int, step: Step) -> list[Word]:
    """The words of a step."""
    control = dice.packed(StepField.CONTROL, number, **step.members)
    return [control, *(dice.constant(name, number, value) for name, value in step.constants.items())]
