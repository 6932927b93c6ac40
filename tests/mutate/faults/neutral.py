"""Changes that no test may notice: values of encodings swapped in ``hw/isa`` and nowhere else.

They show that no second copy of an encoding exists, neither in the RTL, emulator, compiler and driver nor in the
tests. ``docs/isa`` is generated again. What is 0 stays 0: that means *off* or *none*.
"""

from tests.mutate.fault import NEUTRAL, SLOW, Edit, Fault

EXECUTE, WORDS = "hw/isa/instructions.py", "hw/isa/words.py"
LAUNCH, REGISTERS = "hw/isa/launch.py", "hw/isa/registers.py"

SUITES = (
    "tests/unit/isa tests/unit/emulator tests/unit/control tests/unit/access_unit/test_contract.py",
    "tests/compiler/layers/test_compiler_layers.py tests/compiler/layers/test_compiler_lists.py "
    "tests/compiler/layers/test_compiler_max.py",
    "tests/driver/test_driver_device.py tests/cli/test_cli_asm.py tests/compiler/layers/test_bounds.py -k 'not rtl'",
    f"tests/unit/access_unit -k odd {SLOW}",
    f"tests/unit/execute_unit -k odd {SLOW}",
    f"tests/unit/core -k 'minimum and full-rate' {SLOW}",
    f"tests/driver/test_driver_targets.py tests/system/test_rtl_layers.py -k edge {SLOW}",
)  # fmt: skip


def _text(value: int) -> str:
    """A value as the file of the registers has it, and any other file."""
    return f"0x{value:02X}" if value >= 0x10 else str(value)


def _swap(file: str, *pairs: tuple[str, int, str, int]) -> tuple[Edit, ...]:
    """Edits that give each of two members the other one's value."""
    return tuple(
        Edit(file, f"    {name} = {_text(old)}\n", f"    {name} = {_text(new)}\n")
        for first, a, second, b in pairs
        for name, old, new in ((first, a, b), (second, b, a))
    )


FAULTS = [
    Fault("neutral/vector-op", NEUTRAL, "VectorOp: ADD and STORE, FMA and MUL_ADD have each other's value",
          _swap(EXECUTE, ("ADD", 2, "STORE", 11), ("FMA", 5, "MUL_ADD", 6)), SUITES),
    Fault("neutral/words", NEUTRAL, "Unit: LEVEL, INSTRUCTION; AluOp: SUB, EQUAL, AND, MAX; CheckMode: WARN, IGNORE",
          _swap(WORDS, ("LEVEL", 1, "INSTRUCTION", 6), ("SUB", 2, "EQUAL", 7), ("AND", 4, "MAX", 6),
                ("WARN", 1, "IGNORE", 2)), SUITES),
    Fault("neutral/records", NEUTRAL,
          "Cause: INDEX, HANG; State: DONE, CANCELLED; Queue: TOKEN, STORE_DATA; counters, record words, registers",
          _swap(LAUNCH, ("INDEX", 1, "HANG", 9), ("DONE", 1, "CANCELLED", 3), ("TOKEN", 1, "STORE_DATA", 7),
                ("ROWS", 1, "LINES_READ", 5), ("VALUE", 1, "ADDRESS", 2))
          + _swap(REGISTERS, ("CONTROL", 0x10, "FAULT", 0x2C)), SUITES),
]  # fmt: skip
