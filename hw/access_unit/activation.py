"""The preparation of activations: bounds and the operands that are constant in one."""

from typing import Any

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.bundles import assign
from daedal.hw.access_unit.level_words import LevelWords
from daedal.hw.access_unit.operand import operand
from daedal.hw.config import Config
from daedal.hw.interfaces import bundle_layout, flags_layout
from daedal.hw.isa.launch import Cause

Members = dict[str, Any]


def _common(config: Config, slots: int) -> Members:
    return {
        "valid": Out(1),
        "registers": Out(config.address_bits).array(config.registers),
        "flags": Out(flags_layout(config)),
        "lower": Out(config.address_bits),
        "upper": Out(config.address_bits),
        "limit": Out(config.address_bits),
        "starts": Out(config.address_bits).array(slots),
    }


class ActivationBus(wiring.Signature):
    """A prepared activation, or a bundle that only passes (``run``, ``empty``, ``order`` all 0).

    ``run``: there are iterations, ``left`` is upper - lower; ``empty``: there are none; ``order``: the bounds are
    in the wrong order. ``starts``: base of each sequential load.
    """

    def __init__(self, config: Config, slots: int) -> None:
        more = {"run": Out(1), "empty": Out(1), "order": Out(1), "left": Out(config.address_bits + 1)}
        super().__init__(_common(config, slots) | more)


class _ResolvedBus(wiring.Signature):
    """Operands read, nothing computed."""

    def __init__(self, config: Config, slots: int) -> None:
        super().__init__(_common(config, slots) | {"active": Out(1)})


class Activation(wiring.Component):
    """Two stages: read the operands from the parent's registers; compare the bounds.

    One parent bundle per cycle. Members: ``words``; ``i``, the parent's bundles; ``o``, taken by ``open``.
    """

    def __init__(self, config: Config, level: int) -> None:
        self._slots = config.sequential_loads[level]
        super().__init__(
            {
                "words": In(LevelWords(config, level)),
                "i": In(stream.Signature(bundle_layout(config))),
                "o": Out(ActivationBus(config, self._slots)),
                "open": In(1),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        resolved = _ResolvedBus(self._config, self._slots).create(path=("resolved",))
        move_out, move_in = Signal(), Signal()
        left = Signal(self._config.address_bits + 1)  # negative: the bounds are in the wrong order
        m.d.comb += [
            left.eq(resolved.upper.as_signed() - resolved.lower.as_signed()),
            move_out.eq(~self.o.valid | self.open),
            move_in.eq(~resolved.valid | move_out),
            self.i.ready.eq(move_in),
        ]
        resolve = self._resolve(m, resolved)
        with m.If(move_in):
            m.d.sync += resolved.valid.eq(self.i.valid)
            with m.If(self.i.valid):
                m.d.sync += resolve
        with m.If(move_out):
            m.d.sync += self.o.valid.eq(resolved.valid)
            with m.If(resolved.valid):
                m.d.sync += self._compute(resolved, left)
        return m

    def _resolve(self, m: Module, resolved: Any) -> list[Any]:
        words, parent = self.words, self.i.payload
        registers = [parent.registers[n] for n in range(self._config.registers)]
        flags = parent.flags
        statements = [
            resolved.flags.eq(flags),
            resolved.active.eq(words.control.enable & flags.live & (flags.cause == Cause.NONE)),
            resolved.lower.eq(operand(m, "lower", words.control.lower, words.lower, registers)),
            resolved.upper.eq(operand(m, "upper", words.control.upper, words.upper, registers)),
            resolved.limit.eq(operand(m, "limit", words.check.limit, words.check_limit, registers)),
            *(to.eq(of) for to, of in zip(resolved.registers, registers, strict=True)),
        ]
        for slot in range(self._slots):
            control, base = getattr(words, f"load{slot}"), getattr(words, f"load{slot}_base")
            statements.append(resolved.starts[slot].eq(operand(m, f"base{slot}", control.base, base, registers)))
        return statements

    def _compute(self, resolved: Any, left: Signal) -> list[Any]:
        return [
            *assign(self.o, resolved, ("registers", "flags", "lower", "upper", "limit", "starts")),
            self.o.left.eq(left),
            self.o.run.eq(resolved.active & ~left[-1] & left.any()),
            self.o.empty.eq(resolved.active & ~left.any()),
            self.o.order.eq(resolved.active & left[-1]),
        ]
