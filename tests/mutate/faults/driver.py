"""Faults of the driver."""

from tests.mutate.fault import area

HERE = "sw/driver/"
DEVICE, ALLOCATOR = "tests/system/test_driver_device.py", "tests/system/test_driver_allocator.py"
TARGETS = "tests/system/test_driver_targets.py -k emulator"

plant = area("driver", DEVICE, TARGETS)

FAULTS = [
    plant("revision-unread", "missing check", HERE + "registers.py", "if found != (IDENTITY, REVISION):", "if found[0] != IDENTITY:",
          "a device of another revision is used"),
    plant("identity-unread", "missing check", HERE + "registers.py", "if found != (IDENTITY, REVISION):", "if found[1] != REVISION:",
          "what is no such device is used"),
    plant("hash-unread", "missing check", HERE + "registers.py", "if found_hash != config.hash:", "if False:", "a device of another configuration is used"),
    plant("interrupt-left", "lost strobe", HERE + "registers.py", "self.write(Register.INTERRUPT, 1)", "self.write(Register.INTERRUPT, 0)",
          "the interrupt is not cleared"),
    plant("program-hash", "missing check", HERE + "device.py", "if found != self._config.hash:", "if False:", "a program for another configuration is loaded"),
    plant("program-again", "sticky bit", HERE + "device.py", "self._programs[raw] = address", "self._programs[bytes(address)] = address",
          "programs do not stay resident"),
    plant("open-leaks", "lost strobe", HERE + "device.py", "            opened.close()\n            raise", "            raise",
          "a target stays open when the device is refused"),
    plant("memory-limit", "off by one", HERE + "device.py", "1 << 16 <= memory_bytes <= 1 << ADDRESS_BITS", "1 << 16 <= memory_bytes",
          "a memory larger than the addresses is accepted"),
    plant("argument-range", "missing check", HERE + "launcher.py", "<= value < 1 << ADDRESS_BITS:", "<= value:", "arguments that do not fit are cut off"),
    plant("too-many-arguments", "off by one", HERE + "launcher.py", "if len(arguments) > config.arguments:", "if len(arguments) > config.arguments + 1:",
          "an argument too many is written behind the block"),
    plant("high-address", "wrong constant", HERE + "launcher.py", "self._block >> 32", "self._block >> 31", "the upper part of the block's address is wrong"),
    plant("record-not-cleared", "sticky bit", HERE + "launcher.py", "self._target.mem_write(self._record, bytes(RECORD_BYTES))", "pass",
          "the record of the launch before is taken for the new one"),
    plant("no-reset-after-fault", "lost strobe", HERE + "launcher.py", "        if record.state is not State.DONE:\n            self.reset()\n",
          "        if record.state is not State.DONE:\n", "a device that has faulted is not reset"),
    plant("launch-number", "missing check", HERE + "launcher.py", "if record.launch != self._launch:", "if False:", "the record of another launch is accepted"),
    plant("counters-unread", "missing check", HERE + "launcher.py", "        if own != value:", "        if own < value:", "counters that are too high are accepted"),
    plant("no-reset-on-interrupt", "lost strobe", HERE + "launcher.py", "            self.reset()\n            raise", "            raise",
          "a launch that was interrupted goes on", nth=0),
    plant("sign-of-value", "wrong sign extension", HERE + "record.py", "self.value - (1 << 64) if self.value >> 63 else self.value", "self.value",
          "negative indices are reported as large ones"),
    plant("lines-not-bytes", "wrong constant", HERE + "record.py", 'count["LINES_READ"] * self.bus_bytes', 'count["LINES_READ"]', "bytes read are lines"),
    plant("marks-add", "wrong operation", HERE + "record.py", "max(self.marks.get(k, 0), other.marks.get(k, 0))", "self.marks.get(k, 0) + other.marks.get(k, 0)",
          "high-water marks are added up"),
    plant("cause-swapped", "swapped operands", HERE + "record.py", "elif record.cause is Cause.OFFSET:", "elif record.cause is Cause.HANG:",
          "bad offsets are no exception of their own"),
    plant("cancelled-unknown", "missing case", HERE + "record.py", "if record.state is State.CANCELLED:", "if False:", "a cancelled launch is reported as a fault"),
    plant("pitch-of-short-rows", "off by one", HERE + "tables.py", "1 << (row_bytes - 1).bit_length()", "1 << row_bytes.bit_length()",
          "rows of a power of two take twice the room"),
    plant("pitch-limit", "off by one", HERE + "tables.py", "if pitch >= 1 << PITCH_BITS:", "if pitch > 1 << PITCH_BITS:", "a pitch that does not fit is accepted"),
    plant("version-unread", "sticky bit", HERE + "tables.py", "return source._version, source.data_ptr(),", "return source.data_ptr(),",
          "a tensor that was changed in place is not uploaded again"),
    plant("weak-name", "sticky bit", HERE + "tables.py", "while key in self._origins and self._origins[key].alive:", "while False:",
          "two living tables of one name take each other's place"),
    plant("upload-step", "off by one", HERE + "tables.py", "self._write(table.address + first * table.pitch,", "self._write(table.address,",
          "pieces of a long table are written over one another"),
    plant("table-leaks", "lost strobe", HERE + "tables.py", "            if present is not None:\n                self.drop(name)\n", "",
          "a table that moves does not give its memory back"),
    plant("first-fit", "off by one", HERE + "allocator.py", "if address + size <= end:", "if address + size < end:", "a range that fits exactly is not used", ALLOCATOR),
    plant("neighbours", "missing case", HERE + "allocator.py", "merged[-1][1] == start", "False", "free neighbours are not joined", ALLOCATOR),
    plant("alignment", "wrong rounding", HERE + "allocator.py", "-(-start // alignment) * alignment", "start // alignment * alignment",
          "addresses are rounded down", ALLOCATOR),
    plant("free-twice", "missing check", HERE + "allocator.py", "self._held.pop(address, None)", "self._held.get(address)", "a range can be freed twice", ALLOCATOR),
    plant("arena-keeps", "lost strobe", HERE + "arena.py", "        self._addresses.append(address)\n", "", "buffers of a run are not given back"),
]  # fmt: skip
