"""The description that a board's build leaves, read from a file: what the driver uses of it is there and can be.

``fpga/soc/generator.py`` writes it. A description of another board is found out by the number of its design.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from daedal.base.files import parse_json, read_text
from daedal.base.messages import shown
from daedal.driver.link.dram import COMMAND, CONTROL

MOST = 1 << 48
"""Larger than any address, size, frequency and number of cycles."""

Form = Mapping[str, Any] | Callable[[object], str]
"""A table's keys and their forms, or what says how a value is wrong: empty if it is right."""


def read_description(path: str) -> dict[str, Any]:
    """The description in a file; ValueError names the file, what is wrong in it and its value."""
    try:
        found: Any = parse_json(read_text(Path(path)), "a description")
    except ValueError as error:
        raise ValueError(f"board must be a description that can be read, not {path!r}: {error}") from None
    wrong = _fault("", found, FORM)
    if not wrong and found["sdram"] is not None:
        wrong = _fault("", found, DRAM) or _missing_register(found)
    if wrong:
        raise ValueError(f"board must be a description from a board's build, not {path!r}, which {wrong}")
    return dict(found)


def _fault(name: str, value: object, form: Form) -> str:
    """How a description with ``value`` by this name (empty: itself) is not of this form; empty if it is."""
    if not isinstance(form, Mapping):
        wrong = form(value)
        return f"has {name} {shown(value)} instead of {wrong}" if wrong else ""
    table = value if isinstance(value, dict) else {}
    prefix = f"{name}." if name else ""
    lacking = [key for key in form if key not in table]
    if lacking:
        return f"lacks {prefix + lacking[0]!r}"
    return next((wrong for key, each in form.items() if (wrong := _fault(prefix + key, table[key], each))), "")


def _number(low: int, high: int) -> Callable[[object], str]:
    def check(value: object) -> str:
        good = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        return "" if good else f"a whole number from {low} to {high}"

    return check


def _hertz(value: object) -> str:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value <= MOST
    return "" if good else f"a frequency from 1 to {MOST} Hz"


def _text(value: object) -> str:
    return "" if isinstance(value, str) else "a text"


def _switch(value: object) -> str:
    return "" if isinstance(value, bool) else "true or false"


def _anything(value: object) -> str:
    return ""


def _steps(value: object) -> str:
    known = {**CONTROL, **COMMAND}
    form = {"address": _number(0, MOST), "bank": _number(0, 255), "command": _text, "wait": _number(0, MOST)}
    if not isinstance(value, list):
        return "a list of commands"
    for step in value:
        wrong = _fault("", step, form)
        names = [] if wrong else [name for name in step["command"].split("|") if name not in known]
        if wrong or names:
            return f"a list of commands (one {wrong or f'has {shown(names[0])}'})"
    return ""


def _registers(value: object) -> str:
    form = {"addr": _number(0, MOST), "size": _number(1, 64)}
    if not isinstance(value, dict):
        return "a table of registers"
    wrong = next((wrong for each in value.values() if (wrong := _fault("", each, form))), "")
    return f"a table of registers (one {wrong})" if wrong else ""


FORM = {
    "design": _number(0, (1 << 32) - 1), "board": _text, "baud": _number(1, 1 << 30), "clock_hz": _hertz,
    "memory": {"base": _number(0, MOST), "size": _number(1, MOST)}, "registers": {"base": _number(0, MOST)},
    "sdram": _anything, "soc": _anything,
}  # fmt: skip
"""What the driver uses of every description."""

PHY = {
    "nphases": _number(1, 8), "rdphase": _number(0, 7), "wrphase": _number(0, 7), "databits": _number(8, 128),
    "dfi_databits": _number(8, 256), "read_leveling": _switch, "delays": _number(0, 1024), "bitslips": _number(0, 64),
}  # fmt: skip
"""What it uses of the settings of LiteDRAM's PHY."""

DRAM = {"sdram": {"sequence": _steps, "phy": PHY}, "soc": {"csr_registers": _registers}}
"""What it uses where the memory is DRAM."""


def _missing_register(description: Mapping[str, Any]) -> str:
    """Which register of the DRAM the description lacks, or an empty text."""
    phy, known = description["sdram"]["phy"], description["soc"]["csr_registers"]
    names = ["sdram_dfii_control"]
    names += [
        f"sdram_dfii_pi{phase}_{part}"
        for phase in range(phy["nphases"])
        for part in ("address", "baddress", "command", "command_issue", "wrdata", "rddata")
    ]
    if phy["read_leveling"]:
        names += [f"ddrphy_{part}" for part in ("dly_sel", "rdly_dq_rst", "rdly_dq_inc", "rdly_dq_bitslip_rst")]
        names += ["ddrphy_rdly_dq_bitslip"]
    missing = [name for name in names if name not in known]
    if max(phy["rdphase"], phy["wrphase"]) >= phy["nphases"]:
        return f"has an sdram.phy.rdphase or wrphase that is not less than nphases, {phy['nphases']}"
    return f"lacks {f'soc.csr_registers.{missing[0]}'!r}" if missing else ""
