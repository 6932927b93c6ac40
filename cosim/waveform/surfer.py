"""A command file for Surfer, and the mappings that it uses."""

from pathlib import Path

from daedal.cosim.waveform.signals import Names, Signals
from daedal.cosim.waveform.view import Group

MAPPINGS = Path(".surfer") / "mappings"
"""Where Surfer looks for mappings, from the folder in which it is started."""

_DIGITS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")


def write(wave: Path, signals: Signals, groups: list[Group]) -> list[Path]:
    """Write ``NAME.sucl`` beside ``NAME.vcd``, and a mapping for each enumeration; the file and their folder."""
    folder, commands = wave.parent / MAPPINGS, wave.with_suffix(".sucl")
    folder.mkdir(parents=True, exist_ok=True)
    formats = {}
    for label, names in signals.enumerations().items():
        formats[names] = f"Daedal_{label}"
        (folder / f"{formats[names]}.txt").write_text(_mapping(formats[names], names), encoding="utf-8")
    lines = []
    position = 0
    for group in groups:
        lines.append(f"divider_add {group.title.replace(' ', '_')}")
        position += 1
        for path, name in group.signals:
            lines.append(f"variable_add {path}.{name}")
            named = signals.names.get((path, name))
            if named is not None:
                lines += [f"item_focus {item_label(position)}", f"item_set_format {formats[named]}"]
            position += 1
    commands.write_text("\n".join([*lines, "item_unfocus", "zoom_fit", ""]), encoding="utf-8")
    return [commands, folder]


def item_label(position: int) -> str:
    """How Surfer's commands call the item at ``position`` (from 0): its number, with the digits 0 to f as a to p."""
    return f"{position:x}".translate(_DIGITS)


def _mapping(title: str, names: Names) -> str:
    rows = [f"0b{value:0{names.width}b} {text}" for value, text in names.values]
    return "\n".join([f"Name = {title}", f"Bits = {names.width}", *rows, ""])
