"""A component whose reset pin goes through a register."""

from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Elaboratable, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped


class RegisteredReset(wiring.Component):
    """``component`` with the same ports; it comes out of reset one cycle later than the pin says.

    In an FPGA this shortens the reset's way into a large design. In simulation it doubles the speed: otherwise every
    next-state expression depends on an input, and Verilator evaluates what depends on inputs twice a cycle.
    """

    def __init__(self, component: wiring.Component) -> None:
        self._component = component
        super().__init__(component.signature)

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.domains.core = ClockDomain("core", local=True)
        m.submodules.tile = DomainRenamer("core")(self._component)
        reset = Signal(init=1)
        m.d.sync += reset.eq(0)
        m.d.comb += [ClockSignal("core").eq(ClockSignal()), ResetSignal("core").eq(reset)]
        connect(m, flipped(self), self._component)
        return m
