"""The AXI4-Lite register file and the launch queue's entrance."""

from amaranth import Module, Signal
from amaranth.hdl import Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.isa.launch import Cause
from daedal.hw.isa.registers import (
    IDENTITY,
    REGISTER_ADDRESS_BITS,
    REVISION,
    Control,
    Register,
    Status,
)
from daedal.hw.memory.axi import LiteSlave


class ControlRegisters(wiring.Component):
    """Serves the registers of ``hw.isa.registers``.

    One access at a time: a write is taken when address and data are both there; a read is answered in the
    next cycle.

    Members
    -------
    bus : ``In(LiteSlave())``-like, the AXI4-Lite slave
    doorbell : ``Out(stream.Signature(address_bits))``
        Launch blocks to queue, for one cycle; not ready means the launch is dropped and ``overflow`` set.
    rung : ``Out(1)``
        High in the cycle of the handshake that rings the doorbell.
    reset_request : ``Out(1)``, ``reset_done`` : ``In(1)``
        A reset is asked for until ``reset_done``.
    busy, faulted, queued, cause, completed : inputs shown in the registers
    ended : ``In(1)``
        Strobe: a launch has ended; sets INTERRUPT, also if it is cleared in this cycle.
    interrupt : ``Out(1)``
    mixed : ``Out(1)``
        Of CONTROL.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._low, self._high = Signal(32), Signal(32)
        self._overflow, self._pending, self._enabled = Signal(), Signal(), Signal()
        super().__init__(
            {
                "bus": Out(LiteSlave()),
                "doorbell": Out(stream.Signature(config.address_bits)),
                "rung": Out(1),
                "reset_request": Out(1),
                "reset_done": In(1),
                "busy": In(1),
                "faulted": In(1),
                "queued": In(8),
                "cause": In(Cause),
                "completed": In(32),
                "ended": In(1),
                "interrupt": Out(1),
                "mixed": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        bus = self.bus
        writing = Signal()
        m.d.comb += [
            writing.eq(bus.awvalid & bus.wvalid & ~bus.bvalid),
            bus.awready.eq(writing),
            bus.wready.eq(writing),
            bus.arready.eq(~bus.rvalid),
            self.doorbell.payload.eq((self._low | (self._high << 32))[: self._config.address_bits]),
            self.interrupt.eq(self._pending & self._enabled),
        ]
        with m.If(self.reset_done):
            m.d.sync += self.reset_request.eq(0)
        with m.If(bus.bready):
            m.d.sync += bus.bvalid.eq(0)
        with m.If(writing):
            m.d.sync += bus.bvalid.eq(1)
            self._write(m)
        with m.If(self.ended):  # behind the write that clears it: one that is cleared in this cycle is of this end
            m.d.sync += self._pending.eq(1)
        self._read(m)
        return m

    def _write(self, m: Module) -> None:
        data = self.bus.wdata
        with m.Switch(self.bus.awaddr[:REGISTER_ADDRESS_BITS]):
            with m.Case(Register.LAUNCH_LOW.value):
                m.d.sync += self._low.eq(data)
            with m.Case(Register.LAUNCH_HIGH.value):
                m.d.sync += self._high.eq(data)
            with m.Case(Register.DOORBELL.value):
                m.d.comb += [self.rung.eq(1), self.doorbell.valid.eq(~self.faulted & ~self.reset_request)]
                with m.If(~(self.doorbell.valid & self.doorbell.ready)):
                    m.d.sync += self._overflow.eq(1)
            with m.Case(Register.INTERRUPT.value):
                with m.If(data[0]):
                    m.d.sync += self._pending.eq(0)
            with m.Case(Register.CONTROL.value):
                control = Control(data)
                m.d.sync += [self._enabled.eq(control.interrupt_enable), self.mixed.eq(control.mixed)]
                with m.If(control.reset):
                    m.d.sync += [self.reset_request.eq(1), self._overflow.eq(0)]

    def _read(self, m: Module) -> None:
        bus = self.bus
        status, control = Signal(Status), Signal(Control)
        m.d.comb += [
            status.busy.eq(self.busy),
            status.faulted.eq(self.faulted),
            status.overflow.eq(self._overflow),
            status.queued.eq(self.queued),
            control.reset.eq(self.reset_request),
            control.interrupt_enable.eq(self._enabled),
            control.mixed.eq(self.mixed),
        ]
        values = {
            Register.IDENTITY: IDENTITY,
            Register.REVISION: REVISION,
            Register.CONFIG_HASH: self._config.hash,
            Register.CONTROL: control.as_value(),
            Register.STATUS: status.as_value(),
            Register.LAUNCH_LOW: self._low,
            Register.LAUNCH_HIGH: self._high,
            Register.COMPLETED: self.completed,
            Register.INTERRUPT: self._pending,
            Register.FAULT: self.cause,
        }
        with m.If(bus.rready):
            m.d.sync += bus.rvalid.eq(0)
        with m.If(bus.arvalid & bus.arready):
            m.d.sync += [bus.rvalid.eq(1), bus.rdata.eq(0)]
            with m.Switch(bus.araddr[:REGISTER_ADDRESS_BITS]):
                for register, value in values.items():
                    with m.Case(register.value):
                        m.d.sync += bus.rdata.eq(value)
