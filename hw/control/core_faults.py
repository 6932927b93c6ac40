"""Which fault a launch's record tells of: the first one, from whatever unit, and where it happened."""

from typing import TYPE_CHECKING

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data

from daedal.hw.access_unit.nest_queue import NEST_BITS
from daedal.hw.control.counters import any_of
from daedal.hw.isa.launch import Cause, RecordWord
from daedal.hw.isa.launch import Queue as QueueName

if TYPE_CHECKING:
    from daedal.hw.core import Core

SOURCES = ("store", "execute", "access", "fabric", "misaligned", "illegal")
"""What has words of a fault: units, and the loader in two cases."""


def catch_faults(m: Module, core: "Core") -> None:
    """The first fault of a launch is kept; of several in one cycle, the one furthest down the machine.

    A fault of the launch that is ahead waits until that is the present one; which unit had one first is known. Until
    then it is nothing to the present launch, which may still have one of its own.
    """
    controller, loader = core.controller, core.loader
    core.fault, core.fault_nest = Signal(found_layout()), Signal(NEST_BITS)
    caught, any_fault, found = Signal(), Signal(), Signal(found_layout())
    early, early_side, faults = Signal(4), Signal(), Signal(4)
    sides = (controller.execute_side, core.access.side, core.fabric.error_side, loader.side)
    reports = (core.execute.fault.valid, core.access.fault.valid, core.fabric.error,
               loader.misaligned | loader.illegal)  # fmt: skip
    for k, (report, side) in enumerate(zip(reports, sides, strict=True)):
        allowed = ~early.any() | early[k] | (early_side != controller.side)
        m.d.comb += faults[k].eq(report & (side == controller.side) & ~(core.ahead & (k == 3)) & allowed)
        with m.If(report & ~early.any() & ~core.soft_reset):
            first = Cat(reports[:k]).any() if k else 0
            m.d.sync += [early[k].eq((side != controller.side) & ~first), early_side.eq(~controller.side)]
    with m.If(core.soft_reset):
        m.d.sync += early.eq(0)
    store, execute, access = core.store.fault, core.execute.fault, core.access.fault
    blocked = Signal(QueueName)  # as it was a cycle ago: nothing has moved for long
    m.d.sync += blocked.eq(_blocked_queue(core))
    m.d.comb += any_fault.eq(1)
    with m.If(store.valid):
        m.d.comb += [
            found.sources.eq(_bit("store")),
            found.cause.eq(store.fault.cause),
            found.queue.eq(store.fault.queue),
        ]
    with m.Elif(faults[0]):
        m.d.comb += [
            found.sources.eq(_bit("execute")),
            found.cause.eq(execute.fault.cause),
            found.queue.eq(execute.fault.queue),
        ]
    with m.Elif(faults[1]):
        m.d.comb += [
            found.sources.eq(_bit("access")),
            found.cause.eq(access.fault.cause),
            found.queue.eq(access.fault.queue),
        ]
        m.d.comb += found.level.eq(access.fault.level)
    with m.Elif(faults[2]):
        m.d.comb += [found.sources.eq(_bit("fabric")), found.cause.eq(Cause.MEMORY_ERROR)]
    with m.Elif(faults[3] & loader.misaligned):
        m.d.comb += [found.sources.eq(_bit("misaligned")), found.cause.eq(Cause.ALIGNMENT)]
    with m.Elif(faults[3]):
        m.d.comb += [found.sources.eq(_bit("illegal")), found.cause.eq(Cause.PROGRAM)]
    with m.Elif(core.watchdog.hang):
        m.d.comb += [found.cause.eq(Cause.HANG), found.queue.eq(blocked)]
    with m.Elif(core.watchdog.silent):
        m.d.comb += found.cause.eq(Cause.MEMORY_SILENT)
    with m.Else():
        m.d.comb += any_fault.eq(0)
    record_lost = Signal()
    m.d.comb += record_lost.eq(controller.record_phase & core.store.fault.valid)
    m.d.comb += controller.record_error.eq(record_lost)
    keep_fault(m, core, any_fault & (controller.running | record_lost), found, caught)
    m.d.comb += [
        controller.fault.eq(caught),
        core.port.cause.eq(core.fault.cause),
        core.words.word.eq(_word(core, core.words.number)),
    ]
    present = controller.side
    m.d.comb += [
        core.watchdog.running.eq(controller.running),
        core.watchdog.outstanding.eq(~core.fabric.idle.bit_select(present, 1) | ~core.store.quiet),
    ]
    m.d.sync += core.watchdog.progress.eq(_progress(m, core))


def found_layout() -> data.StructLayout:
    """What is kept of a fault at once: ``sources`` has a bit for the one of ``SOURCES`` that has the rest."""
    return data.StructLayout({"cause": Cause, "level": 4, "queue": QueueName, "sources": len(SOURCES)})


def _bit(source: str) -> int:
    return 1 << SOURCES.index(source)


