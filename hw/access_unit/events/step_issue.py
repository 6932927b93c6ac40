"""The end of the event unit: enqueues what steps enqueue, and raises faults."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.access_unit.events.bundle_store import entry_bits
from daedal.hw.access_unit.events.row_fetch import row_layout
from daedal.hw.access_unit.events.step_pipeline import STAGES, resolved_layout
from daedal.hw.config.core import Config
from daedal.hw.interfaces import FaultPort, scalar_layout, store_address_layout, token_layout
from daedal.hw.isa.launch import Cause, Queue
from daedal.hw.isa.words import FetchQueue
from daedal.hw.lib.below import below
from daedal.hw.lib.ladder import climb, rungs
from daedal.hw.queues.fifo import Fifo

OUTPUTS = ("scalar", "store", "token", "fetch")


def landing(config: Config) -> tuple[int, int]:
    """Entries of each output's queue, and steps that may still come after ``room`` has fallen.

    A distributed RAM has no fewer than 16 entries; steps that come one at a time do with two registers.
    """
    return (2, 1) if config.is_serial else (16, STAGES + 1)


class StepIssue(wiring.Component):
    """Does a step in the cycle in which it comes, and stops for ever at a fault.

    Nothing waits here: ``room`` says ahead of time whether all queues have places for the steps on their way, so no
    ``ready`` of a queue reaches the stages before this one.

    Members
    -------
    valid, i : ``In(1)``, ``In(resolved_layout(config))``
    room : ``Out(1)``
        Another step may be sent on its way here; registered.
    scalars, store_addresses, tokens : output streams, registered
    rows : ``Out(stream.Signature(row_layout(config)))``
        The queue behind must be empty for a fault to be raised: ``rows_empty``.
    order_values, check_value : ``In(64).array(levels)``, ``In(64)``
        VALUE of a bundle that a level poisoned, by its bounds' order or by its check. The latter is that of level
        ``fault.fault.level``, a cycle later.
    halt : ``In(1)``
        Do no further step.
    stopped, entry : ``Out(1)``, ``Out(entry_bits(config))``
        A step was faulty, and its entry.
    registers : ``In(ArrayLayout(address_bits, registers))``
        Those of ``entry``, a cycle later.
    fault : ``Out(FaultPort(config))``
    empty : ``Out(1)``
        All that was enqueued has been taken, and there was no fault.
    row, token : ``Out(1)``
        Strobes for counters: a row or token sent.
    scalar_full, store_full, token_full : ``Out(1)``
        Why there is no ``room``: the first queue without; all 0 if that is the one of rows.
    """

    def __init__(self, config: Config) -> None:
        strobes = ("row", "token", "scalar_full", "store_full", "token_full")
        super().__init__(
            {
                "valid": In(1),
                "i": In(resolved_layout(config)),
                "room": Out(1),
                "scalars": Out(stream.Signature(scalar_layout(config))),
                "store_addresses": Out(stream.Signature(store_address_layout(config))),
                "tokens": Out(stream.Signature(token_layout())),
                "rows": Out(stream.Signature(row_layout(config))),
                "rows_empty": In(1),
                "order_values": In(64).array(config.levels),
                "check_value": In(64),
                "halt": In(1),
                "stopped": Out(1),
                "entry": Out(entry_bits(config)),
                "registers": In(data.ArrayLayout(config.address_bits, config.registers)),
                "fault": Out(FaultPort(config)),
                "empty": Out(1),
                **{name: Out(1) for name in strobes},
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        step, stopped, faulty, go, idle = self.i, self.stopped, Signal(), Signal(), Signal()
        queues = self._queues(m, idle)
        wanted = self._wanted(m, step, faulty)
        m.d.comb += [
            *(queues[name].i.valid.eq(go & wanted[name]) for name in OUTPUTS),
            go.eq(self.valid & ~stopped & ~self.halt),
            self.row.eq(go & wanted["fetch"]),
            self.token.eq(go & wanted["token"]),
            self.empty.eq(idle & ~stopped),
        ]
        self._rooms(m, queues, stopped)
        self._payloads(m, step, queues)
        poisoned = Signal()
        # What is kept is of the latest step, which is the faulty one behind it: only the stop waits for what is wrong.
        with m.If(~stopped):
            m.d.sync += [poisoned.eq(step.cause != Cause.NONE), *self._fault(step, wanted["store_bad"])]
        with m.If(go & faulty):
            m.d.sync += stopped.eq(1)
        settled = Signal()  # the check's value is that of the fault's level
        m.d.sync += settled.eq(stopped)
        fault = self.fault.fault
        levels = [fault.level == number for number in range(len(self.order_values))]
        level_steps = Signal.like(rungs(levels))
        m.d.sync += level_steps.eq(rungs(levels))
        m.d.comb += fault.registers.eq(self.registers)
        with m.If(settled & idle & self.rows_empty & ~self.fault.valid):
            m.d.sync += self.fault.valid.eq(1)
            with m.If(poisoned & (fault.cause == Cause.BOUNDS_ORDER)):
                m.d.sync += fault.value.eq(climb(list(self.order_values), level_steps))
            with m.Elif(poisoned):
                m.d.sync += fault.value.eq(self.check_value)
        return m

    def _queues(self, m: Module, idle: Signal) -> dict[str, Any]:
        config = self._config
        layouts = {"scalar": scalar_layout(config), "store": store_address_layout(config), "token": token_layout(),
                   "fetch": row_layout(config)}  # fmt: skip
        outputs = (self.scalars, self.store_addresses, self.tokens, self.rows)
        queues = {}
        for (name, layout), output in zip(layouts.items(), outputs, strict=True):
            m.submodules[f"{name}_queue"] = queues[name] = queue = Fifo(layout, depth=landing(config)[0])
            connect(m, queue.o, flipped(output))
        m.d.comb += idle.eq(Cat(queue.level != 0 for queue in queues.values()).any() == 0)
        return queues

    def _rooms(self, m: Module, queues: dict[str, Any], stopped: Any) -> None:
        """``room`` in a register: a queue that has it now has a place for each step that comes without knowing."""
        entries, in_flight = landing(self._config)
        full = [Signal(name=f"{name}_is_full") for name in OUTPUTS]
        for flag, name in zip(full, OUTPUTS, strict=True):
            m.d.comb += flag.eq(~below(queues[name].level, entries - in_flight))
        m.d.sync += self.room.eq(~Cat(full).any() & ~stopped & ~self.halt)
        for number, name in enumerate(OUTPUTS[:-1]):
            m.d.sync += getattr(self, f"{name}_full").eq(full[number] & ~Cat(full[:number]).any())

    def _wanted(self, m: Module, step: Any, faulty: Signal) -> dict[str, Signal]:
        """What this step enqueues: all of it, or what comes before its fault."""
        wanted = {name: Signal(name=f"wants_{name}") for name in (*OUTPUTS, "store_bad", "fetch_bad")}
        clean = step.cause == Cause.NONE
        m.d.comb += [
            wanted["store_bad"].eq(clean & step.store.enable & step.store.bad),
            wanted["fetch_bad"].eq(clean & step.fetch.enable & step.fetch.bad),
            wanted["scalar"].eq(clean & step.scalar_enable),
            wanted["store"].eq(clean & step.store.enable & ~wanted["store_bad"]),
            wanted["token"].eq(clean & step.token_enable & ~wanted["store_bad"]),
            wanted["fetch"].eq(clean & step.fetch.enable & ~wanted["store_bad"] & ~wanted["fetch_bad"]),
            faulty.eq(~clean | wanted["store_bad"] | wanted["fetch_bad"]),
        ]
        return wanted

    def _payloads(self, m: Module, step: Any, queues: dict[str, Any]) -> None:
        inputs = {name: queue.i for name, queue in queues.items()}
        store, row = inputs["store"].payload, inputs["fetch"].payload
        m.d.comb += [
            inputs["scalar"].payload.value.eq(step.scalar),
            store.address.eq(step.store.address),
            store.size.eq(step.store.size),
            store.stream.eq(step.stream),
            inputs["token"].payload.callback.eq(step.token),
            inputs["token"].payload.context.eq(step.context),
            row.queue.eq(step.queue),
            row.address.eq(step.fetch.address),
            row.size.eq(step.fetch.size),
        ]

    def _fault(self, step: Any, store_bad: Signal) -> list[Any]:
        """All of a fault but the value of a poisoned bundle, which comes later."""
        fault = self.fault.fault
        clean = step.cause == Cause.NONE
        rows = {FetchQueue.VECTOR0: Queue.VECTOR0, FetchQueue.VECTOR1: Queue.VECTOR1}
        queue: Any = Queue.STREAM
        for fetch_queue, name in rows.items():
            queue = Mux(step.queue == fetch_queue, name, queue)
        return [
            fault.cause.eq(Mux(clean, Cause.ALIGNMENT, step.cause)),
            fault.level.eq(step.level),
            fault.queue.eq(Mux(clean, Mux(store_bad, Queue.STORE_ADDRESS, queue), Queue.NONE)),
            fault.value.eq(Mux(store_bad, step.store.size, step.fetch.size)),
            fault.address.eq(Mux(clean, Mux(store_bad, step.store.address, step.fetch.address), 0)),
            self.entry.eq(step.entry),
        ]
