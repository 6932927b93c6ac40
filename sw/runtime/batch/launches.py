"""Which operations are one launch: those with about as many bags, since all in a list have as many."""

from collections.abc import Sequence

from daedal.hw.config.core import Config
from daedal.runtime.batch.members import Member

WORTH_A_LAUNCH = 600
"""Lines written for bags that nobody asked for, from which on a launch more takes less time."""


def by_bags(members: Sequence[Member], config: Config) -> list[list[Member]]:
    """The members, each list for a launch: empty bags are written for those of a list that have fewer than another.

    Order is kept, within a list too. Copies of rows have no bags; they go with the first.
    """
    bags = sorted((member for member in members if not member.copies), key=lambda member: -member.request.rows)
    launch: dict[Member, int] = {}
    number, most, waste = 0, 0, 0
    for member in bags:
        rows = member.request.rows
        lines = -(-member.element.bytes * member.operation.width // config.bus_bytes)
        waste += (most - rows) * lines
        if not launch or waste > WORTH_A_LAUNCH:
            number, most, waste = number + bool(launch), rows, 0
        launch[member] = number
    numbers = list(dict.fromkeys(launch.get(member, 0) for member in members))
    return [[member for member in members if launch.get(member, 0) == each] for each in numbers]
