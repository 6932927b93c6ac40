"""Faults of the host side and of the whole core."""

from tests.mutate.fault import SLOW, area

HERE = "hw/host/"
PORT, LOADER = "tests/unit/host/test_control_port.py", "tests/unit/host/test_loader.py"
COUNTERS = "tests/unit/host/test_counters.py"
CORE = f"tests/unit/core/test_core.py::test_core[odd-full-rate] {SLOW}"
STATISTICS = "tests/unit/host/test_statistics.py"
CONTROLLER = "tests/unit/host/test_controller.py"
WARNING = "tests/unit/core/test_first_warning.py"
CORE_WIDE = f"tests/unit/core/test_core.py::test_core[edge-full-rate] {SLOW}"
WATCHDOG = "tests/unit/host/test_watchdog.py"
HASTY = f"tests/system/test_rtl_watchdog.py {SLOW}"
TARGETS = f"tests/system/test_driver_targets.py {SLOW}"
FAULTS_OF_CORE = f"tests/fuzz/test_launch_blocks.py {SLOW}"
KEPT = f"tests/fuzz/test_fuzz.py -k 'kept_on_the_rtl' {SLOW}"

plant = area("rtl_host", LOADER)

FAULTS = [
    plant("interrupt-not-cleared", "sticky bit", HERE + "control_port.py", "m.d.sync += self._pending.eq(0)",
          "m.d.sync += self._pending.eq(1)", "the interrupt cannot be cleared",
          PORT),
    plant("interrupt-always", "missing check", HERE + "control_port.py", "self._pending & self._enabled",
          "self._pending", "the interrupt shows though it is not enabled",
          PORT),
    plant("overflow-unseen", "lost strobe", HERE + "control_port.py", "m.d.sync += self._overflow.eq(1)",
          "m.d.sync += self._overflow.eq(0)", "a doorbell that is lost is not told",
          PORT),
    plant("doorbell-in-fault", "missing check", HERE + "control_port.py",
          "self.doorbell.valid.eq(~self.faulted & ~self.reset_request)", "self.doorbell.valid.eq(1)",
          "a device that has faulted takes launches", PORT),
    plant("high-word", "wrong constant", HERE + "control_port.py", "self._low | (self._high << 32)",
          "self._low | (self._high << 31)", "the address of the launch block is put together wrongly",
          PORT),
    plant("hash-of-program", "missing check", HERE + "loader.py",
          "is_config & ((word.value != self._config.hash) | word.substitute)", "is_config & word.substitute",
          "programs for other configurations are run"),
    plant("short-programs", "off by one", HERE + "loader.py", "(word.value < 3)", "(word.value < 2)",
          "a program of two words is not refused"),
    plant("end-anywhere", "missing check", HERE + "loader.py",
          "wrong_end = (count > 1) & (is_end != (count == self._length - 1))",
          "wrong_end = (count > 1) & is_end & (count != self._length - 1)",
          "the last word need not be END"),
    plant("no-argument", "lost strobe", HERE + "loader.py", "late.value + Mux(late.substitute, argument.data, 0)",
          "late.value", "arguments are not added"),
    plant("control-words-sent", "missing check", HERE + "loader.py", "is_data = word.unit != Unit.CONTROL",
          "is_data = 1", "control words are given to the units"),
    plant("step-zero", "missing check", HERE + "value_check.py",
          "(level & (word.field == LevelField.STEP), self.value.any()),", "",
          "a step of 0 is not refused"),
    plant("registers-that-are-not", "off by one", HERE + "value_check.py",
          "Value.cast(source) <= self._config.registers", "Value.cast(source) <= self._config.registers + 1",
          "the register after the last one is accepted"),
    plant("steps-beyond", "off by one", HERE + "value_check.py", "event.first + event.count <= self._config.steps",
          "event.first + event.count <= self._config.steps + 1", "an event may do a step that does not exist"),
    plant("alu-unknown", "missing check", HERE + "value_check.py", "return _known(alu.op, AluOp) & (", "return (",
          "ALU operations that do not exist are accepted"),
    plant("shift-anywhere", "missing check", HERE + "value_check.py", "(~shifts | able) &", "",
          "levels without a shifter accept shifts"),
    plant("counter-not-cleared", "sticky bit", HERE + "counters.py", "with m.If(self.clear):", "with m.If(0):",
          "counters go on from launch to launch", COUNTERS),
    plant("watchdog-of-answers", "inverted", HERE + "watchdog.py", "self.hang.eq(expired & ~self.outstanding)",
          "self.hang.eq(expired)", "a memory that does not answer is reported as a hang",
          WATCHDOG),
    plant("watchdog-asleep", "lost strobe", HERE + "watchdog.py", "expired.eq(still == self._limit)", "expired.eq(0)",
          "a program that hangs is not ended", WATCHDOG),
    plant("record-last-beat", "off by one", HERE + "record_writer.py",
          "data.payload.last.eq(self.number == RECORD_WORDS)", "data.payload.last.eq(self.number == RECORD_WORDS - 1)",
          "the record's row ends in the wrong beat", CORE),
    plant("record-order", "swapped operands", HERE + "record_writer.py", "beat.eq((beat >> (8 * WORD_BYTES)) |",
          "beat.eq((beat >> (4 * WORD_BYTES)) |", "words of a record overlap in their beat",
          CORE_WIDE),
    plant("does-not-cancel", "lost strobe", HERE + "controller.py", "m.next = \"CANCEL\"", "m.next = \"IDLE\"",
          "launches that wait behind a fault are run", FAULTS_OF_CORE, CORE),
    plant("drains-too-soon", "missing check", HERE + "controller.py", "with m.If(~self.executed):", "with m.If(0):",
          "a launch drains while its rows are on their way to the store unit", CORE),
    plant("gives-memory-up", "missing check", HERE + "controller.py", "with m.If(self.answered):", "with m.If(0):",
          "a fault's record is lost if memory takes longer than the watchdog in all", CONTROLLER),
    plant("late-warning", "missing check", "hw/core_faults.py",
          "Mux(early_warning, access.warned_value, early_value)", "early_value",
          "a value replaced in the cycle in which a launch becomes the present one is lost", WARNING),
    plant("reset-keeps-fault", "sticky bit", HERE + "controller.py", "self.faulted.eq(0), self._resetting.eq(0)",
          "self._resetting.eq(0)", "reset does not take back the fault",
          CORE, TARGETS),
    plant("reader-runs-ahead", "off by one", HERE + "line_reader.py", "ahead <= (BURSTS - 2) * size",
          "ahead <= (BURSTS + 2) * size", "program lines are overwritten before they were read"),
    plant("cycles-of-both", "missing term", HERE + "statistics.py", "Mux(self.rung | over, 1, since + 1)",
          "Mux(self.rung, 1, since + 1)", "a launch's cycles have those of the one before in them", STATISTICS),
    plant("counts-after-the-end", "lost strobe", HERE + "statistics.py", "with m.If(self.stop & (self.side == side)):",
          "with m.If(0):", "counters go on after a launch has ended", STATISTICS),
    plant("cancelled-counts", "missing term", HERE + "statistics.py", "counts.eq(~self.cancel)", "counts.eq(1)",
          "a cancelled launch counts", STATISTICS),
    plant("side-of-the-other", "inverted", HERE + "statistics.py",
          "Array(totals)[self.side]", "Array(totals)[~self.side]",
          "the record has the counters of the launch after", STATISTICS),
    plant("sweep-is-a-hang", "missing term", "hw/core_faults.py",
          "returned, sweeping, core.store", "returned, core.store",
          "a reset takes longer than a short watchdog waits", HASTY),
    plant("only-own-lines", "wrong condition", "hw/core_faults.py", "sweeping = core.fabric.returns.valid,",
          "sweeping = core.fabric.returns.valid & (core.fabric.returns.beat.side == present),",
          "waiting for rows behind the next launch's lines is a hang", HASTY),
    plant("nest-not-told", "lost strobe", "hw/core_faults.py", "core.fault_nest.eq(nests[controller.side])",
          "core.fault_nest.eq(0)", "a fault's record says nest 0", FAULTS_OF_CORE, KEPT),
    plant("warning-lost", "missing term", "hw/core_faults.py",
          "with m.If(access.warning & ~Array(warned)[access.side]):",
          "with m.If(0):", "the first replaced value is not in the record", WARNING, KEPT),
]  # fmt: skip
