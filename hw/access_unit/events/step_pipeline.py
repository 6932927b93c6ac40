"""Resolves the operands of steps and computes their addresses."""

from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from daedal.hw.access_unit.events.bundle_store import entry_bits
from daedal.hw.access_unit.events.step_sequencer import step_layout
from daedal.hw.access_unit.events.step_store import TOKEN_BITS, StepStore
from daedal.hw.access_unit.levels.bundles import names
from daedal.hw.access_unit.levels.multiplier import Multiplier
from daedal.hw.config.core import Config
from daedal.hw.interfaces import ConfigBus, context_bits
from daedal.hw.isa.elements import ROW_GRANULE, STORE_STEP
from daedal.hw.isa.launch import Cause
from daedal.hw.isa.words import SIZE_BITS, FetchQueue, StepControl, StepField
from daedal.hw.lib.replicate import replicate

ROWS = ("store", "fetch")
STAGES = 6
"""Registers from input to output."""

OPERANDS = [field for field in StepField if field is not StepField.CONTROL]


def resolved_layout(config: Config) -> data.StructLayout:
    """A step with its operands: what it enqueues, and where its rows are.

    ``store_bad``, ``fetch_bad``: the row is misaligned. ``cause``, ``level``, ``context``, ``entry``: as in
    ``step_layout``.
    """
    row = {"address": config.address_bits, "size": SIZE_BITS, "enable": 1, "bad": 1}
    return data.StructLayout(
        {
            "scalar_enable": 1,
            "scalar": config.address_bits,
            "token_enable": 1,
            "token": TOKEN_BITS,
            "context": context_bits(config),
            "stream": 1,
            "queue": FetchQueue,
            "store": data.StructLayout(row),
            "fetch": data.StructLayout(row),
            "level": 3,
            "cause": Cause,
            "entry": entry_bits(config),
        }
    )


def _carried(config: Config) -> data.StructLayout:
    """What passes through all stages unchanged."""
    layout = {name: field.shape for name, field in step_layout(config) if name != "number"}
    layout |= {"scalar": config.address_bits, "token": TOKEN_BITS, "store_size": SIZE_BITS, "fetch_size": SIZE_BITS}
    flags = ("scalar_enable", "store_enable", "token_enable", "fetch_enable", "stream")
    return data.StructLayout(layout | dict.fromkeys(flags, 1) | {"queue": FetchQueue})


