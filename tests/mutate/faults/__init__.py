"""The faults that are made by hand, since no operator makes them, and the neutral changes."""

from tests.mutate.fault import Fault
from tests.mutate.faults import neutral, rtl, software

FAULTS: list[Fault] = [*rtl.FAULTS, *software.FAULTS, *neutral.FAULTS]
"""All of them, in the order in which they are planted."""
