"""When things happen to a beat, in cycles after its issue (its *age*).

====================  =========================================================================
age                   what
====================  =========================================================================
0                     issue: rows are popped, addresses of ``a`` and ``b`` go to the registers
1                     block RAM of ``a`` and ``b`` delivers
``SELECT``            operands ``a``, ``b`` are chosen and registered
``lane``              … and enter the lanes
``addend - 2``        the address of ``c`` goes to the registers
``addend``            ``c`` enters the lanes, from a register or straight from a result
``result``            the result leaves the lanes and is written; stores read
====================  =========================================================================

In machines with AFFINE (``Config.has_affine``) ``a`` and ``b`` wait for the product of a row's scale with its weight,
which takes a lane's time. With pre-adders ``c`` goes through these on its way to the lane.
"""

from functools import cache
from typing import NamedTuple

from daedal.hw.config.core import Config
from daedal.hw.execute_unit.fpu.lane import Lane

SELECT = 2


class Latencies(NamedTuple):
    """The ages that are not the same in all machines."""

    lane: int
    addend: int
    result: int

    @property
    def loop(self) -> int:
        """Least cycles between two accumulations of the same element: a result can be the next addend at once."""
        return self.result - self.addend

    @property
    def read_after_write(self) -> int:
        """Least cycles between an element's issue and its use as ``a`` or ``b``, through the register file."""
        return self.result + 1


@cache
def latencies(config: Config) -> Latencies:
    """Those of this machine."""
    lane = SELECT + Lane.latency if config.has_affine else SELECT
    return Latencies(lane, lane if config.preadder else lane + Lane.join, lane + Lane.latency)
