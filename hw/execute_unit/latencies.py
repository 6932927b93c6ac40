"""When things happen to a beat, in cycles after its issue (its *age*).

====================  =========================================================================
age                   what
====================  =========================================================================
0                     issue: rows are popped, addresses of ``a`` and ``b`` go to the registers
1                     block RAM of ``a`` and ``b`` delivers
``SELECT``            operands ``a``, ``b`` are chosen and registered
                      … and enter the lanes (``LANE``)
``ADDEND - 2``        the address of ``c`` goes to the registers
``ADDEND``            ``c`` enters the lanes, from a register or straight from a result
``RESULT``            the result leaves the lanes and is written; stores read
====================  =========================================================================
"""

from daedal.hw.execute_unit.fpu.lane import Lane

SELECT = 2
LANE = SELECT
ADDEND = LANE + Lane.join
RESULT = LANE + Lane.latency

LOOP = RESULT - ADDEND
"""Least cycles between two accumulations of the same element: a result can be the next addend at once."""

READ_AFTER_WRITE = RESULT + 1
"""Least cycles between an element's issue and its use as ``a`` or ``b``, through the register file."""
