"""Control of one core: its registers, the launch queue and the launch controller."""

from amaranth import Module, ResetInserter
from amaranth.hdl import Elaboratable
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped

from daedal.hw.config.core import LAUNCH_QUEUE_DEPTH, Config
from daedal.hw.control.csr import ControlRegisters
from daedal.hw.control.launch_controller import LaunchController
from daedal.hw.control.launch_ports import LaunchPort
from daedal.hw.memory.axi import LiteSlave
from daedal.hw.queues.fifo import Fifo


class LaunchControl(wiring.Component):
    """Queues the launches that the host rings for, and sees each of them through on the core at ``core``.

    Members
    -------
    bus : ``Out(LiteSlave())``
        AXI4-Lite slave with the registers.
    interrupt : ``Out(1)``
        High while a launch has ended and INTERRUPT is not cleared, if enabled.
    core : ``Out(LaunchPort(config))``
        A launch can begin three cycles after its doorbell. After a fault all launches of the queue are cancelled, and
        nothing is queued until a reset.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__({"bus": Out(LiteSlave()), "interrupt": Out(1), "core": Out(LaunchPort(config))})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        core = self.core
        m.submodules.port = port = ControlRegisters(self._config)
        m.submodules.controller = controller = LaunchController()
        launches = Fifo(self._config.address_bits, depth=LAUNCH_QUEUE_DEPTH)
        m.submodules.launches = ResetInserter(controller.forget)(launches)
        connect(m, flipped(self.bus), port.bus)
        connect(m, port.doorbell, launches.i)
        connect(m, launches.o, flipped(core.block))
        connect(m, controller.launch, flipped(core.launch))
        connect(m, flipped(core.progress), controller.progress)
        connect(m, flipped(core.fault), controller.fault)
        connect(m, flipped(core.record), controller.record)
        m.d.comb += [
            core.rung.eq(port.rung & (launches.level == 0)),
            core.mixed.eq(port.mixed),
            controller.waiting.eq(launches.o.valid | (launches.level != 0)),
            controller.reset_request.eq(port.reset_request),
            port.reset_done.eq(controller.reset_done),
            port.busy.eq(~controller.launch.idle | (launches.level != 0)),
            port.faulted.eq(controller.faulted),
            port.queued.eq(launches.level),
            port.cause.eq(core.fault.cause),
            port.ended.eq(controller.ended),
            self.interrupt.eq(port.interrupt),
        ]
        with m.If(controller.ended):
            m.d.sync += port.completed.eq(port.completed + 1)
        return m
