"""A target that does nothing but answer as told: for what no working machine does on demand."""

import struct
from collections.abc import Callable
from typing import Any

from daedal.hw.config.core import Config
from daedal.hw.isa.launch import RECORD_WORDS, Counter, LaunchWord, RecordHead, RecordWord, State, launch_block_words
from daedal.hw.isa.program import pack
from daedal.hw.isa.registers import IDENTITY, REVISION, Control, Register


class FakeTarget:
    """Ends every launch with the record that ``outcome`` describes: the head's members, value, address."""

    def __init__(self, config: Config, memory_bytes: int = 1 << 20) -> None:
        self.memory_bytes = memory_bytes
        self.mixed = False
        self.memory = bytearray(memory_bytes)
        self.outcome: dict[str, Any] = {"state": State.DONE}
        self.counters: dict[Counter, int] = {}
        self.counted_values: dict[str, int] | None = None
        self.on_wait: Callable[[], bool] | None = None
        self.resets = 0
        self.control = Control.from_bits(0)
        """What was last written to CONTROL."""
        self.stuck_reset = False
        self.closed = False
        self.registers = dict.fromkeys(Register, 0)
        self.registers |= {
            Register.IDENTITY: IDENTITY,
            Register.REVISION: REVISION,
            Register.CONFIG_HASH: config.hash,
        }
        self.arguments: list[int] = []

    def csr_read(self, address: int) -> int:
        return self.registers[Register(address)]

    def csr_write(self, address: int, value: int) -> None:
        register = Register(address)
        if register is Register.CONTROL:
            self.control = Control.from_bits(value)
            self.resets += self.control.reset
            self.registers[register] = int(self.stuck_reset)
        elif register is Register.INTERRUPT:
            self.registers[register] = 0
        elif register is Register.DOORBELL:
            self.registers[register] = 1
        else:
            self.registers[register] = value

    def mem_read(self, address: int, size: int) -> bytes:
        return bytes(self.memory[address : address + size])

    def mem_write(self, address: int, data: bytes | memoryview) -> None:
        self.memory[address : address + len(data)] = data

    def wait(self, timeout: float | None = None) -> bool:
        if self.on_wait is not None:
            return self.on_wait()
        block = self.registers[Register.LAUNCH_LOW] | self.registers[Register.LAUNCH_HIGH] << 32
        words = [struct.unpack_from("<Q", self.memory, block + 8 * k)[0] for k in range(launch_block_words(32))]
        self.arguments = words[LaunchWord.ARGUMENTS.value :]
        record = [0] * RECORD_WORDS
        head = {key: value for key, value in self.outcome.items() if key not in ("value", "address")}
        head.setdefault("launch", words[LaunchWord.LAUNCH.value])
        record[RecordWord.HEAD.value] = pack(RecordHead, head)
        record[RecordWord.VALUE.value] = self.outcome.get("value", 0)
        record[RecordWord.ADDRESS.value] = self.outcome.get("address", 0)
        for counter in Counter:
            record[RecordWord.COUNTERS.value + counter.value] = self.counters.get(counter, 0)
        struct.pack_into(f"<{RECORD_WORDS}Q", self.memory, words[LaunchWord.RECORD.value], *record)
        self.registers[Register.COMPLETED] = (self.registers[Register.COMPLETED] + 1) % (1 << 32)
        return True

    def counted(self, record: int) -> dict[str, int] | None:
        return self.counted_values

    def close(self) -> None:
        self.closed = True
