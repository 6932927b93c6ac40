"""A save file for GTKWave, and the filter files that it names."""

from pathlib import Path

from vcd.gtkw import GTKWSave, make_translation_filter

from daedal.cosim.waveform.signals import Names, Signals, plain_name
from daedal.cosim.waveform.view import CORE, TILE, Group


def write(wave: Path, signals: Signals, groups: list[Group]) -> list[Path]:
    """Write ``NAME.gtkw`` beside ``NAME.vcd``, and a folder ``NAME.filters``; their paths.

    The groups are open. Below them all other signals whose values have names stand in closed groups, one for each
    unit. A path in a save file is absolute, so the files cannot be moved.
    """
    folder, save = wave.with_suffix(".filters"), wave.with_suffix(".gtkw")
    folder.mkdir(exist_ok=True)
    files = {}
    for label, names in signals.enumerations().items():
        files[names] = folder.resolve() / f"{label}.txt"
        text = make_translation_filter(names.values, datafmt="hex", size=names.width)
        files[names].write_text(text + "\n", encoding="utf-8")
    with save.open("w", encoding="utf-8") as stream:
        out = GTKWSave(stream)
        out.dumpfile(str(wave))
        out.treeopen(f"{TILE}.")
        for group in groups:
            _group(out, signals, group, files, closed=False)
        for group in _rest(signals, groups):
            _group(out, signals, group, files, closed=True)
    return [save, folder]


def _group(out: GTKWSave, signals: Signals, group: Group, files: dict[Names, Path], *, closed: bool) -> None:
    with out.group(group.title, closed=closed):
        for path, name in group.signals:
            width, names = signals.widths[path][name], signals.names.get((path, name))
            bits = f"[{width - 1}:0]" if width > 1 else ""
            alias = f"{_unit(path)}.{plain_name(name)}{bits}".strip(".")
            filter_file = None if names is None else str(files[names])
            out.trace(f"{path}.{name}{bits}", alias=alias, translate_filter_file=filter_file)


def _unit(path: str) -> str:
    """The unit at this path: below the core, or below the tile if it is outside of the core."""
    return path.removeprefix(CORE).removeprefix(TILE).strip(".")


def _rest(signals: Signals, groups: list[Group]) -> list[Group]:
    shown = {signal for group in groups for signal in group.signals}
    units: dict[str, list[tuple[str, str]]] = {}
    for path, name in signals.names:
        if (path, name) not in shown and "$" not in name:
            unit = _unit(path).partition(".")[0] or "core"
            units.setdefault(unit, []).append((path, name))
    return [Group(f"names in {unit}", tuple(found)) for unit, found in units.items()]
