"""A loop level that does one thing at a time."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.access_unit.levels.bundles import LoadReturns, Outcome, activation_flags, load_request_layout
from daedal.hw.access_unit.levels.level_words import loads_of
from daedal.hw.access_unit.levels.serial.serial_alu import SerialAlu, Work, work_of
from daedal.hw.access_unit.levels.serial.serial_load import SerialLoad
from daedal.hw.access_unit.levels.serial.serial_operand import SerialOperand, Wish
from daedal.hw.access_unit.levels.serial.serial_registers import SerialRegisters
from daedal.hw.access_unit.levels.serial.serial_words import SerialWordStore
from daedal.hw.config.core import Config
from daedal.hw.interfaces import ConfigBus, bundle_layout, flags_layout, load_units
from daedal.hw.isa.launch import Cause
from daedal.hw.isa.words import AluControl, AluOp, CheckKind, CheckMode, LoadControl, Predicate, Sense
from daedal.hw.lib.fsm_names import name_states


class SerialLevel(wiring.Component):
    """What ``Level`` does, with one adder and one way to its registers: an iteration takes cycles, and few LUTs.

    Four cycles for an activation; four for an iteration; four for each load if lines are at hand, four more for a
    random load that must see what those before it loaded; two for each ALU operation, one more for a product and for an
    operand that was written just before, as many as places for a shift; three for the count. In a nest's first
    iteration lines of all slots are asked for before one is waited for. The parent's bundle is used until the
    activation ends, so a serial level around this one waits. A bundle that only passes takes one cycle, and passes
    through combinationally.

    Members: as in ``Level``; all loads, of both kinds, share one entry of ``requests``.
    """

    def __init__(self, config: Config, level: int) -> None:
        bundles = stream.Signature(bundle_layout(config))
        super().__init__(
            {
                "config_bus": In(ConfigBus()),
                "running": In(1),
                "i": In(bundles),
                "o": Out(bundles),
                "requests": Out(stream.Signature(load_request_layout(config))).array(load_units(config, level)),
                "returns": In(LoadReturns(config)),
                "ended": Out(1),
                "found": Out(1),
                "order_value": Out(64),
                "check_value": Out(64),
                "busy": Out(1),
            }
        )
        self._config, self._level = config, level
        self._unit = sum(load_units(config, outer) for outer in range(level))
        self._loads, self._alus = loads_of(config, level), config.alus[level]

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.words = store = SerialWordStore(self._config, self._level)
        m.submodules.registers = self._registers = registers = SerialRegisters(self._config, self._level)
        m.submodules.read = self._read = read = SerialOperand(self._config, self._level)
        m.submodules.alu = self._alu = alu = SerialAlu(self._config, multiplies=self._alus > 0)
        self._words = store.words
        self._declare()
        connect(m, flipped(self.config_bus), store.config_bus)
        connect(m, store.words, read.words)
        m.d.comb += [
            store.place.eq(read.place),
            read.constant.eq(store.constant),
            registers.chosen.eq(read.chosen),
            registers.parents.eq(read.parents),
            read.register.eq(registers.operand),
            read.slot.eq(self._slot),
            read.induction.eq(self._induction),
            read.count.eq(self._count),
            read.operation.eq(self._operation),
            alu.a.eq(self._a),
            alu.b.eq(self._b),
            alu.work.eq(self._work),
            registers.target.eq(self._target),
            registers.value.eq(alu.result),
            *(to.eq(of) for to, of in zip(registers.parent, self.i.payload.registers, strict=True)),
        ]
        self._count_on(m)
        m.d.sync += [self._judging.eq(0), self._replacing.eq(0)]
        with m.If(self._judging):
            self._do(m)
        if self._alus:
            m.d.comb += self._alu_word.eq(self._chosen(self._operation, "alu", self._alus))
        if self._loads:
            self._connect_load(m)
        m.d.comb += [self._read.wish[name].eq(signal) for name, signal in vars(self._wish).items()]
        with m.FSM() as fsm:
            self._activation(m)
            self._hand_on(m)
            if self._loads:
                self._load_one(m)
            with m.State("NEXT"):
                if self._loads:
                    self._next_load(m)
                else:
                    self._after_loads(m)
            if self._alus:
                self._operate(m)
            self._tally(m)
        name_states(fsm, "SerialLevelState")
        self._write(m)
        fsm.state.attrs["fsm_encoding"] = "one-hot"
        with m.If(self._takes):
            m.d.sync += self._b.eq(read.operand << self._size)
        self._bundle(m)
        self._flags(m)
        return m

    def _declare(self) -> None:
        """The level's own registers."""
        bits = self._config.address_bits
        self._a, self._b, self._upper = Signal(bits), Signal(bits), Signal(bits)
        self._induction, self._following = Signal(bits), Signal(bits)
        self._work, self._target = Signal(Work), Signal.like(self._registers.target)
        self._kind = Outcome(*(Signal(name=name) for name in Outcome._fields))
        self._first, self._last = Signal(), Signal()
        self._count = Signal(bits)
        self._slot, self._operation = Signal(range(max(2, self._loads + 1))), Signal(range(max(2, self._alus + 1)))
        self._alu_word, self._present_alu = Signal(AluControl), Signal(AluControl)
        """Of the operation that comes, and of the one that is done."""
        self._takes, self._size = Signal(), Signal(2)
        """``b`` takes the operand, shifted by ``size``."""
        self._passes, self._out, self._pops = Signal(), Signal(), Signal()
        # One signal each: Verilog of bits that no state of a level without loads or operations sets is odd.
        self._wish = SimpleNamespace(**{name: Signal(name=f"wish_{name}") for name, _ in data.Layout.cast(Wish)})
        # A loaded value is written now; if the check names its slot, it is judged; 0 goes to its register instead.
        self._judging, self._judges, self._replacing = Signal(), Signal(), Signal()
        self._touches = Signal()
        """Nothing is loaded yet: lines are asked for."""
        # What the check has found: a fault, a value that was replaced, in this iteration; anything, in this nest.
        self._bad, self._replaced, self._found = Signal(), Signal(), Signal()

    def _do(self, m: Module, **work: Any) -> None:
        """What the ALU is to do in the next cycle."""
        m.d.sync += [getattr(self._work, name).eq(work.get(name, 0)) for name, _ in data.Layout.cast(Work)]

    def _count_on(self, m: Module) -> None:
        """The induction variable of the next iteration, and whether there is one."""
        bits = self._config.address_bits
        following = Signal(bits + 2)
        m.d.comb += following.eq(self._induction.as_signed() + self._words.step)
        m.d.comb += self._following.eq(following)
        self._is_last = following.as_signed() >= self._upper.as_signed()

    # ------------------------------------------------------------------ activations

    def _activation(self, m: Module) -> None:
        flags, wish = self.i.payload.flags, self._wish
        active = self._words.control.enable & flags.live
        with m.State("WAIT"):
            m.d.comb += self._passes.eq(~active)
            m.d.sync += self._induction.eq(self._read.operand)
            m.d.comb += self._takes.eq(1)
            with m.If(self.i.valid & active):
                m.d.comb += wish.upper.eq(1)
                m.next = "UPPER"
            with m.Else():
                m.d.comb += wish.lower.eq(1)
        with m.State("UPPER"):
            m.d.sync += [self._a.eq(self._read.operand), self._upper.eq(self._read.operand)]
            self._do(m, minus=1)
            m.next = "BOUNDS"
        with m.State("BOUNDS"):
            negative, equal = self._alu.total[-1], self._alu.equal
            m.d.sync += [
                self._kind.order.eq(negative), self._kind.empty.eq(equal), self._kind.run.eq(~negative & ~equal),
                self._first.eq(1), self._last.eq(1), self._count.eq(0), self._bad.eq(0), self._replaced.eq(0),
                self._target.eq(self._words.count.destination),
            ]  # fmt: skip
            self._do(m)
            with m.If(negative):
                m.next = "OUT"
            with m.Elif(equal):
                m.next = "EMPTY"
            with m.Else():
                m.d.comb += wish.induction.eq(1)
                m.next = "START"
        with m.State("EMPTY"):
            m.d.comb += self._registers.write.eq(self._words.count.enable)
            m.next = "OUT"

    def _after_loads(self, m: Module, *, ahead: bool = False) -> None:
        """On to ALU operations, if there are any, or further; ``ahead`` as in ``_next_operation``."""
        if self._alus:
            self._next_operation(m, ahead=ahead)
        else:
            self._after_operations(m)

    def _after_operations(self, m: Module) -> None:
        m.d.comb += self._wish.predicate.eq(1)
        with m.If(self._words.count.enable):
            m.next = "TEST"
        with m.Else():
            m.next = "OUT"

    # ------------------------------------------------------------------ loads

    def _connect_load(self, m: Module) -> None:
        """The way to memory, and the word of the load whose turn it is."""
        self._load_word = load = Signal(LoadControl)  # a cycle late: the slot changes two cycles before it is read
        m.submodules.load = self._load = unit = SerialLoad(self._config, self._unit, self._loads)
        connect(m, unit.request, flipped(self.requests[0]))
        connect(m, flipped(self.returns), unit.returns)
        self._held, self._checked = Signal(LoadControl), Signal()
        """The word of the load whose element comes, and whether the check names it."""
        self._high, self._outside = Signal(), Signal()
        m.d.sync += [
            load.as_value().eq(self._chosen(self._slot, "load", self._loads)),
        ]
        if self._loads > 1:
            with m.If(~self.running):
                m.d.sync += self._touches.eq(1)
        m.d.comb += [
            unit.running.eq(self.running),
            unit.slot.eq(self._slot),
            unit.address.eq(self._alu.total),
            unit.touch.eq(self._touches),
            unit.ahead.eq(Value.cast(load.index) == 0),
            unit.end.eq(self._read.operand),
            unit.size.eq(self._held.size),
            unit.is_signed.eq(self._held.is_signed),
            self.busy.eq(unit.busy),
            self._outside.eq(self._judging & self._judges & (self._high | ~self._alu.total[-1])),
        ]

    def _walking(self) -> list[Value]:
        """For each slot: there is a load, whose address depends on nothing that this iteration loads."""
        walking = []
        for slot in range(self._loads):
            load = getattr(self._words, f"load{slot}")
            random = slot >= self._config.sequential_loads[self._level]
            depends = Cat(Value.cast(load.index), Value.cast(load.base)).any() if random else Const(0)
            walking.append(load.enable & ~depends)
        return walking

    def _load_one(self, m: Module) -> None:
        """While the line of one load is looked up and read, the address of the next one is computed.

        So each state is one of two loads, the later of which has its turn (``slot``, ``load``). The earlier one's word
        is ``held``. If nothing is checked, ``b`` keeps the index, which is the same for all that follow; but a first
        element of a line leaves the cache the time to look for another line.
        """
        wish, read, load, unit, check = self._wish, self._read, self._load_word, self._load, self._words.check
        sequential, behind = self._config.sequential_loads[self._level], Signal()
        follows = Cat(
            walks & (~check.enable if slot >= sequential else 1) for slot, walks in enumerate(self._walking())
        )
        sizes = [getattr(self._words, f"load{slot}").size for slot in range(self._loads)]
        same = (Cat(*(size == before for before, size in pairwise([Const(0, 2), *sizes]))) >> self._slot)[0]
        with m.State("INDEX"):
            m.d.comb += [self._takes.eq(1), self._size.eq(load.size)]
            with m.If(load.enable):
                m.d.comb += wish.base.eq(1)
                m.next = "BASE"
            with m.Else():  # the check may look at a load that is not done, which has the value 0
                m.d.comb += wish.limit.eq(1)
                m.next = "ABSENT"
        with m.State("BASE"):
            m.d.comb += wish.limit.eq(1)
            m.d.sync += self._a.eq(read.operand)
            self._do(m, add=1)
            m.next = "PROBE"
        with m.State("PROBE"):
            m.d.comb += [unit.ask.eq(1), wish.end.eq(unit.free), wish.limit.eq(~unit.free)]
            with m.If(unit.free):
                with m.If(behind):
                    self._receive(m, self._held.destination, unit.value, self._checked)
                m.d.sync += [
                    self._held.eq(load), self._checked.eq(check.enable & (check.load == self._slot)),
                    self._slot.eq(self._slot + 1), behind.eq(0),
                ]  # fmt: skip
                m.next = "LOOK"
        with m.State("LOOK"):
            m.d.comb += wish.index.eq(1)
            with m.If(self._touches):
                with m.If(unit.settled):
                    m.next = "NEXT"
            with m.Elif(unit.there):
                with m.If((follows >> self._slot)[0]):
                    m.d.sync += behind.eq(1)
                    m.next = "INDEX"
                    with m.If(unit.within & same & ~Value.cast(self._held.index).any() & ~check.enable):
                        m.d.comb += [wish.index.eq(0), wish.base.eq(1)]
                        m.next = "BASE"
                with m.Else():
                    m.next = "LINE"
        with m.State("LINE"):
            m.d.comb += wish.limit.eq(1)
            m.next = "ELEMENT"
        with m.State("ELEMENT"):
            self._receive(m, self._held.destination, unit.value, self._checked)
            if self._alus:
                m.d.comb += wish.b.eq(1)  # that of the first operation, if there is one
            m.next = "JUDGE"
        with m.State("ABSENT"):
            self._receive(m, Const(0), Const(0, 64), Const(1))
            if self._alus:
                m.d.comb += wish.b.eq(1)
            m.d.sync += self._slot.eq(self._slot + 1)
            m.next = "JUDGE"
        with m.State("JUDGE"):
            with m.If(self._outside):
                m.next = "NEXT"
            with m.Else():
                self._next_load(m, ahead=True)

    def _receive(self, m: Module, target: Value, value: Value, judges: Value) -> None:
        """A value goes to the ALU, to be written in the next cycle, and compared with the limit if it ``judges``."""
        m.d.comb += self._takes.eq(judges)
        m.d.sync += [
            self._a.eq(value), self._high.eq(value[self._config.address_bits - 1 :].any()), self._target.eq(target),
            self._judges.eq(judges), self._judging.eq(1),
        ]  # fmt: skip
        with m.If(judges & ~self._found):
            m.d.sync += self.check_value.eq(value)
        self._do(m, minus=1, pass_a=1)

    def _next_load(self, m: Module, *, ahead: bool = False) -> None:
        """On to the next load, if there is one, or further; behind a fault only to those that the fault's record has.

        ``ahead`` as in ``_next_operation``.
        """
        check, sequential = self._words.check, self._config.sequential_loads[self._level]
        pending = Cat(
            Mux(
                self._touches, walks, getattr(self._words, f"load{slot}").enable | (check.enable & (check.load == slot))
            )
            for slot, walks in enumerate(self._walking())
        )
        counted = Mux(self._bad, (1 << sequential) - 1, (1 << self._loads) - 1)
        left = (pending & counted) >> self._slot
        with m.If(left[0]):
            m.d.comb += self._wish.index.eq(1)
            m.next = "INDEX"
        with m.Elif(left.any()):
            m.d.sync += self._slot.eq(self._slot + 1)
            m.next = "NEXT"
        with m.Elif(self._touches):
            m.d.sync += [self._touches.eq(0), self._slot.eq(0)]
            m.next = "NEXT"
        with m.Else():
            m.d.sync += self._slot.eq(0)
            with m.If(self._bad):
                m.next = "OUT"
            with m.Else():
                self._after_loads(m, ahead=ahead)

    # ------------------------------------------------------------------ arithmetic

    def _next_operation(self, m: Module, *, ahead: bool = False) -> None:
        """On to the next operation from ``operation`` on, if there is one.

        ``ahead``: its second operand is being read, while something is written; so it is right if it is not that.
        """
        words = [getattr(self._words, f"alu{number}") for number in range(self._alus)]
        left = Cat(word.op != AluOp.NONE for word in words) >> self._operation
        with m.If(left[0]):
            m.next = "FIRST"
            if ahead:
                b = Value.cast(self._alu_word.b)
                with m.If((b == Value.cast(self._target)) & b.any()):
                    m.d.comb += self._wish.b.eq(1)
                with m.Else():
                    self._second_operand(m)
            else:
                m.d.comb += self._wish.b.eq(1)
        with m.Elif(left.any()):
            m.d.sync += self._operation.eq(self._operation + 1)
            m.next = "OPERATION"
        with m.Else():
            self._after_operations(m)

    def _second_operand(self, m: Module) -> None:
        """It is there; what is to be done is kept, so that the word of the next operation can be looked at."""
        m.d.comb += [self._takes.eq(1), self._wish.a.eq(1)]
        m.d.sync += [self._present_alu.eq(self._alu_word), self._operation.eq(self._operation + 1)]
        m.next = "SECOND"

    def _operate(self, m: Module) -> None:
        op, shifts = Value.cast(self._present_alu.op), Signal(6)
        with m.State("OPERATION"):
            self._next_operation(m)
        with m.State("FIRST"):
            self._second_operand(m)
        with m.State("SECOND"):
            m.d.comb += self._wish.b.eq(1)  # that of the next operation, if there is one
            m.d.sync += [
                self._a.eq(self._read.operand), shifts.eq(self._b), self._target.eq(self._present_alu.destination),
            ]  # fmt: skip
            self._do(m, **work_of(op))
            m.next = "WORK"
            with m.If(op == AluOp.MUL):
                m.next = "PRODUCT"
        with m.State("PRODUCT"):
            m.d.comb += self._wish.b.eq(1)
            m.next = "WORK"
        with m.State("WORK"):  # a shift takes a cycle for each place
            shifting = self._work.pass_a & (shifts != 0) if self._config.shifters[self._level] else Const(0)
            with m.If(shifting):
                left = op == AluOp.SHIFT_LEFT
                m.d.comb += self._wish.b.eq(1)
                m.d.sync += [self._a.eq(Mux(left, self._a << 1, self._a >> 1)), shifts.eq(shifts - 1)]
            with m.Else():
                m.d.comb += self._registers.write.eq(1)
                self._next_operation(m, ahead=True)

    def _tally(self, m: Module) -> None:
        """Count the iterations whose predicate holds."""
        count, holds = self._words.count, Signal()
        with m.State("TEST"):
            always = count.predicate == Predicate.ALWAYS
            m.d.sync += holds.eq(always | (self._read.operand.any() ^ (count.sense == Sense.ZERO)))
            m.d.comb += self._wish.count.eq(1)
            m.next = "TALLY"
        with m.State("TALLY"):
            m.d.sync += [self._a.eq(self._read.operand), self._b.eq(0), self._target.eq(count.destination)]
            self._do(m, add=1)
            m.next = "COUNT"
        with m.State("COUNT"):
            m.d.comb += [self._alu.carry.eq(holds), self._registers.write.eq(1)]
            m.d.sync += self._count.eq(self._alu.total)
            m.next = "OUT"

    # ------------------------------------------------------------------ bundles

    def _hand_on(self, m: Module) -> None:
        with m.State("START"):  # the induction variable is written a cycle later
            m.d.comb += self._registers.clear.eq(1)
            m.d.sync += [
                self._a.eq(self._read.operand), self._target.eq(self._words.control.induction),
                self._last.eq(self._is_last), self._operation.eq(0), self._replaced.eq(0),
                self._judging.eq(1), self._judges.eq(0),
            ]  # fmt: skip
            self._do(m, pass_a=1)
            m.next = "NEXT"
            if self._loads:
                with m.If(self._walking()[0]):  # as in INDEX
                    m.d.comb += [self._takes.eq(1), self._size.eq(self._load_word.size), self._wish.base.eq(1)]
                    m.next = "BASE"
        with m.State("OUT"):
            m.d.comb += self._out.eq(1)
            with m.If(self.o.ready):
                m.d.sync += [self._induction.eq(self._following), self._first.eq(0)]
                m.d.comb += self._wish.induction.eq(1)
                m.next = "START"
                with m.If(self._last):
                    m.next = "POP"
                with m.If(self._bad | self._kind.order):
                    m.next = "DEAD"
        with m.State("POP"):
            m.d.comb += [self._pops.eq(1), self._registers.clear.eq(1), self._wish.lower.eq(1)]
            m.next = "WAIT"
        with m.State("DEAD"):
            pass

    def _write(self, m: Module) -> None:
        """Write the induction variable or what was loaded; 0 a cycle later for a value that the check replaces."""
        fatal = self._words.check.mode == CheckMode.FATAL
        with m.If(self._judging | self._replacing):
            m.d.comb += self._registers.write.eq(1)
        if self._loads:
            with m.If(self._outside):
                m.d.sync += [
                    self._found.eq(1), self._bad.eq(fatal), self._replaced.eq(~fatal), self._replacing.eq(~fatal),
                ]  # fmt: skip

    def _bundle(self, m: Module) -> None:
        """What leaves, and when the parent's bundle has been used."""
        taken, flags = Signal(), self.o.payload.flags
        m.d.comb += [
            self.o.valid.eq(self._out | (self._passes & self.i.valid)),
            self.i.ready.eq(self._pops | (self._passes & self.o.ready)),
            taken.eq(self.o.valid & self.o.ready),
            self.ended.eq(taken & flags.last & (flags.cause == Cause.NONE)),
            self.found.eq(taken & flags.replaced[self._level] & ~self._passes),
            *(to.eq(of) for to, of in zip(self.o.payload.registers, self._registers.view, strict=True)),
        ]

    def _flags(self, m: Module) -> None:
        parent, check = self.i.payload.flags, self._words.check
        flags = Signal(flags_layout(self._config))
        wrong = Mux(Value.cast(check.kind) == CheckKind.INDEX, Cause.INDEX, Cause.OFFSET)
        m.d.comb += [
            *activation_flags(flags, parent, self._level, self._kind, self._first, self._last),
            flags.last.eq(parent.last & self._last),
            flags.context.eq(parent.context),
        ]
        with m.If(self._bad):
            m.d.comb += [flags.live.eq(0), flags.cause.eq(wrong), flags.fault_level.eq(self._level)]
        with m.If(self._replaced):
            m.d.comb += flags.replaced[self._level].eq(1)
        m.d.comb += [
            self.o.payload.flags.eq(Mux(self._passes, parent, flags)),
            self.order_value.eq(self._upper.as_signed()),
        ]
        with m.If(self.config_bus.clear):  # between nests
            m.d.sync += self._found.eq(0)

    def _chosen(self, number: Value, name: str, count: int) -> Value:
        """The word of the load, or operation, ``number``."""
        words = [Value.cast(getattr(self._words, f"{name}{n}")) for n in range(count)]
        result: Value = Value.cast(0)
        for n, word in enumerate(words):
            result = result | Mux(number == n, word, 0)
        return result
