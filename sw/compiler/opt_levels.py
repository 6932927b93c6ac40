"""Optimisation levels."""

from typing import Any

OPT_LEVELS = (0, 1, 2, 3)
"""Optimisation levels, see docs/compiler.md."""

BEST = OPT_LEVELS[-1]


def check_opt(opt: Any) -> None:
    """ValueError unless ``opt`` is an optimisation level."""
    if not isinstance(opt, int) or isinstance(opt, bool) or opt not in OPT_LEVELS:
        raise ValueError(f"opt must be one of {', '.join(map(str, OPT_LEVELS))}, not {opt!r}")
