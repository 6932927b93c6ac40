"""Reads launch blocks and programs and writes them, word by word, into the units."""

from typing import Any

from amaranth import Cat, Module, Mux, Signal
from amaranth.hdl import Elaboratable, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from daedal.hw.access_unit.nest_queue import NEST_BITS
from daedal.hw.config.core import Config
from daedal.hw.control.checksum_unit import Checksum
from daedal.hw.control.word_legality import WordLegality
from daedal.hw.control.word_reader import WordReader
from daedal.hw.interfaces import ConfigBus, ReturnBus, read_request_layout
from daedal.hw.isa.launch import (
    BLOCK_REGION,
    LAUNCH_ALIGNMENT,
    LAUNCH_HEADER_WORDS,
    LEAST_FOLLOWING,
    LaunchFlags,
    LaunchWord,
    StoreWindow,
    launch_block_words,
)
from daedal.hw.isa.program import WORD_BYTES
from daedal.hw.isa.words import (
    ALU_FIELDS,
    LOAD_FIELDS,
    VALUE_BITS,
    CallbackField,
    ControlField,
    EventField,
    InstructionField,
    LengthField,
    LevelField,
    ProgramWord,
    StepField,
    Unit,
)
from daedal.hw.lib.fsm_names import name_states
from daedal.hw.reports import LoaderReport

SPECULATIVE_BURSTS = 2
"""Bursts of a program that are read before its length is known."""

ARGUMENT_BITS = data.Layout.cast(LaunchFlags)["last_argument"].width
"""Bits of an argument's number."""

JUDGE_CYCLES = 2
"""Words that can be taken after one whose value is wrong, before that is known."""


def level_fields(config: Config, level: int) -> list[LevelField]:
    """The fields that level ``level`` of this machine has."""
    loads = config.sequential_loads[level] + config.random_loads[level]
    fields = [field for field in LevelField if field.value < LevelField.LOAD0.value]
    for k in range(loads):
        first = LevelField.LOAD0.value + LOAD_FIELDS * k
        fields += [field for field in LevelField if first <= field.value < first + LOAD_FIELDS]
    for k in range(config.alus[level]):
        first = LevelField.ALU0.value + ALU_FIELDS * k
        fields += [field for field in LevelField if first <= field.value < first + ALU_FIELDS]
    return fields


def _aligned(address: Value) -> Value:
    """Whether a launch block, program or record can be there."""
    return ~address[: exact_log2(LAUNCH_ALIGNMENT)].any()


