"""What an index outside its table can do (docs/machine/numerics.md)."""

CHECKS = ("fatal", "warn", "ignore")
"""What a check does."""

NO_CHECKS = "none"

BOUNDS = (*CHECKS, NO_CHECKS)
"""These, or there is no check at all."""


def check_bounds(bounds: object) -> None:
    """ValueError for anything else."""
    if bounds not in BOUNDS:
        raise ValueError(f"bounds must be one of {', '.join(BOUNDS)}, not {bounds!r}")
