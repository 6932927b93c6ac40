"""Resolves the operands of steps and computes their addresses."""

from itertools import pairwise
from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from daedal.hw.access_unit.bundles import operand
from daedal.hw.access_unit.multiplier import Multiplier
from daedal.hw.access_unit.sequencer import step_layout
from daedal.hw.access_unit.step_store import FIELDS, TOKEN_BITS, StepStore
from daedal.hw.config import ADDRESS_BITS, ELEMENT_BYTES, Config
from daedal.hw.interfaces import ConfigBus, context_bits
from daedal.hw.isa.launch import Cause
from daedal.hw.isa.program_words import SIZE_BITS, FetchQueue, StepField

ROWS = ("store", "fetch")
STAGES = 5


def resolved_layout(config: Config) -> data.StructLayout:
    """A step with its operands: what it enqueues, and where its rows are.

    ``store_bad``, ``fetch_bad``: the row is misaligned. ``cause``, ``level``, ``context``, ``registers``: as in
    ``step_layout``.
    """
    row = {"address": ADDRESS_BITS, "size": SIZE_BITS, "enable": 1, "bad": 1}
    return data.StructLayout(
        {
            "scalar_enable": 1,
            "scalar": ADDRESS_BITS,
            "token_enable": 1,
            "token": TOKEN_BITS,
            "context": context_bits(config),
            "stream": 1,
            "queue": FetchQueue,
            "store": data.StructLayout(row),
            "fetch": data.StructLayout(row),
            "level": 3,
            "cause": Cause,
            "registers": data.ArrayLayout(ADDRESS_BITS, config.registers),
        }
    )


def _carried(config: Config) -> data.StructLayout:
    """What passes through all stages unchanged."""
    layout = {name: field.shape for name, field in step_layout(config) if name != "number"}
    layout |= {"scalar": ADDRESS_BITS, "token": TOKEN_BITS, "store_size": SIZE_BITS, "fetch_size": SIZE_BITS}
    flags = ("scalar_enable", "store_enable", "token_enable", "fetch_enable", "stream")
    return data.StructLayout(layout | dict.fromkeys(flags, 1) | {"queue": FetchQueue})


class StepPipeline(wiring.Component):
    """Five stages: read the step's words, choose operands, multiply, add twice, and judge the alignment.

    One step per cycle; all stages stop together when the output is not taken. 5 cycles latency.

    Members
    -------
    config_bus : ``In(ConfigBus())``
    i : ``In(stream.Signature(step_layout(config)))``
    o : ``Out(stream.Signature(resolved_layout(config)))``
    empty : ``Out(1)``
        No step inside.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "config_bus": In(ConfigBus()),
                "i": In(stream.Signature(step_layout(config))),
                "o": Out(stream.Signature(resolved_layout(config))),
                "empty": Out(1),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.steps = steps = StepStore(self._config)
        connect(m, flipped(self.config_bus), steps.config_bus)
        move, valid = Signal(), Signal(STAGES - 1)
        m.d.comb += [
            move.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(move),
            steps.number.eq(self.i.payload.number),
            self.empty.eq(~valid.any() & ~self.o.valid),
        ]
        words = {field: Signal(shape, name=field.name.lower()) for field, shape in FIELDS.items()}
        taken = Signal(step_layout(self._config))
        with m.If(move):
            m.d.sync += Cat(valid, self.o.valid).eq(Cat(self.i.valid, valid))
        with m.If(move & self.i.valid):
            m.d.sync += [
                taken.eq(self.i.payload),
                *(
                    Value.cast(held).eq(Value.cast(getattr(steps.words, field.name.lower())))
                    for field, held in words.items()
                ),
            ]
        carried = self._carry(m, move, valid, taken, words)
        addresses = {row: self._address(m, row, move, taken, words) for row in ROWS}
        with m.If(move & valid[-1]):
            m.d.sync += self._judge(carried, addresses)
        return m

    def _operand(self, field: StepField, taken: Any, words: dict[StepField, Any]) -> Value:
        source = getattr(words[StepField.CONTROL], field.name.lower())
        registers = [taken.registers[n] for n in range(self._config.registers)]
        return operand(source, words[field], registers)[: len(Value.cast(words[field]))]

    def _carry(self, m: Module, move: Signal, valid: Signal, taken: Any, words: dict[StepField, Any]) -> Any:
        control = words[StepField.CONTROL]
        stages = [Signal(_carried(self._config), name=f"carried{n}") for n in range(3)]
        first = stages[0]
        with m.If(move & valid[0]):
            for name in ("scalar", "token", "store_size", "fetch_size"):
                m.d.sync += first[name].eq(self._operand(StepField[name.upper()], taken, words))
            for name in ("level", "registers", "cause", "context"):
                m.d.sync += first[name].eq(taken[name])
            for name in ("scalar_enable", "store_enable", "token_enable", "fetch_enable", "stream", "queue"):
                m.d.sync += first[name].eq(control[name])
        for number, (sooner, later) in enumerate(pairwise(stages), 1):
            with m.If(move & valid[number]):
                m.d.sync += later.eq(sooner)
        return stages[-1]

    def _address(self, m: Module, row: str, move: Signal, taken: Any, words: dict[StepField, Any]) -> Value:
        m.submodules[f"{row}_product"] = product = Multiplier()
        bases = [Signal(ADDRESS_BITS, name=f"{row}_base{n}") for n in range(2)]
        low, high = (Signal(ADDRESS_BITS, name=f"{row}_{part}") for part in ("low", "high"))
        base, index, pitch = (
            self._operand(StepField[f"{row}_{part}".upper()], taken, words) for part in ("base", "index", "pitch")
        )
        m.d.comb += product.enable.eq(move)
        with m.If(move):
            m.d.sync += [
                product.a.eq(index),
                product.b.eq(pitch),
                bases[0].eq(base),
                bases[1].eq(bases[0]),
                low.eq(bases[1] + product.summands[0]),
                high.eq(product.summands[1] + product.summands[2]),
            ]
        return (low + high)[:ADDRESS_BITS]

    def _judge(self, carried: Any, addresses: dict[str, Value]) -> list[Any]:
        """The last stage: the addresses' final sums and what is wrong with their low bits."""
        out = self.o.payload
        names = ("scalar_enable", "scalar", "token_enable", "token", "stream", "queue", "level", "cause", "context",
                 "registers")  # fmt: skip
        statements = [out[name].eq(carried[name]) for name in names]
        for row, address in addresses.items():
            size = carried[f"{row}_size"]
            element_bits, bus_bits = exact_log2(ELEMENT_BYTES), exact_log2(self._config.bus_bytes)
            odd = (size == 0) | size[:element_bits].any() | address[:element_bits].any()
            offset = address[:bus_bits]
            across = offset.any() & (offset + size > self._config.bus_bytes)
            statements += [
                out[row].address.eq(address),
                out[row].size.eq(size),
                out[row].enable.eq(carried[f"{row}_enable"]),
                out[row].bad.eq(odd | across if row == "fetch" else odd),
            ]
        return statements
