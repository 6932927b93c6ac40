"""Which fault a launch's record tells of: the first one, from whatever unit, and where it happened."""

from typing import TYPE_CHECKING

from amaranth import Array, Cat, Module, Mux, Signal, Value

from daedal.hw.access_unit.nest_queue import NEST_BITS
from daedal.hw.interfaces import fault_layout
from daedal.hw.isa.launch import Cause
from daedal.hw.isa.launch import Queue as QueueName

if TYPE_CHECKING:
    from daedal.hw.core import Core


def catch_faults(m: Module, core: "Core") -> None:
    """The first fault of a launch is kept; of several in one cycle, the one furthest down the machine.

    A fault of the launch that is ahead waits until that is the present one; which unit had one first is known.
    """
    controller, loader = core.controller, core.loader
    core.fault, core.fault_nest = Signal(fault_layout(core.config)), Signal(NEST_BITS)
    caught, any_fault, found = Signal(), Signal(), Signal(fault_layout(core.config))
    early, faults = Signal(4), Signal(4)
    sides = (controller.execute_side, core.access.side, core.fabric.error_side, loader.side)
    reports = (core.execute.fault.valid, core.access.fault.valid, core.fabric.error,
               loader.misaligned | loader.illegal)  # fmt: skip
    for k, (report, side) in enumerate(zip(reports, sides, strict=True)):
        allowed = ~early.any() | early[k]
        m.d.comb += faults[k].eq(report & (side == controller.side) & ~(core.ahead & (k == 3)) & allowed)
        with m.If(report & ~early.any() & ~core.soft_reset):
            first = Cat(reports[:k]).any() if k else 0
            m.d.sync += early[k].eq((side != controller.side) & ~first)
    with m.If(core.soft_reset):
        m.d.sync += early.eq(0)
    m.d.comb += any_fault.eq(1)
    with m.If(core.store.fault.valid):
        m.d.comb += found.eq(core.store.fault.fault)
    with m.Elif(faults[0]):
        m.d.comb += found.eq(core.execute.fault.fault)
    with m.Elif(faults[1]):
        m.d.comb += found.eq(core.access.fault.fault)
    with m.Elif(faults[2]):
        m.d.comb += [found.cause.eq(Cause.MEMORY_ERROR), found.address.eq(core.fabric.error_address)]
    with m.Elif(faults[3] & loader.misaligned):
        m.d.comb += [found.cause.eq(Cause.ALIGNMENT), found.address.eq(loader.program)]
    with m.Elif(faults[3]):
        m.d.comb += [found.cause.eq(Cause.PROGRAM), found.value.eq(loader.word_number)]
    with m.Elif(core.watchdog.hang):
        m.d.comb += [found.cause.eq(Cause.HANG), found.queue.eq(_blocked_queue(core))]
    with m.Elif(core.watchdog.silent):
        m.d.comb += found.cause.eq(Cause.MEMORY_SILENT)
    with m.Else():
        m.d.comb += any_fault.eq(0)
    record_lost = Signal()
    m.d.comb += record_lost.eq(controller.record_phase & core.store.fault.valid)
    m.d.comb += controller.record_error.eq(record_lost)
    keep_fault(m, core, any_fault & (controller.running | record_lost), found, caught)
    m.d.comb += [controller.fault.eq(caught), core.port.cause.eq(core.fault.cause)]
    present = controller.side
    m.d.comb += [
        core.watchdog.running.eq(controller.running),
        core.watchdog.outstanding.eq(~core.fabric.idle.bit_select(present, 1) | ~core.store.quiet),
        core.watchdog.progress.eq(_progress(core)),
    ]


def keep_fault(m: Module, core: "Core", any_fault: Value, found: Signal, caught: Signal) -> None:
    """Keep it, with the nest; and the first warning, whose value is the record's unless there is a fault.

    A cycle after it was found: what tells of it comes late in a cycle, and what keeps it is large.
    """
    controller, access = core.controller, core.access
    nests = Array(Signal(NEST_BITS, name=f"nest{side}") for side in range(2))
    warned = [Signal(name=f"warned{side}") for side in range(2)]
    early_value, early_warning = Signal(64), Signal()
    late, late_found, late_nest = Signal(), Signal.like(found), Signal(NEST_BITS)
    m.d.sync += [late.eq(any_fault), late_found.eq(found), late_nest.eq(nests[controller.side])]
    with m.If(access.begins):
        m.d.sync += nests[access.side].eq(access.number)
    with m.If(access.warning & ~Array(warned)[access.side]):
        m.d.sync += Array(warned)[access.side].eq(1)
        with m.If(access.side != controller.side):
            m.d.comb += early_warning.eq(1)
            m.d.sync += early_value.eq(access.warned_value)
        with m.Elif(~caught):
            m.d.sync += core.fault.value.eq(access.warned_value)
    for side in range(2):
        with m.If(core.loader.begin & (core.loader.side != side)):
            m.d.sync += [nests[side].eq(0), warned[side].eq(0)]
            with m.If(side != controller.side):
                m.d.sync += early_value.eq(0)
    with m.If(core.soft_reset):  # the next launch begins on the present side
        m.d.sync += early_value.eq(0)
    with m.If(late & ~caught):
        m.d.sync += [caught.eq(1), core.fault.eq(late_found), core.fault_nest.eq(late_nest)]
    with m.If(controller.take | controller.clear_fault):
        m.d.sync += [caught.eq(0), core.fault.eq(0), core.fault_nest.eq(0)]
        with m.If(controller.cancel):  # a cancelled launch's record tells of no fault, but the machine has one
            m.d.sync += [caught.eq(1), core.fault.cause.eq(core.fault.cause)]
        with m.Elif(controller.take):
            m.d.sync += core.fault.value.eq(Mux(early_warning, access.warned_value, early_value))


def _progress(core: "Core") -> Value:
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
    asked = core.merge.o.valid & core.merge.o.ready & (core.merge.o.payload.tag.side == present)
    returned, sweeping = core.fabric.returns.valid, ~core.vectors.swept
    return (
        Cat(asked, returned, sweeping, core.store.acknowledged, core.store.line).any()
        | ((controller.execute_side == present) & Cat(*moved, core.execute.lane_beat).any())
        | ((access.side == present) & Cat(*sent).any())
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
