"""A counter that goes up and down by 1."""

from amaranth.hdl import Module, Mux, Signal, Value


def up_down(m: Module, counter: Signal, *, up: Value, down: Value, early: str = "up") -> None:
    """``counter`` counts ``up``, ``down``, neither or both (which is neither).

    ``early`` is the one of the two, ``up`` or ``down``, that is known sooner: only that one goes through the adder, the
    other one just lets the counter change. One adder instead of two.
    """
    step = Mux(up, 1, -1) if early == "up" else Mux(down, -1, 1)
    with m.If(up != down):
        m.d.sync += counter.eq(counter + step)
