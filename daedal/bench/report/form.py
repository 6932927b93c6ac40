"""The form of a result of `daedal bench`: what its rows must be for tables and pictures to be made of them."""

from collections.abc import Callable, Mapping
from typing import Any

from daedal.base.messages import shown
from daedal.bench.report.table import Row
from daedal.cosim.memory_spec import MemorySpec

MOST = 1e18
"""No figure is larger: cycles of centuries."""


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -MOST <= value <= MOST


def _is_stalls(value: object) -> bool:
    return isinstance(value, Mapping) and all(_is_count(count) for count in value.values())


def _is_place(value: object) -> bool:
    return _is_count(value) or value == "mean"


def _is_memory(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(MemorySpec.parse(value, predicted=True))
    except ValueError:
        return False


_TEXT, _COUNT, _NUMBER = (
    ("a text", _is_text),
    ("a whole number that is not negative", _is_count),
    ("a number", _is_number),
)

KINDS: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    **dict.fromkeys(
        ("workload", "distribution", "config", "data", "window", "verdict", "settings", "suite", "equal_to"), _TEXT,
    ),
    **dict.fromkeys(
        ("cycles", "row_bytes", "flops", "lines_read", "lines_written", "limit_cycles", "limit_in_order_cycles",
         "lane_cycles"), _COUNT,
    ),
    **dict.fromkeys(
        ("limit_share", "limit_in_order_share", "lane_share", "line_share", "useful_share", "row_share",
         "torch_share", "fbgemm_share", "share", "reference", "difference"), _NUMBER,
    ),
    "memory": ("a memory model", _is_memory),
    "placement": ("a whole number, or mean", _is_place),
    "stalls": ("a table of whole numbers", _is_stalls),
    "bit_exact": ("true or false", lambda value: isinstance(value, bool)),
}  # fmt: skip
"""Figures that tables and pictures have -> what they must be; all but ``ALWAYS`` can be left out or null."""

ALWAYS = ("workload", "memory", "placement")
"""What every row with a distribution has."""

FACTS = ("seed", "processor", "quick")
TABLES = ("configs", "memories", "tools")
"""What the facts of a result have: values, and tables of names."""

TOGETHER = {"flops": ("config", "lines_read", "lines_written"), "stalls": ("cycles",)}
"""What a row with one figure has as well."""


def check_facts(facts: object) -> None:
    """That these are the facts of a result; else ValueError, which says what they lack."""
    if not isinstance(facts, dict):
        raise ValueError(f"facts must be a table, not {shown(facts)}")
    for name in FACTS:
        if name not in facts:
            raise ValueError(f"facts must have {name}")
    for name in TABLES:
        if not isinstance(facts.get(name), dict) or not all(map(_is_text, facts[name].values())):
            raise ValueError(f"{name} of the facts must be a table of texts, not {shown(facts.get(name))}")
    if not _is_count(facts.get("placements")):
        raise ValueError(f"placements of the facts must be a whole number, not {shown(facts.get('placements'))}")


def check_row(row: Row) -> None:
    """That a row can be one of a workload, if it has a distribution; else ValueError, which names figure and value.

    The figures of others are looked at where they are written into a table.
    """
    if "distribution" not in row:
        return
    for name in ALWAYS:
        if row.get(name) is None:
            raise ValueError(f"a row must have {name}")
    for name, (what, is_right) in KINDS.items():
        value: Any = row.get(name)
        if value is not None and not is_right(value):
            raise ValueError(f"{name} of a row must be {what}, not {shown(value)}")
    for name, others in TOGETHER.items():
        for other in others if row.get(name) else ():
            if row.get(other) is None:
                raise ValueError(f"a row with {name} must have {other}")
    if row.get("stalls") and row["cycles"] == 0:
        raise ValueError("a row with stalls must have cycles, not 0")
    if row.get("flops") and row["lines_read"] + row["lines_written"] == 0:
        raise ValueError("a row with flops must have lines_read or lines_written, not 0 of both")
