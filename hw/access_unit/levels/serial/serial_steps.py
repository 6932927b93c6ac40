"""The steps of a machine whose levels are serial: one operand at a time."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from daedal.hw.access_unit.events.bundle_store import entry_bits
from daedal.hw.access_unit.events.step_pipeline import OPERANDS, ROWS, is_misaligned, resolved_layout
from daedal.hw.access_unit.events.step_sequencer import step_layout
from daedal.hw.access_unit.levels.bundles import names
from daedal.hw.access_unit.levels.multiplier import SUMMANDS, Multiplier
from daedal.hw.config.core import Config
from daedal.hw.interfaces import ConfigBus
from daedal.hw.isa.program import struct_width
from daedal.hw.isa.words import StepControl, StepField, Unit
from daedal.hw.lib.fsm_names import name_states
from daedal.hw.lib.ram_style import BLOCK_RAM
from daedal.hw.lib.replicate import replicate

FIELD_BITS = 4
"""Bits of a step's field; each step has a place for as many words."""

_TOKEN, _SCALAR, _STORE_SIZE, _FETCH_BASE, _FETCH_SIZE = (
    StepField[name].value for name in ("TOKEN", "SCALAR", "STORE_SIZE", "FETCH_BASE", "FETCH_SIZE")
)


class SerialSteps(wiring.Component):
    """What ``StepPipeline`` does, with one way for all operands, one adder and one multiplier.

    A step takes six cycles, and seven more for each row that it stores or fetches: about as many as a serial level
    takes for an iteration.

    Members: as in ``StepPipeline``, and

    ready : ``Out(1)``
        A step can come.
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
        held, control = Signal(step_layout(self._config)), Signal(StepControl)
        field, following = Signal(FIELD_BITS), Signal(FIELD_BITS)
        word = self._words(m, Mux(self.ready, self.i.number, held.number), following)
        operand = self._operand(m, control, following, word)
        added, last = Signal(SUMMANDS), Signal()
        is_size = (field == _STORE_SIZE) | (field == _FETCH_SIZE)
        m.d.comb += [self.entry.eq(Mux(self.ready, self.i.entry, held.entry)), last.eq(added[-1])]
        with m.FSM() as fsm:
            with m.State("IDLE"):
                m.d.comb += [self.ready.eq(1), self.empty.eq(1)]
                m.d.sync += held.eq(self.i)
                with m.If(self.valid):
                    m.next = "CONTROL"
            with m.State("CONTROL"):
                m.d.sync += control.as_value().eq(word)
                m.next = "DECODE"
            with m.State("DECODE"):
                m.d.comb += following.eq(_TOKEN)
                m.d.sync += field.eq(_TOKEN)
                m.next = "OPERAND"
            with m.State("OPERAND"):
                m.d.comb += following.eq(field + 1)
                with m.If((field == _SCALAR) & ~control.store_enable):
                    m.d.comb += following.eq(_FETCH_BASE)
                m.d.sync += [field.eq(following), added.eq(1)]
                with m.If(is_size):
                    m.next = "ADD"
                with m.Elif((following == _FETCH_BASE) & ~control.fetch_enable):
                    m.next = "DONE"
            with m.State("ADD"):  # the field is already the one behind the size
                m.d.comb += following.eq(_FETCH_BASE)
                m.d.sync += added.eq(added << 1)
                with m.If(last):
                    m.next = "DONE"
                    with m.If((field == _FETCH_BASE) & control.fetch_enable):
                        m.next = "OPERAND"
            with m.State("DONE"):
                m.d.comb += self.o_valid.eq(1)
                m.next = "IDLE"
        name_states(fsm, "SerialStepsState")
        fsm.state.attrs["fsm_encoding"] = "one-hot"
        self._collect(m, field, fsm.ongoing("OPERAND"), operand, added)
        self._pass_on(m, held, control)
        return m

    def _words(self, m: Module, number: Value, field: Value) -> Value:
        """A word of step ``number``, a cycle later."""
        word = self.config_bus.word
        depth = 1 << FIELD_BITS + ceil_log2(self._config.steps)
        width = max(self._config.address_bits, struct_width(StepControl))
        m.submodules.words = words = memory.Memory(shape=width, depth=depth, init=[], attrs=BLOCK_RAM)
        write, read = words.write_port(), words.read_port(domain="sync")
        m.d.comb += [
            write.en.eq(self.config_bus.valid & (word.unit == Unit.STEP)),
            write.addr.eq(Cat(word.field[:FIELD_BITS], word.index)),
            write.data.eq(word.value),
            read.addr.eq(Cat(field, number)),
        ]
        return read.data

    def _operand(self, m: Module, control: Any, following: Value, word: Value) -> Value:
        """The operand of the field that was ``following`` in the cycle before: its constant, or a register."""
        source = Signal(3)
        with m.Switch(following):
            for field in OPERANDS:
                with m.Case(field.value):
                    m.d.comb += source.eq(control[field.name.lower()])
        constant, bits = Signal(), Signal(self._config.registers)
        m.d.sync += [constant.eq(source == 0), *(bit.eq(names(source, number)) for number, bit in enumerate(bits))]
        operand: Value = word[: self._config.address_bits] & replicate(constant, self._config.address_bits)
        for register, bit in zip(self.registers, bits, strict=True):
            operand = operand | (register & replicate(bit, len(register)))
        return operand

    def _collect(self, m: Module, field: Value, takes: Value, operand: Value, added: Signal) -> None:
        """Put operands where they belong, and the summands of an address together."""
        m.submodules.product = product = Multiplier(self._config.address_bits)
        a, b = Signal.like(product.a), Signal.like(product.b)
        address, total = Signal(self._config.address_bits), Signal(self._config.address_bits)
        summand: Value = Value.cast(0)
        for bit, value in zip(added, product.summands, strict=True):
            summand = summand | (value & replicate(bit, len(value)))
        m.d.comb += [product.a.eq(a), product.b.eq(b), total.eq(address + summand)]
        parts = {"base": address, "index": a, "pitch": b}
        targets = {_TOKEN: self.o.token, _SCALAR: self.o.scalar, _STORE_SIZE: self.o.store.size,
                   _FETCH_SIZE: self.o.fetch.size}  # fmt: skip
        targets |= {StepField[f"{row}_{part}".upper()].value: to for row in ROWS for part, to in parts.items()}
        with m.If(takes):
            with m.Switch(field):
                for value, target in targets.items():
                    with m.Case(value):
                        m.d.sync += target.eq(operand)
        with m.Else():
            m.d.sync += address.eq(total)
        with m.If(~takes & added[-1]):
            with m.If(field == _FETCH_BASE):
                m.d.sync += self.o.store.address.eq(total)
            with m.Else():
                m.d.sync += self.o.fetch.address.eq(total)

    def _pass_on(self, m: Module, held: Any, control: Any) -> None:
        out = self.o
        m.d.comb += [
            *(out[name].eq(held[name]) for name in ("level", "cause", "context", "entry")),
            *(out[name].eq(control[name]) for name in ("scalar_enable", "token_enable", "stream", "queue")),
        ]
        for row in ROWS:
            m.d.comb += [
                out[row].enable.eq(control[f"{row}_enable"]),
                out[row].bad.eq(is_misaligned(row, out[row].address, out[row].size, self._config)),
            ]
