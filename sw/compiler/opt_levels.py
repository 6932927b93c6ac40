"""Optimisation levels, and checks of what a compilation is asked for."""

from typing import Any

OPT_LEVELS = (0, 1, 2, 3)
"""Optimisation levels, see docs/compiler.md."""

BEST = OPT_LEVELS[-1]


def check_opt(opt: Any) -> None:
    """ValueError unless ``opt`` is an optimisation level."""
    if not isinstance(opt, int) or isinstance(opt, bool) or opt not in OPT_LEVELS:
        raise ValueError(f"opt must be one of {', '.join(map(str, OPT_LEVELS))}, not {opt!r}")


def check_exact(exact: Any) -> None:
    """ValueError unless ``exact`` says whether sums have the framework's order of additions."""
    if not isinstance(exact, bool):
        raise ValueError(f"exact must be True or False, not {exact!r}")
