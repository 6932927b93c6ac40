"""Which indices of a kernel may lie outside their array, and who makes sure that they do not.

What sizes and scalars decide, the host checks before a launch. A loaded index, and the loaded end of a loop, the
machine checks while it runs (``check.bounds``). Where it has too few loops for that, the host checks some of them, in
all of the array.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from daedal.hw.isa.elements import ROW_GRANULE
from daedal.runtime.loops.chains import Chain
from daedal.runtime.loops.integers import (
    UNKNOWN,
    Binary,
    Element,
    Given,
    Induction,
    Integer,
    Interval,
    Number,
    combine,
    evaluate,
    interval,
    is_given,
    parts,
    split_sum,
)

Fact = tuple[str, Integer, Integer]
"""A comparison that holds: its sign and its sides."""


@dataclass(frozen=True)
class Access:
    """An index of an array: it must lie from 0 to ``size`` - 1 where ``facts`` hold; ``line`` is that of the source."""

    line: int
    array: str
    dimension: int
    index: Integer
    size: Integer
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class Need:
    """An integer that must lie from ``low`` to ``high`` where ``facts`` hold.

    ``what`` is what it is, ``hint`` the way out.
    """

    line: int
    value: Integer
    low: int
    high: int
    what: str
    hint: str
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class RowRead:
    """A row of ``width`` elements that is read from element ``first`` of an array's last dimension on."""

    line: int
    array: str
    first: Integer
    width: int
    element_bytes: int


@dataclass(frozen=True)
class Fault:
    """An index outside of its array: the access, and the value that it reaches."""

    access: Access
    value: int
    size: int
    is_loaded: bool
    """Whether something that is loaded decides the index."""


