"""What all that writes a kernel shares: its arguments, and the loops that are open."""

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from daedal.compiler.dialects.elements import ELEMENT_TYPES, INTEGER_TYPES, LANE
from daedal.compiler.frontends.python.scf.expressions import Expressions
from daedal.compiler.frontends.python.scf.scopes import Scopes
from daedal.compiler.frontends.python.scf.values import Binding
from daedal.compiler.frontends.python.shape import Shape
from daedal.compiler.frontends.python.source import Source
from daedal.runtime.loops.integers import (
    Binary,
    Element,
    Given,
    Induction,
    Integer,
    Number,
    evaluate,
    parts,
)
from daedal.runtime.loops.signature import FLOATS, Argument, Signature, ir_name

_ONE = Number(1)
_KINDS = {element: kind for kind, element in (ELEMENT_TYPES | INTEGER_TYPES).items()}
_ELEMENTS: dict[str, Attribute] = {
    **{name: _KINDS[element] for name, element in FLOATS.items()}, "i32": i32, "i64": i64,
}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """What must be written differently, as was found by writing it.

    Attributes
    ----------
    again
        Loop -> loaded values that are checked in loops of one iteration inside of it: a loop has one check.
    guards
        Conditions (by ``id``) that are loops of no iteration or one: what is checked under them, or loops, is then
        only reached where they hold.
    guards_loads
        Whether conditions are that also to keep single numbers from being loaded where nothing is checked.
    ends_on_host
        The host checks where loops end, so that these checks take no loops.
    shares
        The host checks what a loop has beside one check, so that no check takes a loop, as far as conditions allow:
        ``hosted`` is that.
    chains
        The host makes arrays of what is loaded at a loaded number (``Chain``).
    """

    again: Mapping[Induction, tuple[Element, ...]] = field(default_factory=dict)
    guards: frozenset[int] = frozenset()
    guards_loads: bool = True
    ends_on_host: bool = False
    shares: bool = False
    hosted: frozenset[Element] = frozenset()
    chains: bool = False


class Frame(ABC):
    """One function that is being written.

    Parameters
    ----------
    tree
        The function; ``shape`` is what is known of its loops.
    fixed
        The sizes that the loops along rows have.
    bounds
        What an index outside its array does, as in ``daedal.compile``.
    bits
        Of the machine's integers.
    """

    def __init__(
        self, source: Source, signature: Signature, tree: ast.FunctionDef, shape: Shape, fixed: dict[str, int],
        bounds: str, bits: int, plan: Plan,
    ) -> None:  # fmt: skip
        self._source, self._signature, self._shape, self._plan = source, signature, shape, plan
        self._tree, self._fixed, self._mode = tree, fixed, bounds
        kinds = {name: self._type(argument) for name, argument in signature.arguments.items()}
        dimensions = self._dimensions()
        for name in signature.symbols:
            if name not in fixed and name not in dimensions and name not in kinds:
                kinds[name] = IndexType()
        block = Block(arg_types=list(kinds.values()))
        for argument, name in zip(block.args, kinds, strict=True):
            argument.name_hint = ir_name(name)
        self._arrays = dict(zip(kinds, block.args, strict=True))
        self._function = func.FuncOp(ir_name(tree.name), (list(kinds.values()), []), Region(block))
        hints = {value: name for name, value in fixed.items() if value > 1}
        self._scopes = scopes = Scopes(block, self._arrays, dimensions, hints)
        self._e = Expressions(source, signature, fixed, self._arrays, shape.written, scopes, bits)
        self._e.bounds.ends_on_host = plan.ends_on_host
        self._e.bounds.hosted = set(plan.hosted)
        self._e.has_chains = plan.chains
        self._numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
        self._guarded_by: set[Induction] = set()
        """The variables of loops that are conditions."""
        self._lines: dict[str, list[int]] = {}
        self._names: dict[str, str] = {}
        self._notes: list[tuple[int, str]] = []

    @abstractmethod
    def _block(self, statements: Sequence[ast.stmt]) -> None:
        """Write statements."""

    def _type(self, argument: Argument) -> Attribute:
        if argument.shape is None:
            return LANE if argument.is_float else IndexType()
        sizes = [self._static(size) for size in argument.shape]
        shape = [DYNAMIC_INDEX if size is None else size for size in sizes]
        is_rows = len(shape) > 1 and argument.is_float and argument.name in self._shape.read
        if is_rows and sizes[-1] is not None:
            layout = StridedLayoutAttr([*(NoneAttr() for _ in shape[1:]), 1], 0)
            return MemRefType(_ELEMENTS[argument.element], shape, layout)
        return MemRefType(_ELEMENTS[argument.element], shape)

    def _static(self, size: Integer) -> int | None:
        named = {part.name for part in parts(size) if isinstance(part, Given)}
        if not named <= self._fixed.keys():
            return None
        return evaluate(size, self._fixed)

    def _dimensions(self) -> dict[str, tuple[str, int]]:
        found: dict[str, tuple[str, int]] = {}
        for argument in self._signature.arguments.values():
            for dimension, size in enumerate(argument.shape or ()):
                if isinstance(size, Given) and size.name not in self._signature.arguments:
                    found.setdefault(size.name, (argument.name, dimension))
        return found

    # ------------------------------------------------------------------ open loops

    def _number(self, node: ast.AST, copy: int) -> int:
        """A number for a loop, the same whenever the source is written; loops inside have greater ones."""
        return 8 * self._numbers[id(node)] + copy

    def _is_in_order(self, lower: Integer, upper: Integer) -> bool:
        """Whether a loop with bounds that a call gives cannot run backwards."""
        if isinstance(lower, Number) and isinstance(upper, Number):
            return lower.value <= upper.value
        is_size = isinstance(upper, Given) and upper.name not in self._signature.arguments
        return isinstance(lower, Number) and lower.value <= 0 and is_size

    def _open(
        self, lower: Integer, upper: Integer, variable: Induction, *, line: int, is_row: bool = False,
        carried: SSAValue | None = None, step: Integer = _ONE,
    ) -> scf.ForOp:  # fmt: skip
        self._e.bounds.loop(variable, lower, upper, line)
        for bound in (lower, upper):
            if isinstance(bound, Binary) and any(isinstance(part, Element) for part in parts(bound)):
                self._e.need_wide(bound, "where a loop starts or ends")
        self._lines.setdefault(f"loop %{ir_name(variable.name)}", []).append(line)
        low, high, by = (self._scopes.integer(each) for each in (lower, upper, step))
        return self._scopes.open_loop(low, high, by, variable, is_row=is_row, carried=carried)

    def _close_to(self, count: int) -> None:
        while len(self._scopes.open) > count:
            self._scopes.close()
        self._e.forget(None)

    def _leave(self, outer: dict[str, Binding]) -> None:
        """What was bound inside of a block is not known after it."""
        self._e.bindings = dict(outer)

    def _mark(self, what: str, value: SSAValue, line: int) -> None:
        self._lines.setdefault(f"{what} %{value.name_hint}", []).append(line)
