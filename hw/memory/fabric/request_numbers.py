"""Numbers for the requests in the read fabric, and what their beats are for."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from daedal.hw.config.core import Config
from daedal.hw.lib.ram_style import BLOCK_RAM
from daedal.hw.memory.fabric.port_layouts import burst_layout, most_open
from daedal.hw.queues.block_store import BlockStore
from daedal.hw.queues.ring_pointers import RingPointers


class RequestNumbers(wiring.Component):
    """Gives each request a number and keeps its ``burst_layout`` in one block RAM until its last beat is back.

    One request is taken, one looked up and one forgotten per cycle. There are more numbers than requests can be open,
    so there is always one; those that were given back are used again in the order in which they came back.

    Members
    -------
    burst : ``In(burst_layout(config))``, take : ``In(1)``
        What to keep for the request that has ``number``, which is another one in the cycle after ``take``.
    number : ``Out``
        Of the next request to be taken.
    wanted : ``In``, found : ``Out(burst_layout(config))``
        What is kept for this number, a cycle later.
    free : ``In(1)``, freed : ``In``
        The request with this number is over.
    """

    def __init__(self, config: Config) -> None:
        bits = ceil_log2(most_open(config))
        super().__init__(
            {
                "burst": In(burst_layout(config)),
                "take": In(1),
                "number": Out(bits),
                "wanted": In(bits),
                "found": Out(burst_layout(config)),
                "free": In(1),
                "freed": In(bits),
            }
        )
        self._bits = bits

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        count = 1 << self._bits
        m.submodules.bursts = bursts = memory.Memory(
            shape=self.burst.shape().size, depth=count, init=[], attrs=BLOCK_RAM
        )
        write, read = bursts.write_port(), bursts.read_port()
        m.submodules.ring = ring = BlockStore(self._bits, depth=count)
        m.submodules.pointers = pointers = RingPointers(count)
        unused = Signal(self._bits + 1)  # those from here on have never been used
        all_used = unused[-1]
        m.d.comb += [
            write.en.eq(1),
            write.addr.eq(self.number),
            write.data.eq(Value.cast(self.burst)),
            read.addr.eq(self.wanted),
            Value.cast(self.found).eq(read.data),
            pointers.write.eq(self.free),
            pointers.fetch.eq(ring.fetch),
            ring.write.eq(self.free),
            ring.write_address.eq(pointers.write_address),
            ring.payload.eq(self.freed),
            ring.available.eq(pointers.available),
            ring.read_address.eq(pointers.read_address),
            ring.o.ready.eq(self.take & all_used),
            self.number.eq(Mux(all_used, ring.o.payload, unused)),
        ]
        m.d.sync += unused.eq(unused + (self.take & ~all_used))
        return m
