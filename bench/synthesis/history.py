"""The figures of synthesis that were landed, and whether later ones have grown past them.

The history is a list of landings, oldest first, each with the units that it measured. A unit's landed figures are those
of the last landing that has it, in the same configuration.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daedal.files import write_json

Row = dict[str, Any]

HISTORY = Path(__file__).with_name("history.json")
CHANGELOG = Path(__file__).resolve().parents[2] / "CHANGELOG.md"

SCHEMA = 1
"""Version of the file's form; goes up when a name changes its meaning or vanishes."""

RESOURCES = ("lut", "ff", "bram", "dsp")
"""What is compared. Clocks move by a tenth with the placement's seed: they are kept, but not compared."""

KEPT = (*RESOURCES, "fmax_mhz", "place_seeds", "routed")
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
    document = json.loads(path.read_text(encoding="utf-8"))
    if document.get("schema") != SCHEMA:
        raise ValueError(f"{path} must have schema {SCHEMA}, not {document.get('schema')!r}")
    landings: list[Row] = document["landings"]
    return landings


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