@dataclass
class Bounds:
    """Collects what the accesses of a kernel need.

    Attributes
    ----------
    limits
        Loaded index -> what it must be below.
    ends
        Loaded end of a loop -> what it must be below.
    ends_on_host
        The host checks these ends, not the machine.
    hosted
        What the host checks, not the machine, of loaded indices and ends: a loop has one check.
    chains
        Arrays that the host makes of two arguments, by name.
    starts
        Arrays whose elements are where loops start: they must not be negative.
    loops
        Loop -> its bounds.
    lines
        Loaded index, or loaded end or start of a loop -> its line.
    accesses
        Every index.
    rows
        Rows that are read, as far as a call decides where they start.
    needs, terms
        What the machine's arithmetic, and its addresses, ask of integers.
    """

    limits: dict[Element, Integer] = field(default_factory=dict)
    ends: dict[Element, Integer] = field(default_factory=dict)
    ends_on_host: bool = False
    hosted: set[Element] = field(default_factory=set)
    chains: dict[str, Chain] = field(default_factory=dict)
    starts: dict[str, int] = field(default_factory=dict)
    loops: dict[Induction, tuple[Integer, Integer]] = field(default_factory=dict)
    lines: dict[Element, int] = field(default_factory=dict)
    accesses: dict[Access, None] = field(default_factory=dict)
    rows: dict[RowRead, None] = field(default_factory=dict)
    needs: dict[Need, None] = field(default_factory=dict)
    terms: dict[Need, None] = field(default_factory=dict)

    def loop(self, variable: Induction, lower: Integer, upper: Integer, line: int) -> None:
        """A loop has these bounds."""
        self.loops[variable] = lower, upper
        for bound in (upper, lower):
            core, _ = split_sum(bound)
            if isinstance(core, Element):
                self.lines.setdefault(core, line)
                if bound is lower:
                    self.starts.setdefault(core.array, line)

    def access(self, access: Access) -> Element | None:
        """An array has this index; the loaded value that the machine must check for it, if there is one."""
        self.accesses[access] = None
        core, offset = split_sum(access.index)
        limit = combine("sub", access.size, offset)
        if isinstance(core, Element):
            _tighten(self.limits, core, limit)
            self.lines[core] = access.line
            return core
        scaled = self._scaled(core)
        if scaled is not None:
            element, factor, most = scaled
            room = combine("add", combine("sub", combine("sub", limit, most), Number(1)), factor)
            _tighten(self.limits, element, combine("div", combine("max", room, Number(0)), factor))
            self.lines[element] = access.line
            return element
        if isinstance(core, Induction):
            end, further = split_sum(self.loops[core][1])
            if isinstance(end, Element):
                _tighten(self.ends, end, combine("add", combine("sub", limit, further), Number(1)))
        return None

    @property
    def by_machine(self) -> list[Element]:
        """What the machine checks."""
        checked = dict.fromkeys([*({} if self.ends_on_host else self.ends), *self.limits])
        return [element for element in checked if element not in self.hosted]

    def loaded_ends(self, *, machine_checks: bool) -> dict[str, int]:
        """Arrays whose elements are where loops start or end, with a line, where the machine does not check these."""
        found: dict[str, int] = {}
        for lower, upper in self.loops.values():
            for bound in (lower, upper):
                if isinstance(bound, Element) and not (machine_checks and bound in self.ends):
                    found.setdefault(bound.array, self.lines[bound])
        return found

    def _scaled(self, core: Integer) -> tuple[Element, Integer, Integer] | None:
        """An element, what it is multiplied with (positive), and the most that is added to it, if ``core`` is that."""
        if isinstance(core, Element):
            return core, Number(1), Number(0)
        if not isinstance(core, Binary):
            return None
        a, b = core.a, core.b
        if core.kind in ("add", "mul") and not any(isinstance(part, Element) for part in parts(a)):
            a, b = b, a
        found = self._scaled(a)
        if found is None:
            return None
        element, factor, most = found
        if core.kind == "add":
            lower, upper = self.loops.get(b, (None, None)) if isinstance(b, Induction) else (None, None)
            if not isinstance(lower, Number) or lower.value < 0 or upper is None or not is_given(upper):
                return None
            return element, factor, combine("add", most, combine("sub", upper, Number(1)))
        if core.kind == "shift_left" and isinstance(b, Number) and 0 <= b.value < 24:
            core, b = Binary("mul", a, b), Number(1 << b.value)
        positive = is_given(b) and (not isinstance(b, Number) or b.value > 0)
        if core.kind != "mul" or not positive or factor != Number(1) or most != Number(0):
            return None
        return element, b if isinstance(b, Number) else combine("max", b, Number(1)), most

    def reads_parts(self, array: str, width: int, given: Mapping[str, int]) -> bool:
        """Whether rows are read that are not all ``width`` elements of the array's last dimension."""
        rows = [row for row in self.rows if row.array == array]
        return any(row.width != width or evaluate(row.first, given) != 0 for row in rows)

    def first_crooked(self, given: Mapping[str, int], line_bytes: int) -> tuple[RowRead, int] | None:
        """The first row that cannot be fetched where it starts, and where that is: rows start at a line of memory, or
        inside of one at a granule.
        """
        for row in self.rows:
            first = evaluate(row.first, given)
            start, size = first * row.element_bytes, row.width * row.element_bytes
            is_across = start % line_bytes and start + size > line_bytes * (start // line_bytes + 1)
            if is_across or start % ROW_GRANULE:
                return row, first
        return None

    def first_fault(self, given: Mapping[str, int], *, machine_checks: bool) -> Fault | None:
        """The first access that sizes and scalars let reach out of its array, where the machine does not notice."""
        everywhere = self._known(given)
        for access in self.accesses:
            known = _narrowed(everywhere, access.facts, given)
            loaded = [part for part in parts(access.index) if isinstance(part, Element)]
            variables = {part for part in parts(access.index) if isinstance(part, Induction)}
            if any(_is_empty(known.get(variable)) for variable in variables):
                continue
            is_loaded = bool(loaded) or any(self._is_loaded(variable) for variable in variables)
            if is_loaded and not machine_checks:
                continue
            size = evaluate(access.size, given)
            low, high = interval(access.index, given, known)
            if low < 0 or high >= size:
                if any(_is_empty(known.get(element)) for element in loaded):
                    continue
                return Fault(access, low if low < 0 else high, size, is_loaded)
        return None

    def first_unmet(
        self, needs: Mapping[Need, None], given: Mapping[str, int], elements: Callable[[str], Interval]
    ) -> tuple[Need, int] | None:
        """The first need that sizes, scalars and the ``elements`` of arrays do not meet, and the value reached."""
        if not needs:
            return None
        everywhere = self._known(given, elements)
        for need in needs:
            _with_unknown(need.value, everywhere, elements)
            known = _narrowed(everywhere, need.facts, given)
            if any(_is_empty(known.get(part)) for part in parts(need.value)):
                continue
            low, high = interval(need.value, given, known)
            if low < need.low or high > need.high:
                return need, low if low < need.low else high
        return None

    def _is_loaded(self, variable: Induction) -> bool:
        return not all(is_given(bound) for bound in self.loops[variable])

    def _known(
        self, given: Mapping[str, int], elements: Callable[[str], Interval] = lambda array: UNKNOWN
    ) -> dict[Integer, Interval]:
        known: dict[Integer, Interval] = {}
        for element, limit in self.limits.items():
            known[element] = 0, evaluate(limit, given) - 1
        for element, limit in self.ends.items():
            low, high = known.get(element, (0, evaluate(limit, given) - 1))
            known[element] = low, min(high, evaluate(limit, given) - 1)
        for variable, bounds in self.loops.items():
            lower, upper = (_with_unknown(bound, known, elements) for bound in bounds)
            first = interval(lower, given, known)[0]
            if isinstance(lower, Element):  # what ``starts`` says
                first = max(first, 0)
            known[variable] = first, interval(upper, given, known)[1] - 1
        for access in self.accesses:
            _with_unknown(access.index, known, elements)
        return known


def _narrowed(
    known: dict[Integer, Interval], facts: tuple[Fact, ...], given: Mapping[str, int]
) -> dict[Integer, Interval]:
    """What is known of loops where comparisons with what a call gives hold."""
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
    found = dict(known)
    for sign, a, b in [*facts, *((mirrored[sign], b, a) for sign, a, b in facts)]:
        variable, offset = split_sum(a)
        if variable not in found or not isinstance(variable, Induction) or not is_given(b):
            continue
        value = evaluate(combine("sub", b, offset), given)
        low, high = found[variable]
        if sign in (">", ">=", "=="):
            low = max(low, value + (sign == ">"))
        if sign in ("<", "<=", "=="):
            high = min(high, value - (sign == "<"))
        found[variable] = low, high
    return found


def _is_empty(found: Interval | None) -> bool:
    return found is not None and found[1] < found[0]


def _with_unknown(expression: Integer, known: dict[Integer, Interval], elements: Callable[[str], Interval]) -> Integer:
    for part in parts(expression):
        if isinstance(part, Element) and part not in known:
            known[part] = elements(part.array)
    return expression


def _tighten(limits: dict[Element, Integer], element: Element, limit: Integer) -> None:
    old = limits.get(element)
    if old is None or old == limit:
        limits[element] = limit
    elif limit not in list(parts(old)):
        limits[element] = combine("min", old, limit)


def text(expression: Integer) -> str:
    """The expression as in a source."""
    signs = {"add": "+", "sub": "-", "mul": "*", "and": "&", "shift_left": "<<", "shift_right": ">>"}
    if isinstance(expression, Number):
        return str(expression.value)
    if isinstance(expression, Given | Induction):
        return expression.name
    if isinstance(expression, Element):
        return f"{expression.array}[{', '.join(map(text, expression.indices))}]"
    assert isinstance(expression, Binary)
    a, b = text(expression.a), text(expression.b)
    if expression.kind == "add" and isinstance(expression.b, Number) and expression.b.value < 0:
        return f"{a} - {-expression.b.value}"
    return f"{a} {signs[expression.kind]} {b}" if expression.kind in signs else f"{expression.kind}({a}, {b})"
