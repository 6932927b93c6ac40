"""One bit over many."""

from amaranth.hdl import Mux, Value


def replicate(bit: Value, width: int) -> Value:
    """``width`` copies of ``bit``.

    The same value as ``bit.replicate(width)``, whose Verilog is a concatenation of single bits that a simulator
    puts together one by one in every cycle; this is one choice between two constants.
    """
    return Mux(bit, (1 << width) - 1, 0)
