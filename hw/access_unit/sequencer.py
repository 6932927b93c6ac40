"""Goes through the steps of each bundle, one per cycle."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect

from daedal.hw.access_unit.event_select import STEP_BITS, EventSelect, EventWords, RunSelect
from daedal.hw.config import Config
from daedal.hw.interfaces import ConfigBus, bundle_layout, context_bits
from daedal.hw.isa.launch import Cause


def step_layout(config: Config) -> data.StructLayout:
    """Step ``number`` to be done with ``registers``, for an event of ``level``; or, with a ``cause``, a fault there."""
    return data.StructLayout(
        {
            "number": STEP_BITS,
            "level": 3,
            "registers": data.ArrayLayout(config.address_bits, config.registers),
            "cause": Cause,
            "context": context_bits(config),
        }
    )


class Sequencer(wiring.Component):
    """Steps of all bundles in the order of the contract.

    One step per cycle; a bundle without steps takes one cycle. A poisoned bundle becomes a step with its cause.
    Latency from bundle to step: 4 cycles.

    Members
    -------
    config_bus : ``In(ConfigBus())``
    i : ``In(stream.Signature(bundle_layout(config)))``
    o : ``Out(stream.Signature(step_layout(config)))``
    empty : ``Out(1)``
        No bundle inside.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "config_bus": In(ConfigBus()),
                "i": In(stream.Signature(bundle_layout(config))),
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
        connect(m, wiring.flipped(self.i), select.i)
        left, rest, final = Signal(4), Signal.like(following.marked), Signal(init=1)
        for number, word in enumerate(words.words):
            m.d.comb += [select.words[number].eq(word), following.words[number].eq(word)]
        m.d.comb += [
            following.marked.eq(rest),
            self.empty.eq(select.empty & ~self.o.valid),
        ]
        self._step(m, select.o, following, left, rest, final)
        return m

    def _step(
        self, m: Module, judged: stream.Interface, following: RunSelect, left: Signal, rest: Signal, final: Signal
    ) -> None:
        """``left`` steps of this event, ``rest`` of the events; ``final``: the last step of the bundle, if any."""
        step, new = self.o.payload, judged.payload
        m.d.comb += judged.ready.eq(final & (~self.o.valid | self.o.ready))
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
                flags = new.bundle.flags
                m.d.sync += [
                    final.eq(~(judged.valid & new.some) | ((new.run.count == 1) & ~new.run.rest.any())),
                    self.o.valid.eq(judged.valid & (new.some | new.poisoned)),
                    left.eq(new.run.count),
                    rest.eq(new.run.rest),
                    step.number.eq(new.run.first),
                    step.level.eq(new.run.level),
                    step.registers.eq(new.bundle.registers),
                    step.cause.eq(flags.cause),
                    step.context.eq(flags.context),
                ]
                with m.If(new.poisoned):
                    m.d.sync += step.level.eq(flags.fault_level)
