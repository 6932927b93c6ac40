"""Goes through the steps of each bundle, one per cycle."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect

from daedal.hw.access_unit.events.bundle_store import UNSETTLED, bundle_entries, entry_bits
from daedal.hw.access_unit.events.event_select import STEP_BITS, EventSelect, EventWords, RunSelect, judged_layout
from daedal.hw.config.core import Config
from daedal.hw.interfaces import ConfigBus, bundle_layout, context_bits
from daedal.hw.isa.launch import Cause
from daedal.hw.queues.credit_counter import CreditCounter
from daedal.hw.queues.fifo import Fifo


def step_layout(config: Config) -> data.StructLayout:
    """Step ``number`` to be done with the registers of ``entry``, for an event of ``level``; or, with a ``cause``, a
    fault there.
    """
    return data.StructLayout(
        {
            "number": STEP_BITS,
            "level": 3,
            "entry": entry_bits(config),
            "cause": Cause,
            "context": context_bits(config),
        }
    )


class StepSequencer(wiring.Component):
    """Steps of all bundles in the order of the contract.

    One step per cycle; a bundle without steps takes one cycle. A poisoned bundle becomes a step with its cause.
    Latency from bundle to step: 6 cycles. Bundles wait in a queue once they are judged, so whether one can come is
    known from a register.

    Members
    -------
    config_bus : ``In(ConfigBus())``
    i : ``In(stream.Signature(bundle_layout(config)))``
        Bundles; their registers are for ``BundleStore``.
    stop : ``In(1)``
        Go on to no other bundle.
    o : ``Out(stream.Signature(step_layout(config)))``
    empty : ``Out(1)``
        No bundle inside.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "config_bus": In(ConfigBus()),
                "i": In(stream.Signature(bundle_layout(config))),
                "stop": In(1),
                "o": Out(stream.Signature(step_layout(config))),
                "empty": Out(1),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.words = words = EventWords(self._config)
        m.submodules.select = select = EventSelect(self._config)
        m.submodules.next = following = RunSelect(self._config)
        connect(m, wiring.flipped(self.config_bus), words.config_bus)
        depth = bundle_entries(self._config)
        m.submodules.judged = judged = Fifo(judged_layout(self._config), depth=depth)
        m.submodules.credits = credits = CreditCounter(depth - UNSETTLED)
        m.d.comb += [
            self.i.ready.eq(credits.free),
            select.valid.eq(self.i.valid & self.i.ready),
            select.i.eq(self.i.payload),
            judged.i.valid.eq(select.o_valid),
            judged.i.payload.eq(select.o),
            credits.take.eq(select.valid),
            credits.give.eq(judged.o.valid & judged.o.ready),
        ]
        left, rest, final = Signal(4), Signal.like(following.marked), Signal(init=1)
        for number, word in enumerate(words.words):
            m.d.comb += [select.words[number].eq(word), following.words[number].eq(word)]
        m.d.comb += [
            following.marked.eq(rest),
            self.empty.eq(select.empty & (judged.level == 0) & ~self.o.valid),
        ]
        self._step(m, judged.o, following, left, rest, final)
        return m

    def _step(
        self, m: Module, judged: stream.Interface, following: RunSelect, left: Signal, rest: Signal, final: Signal
    ) -> None:
        """``left`` steps of this event, ``rest`` of the events; ``final``: the last step of the bundle, if any."""
        step, new = self.o.payload, judged.payload
        entry = Signal.like(step.entry)
        m.d.comb += judged.ready.eq(final & (~self.o.valid | self.o.ready) & ~self.stop)
        with m.If(judged.valid & judged.ready):
            m.d.sync += entry.eq(entry + 1)
        with m.If(~self.o.valid | self.o.ready):
            with m.If(~final & (left > 1)):
                m.d.sync += [
                    left.eq(left - 1), step.number.eq(step.number + 1), final.eq((left == 2) & ~rest.any())
                ]  # fmt: skip
            with m.Elif(~final):
                run = following.run
                m.d.sync += [
                    left.eq(run.count), step.number.eq(run.first), step.level.eq(run.level), rest.eq(run.rest),
                    final.eq((run.count == 1) & ~run.rest.any()),
                ]  # fmt: skip
            with m.Else():
                comes = judged.valid & ~self.stop
                m.d.sync += [
                    final.eq(~(comes & new.some) | ((new.run.count == 1) & ~new.run.rest.any())),
                    self.o.valid.eq(comes & (new.some | new.poisoned)),
                    left.eq(new.run.count),
                    rest.eq(new.run.rest),
                    step.number.eq(new.run.first),
                    step.level.eq(new.run.level),
                    step.entry.eq(entry),
                    step.cause.eq(new.cause),
                    step.context.eq(new.context),
                ]
                with m.If(new.poisoned):
                    m.d.sync += step.level.eq(new.fault_level)
