"""The preparation of activations: bounds and the operands that are constant in one."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.levels.bundles import assign, names
from daedal.hw.access_unit.levels.level_words import LevelWords
from daedal.hw.access_unit.levels.pipelined.parent_writes import has_held_operands
from daedal.hw.config.core import Config
from daedal.hw.interfaces import bundle_layout, flags_layout
from daedal.hw.lib.ladder import climb, rungs
from daedal.hw.lib.replicate import replicate

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
    """A prepared activation, or a bundle that only passes (``run``, ``empty``, ``order``, ``hint`` all 0).

    ``run``: there are iterations, ``left`` is upper - lower; ``empty``: there are none; ``order``: the bounds are
    in the wrong order. ``starts``: base of each sequential load. ``hint``: it is none, but tells
    where arrays begin.
    """

    def __init__(self, config: Config, slots: int) -> None:
        more = {"hint": Out(1), "run": Out(1), "empty": Out(1), "order": Out(1), "left": Out(config.address_bits + 1)}
        super().__init__(_common(config, slots) | more)


class _ResolvedBus(wiring.Signature):
    """Operands read, nothing computed."""

    def __init__(self, config: Config, slots: int) -> None:
        super().__init__(_common(config, slots) | {"active": Out(1), "hint": Out(1)})


class Activation(wiring.Component):
    """Two stages: read the operands from the parent's registers; compare the bounds.

    Operands that are registers are read one per cycle, through one multiplexer for all of them; constants cost nothing.
    Those whose registers the parent does not write are read for the first bundle of each of its activations only, and
    kept. So an activation takes as many cycles as it has operands that are read, at least one; a bundle that only
    passes takes one.

    As soon as a nest runs it makes a *hint*: an activation whose lower bound is 0 unless it is another constant, of
    which no load makes use. So the lines at the start of each array whose base is constant are on their way before the
    parent's first bundle comes.

    Members: ``words``; ``changes``, as in ``ParentWrites``; ``running``, as in ``Level``; ``i``, the parent's bundles,
    a cycle after ``running`` or later; ``o``, taken by ``open``.
    """

    def __init__(self, config: Config, level: int) -> None:
        self._slots = config.sequential_loads[level]
        super().__init__(
            {
                "words": In(LevelWords(config, level)),
                "changes": In(config.registers),
                "running": In(1),
                "i": In(stream.Signature(bundle_layout(config))),
                "o": Out(ActivationBus(config, self._slots)),
                "open": In(1),
            }
        )
        self._config, self._level = config, level

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        resolved = _ResolvedBus(self._config, self._slots).create(path=("resolved",))
        move_out, move_in, active, complete, hint = (Signal() for _ in range(5))
        left = Signal(self._config.address_bits + 1)  # negative: the bounds are in the wrong order
        flags = self.i.payload.flags
        m.d.comb += [
            active.eq(self.words.control.enable & flags.live),
            left.eq(resolved.upper.as_signed() - resolved.lower.as_signed()),
            move_out.eq(~self.o.valid | self.open),
            move_in.eq(~resolved.valid | move_out),
            self.i.ready.eq(move_in & complete),
        ]
        more = self._read(m, resolved, self.i.valid & active, move_in)
        ran = Signal()
        m.d.sync += ran.eq(self.running)
        m.d.comb += [
            complete.eq(~active | ~more),
            hint.eq(self.running & ~ran & self.words.control.enable & ~self.words.control.interleave),
        ]
        with m.If(move_in):
            m.d.sync += [resolved.valid.eq((self.i.valid & complete) | hint), resolved.hint.eq(hint)]
            with m.If(self.i.valid):
                m.d.sync += [
                    resolved.flags.eq(flags),
                    resolved.active.eq(active),
                    *(to.eq(self.i.payload.registers[n]) for n, to in enumerate(resolved.registers)),
                ]
        with m.If(~self.running):
            m.d.sync += [resolved.active.eq(0), resolved.lower.eq(0)]
        with m.If(move_out):
            m.d.sync += self.o.valid.eq(resolved.valid)
            with m.If(resolved.valid):
                m.d.sync += self._compute(resolved, left)
        return m

    def _operands(self, resolved: Any) -> list[tuple[Any, Value, Signal]]:
        """Source, constant and place of each."""
        words = self.words
        operands = [
            (words.control.lower, words.lower, resolved.lower),
            (words.control.upper, words.upper, resolved.upper),
            (words.check.limit, words.check_limit, resolved.limit),
        ]
        for slot, start in enumerate(resolved.starts):
            operands.append((getattr(words, f"load{slot}").base, getattr(words, f"load{slot}_base"), start))
        return operands

    def _read(self, m: Module, resolved: Any, reads: Value, move: Value) -> Value:
        """While it ``reads``, read an operand with each ``move``; whether others are left after it.

        ``present`` and ``rest`` mark the operand whose turn it is and those after it, of which some are ``due``;
        ``steps`` is the register that it is. That there is something to read comes late: it decides between those of an
        activation's first operand, which are there from the words on, and those of the next one.
        """
        operands = self._operands(resolved)
        registers = range(self._config.registers)
        wanted, present, rest = (Signal(len(operands), name=name) for name in ("wanted", "present", "rest"))
        varies, due = (Signal(len(operands), name=name) for name in ("varies", "due"))
        begins = self.i.payload.flags.begin[self._level - 1] if has_held_operands(self._level) else Const(1)
        m.d.comb += due.eq(rest & (varies | replicate(begins, len(rest))))
        sources = [Signal(self._config.registers, name=f"source{n}") for n in range(len(operands))]

        def turn(todo: Signal) -> Value:
            """The state in which the first of those ``todo`` has its turn."""
            now = Cat(bit & ~todo[:n].any() for n, bit in enumerate(todo))
            marks = (Cat(source[n] & bit for source, bit in zip(sources, now, strict=True)).any() for n in registers)
            return Cat(now, todo & ~now, rungs([*marks]))

        first = Signal.like(turn(wanted))
        steps = Signal(len(first) - 2 * len(operands))
        m.d.sync += first.eq(turn(wanted))
        with m.If(move | ~reads):
            m.d.sync += Cat(present, rest, steps).eq(Mux(reads & due.any(), turn(due), first))
        value = climb([self.i.payload.registers[n] for n in registers], steps)
        for number, (source, constant, place) in enumerate(operands):
            is_constant = ~wanted[number]
            m.d.sync += wanted[number].eq(Value.cast(source) != 0)
            m.d.sync += Cat(sources[number]).eq(Cat(names(source, n) for n in registers))
            m.d.sync += varies[number].eq((sources[number] & self.changes).any())
            with m.If(is_constant | (reads & move & present[number])):
                m.d.sync += place.eq(Mux(is_constant, constant, value))
        return due.any()

    def _compute(self, resolved: Any, left: Signal) -> list[Any]:
        return [
            *assign(self.o, resolved, ("hint", "registers", "flags", "lower", "upper", "limit", "starts")),
            self.o.left.eq(left),
            self.o.run.eq(resolved.active & ~left[-1] & left.any()),
            self.o.empty.eq(resolved.active & ~left.any()),
            self.o.order.eq(resolved.active & left[-1]),
        ]
