"""The middle of the store unit: turns beats at any step into lines, and merges those that touch the same one."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from daedal.hw.config.core import Config
from daedal.hw.isa.elements import STORE_STEP
from daedal.hw.memory.store.store_layouts import line_bits, line_layout, piece_layout


class LineMerger(wiring.Component):
    """Rotates pieces to their place and holds the last line until another one is wanted.

    One piece per cycle and never refused, but after a row's first piece that goes into two lines there must be a
    cycle without one (``RowReader`` sees to that). A line comes out two to three cycles after the piece that
    completes it or, if it is not complete, that follows it.

    Members
    -------
    piece : ``In(piece_layout(config))``, valid : ``In(1)``
        What to store in this cycle.
    release : ``In(1)``
        Do not hold an incomplete line for pieces to come.
    line : ``Out(line_layout(config))``, line_valid : ``Out(1)``
        A line to write, in this cycle.
    empty : ``Out(1)``
        Nothing is held.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "piece": In(piece_layout(config)),
                "valid": In(1),
                "release": In(1),
                "line": Out(line_layout(config)),
                "line_valid": Out(1),
                "empty": Out(1),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.place = place = _Place(self._config)
        m.submodules.hold = hold = _Hold(self._config)
        m.d.comb += [
            place.piece.eq(self.piece),
            place.valid.eq(self.valid),
            hold.data.eq(place.data),
            hold.low.eq(place.low),
            hold.high.eq(place.high),
            hold.line_number.eq(place.line_number),
            hold.last_number.eq(place.last_number),
            hold.same.eq(place.same),
            hold.valid.eq(place.valid_out),
            hold.release.eq(self.release & ~self.valid),
            self.line.eq(hold.line),
            self.line_valid.eq(hold.line_valid),
            self.empty.eq(~self.valid & ~place.valid_out & hold.empty),
        ]
        return m


class _Place(wiring.Component):
    """Rotates a piece up to its offset, in one cycle.

    Members: in the cycle after ``valid`` (``valid_out``): ``data`` rotated, of which steps ``low`` go to line
    ``line_number`` and steps ``high`` to the one after it; ``last_number`` is the last line that the piece
    touches; ``same``: the piece before ended in this piece's first line. All of it stays until the next piece.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "piece": In(piece_layout(config)),
                "valid": In(1),
                "valid_out": Out(1),
                "data": Out(8 * config.bus_bytes),
                "low": Out(config.line_steps),
                "high": Out(config.line_steps),
                "line_number": Out(line_bits(config)),
                "last_number": Out(line_bits(config)),
                "same": Out(1),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        piece, steps = self.piece, self._config.line_steps
        mask = Signal(2 * steps)
        rotated = piece.data
        for step in range(len(piece.offset)):
            rotated = Mux(piece.offset[step], rotated.rotate_left(8 * STORE_STEP << step), rotated)
        m.d.comb += mask.eq(Cat(piece.steps > n for n in range(steps)) << piece.offset)
        m.d.sync += self.valid_out.eq(self.valid)
        with m.If(self.valid):
            m.d.sync += [
                self.data.eq(rotated),
                self.low.eq(mask[:steps]),
                self.high.eq(mask[steps:]),
                self.line_number.eq(piece.line),
                self.last_number.eq(piece.line + mask[steps:].any()),
                self.same.eq(piece.line == self.last_number),
            ]
        return m


class _Hold(wiring.Component):
    """Holds one line. Members as of ``_Place`` and ``LineMerger``."""

    def __init__(self, config: Config) -> None:
        super().__init__(
            {
                "data": In(8 * config.bus_bytes),
                "low": In(config.line_steps),
                "high": In(config.line_steps),
                "line_number": In(line_bits(config)),
                "last_number": In(line_bits(config)),
                "same": In(1),
                "valid": In(1),
                "release": In(1),
                "line": Out(line_layout(config)),
                "line_valid": Out(1),
                "empty": Out(1),
            }
        )
        self._config = config

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        held, full = Signal(line_layout(self._config)), Signal()
        merge, other, again, crosses, let_go = Signal(), Signal(), Signal(), Signal(), Signal()
        occupied = held.mask.any()
        m.d.comb += [
            crosses.eq(self.high.any()),
            other.eq(self.valid & occupied & ~self.same),
            merge.eq(self.valid & ~other),
            full.eq(held.mask.all()),
            let_go.eq(~self.valid & ~again & occupied & (full | self.release)),
            self.empty.eq(~occupied & ~again & ~self.line_valid),
        ]
        # A piece for another line drives out the held one. If it goes on into a third line its own first one
        # is held for a cycle and driven out by its second part.
        m.d.sync += [
            again.eq(other & crosses),
            self.line_valid.eq(other | again | (merge & crosses) | let_go),
            self.line.mask.eq(held.mask | Mux(merge, self.low, 0)),
            self.line.line.eq(Mux(merge, self.line_number, held.line)),
        ]
        self._steps(m, held, merge, other | again | (merge & crosses))
        with m.If(again | (merge & crosses)):
            m.d.sync += [held.mask.eq(self.high), held.line.eq(self.last_number)]
        with m.Elif(other):
            m.d.sync += [held.mask.eq(self.low), held.line.eq(self.line_number)]
        with m.Elif(merge):
            m.d.sync += [held.mask.eq(held.mask | self.low), held.line.eq(self.line_number)]
        with m.Elif(let_go):
            m.d.sync += held.mask.eq(0)
        return m

    def _steps(self, m: Module, held: Signal, merge: Signal, replace: Signal) -> None:
        """Steps of the held line and of the one that goes out: later ones win."""
        bits = 8 * STORE_STEP
        for n in range(self._config.line_steps):
            new = self.data.word_select(n, bits)
            with m.If(replace | (merge & self.low[n])):
                m.d.sync += held.data.word_select(n, bits).eq(new)
            kept = held.data.word_select(n, bits)
            m.d.sync += self.line.data.word_select(n, bits).eq(Mux(merge & self.low[n], new, kept))
