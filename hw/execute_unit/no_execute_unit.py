"""What stands in the execute unit's place in a machine that has none."""

from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import Component

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.execute_unit import execute_ports
from daedal.hw.isa.launch import Cause, Queue


class NoExecuteUnit(Component):
    """Runs nothing: for machines that only gather, by way of the store stream (``Config.executes``).

    Members: as in ``ExecuteUnit``. There are no callbacks, so any token is a fault: PROGRAM with the token (queue
    TOKEN), in the cycle after it came. Rows and scalars are never taken.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(execute_ports(config))

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.d.comb += self.idle.eq(~self.fault.valid)
        with m.If(self.tokens.valid & ~self.halt & ~self.fault.valid):
            m.d.sync += [
                self.fault.valid.eq(1),
                self.fault.fault.cause.eq(Cause.PROGRAM),
                self.fault.fault.queue.eq(Queue.TOKEN),
                self.fault.fault.value.eq(self.tokens.payload.callback),
            ]
        return m
