"""Which operand a serial level reads next."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.levels.bundles import names
from daedal.hw.access_unit.levels.level_words import loads_of
from daedal.hw.access_unit.levels.serial.serial_words import SerialWords, constant_fields, place_bits
from daedal.hw.config.core import Config
from daedal.hw.lib.replicate import replicate


class Wish(data.Struct):
    """What is to be read in the next cycle: one of these, or nothing.

    The bounds; the induction variable; a load's index, base, the end of its array; the check's limit; an ALU
    operation's operands; the count's predicate, which reads as 0 if it names no register; the count.
    """

    lower: 1
    upper: 1
    induction: 1
    index: 1
    base: 1
    end: 1
    limit: 1
    a: 1
    b: 1
    predicate: 1
    count: 1


class SerialOperand(wiring.Component):
    """Reads one operand a cycle, a constant or a register, as it was wished for in the cycle before.

    Bounds, limits and bases of sequential loads come from the parent's registers.

    Members
    -------
    words : ``In(SerialWords(config, level))``
    wish, slot, operation : ``In(Wish)``, ``In``, ``In``
        What is to be read in the next cycle, of which load or ALU operation.
    place, constant : ``Out``, ``In(address_bits)``
        The constant at this place of ``constant_fields``.
    chosen, parents, register : ``Out(registers)``, ``Out(1)``, ``In(address_bits)``
        As ``chosen``, ``parents`` and ``operand`` of ``SerialRegisters``.
    induction, count : ``In(address_bits)``
        The induction variable and the count so far.
    operand : ``Out(address_bits)``
    """

    def __init__(self, config: Config, level: int) -> None:
        super().__init__(
            {
                "words": In(SerialWords(config, level)),
                "wish": In(Wish),
                "slot": In(range(max(2, loads_of(config, level) + 1))),
                "operation": In(range(max(2, config.alus[level] + 1))),
                "place": Out(place_bits(config, level)),
                "constant": In(config.address_bits),
                "chosen": Out(config.registers),
                "parents": Out(1),
                "register": In(config.address_bits),
                "induction": In(config.address_bits),
                "count": In(config.address_bits),
                "operand": Out(config.address_bits),
            }
        )
        self._config, self._level = config, level
        self._places = {field.name: place for place, field in enumerate(constant_fields(config, level))}

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        words, wish, config = self.words, self.wish, self._config
        choices: list[tuple[Value, Value | None, str]] = [
            (wish.lower, Value.cast(words.control.lower), "LOWER"),
            (wish.upper, Value.cast(words.control.upper), "UPPER"),
            (wish.limit, Value.cast(words.check.limit), "CHECK_LIMIT"),
        ]
        for slot in range(loads_of(config, self._level)):
            load, ours = getattr(words, f"load{slot}"), self.slot == slot
            choices += [
                (wish.index & ours, Value.cast(load.index), ""),
                (wish.base & ours, Value.cast(load.base), f"LOAD{slot}_BASE"),
                (wish.end & ours, None, f"LOAD{slot}_LIMIT"),
            ]
        for number in range(config.alus[self._level]):
            alu, ours = getattr(words, f"alu{number}"), self.operation == number
            choices += [
                (wish.a & ours, Value.cast(alu.a), f"ALU{number}_A"),
                (wish.b & ours, Value.cast(alu.b), f"ALU{number}_B"),
            ]
        choices.append((wish.predicate, Value.cast(words.count.predicate), ""))
        self._choose(m, choices)
        return m

    def _choose(self, m: Module, choices: list[tuple[Value, Value | None, str]]) -> None:
        wish = self.wish
        source, place, constant = Signal(3), Signal.like(self.place, name="next_place"), Signal()
        held, induction, count = Signal(), Signal(), Signal()
        sources: Value = Value.cast(0)
        places: Value = Value.cast(0)
        for wanted, named, field in choices:
            sources = sources | (0 if named is None else Mux(wanted, named, 0))
            places = places | (Mux(wanted, self._places[field], 0) if field else 0)
        m.d.comb += [
            source.eq(sources),
            place.eq(places),
            constant.eq(~source.any() & ~(wish.induction | wish.index | wish.predicate | wish.count)),
        ]
        sequential = self.slot < self._config.sequential_loads[self._level]
        m.d.sync += [
            self.place.eq(place),
            held.eq(constant),
            induction.eq(wish.induction | (wish.index & ~source.any())),
            count.eq(wish.count),
            self.chosen.eq(Cat(names(source, number) for number in range(self._config.registers))),
            self.parents.eq(wish.lower | wish.upper | wish.limit | (wish.base & sequential)),
        ]
        others = ((self.constant, held), (self.induction, induction), (self.count, count))
        operand: Value = self.register
        for value, is_read in others:
            operand = operand | (value & replicate(is_read, len(value)))
        m.d.comb += self.operand.eq(operand)
