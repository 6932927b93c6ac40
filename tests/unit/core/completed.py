"""What COMPLETED begins with in the core that is tested."""

COMPLETED_AT_FIRST = (1 << 32) - 2
"""So that it comes round with the third launch."""


def after(launches: int) -> int:
    """COMPLETED when so many launches have ended."""
    return (COMPLETED_AT_FIRST + launches) % (1 << 32)
