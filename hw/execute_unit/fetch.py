"""From tokens to a stream of instructions, one per cycle, without a gap between callbacks."""

from amaranth import Module, Mux, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.config import Config
from daedal.hw.execute_unit.records import POSITION_BITS, fetched_layout, start_layout
from daedal.hw.interfaces import ConfigBus, token_layout
from daedal.hw.isa.execute import INSTRUCTION_BITS, Instruction
from daedal.hw.isa.program_words import Unit
from daedal.hw.queues.queue import Queue


class CallbackTable(wiring.Component):
    """The start of each callback; combinational.

    Members
    -------
    config_bus : ``In(ConfigBus())``
        Words of unit CALLBACK are taken.
    launch : ``In(1)``
        All callbacks become undefined.
    token : ``In(6)``
        Callback to look up.
    start : ``Out(start_layout())``
        Where it starts; ``bad`` if there is none, or none inside of the instruction memory. ``context`` is 0.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__({"config_bus": In(ConfigBus()), "launch": In(1), "token": In(6), "start": Out(start_layout())})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        count, last = self.config.callbacks, self.config.instructions - 1
        m.submodules.starts = starts = memory.Memory(shape=POSITION_BITS, depth=count, init=[])
        write, read = starts.write_port(), starts.read_port(domain="comb")
        word, defined = self.config_bus.word, Signal(count)
        m.d.comb += [
            write.en.eq(self.config_bus.valid & (word.unit == Unit.CALLBACK)),
            write.addr.eq(word.index),
            # One past the end stands for all that are beyond it.
            write.data.eq(Mux(word.value > last, last + 1, word.value)),
            read.addr.eq(self.token),
            self.start.bad.eq((self.token >= count) | ~defined.bit_select(self.token, 1)),
            self.start.position.eq(Mux(self.start.bad, self.token, read.data)),
        ]
        with m.If(self.launch):
            m.d.sync += defined.eq(0)
        with m.Elif(write.en):
            m.d.sync += defined.bit_select(word.index, 1).eq(1)
        return m


class InstructionMemory(wiring.Component):
    """The instructions; ``code`` is that at ``address`` in the last cycle with ``enable`` and no word written.

    Members: ``config_bus`` (words of unit INSTRUCTION are taken), ``launch`` (all become undefined), ``address``,
    ``enable``, ``code``, ``missing`` (there is none: it was not written in this launch, or is past the end).
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "config_bus": In(ConfigBus()),
                "launch": In(1),
                "address": In(POSITION_BITS),
                "enable": In(1),
                "code": Out(INSTRUCTION_BITS),
                "missing": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.memory = store = memory.Memory(
            shape=INSTRUCTION_BITS, depth=self.config.instructions, init=[], attrs={"ram_style": "block"}
        )
        write, read = store.write_port(), store.read_port()
        word = self.config_bus.word
        m.d.comb += [
            write.en.eq(self.config_bus.valid & (word.unit == Unit.INSTRUCTION)),
            write.addr.eq(word.index),
            write.data.eq(word.value),
            read.addr.eq(self.address),
            # No callback runs while it is loaded; saying so spares a bypass around the block RAM.
            read.en.eq(self.enable & ~write.en),
            self.code.eq(read.data),
        ]
        count = self.config.instructions
        defined = Signal(count)
        with m.If(read.en):
            m.d.sync += self.missing.eq((self.address >= count) | ~defined.bit_select(self.address, 1))
        with m.If(self.launch):
            m.d.sync += defined.eq(0)
        with m.Elif(write.en):
            m.d.sync += defined.bit_select(word.index, 1).eq(1)
        return m


class Fetch(wiring.Component):
    """Turns tokens into the instructions of their callbacks.

    One instruction per cycle, also across callbacks; a token's first instruction is there three cycles after
    the token. A token without a callback and a callback that runs into what was not written give one entry
    that says so, in their place.

    Members
    -------
    config_bus, launch
        As for the callback table and the instruction memory.
    tokens : ``In(stream.Signature(token_layout()))``
        Callbacks to run. ``ready`` depends on registers only.
    halt : ``In(1)``
        Take no more tokens.
    o : ``Out(stream.Signature(fetched_layout()))``
        Instructions; registered.
    empty : ``Out(1)``
        Nothing is held.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "config_bus": In(ConfigBus()),
                "launch": In(1),
                "tokens": In(stream.Signature(token_layout())),
                "halt": In(1),
                "o": Out(stream.Signature(fetched_layout())),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.starts = starts = Queue(start_layout(), depth=2)
        m.submodules.ahead = ahead = Queue(fetched_layout(), depth=2)
        m.submodules.table = table = CallbackTable(self.config)
        connect(m, flipped(self.config_bus), table.config_bus)
        connect(m, ahead.o, flipped(self.o))
        m.d.comb += [
            table.launch.eq(self.launch),
            table.token.eq(self.tokens.payload.callback),
            starts.i.payload.position.eq(table.start.position),
            starts.i.payload.bad.eq(table.start.bad),
            starts.i.payload.context.eq(self.tokens.payload.context),
            starts.i.valid.eq(self.tokens.valid & ~self.halt),
            self.tokens.ready.eq(starts.i.ready & ~self.halt),
            self.empty.eq((starts.level == 0) & (ahead.level == 0) & ~ahead.i.valid),
        ]
        self._walk(m, starts.o, ahead.i)
        return m

    def _walk(self, m: Module, starts: stream.Interface, o: stream.Interface) -> None:
        """From instruction to instruction; the memory's output belongs to ``present``."""
        m.submodules.code = code = InstructionMemory(self.config)
        connect(m, flipped(self.config_bus), code.config_bus)
        m.d.comb += code.launch.eq(self.launch)
        present, valid = Signal(start_layout()), Signal()
        following = Signal(start_layout())
        advance, ends, beyond = Signal(), Signal(), Signal()
        m.d.comb += [
            advance.eq(~valid | o.ready),
            beyond.eq(code.missing),
            ends.eq(Instruction(code.code).last | present.bad | beyond | ~valid),
            following.eq(starts.payload),
            starts.ready.eq(advance & ends),
            code.address.eq(following.position),
            code.enable.eq(advance),
            o.valid.eq(valid),
            o.payload.code.eq(code.code),
            o.payload.position.eq(present.position),
            o.payload.bad.eq(present.bad),
            o.payload.context.eq(present.context),
            o.payload.beyond.eq(beyond & ~present.bad),
        ]
        with m.If(~ends):
            m.d.comb += [
                following.position.eq(present.position + 1),
                following.bad.eq(0),
                following.context.eq(present.context),
            ]
        with m.If(advance):
            m.d.sync += [present.eq(following), valid.eq(starts.valid | ~ends)]
