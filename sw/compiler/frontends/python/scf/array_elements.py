"""Elements of arrays: which memref and indices they are, and what they need of bounds."""

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from daedal.compiler.dialects import narrow
from daedal.compiler.dialects.elements import LANE
from daedal.compiler.frontends.python.scf.scopes import Scopes
from daedal.compiler.frontends.python.scf.values import (
    INTEGERS,
    Binding,
    Cell,
    Row,
    Value,
)
from daedal.compiler.frontends.python.source import Source
from daedal.compiler.frontends.python.syntax import indices_of
from daedal.errors import UnsupportedOperation
from daedal.hw.isa.words import INDEX_BITS, PITCH_BITS
from daedal.runtime.loops.bounds import Access, Bounds, Fact, Need, RowRead, text
from daedal.runtime.loops.chains import Chain
from daedal.runtime.loops.integers import (
    Binary,
    Element,
    Given,
    Induction,
    Integer,
    Interval,
    Number,
    combine,
    is_given,
    parts,
    replace_in,
    split_sum,
    term,
)
from daedal.runtime.loops.signature import FLOATS, NARROW, SIGNED_OFFSET, Argument, Signature, ir_name

INDEX_LIMIT, FACTOR_LIMIT = (1 << INDEX_BITS) - 1, (1 << PITCH_BITS) - 1
"""What the machine's multipliers take."""

Mask = tuple[SSAValue, bool]
"""A condition of f32, and whether its opposite is meant."""


class Uses:
    """Of which elements use is made under which conditions; of ``always``, under none."""

    def __init__(self) -> None:
        self._under: dict[int, dict[bool, set[Element]]] = {}
        self.always: set[Element] = set()

    def note(self, element: Element, conditions: Sequence[tuple[int, bool]]) -> None:
        """Use is made of an element if all of these conditions hold, or do not."""
        for condition, holds in conditions:
            self._under.setdefault(condition, {True: set(), False: set()})[holds].add(element)
        if not conditions:
            self.always.add(element)

    def guards(self) -> set[int]:
        """Conditions that decide whether use is made of something."""
        return {
            condition
            for condition, uses in self._under.items()
            if uses[True] - self.always != uses[False] - self.always
        }


