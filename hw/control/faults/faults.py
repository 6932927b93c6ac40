"""Which fault a launch's record tells of: the first one, from whatever unit, and where it happened."""

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.hdl import Elaboratable
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.access_unit.nest_queue import NEST_BITS
from daedal.hw.config.core import Config
from daedal.hw.control.faults.activity import LaunchActivity
from daedal.hw.control.faults.fault_words import NUMBER_BITS, FaultWords
from daedal.hw.control.faults.watchdog import Watchdog
from daedal.hw.control.launch_ports import CaughtFault, LaunchState
from daedal.hw.control.records.counters import any_of
from daedal.hw.interfaces import FaultPort
from daedal.hw.isa.launch import Cause, Queue, RecordWord
from daedal.hw.reports import AccessReport, FabricReport, LoaderReport

SOURCES = ("store", "execute", "access", "fabric", "misaligned", "illegal")
"""What has words of a fault: units, and the loader in two cases."""


def found_layout() -> data.StructLayout:
    """What is kept of a fault at once: ``sources`` has a bit for the one of ``SOURCES`` that has the rest."""
    return data.StructLayout({"cause": Cause, "level": 4, "queue": Queue, "sources": len(SOURCES)})


class KeptFault(wiring.Signature):
    """What the present launch's record says of its fault, or its first warning.

    Members
    -------
    cause, level, queue, nest : ``Out(Cause)``, ``Out(4)``, ``Out(Queue)``, ``Out(8)``
        As in the record's head; all 0 without a fault.
    asked : ``In(4)``, told : ``Out(64)``
        A word of the record, below COUNTERS and not HEAD; combinational.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "cause": Out(Cause),
                "level": Out(4),
                "queue": Out(Queue),
                "nest": Out(NEST_BITS),
                "asked": In(NUMBER_BITS),
                "told": Out(64),
            }
        )


class Faults(wiring.Component):
    """The first fault of a launch is kept; of several in one cycle, the one furthest down the machine.

    A fault of the launch that is ahead waits until that is the present one; which unit had one first is known. Until
    then it is nothing to the present launch, which may still have one of its own. A fault is caught two cycles after it
    was reported; its words are copied then, for which the units must keep it ``FaultWords.copy_cycles`` cycles more.

    Members
    -------
    launch : ``In(LaunchState())``
    ahead : ``In(1)``
        The launch that the loader is at is not the present one.
    reset : ``In(1)``
        Units are reset: what they reported is no fault any more. A fault that was caught stays.
    store_fault, execute_fault, access_fault : ``In(FaultPort(config))``
    access, loader, fabric : ``In`` of the unit's report
    activity : ``In(LaunchActivity())``
        A launch without progress for ``WATCHDOG_CYCLES`` has the fault HANG, or MEMORY_SILENT.
    caught : ``Out(CaughtFault())``
    kept : ``Out(KeptFault())``
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        super().__init__(
            {
                "launch": In(LaunchState()),
                "ahead": In(1),
                "reset": In(1),
                **{f"{unit}_fault": In(FaultPort(config)) for unit in ("store", "execute", "access")},
                "access": In(AccessReport(config)),
                "loader": In(LoaderReport(config)),
                "fabric": In(FabricReport(config)),
                "activity": In(LaunchActivity()),
                "caught": Out(CaughtFault()),
                "kept": Out(KeptFault()),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.watchdog = watchdog = Watchdog()
        m.submodules.words = words = FaultWords(self._config)
        launch, kept = self.launch, self.kept
        m.d.comb += [
            watchdog.running.eq(launch.running),
            watchdog.progress.eq(self.activity.progress),
            watchdog.outstanding.eq(self.activity.outstanding),
            self.caught.record_lost.eq(launch.record_phase & self.store_fault.valid),
        ]
        any_fault, found = self._find(m, self._of_present(m), watchdog)
        fault = self._keep(m, any_fault & (launch.running | self.caught.record_lost), found, words)
        m.d.comb += [
            words.word.eq(self._word(words.number, fault.sources)),
            words.asked.eq(kept.asked),
            kept.told.eq(words.told),
            *(getattr(kept, name).eq(getattr(fault, name)) for name in ("cause", "level", "queue")),
            self.caught.cause.eq(fault.cause),
        ]
        return m

    def _of_present(self, m: Module) -> Signal:
        """Which of execute unit, access unit, fabric and loader has a fault that is the present launch's."""
        loader, side = self.loader, self.launch.side
        early, early_side, faults = Signal(4), Signal(), Signal(4)
        sides = (self.launch.execute_side, self.access.side, self.fabric.error_side, loader.side)
        reports = (
            self.execute_fault.valid, self.access_fault.valid, self.fabric.error, loader.misaligned | loader.illegal,
        )  # fmt: skip
        for k, (report, at) in enumerate(zip(reports, sides, strict=True)):
            allowed = ~early.any() | early[k] | (early_side != side)
            m.d.comb += faults[k].eq(report & (at == side) & ~(self.ahead & (k == 3)) & allowed)
            with m.If(report & ~early.any() & ~self.reset):
                first = Cat(reports[:k]).any() if k else 0
                m.d.sync += [early[k].eq((at != side) & ~first), early_side.eq(~side)]
        with m.If(self.reset):
            m.d.sync += early.eq(0)
        return faults

    def _find(self, m: Module, faults: Signal, watchdog: Watchdog) -> tuple[Signal, Signal]:
        """Whether there is a fault in this cycle, and what is kept of it."""
        any_fault, found = Signal(), Signal(found_layout())
        store, execute, access = self.store_fault, self.execute_fault, self.access_fault
        m.d.comb += any_fault.eq(1)
        with m.If(store.valid):
            m.d.comb += _of_unit(found, "store", store)
        with m.Elif(faults[0]):
            m.d.comb += _of_unit(found, "execute", execute)
        with m.Elif(faults[1]):
            m.d.comb += [*_of_unit(found, "access", access), found.level.eq(access.fault.level)]
        with m.Elif(faults[2]):
            m.d.comb += [found.sources.eq(_bit("fabric")), found.cause.eq(Cause.MEMORY_ERROR)]
        with m.Elif(faults[3] & self.loader.misaligned):
            m.d.comb += [found.sources.eq(_bit("misaligned")), found.cause.eq(Cause.ALIGNMENT)]
        with m.Elif(faults[3]):
            m.d.comb += [found.sources.eq(_bit("illegal")), found.cause.eq(Cause.PROGRAM)]
        with m.Elif(watchdog.hang):
            m.d.comb += [found.cause.eq(Cause.HANG), found.queue.eq(self.activity.blocked)]
        with m.Elif(watchdog.silent):
            m.d.comb += found.cause.eq(Cause.MEMORY_SILENT)
        with m.Else():
            m.d.comb += any_fault.eq(0)
        return any_fault, found

    def _keep(self, m: Module, any_fault: Value, found: Signal, words: FaultWords) -> Signal:
        """The fault that is kept, with the nest; its words are copied then. And the first warning of each side.

        A cycle after it was found: what tells of it comes late in a cycle.
        """
        launch, access, loader, nest = self.launch, self.access, self.loader, self.kept.nest
        fault, caught = Signal(found_layout()), self.caught.valid
        nests = Array(Signal(NEST_BITS, name=f"nest{side}") for side in range(2))
        late, late_found, late_nest = Signal(), Signal.like(found), Signal(NEST_BITS)
        m.d.sync += [late.eq(any_fault), late_found.eq(found), late_nest.eq(nests[launch.side])]
        with m.If(access.begins):
            m.d.sync += nests[access.side].eq(access.number)
        with m.If(loader.begin):
            m.d.sync += nests[~loader.side].eq(0)
        with m.If(late & ~caught):
            m.d.comb += words.copy.eq(1)
            m.d.sync += [caught.eq(1), fault.eq(late_found), nest.eq(late_nest)]
        with m.If(launch.taken | launch.clear_fault):
            m.d.comb += words.forget.eq(1)
            m.d.sync += [caught.eq(0), fault.eq(0), nest.eq(0)]
            with m.If(launch.cancel):  # a cancelled launch's record tells of no fault, but the machine has one
                m.d.sync += [caught.eq(1), fault.cause.eq(fault.cause)]
        m.d.comb += [
            words.warning.eq(access.warning),
            words.warned_side.eq(access.side),
            words.warned_value.eq(access.warned_value),
            words.begin.eq(loader.begin),
            words.begin_side.eq(~loader.side),
            words.side.eq(launch.side),
        ]
        return fault

    def _word(self, number: Value, sources: Value) -> Value:
        """The word ``number`` of the record, as the source of the fault has it."""
        loader, store, execute = self.loader, self.store_fault.fault, self.execute_fault.fault
        access = self.access_fault.fault
        words = [
            (RecordWord.VALUE.value, "store", store.value),
            (RecordWord.VALUE.value, "execute", execute.value),
            (RecordWord.VALUE.value, "access", access.value),
            (RecordWord.VALUE.value, "illegal", loader.word_number),
            (RecordWord.ADDRESS.value, "store", store.address),
            (RecordWord.ADDRESS.value, "access", access.address),
            (RecordWord.ADDRESS.value, "fabric", self.fabric.error_address),
            (RecordWord.ADDRESS.value, "misaligned", loader.program),
        ]
        first = RecordWord.REGISTER0.value
        words += [(first + k, "access", access.registers[k]) for k in range(self._config.registers)]
        chosen = [((number == word) & sources[SOURCES.index(source)], value) for word, source, value in words]
        return any_of([Mux(condition, value, 0) for condition, value in chosen])


def _bit(source: str) -> int:
    return 1 << SOURCES.index(source)


def _of_unit(found: Signal, source: str, port: wiring.PureInterface) -> list[Value]:
    """Statements: what is kept of the fault at a unit's port."""
    return [found.sources.eq(_bit(source)), found.cause.eq(port.fault.cause), found.queue.eq(port.fault.queue)]
