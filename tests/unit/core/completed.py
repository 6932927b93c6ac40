"""What COMPLETED begins with in the core that is tested."""

COMPLETED_AT_FIRST = (1 << 32) - 2
"""So that it comes round with the third launch."""


def after(launches: int, first: int = COMPLETED_AT_FIRST) -> int:
    """COMPLETED when so many launches have ended."""
    return (first + launches) % (1 << 32)
