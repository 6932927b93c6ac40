"""Flow control of a pipeline that runs freely into a queue."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.queues.fifo import DISTRIBUTED_DEPTH
from daedal.hw.queues.up_down_counter import up_down


class CreditCounter(wiring.Component):
    """Counts the places of the queue at a pipeline's end, so that nothing in the pipeline ever has to stop.

    Members
    -------
    free : ``Out(1)``
        Something may enter the pipeline; a register, so one place is kept back for what enters at the same time.
    take : ``In(1)``
        Something enters.
    give : ``In(1)``
        Something left the queue.
    """

    free: Out(1)
    take: In(1)
    give: In(1)

    def __init__(self, depth: int) -> None:
        super().__init__()
        self._depth = depth

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        places = Signal(range(self._depth + 1), init=self._depth)
        up_down(m, places, down=self.take, up=self.give, early="down")
        m.d.sync += self.free.eq(places > 1)
        return m


def depth_for(stages: int) -> int:
    """Places that keep a pipeline of ``stages`` registers, ending in a ``Fifo``, at one per cycle.

    Always so many that the queue is in block RAM: of a level's, that spares 270 LUTs.
    """
    return max(2 * DISTRIBUTED_DEPTH, 1 << (stages + 4).bit_length())