class Elements(ABC):
    """Loads elements in the scopes that are open.

    Attributes
    ----------
    bindings
        What names stand for.
    masks
        The conditions of f32 that a statement is under.
    bits, wide
        Of the machine's integers; and what they may be that are compared: one more and one less are integers of the
        machine too.
    line
        The line of the statement that is being written.
    renamed
        Inductions of loads that are done again in a loop further in: old, new, and which loads (None: all).
    has_chains
        Whether the host makes arrays of what is loaded at a loaded number.
    """

    def __init__(
        self,
        source: Source,
        signature: Signature,
        fixed: Mapping[str, int],
        arrays: dict[str, SSAValue],
        written: set[str],
        scopes: Scopes,
        bits: int,
    ) -> None:
        self.source, self.signature, self.scopes = source, signature, scopes
        self.bits = bits
        self.wide = 1 - (1 << (bits - 1)), (1 << (bits - 1)) - 2
        self._fixed, self._arrays, self._written = fixed, arrays, written
        self.bounds = Bounds()
        self.bindings: dict[str, Binding] = {}
        self.masks: list[Mask] = []
        self.line = source.tree.lineno
        self.renamed: list[tuple[Induction, Induction, frozenset[Element] | None]] = []
        self.has_chains = False
        self.kept: dict[str, Cell] = {}
        """Arrays of which the only element in use is kept in a local number."""
        self.checked, self.singles = Uses(), Uses()
        """What the machine must check; and which single elements it loads at an index that was loaded."""

    def refusal(self, node: ast.AST | int, why: str) -> UnsupportedOperation:
        """The error for what stands at ``node``."""
        return self.source.refusal(node, why)

    @abstractmethod
    def value(self, node: ast.expr) -> Value:
        """What an expression gives; a row only as an element of it."""

    def integer(self, node: ast.expr, what: str) -> Integer:
        """The value of an expression that must be an integer."""
        value = self.value(node)
        if not isinstance(value, INTEGERS):
            raise self.refusal(node, f"{what} must be an integer, not {ast.unparse(node)!r}, which is an f32")
        if is_given(value):
            self.need_wide(value, what)
        return value

    def need_wide(self, value: Value, what: str) -> None:
        """Note that the machine compares an integer."""
        self.need(value, self.wide, what, f"integers have {self.bits} bits")

    def need(self, value: Value, limits: Interval, what: str, hint: str) -> None:
        """Note between which numbers the machine, or a launch, takes an integer."""
        if isinstance(value, INTEGERS):
            self.bounds.needs[Need(self.line, value, *limits, what, hint, self._facts())] = None

    def _facts(self) -> tuple[Fact, ...]:
        return tuple(fact for scope in self.scopes.open for fact in scope.facts)

    def place(self, node: ast.Subscript) -> tuple[SSAValue, tuple[Integer, ...]]:
        """The memref and the indices that a subscript names; what they need of bounds is noted."""
        if not isinstance(node.value, ast.Name):
            raise self.refusal(node, f"{ast.unparse(node)!r} must be an element of an argument or of a local row")
        name = node.value.id
        bound = self.bindings.get(name)
        argument = self.signature.arguments.get(name)
        if isinstance(bound, Row):
            buffer = bound.buffer
            sizes: tuple[Integer, ...] = (Number(bound.width),)
        elif bound is None and argument is not None and argument.shape is not None:
            buffer, sizes = self._arrays[name], tuple(self.size(size) for size in argument.shape)
        else:
            raise self.refusal(node, f"{name} must be an array or a local row (daedal.zeros) to be indexed")
        nodes = indices_of(node)
        if len(nodes) != len(sizes):
            raise self.refusal(
                node, f"{name} has {len(sizes)} dimensions, so there must be {len(sizes)} indices, not {len(nodes)}"
            )
        indices = tuple(self._index(name, n, each, sizes[n]) for n, each in enumerate(nodes))
        if argument is not None and argument.element in NARROW and not isinstance(bound, Row):
            self._need_row(node, argument, indices)
        return buffer, indices

    def _need_row(self, node: ast.Subscript, argument: Argument, indices: tuple[Integer, ...]) -> None:
        """Refuse single elements that are narrower than the numbers that the machine loads and stores."""
        column = self.scopes.inner.variable if self.scopes.inner.is_row else None
        if column is None or column not in parts(indices[-1]):
            raise self.refusal(
                node,
                f"{ast.unparse(node)!r} is a single {argument.element}: use elements of {argument.name} in loops along "
                "its rows, or an array of f32",
            )

    def size(self, size: Integer) -> Integer:
        """A size of the signature with the numbers of those that are fixed."""
        for name, number in self._fixed.items():
            size = replace_in(size, Given(name), Number(number))
        return size

    def _index(self, name: str, dimension: int, node: ast.expr, size: Integer) -> Integer:
        if isinstance(node, ast.Slice):
            raise self.refusal(node, f"slice {ast.unparse(node)!r} of {name} is not supported: write the loop over it")
        index = self.rename(self.integer(node, f"an index of {name}"))
        if isinstance(index, Number) and index.value < 0:
            raise self.refusal(node, f"index {index.value} of {name} must not be negative: count from the start")
        self.note(Access(node.lineno, name, dimension, index, size, self._facts()))
        core = term(index)
        if not isinstance(core, Element | Number | Given):
            hint = "count loops from 0, and put what is subtracted last"
            need = Need(node.lineno, core, 0, INDEX_LIMIT, f"what an index of {name} has of loops", hint, self._facts())
            self.bounds.terms[need] = None
        return index

    def chained(self, node: ast.Subscript) -> Element | None:
        """The element of an array that the host makes, if that is what is loaded at a loaded number.

        Under a condition nothing is known of numbers for which it does not hold: these are loaded by the machine.
        """
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        argument, nodes = self.signature.arguments.get(name), indices_of(node)
        is_list = argument is not None and not argument.is_float and argument.shape is not None and len(nodes) == 1
        if not (self.has_chains and is_list) or isinstance(nodes[0], ast.Slice):
            return None
        index, offset = split_sum(self.rename(self.integer(nodes[0], f"an index of {name}")))
        if not isinstance(index, Element) or self._is_under_condition:
            return None
        assert argument is not None
        assert argument.shape is not None
        added = "" if offset == Number(0) else f" + {text(offset)}"
        made = f"{name}[{index.array}{added}]"
        if made not in self._arrays:
            like, indices = self._arrays[name].type, self._arrays[index.array].type
            assert isinstance(like, MemRefType)
            assert isinstance(indices, MemRefType)
            block = self.scopes.open[0].block
            value = block.insert_arg(MemRefType(like.element_type, indices.shape), len(block.args))
            value.name_hint = ir_name(made)
            self._arrays[made] = value
        known = self.bounds.chains.get(made)
        numbers = dict.fromkeys([*(() if known is None else known.numbers), index])
        size = self.size(argument.shape[0])
        self.bounds.chains[made] = Chain(name, index.array, offset, size, tuple(numbers), node.lineno)
        return Element(made, index.indices)

    @property
    def _is_under_condition(self) -> bool:
        is_guarded = any(which is None for _, _, which in self.renamed)
        return is_guarded or any(scope.condition is not None for scope in self.scopes.open)

    def note(self, access: Access) -> None:
        """An index is used: note who checks it, and under which conditions that must not happen too early."""
        loaded = self.bounds.access(access)
        if loaded is not None:
            self.checked.note(loaded, self._conditions(loaded))

    def _note_single(self, name: str, indices: tuple[Integer, ...]) -> None:
        """An element is loaded: unless it is one of a row, the machine does so whether or not conditions hold."""
        column = self.scopes.inner.variable if self.scopes.inner.is_row else None
        loaded = [part for index in indices for part in parts(index) if isinstance(part, Element)]
        if name in self.signature.arguments and loaded and (column is None or column not in parts(indices[-1])):
            element = Element(name, indices)
            self.singles.note(element, self._conditions(element))

    def _conditions(self, element: Element) -> list[tuple[int, bool]]:
        """The conditions that what depends on no more than ``element`` does is under."""
        inside = self.scopes.open[self.scopes.depth(element) + 1 :]
        return [scope.condition for scope in inside if scope.condition is not None]

    def rename(self, expression: Integer) -> Integer:
        """The expression with loads done again where that is wanted."""
        for old, new, which in self.renamed:
            for part in list(parts(expression)):
                if isinstance(part, Element) and (which is None or part in which):
                    expression = replace_in(expression, part, _load_again(part, old, new, deep=which is None))
        return expression

    def load(self, buffer: SSAValue, indices: tuple[Integer, ...], name: str) -> SSAValue:
        """An f32 of memory or of a local row."""
        is_constant = name in self.signature.arguments and name not in self._written
        depths = [self.scopes.depth(index) for index in indices]
        depth = max(depths, default=0) if is_constant else len(self.scopes.open) - 1
        known = self.scopes.open[depth].loads
        key = (buffer, indices)
        if key not in known:
            where = [self.scopes.integer(index) for index in indices]
            at = depth if is_constant else None
            loaded = self.scopes.value(memref.LoadOp.get(buffer, where), f"{name}_element", depth=at)
            if loaded.type != LANE:
                loaded = self.scopes.value(narrow.WidenOp(loaded), f"{name}_wide", depth=at)
                if self.signature.arguments[name].element == "i8":
                    offset = self.scopes.float_constant(float(-SIGNED_OFFSET))
                    loaded = self.scopes.value(arith.AddfOp(loaded, offset), f"{name}_signed", depth=at)
            known[key] = loaded
        return known[key]

    def _note_row(self, node: ast.Subscript, name: str, indices: tuple[Integer, ...]) -> None:
        column = self.scopes.inner.variable
        if not self.scopes.inner.is_row or column is None or isinstance(self.bindings.get(name), Row):
            return
        core, offset = split_sum(indices[-1])
        lower, upper = self.bounds.loops[column]
        if core == column and isinstance(lower, Number) and isinstance(upper, Number):
            first = combine("add", offset, lower)
            size = FLOATS[self.signature.arguments[name].element].bytes
            self.bounds.rows[RowRead(node.lineno, name, first, upper.value - lower.value, size)] = None

    def load_cell(self, cell: Cell) -> SSAValue:
        """The f32 in a cell; in a loop along a row it is loaded before the loop."""
        depth = self.scopes.row_depth()
        key = (cell.buffer, (Number(0),))
        known = self.scopes.open[depth].loads
        if key not in known:
            op = memref.LoadOp.get(cell.buffer, [self.scopes.integer(Number(0))])
            at = depth if depth < len(self.scopes.open) - 1 else None
            known[key] = self.scopes.value(op, cell.buffer.name_hint, depth=at)
        return known[key]

    def forget(self, buffer: SSAValue | None) -> None:
        """A buffer was written (None: any may have been): what was loaded of it is not what is there."""
        constant = {self._arrays[name] for name in self.signature.arguments if name not in self._written}
        for scope in self.scopes.open:
            for key in [k for k in scope.loads if k[0] is buffer or (buffer is None and k[0] not in constant)]:
                del scope.loads[key]


def _load_again(element: Element, old: Induction, new: Induction, *, deep: bool) -> Element:
    """The element with loop ``new`` in the place of ``old``; unless ``deep``, not in what its indices load."""

    def change(index: Integer) -> Integer:
        if isinstance(index, Binary) and not deep:
            return combine(index.kind, change(index.a), change(index.b))
        return index if isinstance(index, Element) and not deep else replace_in(index, old, new)

    return Element(element.array, tuple(change(index) for index in element.indices))
