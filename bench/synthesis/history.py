"""The figures of synthesis that were landed, and whether later ones have grown past them.

The history is a list of landings, oldest first, each with the units that it measured. A unit's landed figures are those
of the last landing that has it, in the same configuration.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daedal.base.files import read_json, write_json
from daedal.base.messages import shown

Row = dict[str, Any]

HISTORY = Path(__file__).with_name("history.json")
CHANGELOG = Path(__file__).resolve().parents[2] / "CHANGELOG.md"

SCHEMA = 1
"""Version of the file's form; goes up when a name changes its meaning or vanishes."""

RESOURCES = ("lut", "ff", "bram", "dsp")
"""What is compared. Clocks move by a tenth with the placement's seed: they are kept, but not compared."""

KEPT = (*RESOURCES, "lut6", "fmax_mhz", "place_seeds", "routed")
"""What a landing has of each unit, as far as it was measured; a clock that is not routed is an estimate before that."""

GROWTH = 0.05
"""Growth beyond this part needs a reason in the changelog."""

_ENTRY = re.compile(r"^- Area of (?P<unit>[\w ]+) \((?P<config>\w+)\): (?P<text>.*(?:\n +.*)*)", re.MULTILINE)
_FIGURE = re.compile(r"([0-9][0-9,]*) (LUT|FF|BRAM|DSP)\b")


@dataclass(frozen=True)
class Growth:
    """A unit that takes more of something than it did when it was landed."""

    config: str
    unit: str
    resource: str
    landed: int
    measured: int

    def __str__(self) -> str:
        cells = self.resource.upper()
        more = f"{100 * (self.measured / self.landed - 1):.1f} % more" if self.landed else "none before"
        return f"{self.unit} ({self.config}) takes {self.measured:,} {cells}; {self.landed:,} were landed: {more}"


def read(path: Path = HISTORY) -> list[Row]:
    """The landings, oldest first; none if there is no such file. ValueError if the file is of another form."""
    if not path.exists():
        return []
    document = read_json(path, "a history of landings")
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else document
        raise ValueError(f"{path} must have schema {SCHEMA}, not {shown(found)}")
    landings: list[Row] = document.get("landings")
    if not isinstance(landings, list) or not all(map(_is_landing, landings)):
        raise ValueError(f"{path} must have landings, a list of tables with config and units: take it from git again")
    return landings


def _is_landing(landing: object) -> bool:
    """Whether a landing can be compared with: units, each with whole numbers of all that is compared."""
    if not isinstance(landing, dict) or not isinstance(landing.get("config"), str):
        return False
    units = landing.get("units")
    return isinstance(units, dict) and all(
        isinstance(unit, dict) and all(_is_count(unit.get(name)) for name in RESOURCES) for unit in units.values()
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40


def land(rows: Iterable[Row], facts: Row, path: Path = HISTORY) -> None:
    """Add the rows that were measured, all of one configuration, to the history; ``facts``: date, revision, tools."""
    good = [row for row in rows if row["status"] == "ok"]
    configs = {row["config"] for row in good}
    if len(configs) != 1:
        raise ValueError(f"rows must be of one configuration, not of {sorted(configs)}")
    units = {row["unit"]: {name: row[name] for name in KEPT if row.get(name) not in (None, [])} for row in good}
    landings = [*read(path), {**facts, "config": configs.pop(), "units": units}]
    write_json(path, {"schema": SCHEMA, "landings": landings})


def landed(landings: Iterable[Row], config: str) -> dict[str, Row]:
    """Unit -> its landed figures in a configuration."""
    found: dict[str, Row] = {}
    for landing in landings:
        if landing["config"] == config:
            found |= landing["units"]
    return found


def growths(rows: Iterable[Row], before: dict[str, Row]) -> list[Growth]:
    """Where measured rows exceed what was landed by more than ``GROWTH``. Units without landed figures have none."""
    return [
        Growth(row["config"], row["unit"], resource, before[row["unit"]][resource], row[resource])
        for row in rows
        if row["status"] == "ok" and row["unit"] in before
        for resource in RESOURCES
        if row[resource] > before[row["unit"]][resource] * (1 + GROWTH)
    ]


def stated(changelog: str) -> dict[tuple[str, str, str], int]:
    """(configuration, unit, resource) -> the most of it that an unreleased entry of the changelog says.

    Such an entry reads ``- Area of level 2 (ddr3): 7,100 LUT, 5,000 FF, for …``.
    """
    unreleased = changelog.partition("\n## Unreleased")[2].partition("\n## ")[0]
    found: dict[tuple[str, str, str], int] = {}
    for entry in _ENTRY.finditer(unreleased):
        for number, resource in _FIGURE.findall(entry["text"]):
            key = (entry["config"], entry["unit"], resource.lower())
            found[key] = max(found.get(key, 0), int(number.replace(",", "")))
    return found


def unexplained(grown: Sequence[Growth], changelog: str) -> list[Growth]:
    """Those of which the changelog does not say that they take so much."""
    known = stated(changelog)
    return [each for each in grown if known.get((each.config, each.unit, each.resource), -1) < each.measured]