class WordCheck(wiring.Component):
    """What can be said of a program word wherever in the program it is.

    Members
    -------
    word : ``In(ProgramWord)``, last_argument : ``In(ARGUMENT_BITS)``
        Arguments behind the last one are not there.
    legal : ``Out(1)``
        It names something that the machine has, and is neither CONFIG with another hash nor a LENGTH that cannot be.
    executes : ``Out(1)``
        It is for the execute unit: illegal once a nest has run.
    is_config, is_length, is_end : ``Out(1)``
        Which control word it is.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        outputs = ("legal", "executes", "is_config", "is_length", "is_end")
        super().__init__({"word": In(ProgramWord), "last_argument": In(ARGUMENT_BITS),
                          **{name: Out(1) for name in outputs}})  # fmt: skip

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config, word = self._config, self.word
        argument_fits, bad_value = Signal(), Signal()
        m.d.comb += argument_fits.eq(
            ~word.substitute | ((word.argument < config.arguments) & (word.argument <= self.last_argument))
        )
        self._control(m, bad_value)

        def allow(condition: Value) -> None:
            m.d.comb += self.legal.eq(condition & argument_fits & ~bad_value)

        with m.Switch(word.unit):
            with m.Case(Unit.CONTROL):
                allow((word.index == 0) & (word.field <= ControlField.END.value))
            with m.Case(Unit.LEVEL), m.Switch(word.index):
                for level in range(config.levels):
                    with m.Case(level), m.Switch(word.field):
                        with m.Case(*(field.value for field in level_fields(config, level))):
                            allow(1)
            with m.Case(Unit.EVENT):
                allow(
                    (word.index < 4 * config.levels) & (word.index[:2] != 3) & (word.field == EventField.CONTROL.value)
                )
            with m.Case(Unit.STEP):
                allow((word.index < config.steps) & (word.field <= StepField.FETCH_SIZE.value))
            with m.Case(Unit.LENGTH):
                allow((word.index < config.lengths) & self._has_type(word.field))
            with m.Case(Unit.CALLBACK):
                allow((word.index < config.callbacks) & (word.field == CallbackField.START.value))
            with m.Case(Unit.INSTRUCTION):
                allow((word.index < config.instructions) & (word.field == InstructionField.CODE.value))
        return m

    def _has_type(self, field: Value) -> Value:
        """Whether rows of a length register can be of this type."""
        others = [kind.value for kind in self._config.length_fields[1:]]
        plain = field == LengthField.ELEMENTS.value
        return plain | field.matches(*others) if others else plain

    def _control(self, m: Module, bad_value: Signal) -> None:
        """Which control word it is, and whether its value cannot be."""
        word, control = self.word, self.word.unit == Unit.CONTROL
        is_config, is_length = self.is_config, self.is_length
        m.d.comb += [
            self.executes.eq(
                (word.unit == Unit.LENGTH) | (word.unit == Unit.CALLBACK) | (word.unit == Unit.INSTRUCTION)
            ),
            is_config.eq(control & (word.field == ControlField.CONFIG.value)),
            is_length.eq(control & (word.field == ControlField.LENGTH.value)),
            self.is_end.eq(control & (word.field == ControlField.END.value)),
            bad_value.eq(
                (is_config & ((word.value != self._config.hash) | word.substitute))
                | (is_length & ((word.value < 3) | (word.value >= 1 << 15) | word.substitute))
            ),
        ]


class Loader(wiring.Component):
    """Carries out the words of one launch.

    Illegal words stop it until it is reset.

    Members
    -------
    launch : ``In(stream.Signature(address_bits))``
        Address of a launch block; taken when the launch begins.
    cancel : ``In(1)``
        Read the header of launches only: ``report.done`` follows at once.
    halt : ``In(1)``
        Read and hand out nothing more.
    config_bus : ``Out(ConfigBus())``
    room : ``In(1)``
        The access unit can take some more words.
    run : ``Out(1)``, nest : ``Out(8)``
        Strobe: the words of a nest have been sent; its number, counted from 0.
    nests_done : ``In(1)``
        The access unit is through with all nests: only then a program that cannot be carried out is a fault, for what
        comes before is carried out.
    wait : ``In(1)``
        An earlier launch is not over: no nest of a launch with the flag ``fence`` is run.
    report : ``Out(LoaderReport(config))``
    requests, returns : as in the access unit, for ``Client.LOADER``
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "launch": In(stream.Signature(config.address_bits)),
                "cancel": In(1),
                "halt": In(1),
                "config_bus": Out(ConfigBus()),
                "room": In(1),
                "run": Out(1),
                "nests_done": In(1),
                "wait": In(1),
                "nest": Out(NEST_BITS),
                "report": Out(LoaderReport(config)),
                "requests": Out(stream.Signature(read_request_layout(config))),
                "returns": In(ReturnBus(config)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.reader = self._reader = reader = WordReader(self._config)
        m.submodules.check = self._check = WordCheck(self._config)
        m.submodules.values = self._values = WordLegality(self._config)
        m.submodules.arguments = arguments = Memory(shape=VALUE_BITS, depth=self._config.arguments, init=[])
        m.submodules.sum = self._sum = Checksum()
        connect(m, flipped(self.returns), reader.returns)
        self._count, self._last, self._started = Signal(16), Signal(16), Signal()
        self._program, self._fence = Signal(self._config.address_bits), Signal()
        self._follows = Signal()
        """The program follows the launch block."""
        self._last_argument = Signal(ARGUMENT_BITS)
        self._measured = Signal()
        """In the cycle before, the length of the program became known, or that of the block."""
        self._waited = Signal(range(JUDGE_CYCLES + 1))
        self._word, self._legal, self._in_program = Signal(ProgramWord), Signal(), Signal()
        self._back = Signal(range(JUDGE_CYCLES + 2))
        """How many words ago the one was that ``word_number`` is the number of."""
        self._valid, self._take = Signal(), Signal()
        """There is a word; it is taken, if there is one."""
        self._bad_value, self._clear = Signal(), Signal()
        self._counted = Signal(JUDGE_CYCLES)
        """Whether a word was counted a cycle ago, and so on: those behind the one whose value is judged now."""
        m.d.comb += [
            self.requests.valid.eq(reader.requests.valid),
            self.requests.payload.eq(reader.requests.payload),
            self.requests.payload.tag.side.eq(self.report.side),
            reader.requests.ready.eq(self.requests.ready),
            self.report.word_number.eq(self._count - self._back),
            self.report.program.eq(self._program),
        ]
        with m.If(self.halt):
            m.d.comb += reader.stop.eq(1)
        m.d.sync += self._measured.eq(0)
        self._words(m)
        self._measure(m)
        self._substitute(m, arguments.read_port(domain="comb"))
        with m.FSM() as fsm:
            self._launch_states(m, arguments.write_port())
            self._program_states(m)
        name_states(fsm, "LoaderState")
        m.d.comb += self._clear.eq(fsm.ongoing("CLEAR"))
        return m

    def _words(self, m: Module) -> None:
        """A register between reader and states, with what can be said of a word before its turn has come."""
        reader, check, present = self._reader, self._check, Signal()
        good, executes, is_config, is_length, is_end = (Signal(name=name) for name in (
            "good", "executes", "is_config", "is_length", "is_end"
        ))  # fmt: skip
        m.d.comb += [
            check.word.eq(reader.words.payload),
            check.last_argument.eq(self._last_argument),
            reader.words.ready.eq(~present | self._take),
            self._valid.eq(present & ~reader.stop),
            self._legal.eq(good & ~(executes & self._started)),
        ]
        with m.If(reader.stop):
            m.d.sync += present.eq(0)
        with m.Elif(reader.words.ready):
            m.d.sync += [
                present.eq(reader.words.valid), self._word.eq(reader.words.payload),
                good.eq(check.legal), executes.eq(check.executes),
                is_config.eq(check.is_config), is_length.eq(check.is_length), is_end.eq(check.is_end),
            ]  # fmt: skip
        count = self._count
        wrong_end = (count > 1) & (is_end != (count == self._last))
        self._misplaced = (is_config != (count == 0)) | (is_length != (count == 1)) | wrong_end
        """CONFIG, LENGTH or END where they must not be, or anything else where they must."""

    def _launch_states(self, m: Module, argument: Any) -> None:
        reader = self._reader
        with m.State("IDLE"):
            # What the program before has not used may still be on its way.
            m.d.comb += self.launch.ready.eq(reader.idle & ~self.halt)
            m.d.comb += self.report.begin.eq(self.launch.valid & self.launch.ready)
            with m.If(self.report.begin):
                m.d.sync += [self._count.eq(0), self._started.eq(0), self.nest.eq(0)]
                m.d.sync += self.report.side.eq(~self.report.side)
                m.d.comb += self._sum.clear.eq(1)
                m.d.sync += self._program.eq(self.launch.payload)
                m.next = "START"
        with m.State("START"):
            # That a launch begins is known late. The block's address is where the program's will be.
            aligned = _aligned(self._program)
            m.d.comb += [reader.address.eq(self._program), reader.start.eq(aligned & ~self.halt)]
            m.d.sync += reader.lines.eq(self._region_lines(self._program, BLOCK_REGION))
            with m.If(~aligned):
                m.next = "MISALIGNED"
            with m.Elif(~self.halt):
                m.next = "BLOCK"
        with m.State("BLOCK"):
            self._block_word(m, argument)
        with m.State("OPEN"):
            m.d.comb += reader.stop.eq(~self._follows | self.cancel)
            m.d.comb += self.report.opened.eq(_aligned(self.report.record))
            with m.If(self.cancel):
                m.d.comb += self.report.done.eq(1)
                m.next = "IDLE"
            with m.Elif(~_aligned(self.report.record) | ~(_aligned(self._program) | self._follows)):
                m.next = "MISALIGNED"
            with m.Elif(self._follows):
                m.d.sync += self._count.eq(0)
                m.next = "PROGRAM"
            with m.Elif(reader.idle):
                m.next = "BEGIN_PROGRAM"
        with m.State("MISALIGNED"):
            m.d.comb += reader.stop.eq(1)
            m.d.sync += self.report.misaligned.eq(~self.cancel)
            with m.If(self.cancel):
                m.d.comb += self.report.done.eq(1)
                m.next = "IDLE"
        with m.State("BEGIN_PROGRAM"):
            m.d.comb += [reader.start.eq(~self.halt), reader.address.eq(self._program)]
            bursts = SPECULATIVE_BURSTS * reader.burst_lines * self._config.bus_bytes
            m.d.sync += [self._count.eq(0), reader.lines.eq(self._region_lines(self._program, bursts))]
            with m.If(~self.halt):
                m.next = "PROGRAM"

    def _region_lines(self, address: Value, size: int) -> Value:
        """Lines to the next multiple of ``size`` bytes, or of a burst if that is more: none leaves the 4 KiB page, and
        the last burst is whole.
        """
        line = exact_log2(self._config.bus_bytes)
        lines = max(size >> line, self._reader.burst_lines)
        return lines - address[line : line + exact_log2(lines)]

    def _block_word(self, m: Module, argument: Any) -> None:
        """The next word of the launch block, the last of which is its last argument."""
        word, number, is_argument = self._word.as_value(), Signal(ARGUMENT_BITS), Signal()
        m.d.comb += [
            self._take.eq(1),
            number.eq(self._count - LAUNCH_HEADER_WORDS),
            is_argument.eq(self._valid & (self._count >= LAUNCH_HEADER_WORDS)),
            argument.addr.eq(number),
            argument.data.eq(word),
            argument.en.eq(is_argument & (number < self._config.arguments)),
        ]
        with m.If(self._valid):
            m.d.sync += self._count.eq(self._count + 1)
            with m.Switch(self._count):
                with m.Case(LaunchWord.PROGRAM.value):
                    m.d.sync += self._program.eq(word)
                with m.Case(LaunchWord.RECORD.value):
                    m.d.sync += self.report.record.eq(word)
                with m.Case(LaunchWord.LAUNCH.value):
                    m.d.sync += self.report.number.eq(word)
                with m.Case(LaunchWord.WINDOW.value):
                    window = StoreWindow(word)
                    m.d.sync += [self.report.window.first.eq(window.first), self.report.window.last.eq(window.last)]
                with m.Case(LaunchWord.FLAGS.value):
                    self._take_flags(m, LaunchFlags(word))
        with m.If(is_argument & (number == self._last_argument)):
            m.next = "OPEN"

    def _take_flags(self, m: Module, flags: data.View) -> None:
        low = exact_log2(LEAST_FOLLOWING)
        follows = flags.last_word[low:].any() | flags.last_word[:low].all()  # LEAST_FOLLOWING words or more
        m.d.sync += [
            self._fence.eq(flags.fence),
            self._follows.eq(follows),
            self._last.eq(flags.last_word),
            self._last_argument.eq(Mux(follows, flags.last_argument, self._config.arguments - 1)),
            self._measured.eq(1),
        ]

    def _measure(self, m: Module) -> None:
        """Tell the reader how many lines there are: of the program, or of the launch block with what follows it."""
        per_line = self._config.bus_bytes // WORD_BYTES
        block = launch_block_words(self._config.arguments)
        before = Mux(self._follows, self._last_argument + LAUNCH_HEADER_WORDS + 1, 0)
        last_line = (self._last + before)[exact_log2(per_line) :]
        with m.If(self._measured):
            m.d.sync += self._reader.lines.eq(last_line + 1)
            with m.If(~self._in_program & ~self._follows):
                m.d.sync += self._reader.lines.eq(-(-block // per_line))

    def _program_states(self, m: Module) -> None:
        word, taken = self._word, Signal()
        counted, judged = Signal(), Signal()
        m.d.comb += [judged.eq(self._waited == JUDGE_CYCLES), self._sum.word.eq(word)]
        m.d.sync += [self._counted.eq(Cat(counted, self._counted)), self._waited.eq(self._waited + ~judged)]
        with m.State("PROGRAM"):
            m.d.sync += self._waited.eq(0)
            m.d.comb += [
                self._take.eq(self.room),
                taken.eq(self._valid & self._take & ~self._bad_value),
                self._sum.add.eq(taken),
                self._in_program.eq(1),
            ]
            with m.If(taken):
                with m.If(~self._legal | self._misplaced):
                    m.next = "REFUSED"
                with m.Else():
                    m.d.comb += counted.eq(1)
                    m.d.sync += self._count.eq(self._count + 1)
                    with m.If(word.unit == Unit.CONTROL):
                        self._control_word(m)
            self._refuse_value(m)
        # In these three states the values of the words before are still to be judged.
        with m.State("SETTLE"):
            with m.If(judged & ~(self._fence & self.wait)):
                m.d.comb += self.run.eq(1)
                m.d.sync += [self.nest.eq(self.nest + 1), self._started.eq(1)]
                m.next = "CLEAR"
            self._refuse_value(m)
        with m.State("CLEAR"):
            m.next = "PROGRAM"
        with m.State("ENDED"):
            m.d.comb += [self._reader.stop.eq(1), self.report.done.eq(judged & self._sum.fits)]
            with m.If(judged):
                m.next = "IDLE"
            with m.If(judged & ~self._sum.fits):
                m.d.sync += self._back.eq(1)
                m.next = "ILLEGAL"
            self._refuse_value(m)
        with m.State("REFUSED"):
            m.d.comb += self._reader.stop.eq(1)
            with m.If(judged):
                m.next = "ILLEGAL"
            self._refuse_value(m)
        with m.State("ILLEGAL"):
            m.d.comb += self._reader.stop.eq(1)
            m.d.sync += self.report.illegal.eq(self.nests_done)

    def _control_word(self, m: Module) -> None:
        word = self._word
        with m.Switch(word.field):
            with m.Case(ControlField.LENGTH.value), m.If(~self._follows):
                m.d.sync += [self._last.eq(word.value - 1), self._measured.eq(1)]
            with m.Case(ControlField.RUN.value):
                m.next = "SETTLE"
            with m.Case(ControlField.END.value):
                m.next = "ENDED"

    def _refuse_value(self, m: Module) -> None:
        """The word taken three cycles ago has a value that the machine cannot work with."""
        with m.If(self._bad_value):
            behind = sum(self._counted[k] for k in range(JUDGE_CYCLES))
            m.d.sync += self._back.eq(behind + 1)
            m.next = "ILLEGAL"

    def _substitute(self, m: Module, argument: Any) -> None:
        """Two stages: the argument is read, then added."""
        word, taken, late, added = self._word, Signal(), Signal(ProgramWord), Signal(VALUE_BITS)
        is_data = word.unit != Unit.CONTROL
        m.d.comb += [
            argument.addr.eq(word.argument),
            taken.eq(self._in_program & self._valid & self.room & self._legal & is_data & (self._count > 1)),
        ]
        delayed = Signal()
        m.d.sync += [late.eq(word), delayed.eq(taken), added.eq(Mux(word.substitute, argument.data, 0))]
        bus = self.config_bus
        m.d.sync += [
            bus.valid.eq(delayed),
            bus.word.value.eq(late.value + added),
            bus.word.unit.eq(late.unit),
            bus.word.index.eq(late.index),
            bus.word.field.eq(late.field),
            bus.clear.eq(self.report.begin | self._clear),
            bus.begin.eq(self.report.begin),
        ]
        m.d.sync += self._bad_value.eq(bus.valid & ~self._values.legal)
        m.d.comb += bus.side.eq(self.report.side)
        m.d.comb += [
            self._values.early.unit.eq(late.unit),
            self._values.early.index.eq(late.index),
            self._values.early.field.eq(late.field),
            self._values.value.eq(bus.word.value),
        ]
