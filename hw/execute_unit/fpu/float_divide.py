"""Division by a count: one multiplication by a long reciprocal, correctly rounded.

``x / L`` is one pass over the lanes, with a factor that has more bits than a binary32 number. Let ``A`` be the
dividend's significand as an integer, 1 / L = m / 2**j with 1 <= m < 2, and ``Y`` an integer of n bits with ``m *
2**(n-1) <= Y < m * 2**(n-1) + 2``. The product ``A * Y`` is never below that of the exact reciprocal and exceeds it by
less than 2**25. Measured in the same units, what a quotient is rounded to lies at multiples of 2**(n-2) or more, and a
quotient that is not exactly halfway between two numbers is at least ``2**(n-2) / L`` away from it, subnormal or not. So
if the product's lowest bits are cut off, at a place where a bit weighs no less than that error and no more than that
distance, what is left lies on the same side of every halfway point, and exactly on it if the quotient does. The lane
rounds it, ties to even. A cut product of zeros, infinities and NaNs is what it should be anyway, signs included: there
are no special cases.

===========  =====================  =====  ==========  ===================================================
counts       ``Y``                  bits   cut below   beats for each beat of a row
===========  =====================  =====  ==========  ===================================================
0, 1                                                   none: the dividend is the quotient
below 512    from a table           36     2**24       one: 2**24 <= 2**34 / 511
others       bit by bit             54     2**26       two: 2**26 <= 2**52 / 2**24
===========  =====================  =====  ==========  ===================================================

A lane multiplies 24 bits by 36. The second kind takes it twice: first by the lowest 36 bits of ``Y``, whose product
nobody sees, then by the 18 others, and what is left of the first product is added.
"""

from dataclasses import dataclass

from amaranth.lib import data

from daedal.hw.execute_unit.fpu.float_format import EXPONENT_BIAS, FRACTION_BITS, SIGNIFICAND_BITS

COUNT_BITS = 24
"""Width of a count."""

TABLE_BITS = 9
"""Counts of so many bits have their reciprocal in a table."""

FACTOR_BITS = 36
"""Bits of the longer factor of a lane's product."""

LOW_BITS = FACTOR_BITS - SIGNIFICAND_BITS
"""Those of them that a binary32 number does not have."""

HIGH_BITS = 18
"""Bits of a long reciprocal that a lane multiplies by in the second beat."""

KEPT_BITS = 2 * SIGNIFICAND_BITS
"""Bits that a lane keeps of a product, the highest ones."""


class Factor(data.Struct):
    """A reciprocal as the lanes take it.

    ``low`` and ``high``: its lowest 36 bits, and those above. A ``long`` one has 54 bits, any other 36, of which the
    highest, 1 like that of every reciprocal, is ``low``'s. ``exponent`` is the field of a binary32 number in that
    place.
    """

    low: FACTOR_BITS
    high: HIGH_BITS
    exponent: 8
    long: 1


@dataclass(frozen=True)
class Constants:
    """The members of a ``Factor``."""

    low: int
    high: int
    exponent: int
    long: bool


def factor(count: int) -> Constants:
    """What a count's ``Factor`` is. Raises ValueError unless ``1 <= count < 2**24``."""
    if not 1 <= count < 1 << COUNT_BITS:
        raise ValueError(f"count must be at least 1 and below 2**{COUNT_BITS}, not {count!r}")
    size, is_power = count.bit_length(), count & (count - 1) == 0
    exponent = EXPONENT_BIAS - size + is_power
    if count < 1 << TABLE_BITS:
        mantissa = 1 << FACTOR_BITS - 1 if is_power else -((-1 << FACTOR_BITS - 1 + size) // count)
        return Constants(mantissa, 0, exponent, long=False)
    if is_power:
        return Constants(0, 1 << HIGH_BITS - 1, exponent, long=True)
    # Ones behind the dividend round up.
    mantissa = ((1 << FACTOR_BITS + HIGH_BITS + FRACTION_BITS) + (1 << COUNT_BITS) - 1) // (count << COUNT_BITS - size)
    return Constants(mantissa % (1 << FACTOR_BITS), mantissa >> FACTOR_BITS, exponent, long=True)


def cut_product(significand: int, count: int) -> int:
    """What the lane keeps of a dividend's significand times a reciprocal: 48 bits, of which it rounds."""
    y = factor(count)
    whole = FACTOR_BITS - LOW_BITS  # the product has LOW_BITS more than are kept
    if not y.long:
        return (significand * y.low >> 2 * LOW_BITS) << LOW_BITS
    first = significand * y.low >> LOW_BITS
    carried, lost = first >> HIGH_BITS, first >> HIGH_BITS - 4 & 0xF
    return (significand * y.high << whole - HIGH_BITS) + (carried | (lost != 0))
