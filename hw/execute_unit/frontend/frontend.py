"""From tokens to decoded instructions."""

from amaranth import Module, Mux, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.frontend.decode import Decode
from daedal.hw.execute_unit.frontend.fetch import Fetch
from daedal.hw.execute_unit.frontend.length_table import LengthTable
from daedal.hw.execute_unit.frontend.rename import Rename
from daedal.hw.execute_unit.stage_layouts import Kind, decoded_layout
from daedal.hw.interfaces import ConfigBus, token_layout
from daedal.hw.isa.instructions import Instruction
from daedal.hw.isa.launch import Queue
from daedal.hw.isa.words import VALUE_BITS
from daedal.hw.queues.fifo import Fifo
from daedal.hw.queues.skid_buffer import optional_skid

AHEAD = 8
"""Instructions that can wait, decoded, to be dispatched."""


class Frontend(wiring.Component):
    """Fetches and decodes the instructions of the callbacks that tokens name, one per cycle.

    Members
    -------
    config_bus : ``In(ConfigBus())``; side : ``In(1)``
        Words of the units LENGTH, CALLBACK and INSTRUCTION for either launch, and which one runs.
    tokens : ``In(stream.Signature(token_layout()))``
        Callbacks to run.
    halt : ``In(1)``
        Take no more tokens.
    launch : ``In(1)``
        As in ``Rename``.
    o : ``Out(stream.Signature(decoded_layout(config)))``
        Instructions, from a queue: that one is taken is known late in a cycle, and goes no further. One of kind FAULT
        is not to be taken.
    empty : ``Out(1)``
        Nothing is held.
    faulty : ``Out(1)``; queue : ``Out(Queue)``; value : ``Out(40)``
        The next instruction is one that the machine does not have. ``value``: the token (``queue`` is TOKEN),
        the length, or the instruction's address.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "config_bus": In(ConfigBus()),
                "side": In(1),
                "tokens": In(stream.Signature(token_layout())),
                "halt": In(1),
                "launch": In(1),
                "o": Out(stream.Signature(decoded_layout(config))),
                "empty": Out(1),
                "faulty": Out(1),
                "queue": Out(Queue),
                "value": Out(VALUE_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.fetch = fetch = Fetch(self.config)
        m.submodules.lengths = lengths = LengthTable(self.config)
        connect(m, flipped(self.config_bus), fetch.config_bus)
        connect(m, flipped(self.config_bus), lengths.config_bus)
        connect(m, flipped(self.tokens), fetch.tokens)
        m.submodules.decoded = decoded = Fifo(decoded_layout(self.config), depth=AHEAD)
        m.submodules.resolve = resolve = Rename(self.config)
        self._decode(m, fetch, lengths, resolve)
        room = Signal()
        m.submodules.next = following = optional_skid(self.config, decoded_layout(self.config))
        connect(m, decoded.o, following.i)
        # Three may come before it is known that one has come.
        m.d.sync += room.eq(decoded.level <= AHEAD - 4)
        held, present = following.o.valid, following.o.payload
        m.d.comb += [
            fetch.side.eq(self.side),
            fetch.halt.eq(self.halt),
            lengths.side.eq(self.side),
            lengths.fault_index.eq(present.length),
            fetch.o.ready.eq(room),
            resolve.launch.eq(self.launch),
            resolve.valid.eq(fetch.o.valid & room),
            decoded.i.payload.eq(resolve.o),
            decoded.i.valid.eq(resolve.o_valid),
            self.empty.eq(fetch.empty & ~resolve.o_valid & (decoded.level == 0) & following.empty),
            self.faulty.eq(held & (present.kind == Kind.FAULT)),
            self.o.valid.eq(held),
            self.o.payload.eq(present),
            following.o.ready.eq(self.o.ready),
            self.queue.eq(Mux(present.bad_token, Queue.TOKEN, Queue.NONE)),
            self.value.eq(Mux(present.bad_token | present.illegal, present.position, lengths.fault_value)),
        ]
        return m

    def _decode(self, m: Module, fetch: Fetch, lengths: LengthTable, resolve: Rename) -> None:
        """Decode what is fetched."""
        m.submodules.decode = decode = Decode(self.config)
        m.d.comb += [
            decode.i.eq(fetch.o.payload),
            # Not by way of ``decode.o``, of which the row is a part: simulators take a signal for one thing.
            lengths.index.eq(Instruction(fetch.o.payload.code).length),
            decode.row.eq(lengths.row),
            decode.bad_length.eq(lengths.bad),
            resolve.i.eq(decode.o),
        ]
