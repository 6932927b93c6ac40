"""A ring of registers around a unit, for few pins and paths that all start and end at a register."""

from amaranth import Cat, ClockSignal, Instance, Module, Mux, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


def pins(component: wiring.Component) -> tuple[dict[str, int], dict[str, int]]:
    """The unit's input and output ports as they are called in Verilog, with their widths in bits."""
    inputs: dict[str, int] = {}
    outputs: dict[str, int] = {}
    for path, member, value in component.signature.flatten(component):
        width = len(Cat(value))
        if width:
            ports = inputs if member.flow is In else outputs
            ports["__".join(str(part) for part in path)] = width
    return inputs, outputs


class Ring(wiring.Component):
    """Shift registers in front of and behind the module ``name``, whose ports are ``inputs`` and ``outputs``.

    Its inputs, its reset among them, come straight from registers and its outputs go straight to registers, so what
    limits the clock is the unit itself, also where a path leads from an input to an output. (From a pin, the ways of a
    reset are no part of the clock that is reported, but the placer shortens them at the cost of those that are.)

    Parameters
    ----------
    name
        The unit's module; a black box here.
    inputs, outputs
        Port -> bits.
    clocked
        Whether the unit has a clock and a reset.
    """

    def __init__(self, name: str, inputs: dict[str, int], outputs: dict[str, int], *, clocked: bool) -> None:
        super().__init__({"serial_i": In(1), "capture": In(1), "serial_o": Out(1)})
        self._name, self._inputs, self._outputs, self._clocked = name, inputs, outputs, clocked

    def elaborate(self, platform: object) -> Elaboratable:
        """Shift in, unit, shift out."""
        m = Module()
        driving = {port: Signal(width, name=f"drive_{port}", reset_less=True) for port, width in self._inputs.items()}
        driven = {port: Signal(width, name=f"driven_{port}") for port, width in self._outputs.items()}
        clock = {}
        if self._clocked:
            reset = Signal(init=1)
            m.d.sync += reset.eq(0)
            clock = {"i_clk": ClockSignal(), "i_rst": reset}
        m.submodules.unit = Instance(
            self._name,
            **clock,
            **{f"i_{port}": signal for port, signal in driving.items()},
            **{f"o_{port}": signal for port, signal in driven.items()},
        )
        chain, results = Cat(*driving.values()), Cat(*driven.values())
        caught, shifted = (Signal(len(results), name=name, reset_less=True) for name in ("caught", "shifted"))
        if len(chain):
            m.d.sync += chain.eq(Cat(self.serial_i, chain))
        m.d.sync += [caught.eq(results), shifted.eq(Mux(self.capture, caught, Cat(self.serial_i, shifted)))]
        m.d.comb += self.serial_o.eq(shifted[-1] if len(results) else 0)
        return m
