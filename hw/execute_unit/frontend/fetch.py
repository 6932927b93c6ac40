"""From tokens to a stream of instructions, one per cycle, without a gap between callbacks."""

from amaranth import Array, Cat, Module, Mux, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.frontend.defined_bits import note, sides
from daedal.hw.execute_unit.stage_layouts import POSITION_BITS, fetched_layout, start_layout
from daedal.hw.interfaces import ConfigBus, token_layout
from daedal.hw.isa.instructions import INSTRUCTION_BITS, Instruction
from daedal.hw.isa.words import Unit
from daedal.hw.lib.ram_style import DISTRIBUTED_RAM
from daedal.hw.queues.fifo import Fifo


class CallbackTable(wiring.Component):
    """The start of each callback; combinational.

    Members
    -------
    config_bus : ``In(ConfigBus())``
        Words of unit CALLBACK are taken; at its ``begin`` all callbacks of that side become undefined.
    side : ``In(1)``
        Of the launch whose callbacks are looked up.
    token : ``In(6)``
        Callback to look up.
    start : ``Out(start_layout())``
        Where it starts; ``bad`` if there is none, or none inside of the instruction memory. ``context`` is 0.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__({"config_bus": In(ConfigBus()), "side": In(1), "token": In(6), "start": Out(start_layout())})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        count, last = self.config.callbacks, self.config.instructions - 1
        size = ceil_log2(count)
        m.submodules.starts = starts = memory.Memory(shape=POSITION_BITS, depth=2 << size, init=[])
        write, read = starts.write_port(), starts.read_port(domain="comb")
        word, defined = self.config_bus.word, sides(count)
        m.d.comb += [
            write.en.eq(self.config_bus.valid & (word.unit == Unit.CALLBACK)),
            write.addr.eq(Cat(word.index[:size], self.config_bus.side)),
            # One past the end stands for all that are beyond it.
            write.data.eq(Mux(word.value > last, last + 1, word.value)),
            read.addr.eq(Cat(self.token[:size], self.side)),
            self.start.bad.eq((self.token >= count) | ~Array(defined)[self.side].bit_select(self.token, 1)),
            self.start.position.eq(Mux(self.start.bad, self.token, read.data)),
        ]
        note(m, self.config_bus, defined, write.en)
        return m


class InstructionMemory(wiring.Component):
    """The instructions; ``code`` is that at ``address`` in the last cycle with ``enable`` and without ``busy``.

    Members: ``config_bus`` (words of unit INSTRUCTION are taken; at its ``begin`` all of that side become undefined),
    ``side`` of the launch that runs, ``address``, ``enable``, ``busy`` (a word is written), ``code``, ``last`` (of
    ``code``, from a register: the next address depends on it), ``missing`` (there is none: it was not written in this
    launch, or is past the end).
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "config_bus": In(ConfigBus()),
                "side": In(1),
                "address": In(POSITION_BITS),
                "enable": In(1),
                "busy": Out(1),
                "code": Out(INSTRUCTION_BITS),
                "last": Out(1),
                "missing": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        count = self.config.instructions
        size = ceil_log2(count)
        m.submodules.memory = store = memory.Memory(
            shape=INSTRUCTION_BITS, depth=2 << size, init=[], attrs={"ram_style": "block"}
        )
        write, read = store.write_port(), store.read_port()
        word = self.config_bus.word
        m.d.comb += [
            write.en.eq(self.config_bus.valid & (word.unit == Unit.INSTRUCTION)),
            write.addr.eq(Cat(word.index[:size], self.config_bus.side)),
            write.data.eq(word.value),
            read.addr.eq(Cat(self.address[:size], self.side)),
            # Never both in one cycle; saying so spares a bypass around the block RAM.
            self.busy.eq(write.en),
            read.en.eq(self.enable & ~write.en),
            self.code.eq(read.data),
        ]
        m.submodules.ends = ends = memory.Memory(shape=1, depth=2 << size, init=[], attrs=DISTRIBUTED_RAM)
        write_end, read_end = ends.write_port(), ends.read_port(domain="comb")
        m.d.comb += [
            write_end.en.eq(write.en),
            write_end.addr.eq(write.addr),
            write_end.data.eq(Instruction(word.value[:INSTRUCTION_BITS]).last),
            read_end.addr.eq(read.addr),
        ]
        defined, place = sides(count), Signal.like(self.address)
        with m.If(read.en):
            m.d.sync += [place.eq(self.address), self.last.eq(read_end.data)]
        known = Array(defined)[self.side].bit_select(place, 1)
        m.d.comb += self.missing.eq((place >= count) | ~known)
        note(m, self.config_bus, defined, write.en)
        return m


class Fetch(wiring.Component):
    """Turns tokens into the instructions of their callbacks.

    One instruction per cycle, also across callbacks; a token's first instruction is there three cycles after
    the token. A token without a callback gives one entry that says so, in its place, as does a callback that runs into
    what was not written: what comes after that means nothing.

    Members
    -------
    config_bus, side
        As for the callback table and the instruction memory; ``side`` changes only while this is empty.
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
                "side": In(1),
                "tokens": In(stream.Signature(token_layout())),
                "halt": In(1),
                "o": Out(stream.Signature(fetched_layout())),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.starts = starts = Fifo(start_layout(), depth=2)
        m.submodules.ahead = ahead = Fifo(fetched_layout(), depth=2)
        m.submodules.table = table = CallbackTable(self.config)
        connect(m, flipped(self.config_bus), table.config_bus)
        connect(m, ahead.o, flipped(self.o))
        m.d.comb += [
            table.side.eq(self.side),
            table.token.eq(self.tokens.payload.callback),
            starts.i.payload.position.eq(table.start.position),
            starts.i.payload.bad.eq(table.start.bad),
            starts.i.payload.context.eq(self.tokens.payload.context),
            starts.i.valid.eq(self.tokens.valid & ~self.halt),
            self.tokens.ready.eq(starts.i.ready & ~self.halt),
        ]
        valid = self._walk(m, starts.o, ahead.i)
        m.d.comb += self.empty.eq((starts.level == 0) & (ahead.level == 0) & ~valid)
        return m

    def _walk(self, m: Module, starts: stream.Interface, o: stream.Interface) -> Signal:
        """From instruction to instruction; the memory's output belongs to ``present``. Stands still while the other
        launch's instructions are written. Returns whether there is a present one.
        """
        m.submodules.code = code = InstructionMemory(self.config)
        connect(m, flipped(self.config_bus), code.config_bus)
        m.d.comb += code.side.eq(self.side)
        present, valid = Signal(start_layout()), Signal()
        following = Signal(start_layout())
        advance, ends, beyond = Signal(), Signal(), Signal()
        m.d.comb += [
            advance.eq((~valid | o.ready) & ~code.busy),
            beyond.eq(code.missing),
            # What comes behind a place without an instruction is of no interest: nothing goes on.
            ends.eq(code.last | present.bad | ~valid),
            following.eq(starts.payload),
            starts.ready.eq(advance & ends),
            code.address.eq(following.position),
            code.enable.eq(advance),
            o.valid.eq(valid & ~code.busy),
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
        return valid