class StepPipeline(wiring.Component):
    """Six stages: read the step's words, decode them, choose operands, multiply, add twice, and judge the alignment.

    One step per cycle; nothing in it waits, so what takes ``o`` must have room for ``STAGES`` steps more than it has
    been sent. 6 cycles latency.

    Members
    -------
    config_bus : ``In(ConfigBus())``
    valid, i : ``In(1)``, ``In(step_layout(config))``
        A step.
    ready : ``Out(1)``
        A step can come: always.
    entry, registers : ``Out(entry_bits(config))``, ``In(ArrayLayout(address_bits, registers))``
        The step's entry, and what it keeps, a cycle later.
    o_valid, o : ``Out(1)``, ``Out(resolved_layout(config))``
    empty : ``Out(1)``
        No step inside.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "config_bus": In(ConfigBus()),
                "valid": In(1),
                "i": In(step_layout(config)),
                "ready": Out(1),
                "entry": Out(entry_bits(config)),
                "registers": In(data.ArrayLayout(config.address_bits, config.registers)),
                "o_valid": Out(1),
                "o": Out(resolved_layout(config)),
                "empty": Out(1),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.steps = steps = StepStore(self._config)
        connect(m, flipped(self.config_bus), steps.config_bus)
        valid = Signal(STAGES - 1)
        m.d.comb += [
            steps.number.eq(self.i.number),
            self.ready.eq(1),
            self.entry.eq(self.i.entry),
            self.empty.eq(~valid.any() & ~self.o_valid),
        ]
        read, taken = (Signal(step_layout(self._config), name=name) for name in ("read", "taken"))
        m.d.sync += Cat(valid, self.o_valid).eq(Cat(self.valid, valid))
        for number, (sooner, later) in enumerate(((self.i, read), (read, taken))):
            with m.If(Cat(self.valid, valid)[number]):
                m.d.sync += later.eq(sooner)
        move = valid[0]
        control, registers = Signal(StepControl), Signal.like(self.registers)
        with m.If(move):
            m.d.sync += [control.eq(steps.words.control), registers.eq(self.registers)]
        operands: dict[StepField, Value] = {
            field: self._operand(m, field, move, steps.words, registers) for field in OPERANDS
        }
        carried = self._carry(m, valid, taken, control, operands)
        addresses = {row: self._address(m, row, operands) for row in ROWS}
        with m.If(valid[-1]):
            m.d.sync += self._judge(carried, addresses)
        return m

    def _operand(self, m: Module, field: StepField, move: Value, words: Any, registers: Any) -> Value:
        """The constant, or the register that the step's CONTROL names: decoded in one cycle, ANDs and ORs in the next.

        A constant is 0 where a register is chosen, by the flip-flops' own reset.
        """
        name = field.name.lower()
        word, source = Value.cast(getattr(words, name)), Value.cast(words.control[name])
        constant, bits = Signal(len(word), name=f"{name}_constant"), Signal(self._config.registers, name=f"{name}_bits")
        with m.If(move):
            m.d.sync += [constant.eq(word), *(bit.eq(names(source, n)) for n, bit in enumerate(bits))]
        with m.If(move & (source != 0)):
            m.d.sync += constant.eq(0)
        result: Any = constant
        for number, bit in enumerate(bits):
            result = result | (registers[number][: len(word)] & replicate(bit, len(word)))
        return result

    def _carry(self, m: Module, valid: Signal, taken: Any, control: Any, operands: dict[StepField, Value]) -> Any:
        stages = [Signal(_carried(self._config), name=f"carried{n}") for n in range(3)]
        first = stages[0]
        with m.If(valid[1]):
            for name in ("scalar", "token", "store_size", "fetch_size"):
                m.d.sync += first[name].eq(operands[StepField[name.upper()]])
            for name in ("level", "entry", "cause", "context"):
                m.d.sync += first[name].eq(taken[name])
            for name in ("scalar_enable", "store_enable", "token_enable", "fetch_enable", "stream", "queue"):
                m.d.sync += first[name].eq(control[name])
        for number, (sooner, later) in enumerate(pairwise(stages), 2):
            with m.If(valid[number]):
                m.d.sync += later.eq(sooner)
        return stages[-1]

    def _address(self, m: Module, row: str, operands: dict[StepField, Value]) -> Value:
        m.submodules[f"{row}_product"] = product = Multiplier(self._config.address_bits)
        bases = [Signal(self._config.address_bits, name=f"{row}_base{n}") for n in range(2)]
        low, high = (Signal(self._config.address_bits, name=f"{row}_{part}") for part in ("low", "high"))
        base, index, pitch = (operands[StepField[f"{row}_{part}".upper()]] for part in ("base", "index", "pitch"))
        m.d.sync += [
            product.a.eq(index),
            product.b.eq(pitch),
            bases[0].eq(base),
            bases[1].eq(bases[0]),
            low.eq(bases[1] + product.summands[0]),
            high.eq(product.summands[1] + product.summands[2]),
        ]
        return (low + high)[: self._config.address_bits]

    def _judge(self, carried: Any, addresses: dict[str, Value]) -> list[Any]:
        """The last stage: the addresses' final sums and what is wrong with their low bits."""
        out = self.o
        carries = ("scalar_enable", "scalar", "token_enable", "token", "stream", "queue", "level", "cause", "context",
                 "entry")  # fmt: skip
        statements = [out[name].eq(carried[name]) for name in carries]
        for row, address in addresses.items():
            size = carried[f"{row}_size"]
            statements += [
                out[row].address.eq(address),
                out[row].size.eq(size),
                out[row].enable.eq(carried[f"{row}_enable"]),
                out[row].bad.eq(is_misaligned(row, address, size, self._config)),
            ]
        return statements


def is_misaligned(row: str, address: Value, size: Value, config: Config) -> Value:
    """Whether nothing can be stored, or fetched, at this address."""
    unit_bits, bus_bits = exact_log2(ROW_GRANULE if row == "fetch" else STORE_STEP), exact_log2(config.bus_bytes)
    odd = (size == 0) | size[:unit_bits].any() | address[:unit_bits].any()
    # The bytes of the row's last line, less one, and those in front of its first: more than a line takes one line more.
    across = ((size - 1)[:bus_bits] + address[:bus_bits])[bus_bits]
    return odd | across if row == "fetch" else odd
