"""Which port serves an address: one definition for the fabric, the driver and the tests."""

from typing import TypeVar

from amaranth.hdl import Value
from amaranth.utils import exact_log2

from daedal.hw.config import ADDRESS_BITS, Config

Number = TypeVar("Number", int, Value)


def port_of(address: Number, config: Config) -> Number:
    """The read port of a byte ``address``: its granule's number, folded by XOR to log2(ports) bits.

    For an ``int`` and, just as well, for an Amaranth value, of which it makes an expression. Any aligned block of
    ``ports`` granules is spread evenly over all ports, so every power-of-two row pitch is as well.
    """
    bits = exact_log2(config.ports)
    port = address & 0
    for shift in range(config.granule_log2, ADDRESS_BITS, max(bits, 1)):
        port = port ^ ((address >> shift) & (config.ports - 1))
    return port