def _word(core: "Core", number: Value) -> Value:
    """The word ``number`` of the record, as the source of the fault has it."""
    loader, store, execute = core.loader, core.store.fault.fault, core.execute.fault.fault
    access = core.access.fault.fault
    words = [
        (RecordWord.VALUE.value, "store", store.value),
        (RecordWord.VALUE.value, "execute", execute.value),
        (RecordWord.VALUE.value, "access", access.value),
        (RecordWord.VALUE.value, "illegal", loader.word_number),
        (RecordWord.ADDRESS.value, "store", store.address),
        (RecordWord.ADDRESS.value, "access", access.address),
        (RecordWord.ADDRESS.value, "fabric", core.fabric.error_address),
        (RecordWord.ADDRESS.value, "misaligned", loader.program),
    ]
    words += [(RecordWord.REGISTER0.value + k, "access", access.registers[k]) for k in range(core.config.registers)]
    chosen = [((number == word) & core.fault.sources[SOURCES.index(source)], value) for word, source, value in words]
    return any_of([Mux(condition, value, 0) for condition, value in chosen])


def keep_fault(m: Module, core: "Core", any_fault: Value, found: Signal, caught: Signal) -> None:
    """Keep it, with the nest; its words are copied then. And the first warning of each side.

    A cycle after it was found: what tells of it comes late in a cycle.
    """
    controller, access, words = core.controller, core.access, core.words
    nests = Array(Signal(NEST_BITS, name=f"nest{side}") for side in range(2))
    late, late_found, late_nest = Signal(), Signal.like(found), Signal(NEST_BITS)
    m.d.sync += [late.eq(any_fault), late_found.eq(found), late_nest.eq(nests[controller.side])]
    with m.If(access.begins):
        m.d.sync += nests[access.side].eq(access.number)
    with m.If(core.loader.begin):
        m.d.sync += nests[~core.loader.side].eq(0)
    with m.If(late & ~caught):
        m.d.comb += words.copy.eq(1)
        m.d.sync += [caught.eq(1), core.fault.eq(late_found), core.fault_nest.eq(late_nest)]
    with m.If(core.taken | controller.clear_fault):
        m.d.comb += words.forget.eq(1)
        m.d.sync += [caught.eq(0), core.fault.eq(0), core.fault_nest.eq(0)]
        with m.If(controller.cancel):  # a cancelled launch's record tells of no fault, but the machine has one
            m.d.sync += [caught.eq(1), core.fault.cause.eq(core.fault.cause)]
    m.d.comb += [
        words.warning.eq(access.warning),
        words.warned_side.eq(access.side),
        words.warned_value.eq(access.warned_value),
        words.begin.eq(core.loader.begin),
        words.begin_side.eq(~core.loader.side),
        words.side.eq(controller.side),
    ]


def _progress(m: Module, core: "Core") -> Value:
    """Something of the present launch moved, or something that it may wait for.

    That is: lines of the next launch, whose look-ahead goes before the present one's rows and is bounded, and the sweep
    of the vector queues after a reset.
    """
    controller, access = core.controller, core.access
    present = controller.side
    moved = [
        stream_.valid & stream_.ready
        for stream_ in (core.token, core.scalar, core.address, *core.rows, core.rows_to_store)
    ]
    sent = [access.bundle, *(q.i.valid & q.i.ready for q in (core.tokens, core.scalars, core.addresses))]
    # As it was a cycle ago: that something is taken or sent is known late in a cycle.
    late_moved, late_sent = Signal(len(moved)), Signal(len(sent))
    m.d.sync += [late_moved.eq(Cat(moved)), late_sent.eq(Cat(sent))]
    asked = core.merge.o.valid & core.merge.o.ready & (core.merge.o.payload.tag.side == present)
    returned, sweeping = core.fabric.returns.valid, ~core.vectors.swept
    return (
        Cat(asked, returned, sweeping, core.store.acknowledged, core.store.line).any()
        | ((controller.execute_side == present) & Cat(late_moved, core.execute.lane_beat).any())
        | ((access.side == present) & late_sent.any())
        | ((core.loader.side == present) & core.loader.config_bus.valid)
    )


def _blocked_queue(core: "Core") -> Value:
    """The queue a hang is blamed on: first one that a unit waits for in vain, then one that nobody
    empties.
    """
    execute = core.execute
    blocked: Value = Value.cast(QueueName.NONE.value)
    waits_for_data = core.address.valid | ~core.store.idle
    candidates = [
        (core.rows[0].valid, QueueName.VECTOR0),
        (core.rows[1].valid, QueueName.VECTOR1),
        (core.scalar.valid, QueueName.SCALAR),
        (core.rows_to_store.valid, QueueName.STORE_DATA),
        (core.rows[2].valid, QueueName.STREAM),
        (waits_for_data, QueueName.STORE_DATA),
        (execute.stall_scalar_empty, QueueName.SCALAR),
        (
            execute.stall_vector_empty,
            Mux(execute.awaits_vector0, QueueName.VECTOR0.value, QueueName.VECTOR1.value),
        ),
    ]
    for condition, name in candidates:
        blocked = Mux(condition, name if isinstance(name, Value) else name.value, blocked)
    return blocked
