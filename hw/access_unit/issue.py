"""The end of the event unit: enqueues what steps enqueue, and raises faults."""

from typing import Any

from amaranth.hdl import Array, Elaboratable, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.access_unit.row_fetch import row_layout
from daedal.hw.access_unit.step_pipeline import resolved_layout
from daedal.hw.config import Config
from daedal.hw.interfaces import FaultPort, scalar_layout, store_address_layout, token_layout
from daedal.hw.isa.launch import Cause
from daedal.hw.isa.launch import Queue as QueueName
from daedal.hw.isa.program_words import FetchQueue
from daedal.hw.queues.queue import Queue

OUTPUTS = ("scalar", "store", "token", "fetch")


class Issue(wiring.Component):
    """Does a step in one cycle, as soon as all queues it needs have room; stops for ever at a fault.

    Members
    -------
    i : ``In(stream.Signature(resolved_layout(config)))``
    scalars, store_addresses, tokens : output streams, registered
    rows : ``Out(stream.Signature(row_layout()))``
        The queue behind must be empty for a fault to be raised: ``rows_empty``.
    order_values, check_value : ``In(64).array(levels)``, ``In(64)``
        VALUE of a bundle that a level poisoned, by its bounds' order or by its check. The latter is that of level
        ``i.payload.level``, a cycle later.
    halt : ``In(1)``
        Do no further step.
    fault : ``Out(FaultPort(config))``
    empty : ``Out(1)``
        All that was enqueued has been taken.
    row, token, scalar_full, store_full, token_full : ``Out(1)``
        Strobes for counters: a row or token sent; a step waits for room in that queue.
    """

    def __init__(self, config: Config) -> None:
        strobes = ("row", "token", "scalar_full", "store_full", "token_full")
        super().__init__(
            {
                "i": In(stream.Signature(resolved_layout(config))),
                "scalars": Out(stream.Signature(scalar_layout())),
                "store_addresses": Out(stream.Signature(store_address_layout())),
                "tokens": Out(stream.Signature(token_layout())),
                "rows": Out(stream.Signature(row_layout())),
                "rows_empty": In(1),
                "order_values": In(64).array(config.levels),
                "check_value": In(64),
                "halt": In(1),
                "fault": Out(FaultPort(config)),
                "empty": Out(1),
                **{name: Out(1) for name in strobes},
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        step, faulty, stopped = self.i.payload, Signal(), Signal()
        inputs = self._queues(m)
        wanted = self._wanted(m, step, faulty)
        ready, go = Signal(len(OUTPUTS)), Signal()
        for number, name in enumerate(OUTPUTS):
            m.d.comb += [
                ready[number].eq(~wanted[name] | inputs[name].ready),
                inputs[name].valid.eq(go & wanted[name]),
            ]
        m.d.comb += [
            go.eq(self.i.valid & ready.all() & ~stopped & ~self.halt),
            self.i.ready.eq(go & ~faulty),
            self.row.eq(go & wanted["fetch"]),
            self.token.eq(go & wanted["token"]),
        ]
        waiting = self.i.valid & ~stopped
        for number, name in enumerate(OUTPUTS[:-1]):
            m.d.comb += getattr(self, f"{name}_full").eq(waiting & ~ready[number] & ready[:number].all())
        self._payloads(m, step, inputs)
        with m.If(go & faulty):
            m.d.sync += stopped.eq(1)
        with m.If(stopped & self.empty & self.rows_empty & ~self.fault.valid):
            m.d.sync += [self.fault.valid.eq(1), *self._fault(step, wanted["store_bad"])]
        return m

    def _queues(self, m: Module) -> dict[str, Any]:
        """Two places at each output, so that no ready of one queue reaches another queue's valid."""
        m.submodules.scalar_queue = scalars = Queue(scalar_layout(), depth=2)
        m.submodules.store_queue = stores = Queue(store_address_layout(), depth=2)
        m.submodules.token_queue = tokens = Queue(token_layout(), depth=2)
        connect(m, scalars.o, flipped(self.scalars))
        connect(m, stores.o, flipped(self.store_addresses))
        connect(m, tokens.o, flipped(self.tokens))
        m.d.comb += self.empty.eq((scalars.level == 0) & (stores.level == 0) & (tokens.level == 0))
        return {"scalar": scalars.i, "store": stores.i, "token": tokens.i, "fetch": flipped(self.rows)}

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

    def _payloads(self, m: Module, step: Any, inputs: dict[str, Any]) -> None:
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
        fault = self.fault.fault
        clean = step.cause == Cause.NONE
        poison = Mux(
            step.cause == Cause.BOUNDS_ORDER,
            Array(self.order_values)[step.level],
            self.check_value,
        )
        rows = {FetchQueue.VECTOR0: QueueName.VECTOR0, FetchQueue.VECTOR1: QueueName.VECTOR1}
        queue: Any = QueueName.STREAM
        for fetch_queue, name in rows.items():
            queue = Mux(step.queue == fetch_queue, name, queue)
        return [
            fault.cause.eq(Mux(clean, Cause.ALIGNMENT, step.cause)),
            fault.level.eq(step.level),
            fault.queue.eq(Mux(clean, Mux(store_bad, QueueName.STORE_ADDRESS, queue), QueueName.NONE)),
            fault.value.eq(Mux(clean, Mux(store_bad, step.store.size, step.fetch.size), poison)),
            fault.address.eq(Mux(clean, Mux(store_bad, step.store.address, step.fetch.address), 0)),
            fault.registers.eq(step.registers),
        ]
