"""Goes through the steps of each bundle, one per cycle."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect

from daedal.hw.access_unit.events.bundle_dealer import make_dealer
from daedal.hw.access_unit.events.bundle_queue import BundleQueue
from daedal.hw.access_unit.events.bundle_store import entry_bits
from daedal.hw.access_unit.events.event_select import STEP_BITS, EventSelect, EventWords, RunSelect
from daedal.hw.config.core import Config
from daedal.hw.interfaces import ConfigBus, bundle_layout, context_bits
from daedal.hw.isa.launch import Cause


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
    Latency from bundle to step: 6 cycles, 7 if bundles can be dealt. They wait once they are judged, so whether one can
    come is known from registers.

    Members
    -------
    config_bus : ``In(ConfigBus())``
    i : ``In(stream.Signature(bundle_layout(config)))``
        Bundles; their registers are for ``BundleStore``.
    i_entry : ``Out(entry_bits(config))``
        The entry there of the bundle that comes.
    deal : ``In(1)``
        Bundles are dealt to contexts (``BundleDealer``).
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
                "i_entry": Out(entry_bits(config)),
                "deal": In(1),
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
        dealt = self._config.dealt_bundles
        m.submodules.waiting = waiting = (
            make_dealer(self._config, self.config_bus.clear) if dealt else BundleQueue(self._config)
        )
        left, rest, final = Signal(4), Signal.like(following.marked), Signal(init=1)
        m.d.comb += [
            self.i.ready.eq(waiting.ready),
            self.i_entry.eq(waiting.take_entry),
            select.valid.eq(self.i.valid & self.i.ready),
            select.i.eq(self.i.payload),
            waiting.take.eq(select.valid),
            waiting.valid.eq(select.o_valid),
            waiting.i.eq(select.o),
            waiting.place.eq(select.place),
            waiting.deal.eq(self.deal),
            waiting.settled.eq(final & ~self.o.valid),
        ]
        for number, word in enumerate(words.words):
            m.d.comb += [select.words[number].eq(word), following.words[number].eq(word)]
        m.d.comb += self.empty.eq(select.empty & waiting.empty & ~self.o.valid)
        self._step(m, waiting.o, following, left, rest, final)
        return m

    def _step(
        self, m: Module, waiting: stream.Interface, following: RunSelect, left: Signal, rest: Signal, final: Signal
    ) -> None:
        """``left`` steps of this event, ``rest`` of the events; ``final``: the last step of the bundle, if any."""
        step, new, run, single = self.o.payload, waiting.payload.judged, following.run, Signal()
        m.d.comb += [
            waiting.ready.eq(final & (~self.o.valid | self.o.ready) & ~self.stop),
            following.marked.eq(Mux(final, new.marks, rest)),
            single.eq((run.count == 1) & ~run.rest.any()),
        ]
        with m.If(~self.o.valid | self.o.ready):
            with m.If(~final & (left > 1)):
                m.d.sync += [
                    left.eq(left - 1), step.number.eq(step.number + 1), final.eq((left == 2) & ~rest.any())
                ]  # fmt: skip
            with m.Else():
                comes = waiting.valid & ~self.stop
                level = Mux(final & new.poisoned, new.fault_level, run.level)
                m.d.sync += [
                    left.eq(run.count),
                    step.number.eq(run.first),
                    step.level.eq(level),
                    rest.eq(run.rest),
                    final.eq((final & ~(comes & new.some)) | single),
                ]
                with m.If(final):
                    m.d.sync += [
                        self.o.valid.eq(comes & (new.some | new.poisoned)),
                        step.entry.eq(waiting.payload.entry),
                        step.cause.eq(new.cause),
                        step.context.eq(new.context),
                    ]
