"""Expressions of a kernel: integers become ``Integer``, f32 are written as they are met."""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith, func, math, memref
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from daedal.compiler.loops import names
from daedal.compiler.loops.bounds import Access, Bounds, RowRead
from daedal.compiler.loops.integers import (
    Binary,
    Element,
    Given,
    Induction,
    Integer,
    Number,
    combine,
    is_given,
    parts,
    replace_in,
    split_sum,
)
from daedal.compiler.loops.names import Dim
from daedal.compiler.loops.scopes import Scopes
from daedal.compiler.loops.shape import indices_of
from daedal.compiler.loops.signature import Signature
from daedal.compiler.loops.source import Source
from daedal.compiler.loops.values import (
    INTEGERS,
    OPPOSITES,
    Binding,
    Cell,
    Comparison,
    Condition,
    Constant,
    Float,
    Row,
    Value,
)
from daedal.errors import UnsupportedOperation

_INTEGER_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.BitAnd: "and",
    ast.LShift: "shift_left",
    ast.RShift: "shift_right",
}
_FLOAT_OPERATORS: dict[type[ast.operator], type[Operation]] = {
    ast.Add: arith.AddfOp,
    ast.Sub: arith.SubfOp,
    ast.Mult: arith.MulfOp,
    ast.Div: arith.DivfOp,
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_INTEGER_PREDICATES = {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "==": "eq", "!=": "ne"}
_FLOAT_PREDICATES = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}

Mask = tuple[SSAValue, bool]
"""A condition of f32, and whether its opposite is meant."""


class Expressions:
    """Evaluates expressions in the scopes that are open.

    Attributes
    ----------
    bindings
        What names stand for.
    masks
        The conditions of f32 that a statement is under.
    renamed
        Inductions of loads that are done again in a loop further in: old, new, and which loads (None: all).
    """

    def __init__(
        self,
        source: Source,
        signature: Signature,
        fixed: Mapping[str, int],
        arrays: Mapping[str, SSAValue],
        written: set[str],
        scopes: Scopes,
    ) -> None:
        self.source, self.signature, self.scopes = source, signature, scopes
        self._fixed, self._arrays, self._written = fixed, arrays, written
        self.bounds = Bounds()
        self.bindings: dict[str, Binding] = {}
        self.masks: list[Mask] = []
        self.renamed: list[tuple[Induction, Induction, frozenset[Element] | None]] = []
        self.kept: dict[str, Cell] = {}
        """Arrays of which the only element in use is kept in a local number."""
        self.guarded: dict[int, dict[bool, set[Element]]] = {}
        """Condition -> whether it holds -> what is used then that the machine must check."""
        self.always: set[Element] = set()
        """What the machine must check whatever conditions are."""
        self.dot: Callable[[ast.Call], SSAValue] | None = None
        """Writes a sum of products."""
        self._calls: dict[Any, Callable[[ast.Call], Value]] = {
            max: self._extreme, min: self._extreme, abs: self._absolute, float: self._to_float,
            names.exp: self._function, names.sqrt: self._function, names.sigmoid: self._function, names.dot: self._dot,
        }  # fmt: skip

    def refusal(self, node: ast.AST | int, why: str) -> UnsupportedOperation:
        """The error for what stands at ``node``."""
        return self.source.refusal(node, why)

    # ------------------------------------------------------------------ any expression

    def value(self, node: ast.expr) -> Value:
        """What an expression gives; a row only as an element of it."""
        match node:
            case ast.Constant():
                return self._constant(node)
            case ast.Name():
                return self._name(node)
            case ast.Subscript():
                return self._element(node)
            case ast.BinOp():
                return self._binary(node)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                return self._sign(node)
            case ast.Call():
                return self._call(node)
            case ast.IfExp():
                return self._choice(node)
            case ast.Attribute() if isinstance(self.source.meaning(node), int | float):
                return _number(self.source.meaning(node))
        raise self.refusal(node, f"{ast.unparse(node)!r} is not supported: {_kind(node)}")

    def integer(self, node: ast.expr, what: str) -> Integer:
        """The value of an expression that must be an integer."""
        value = self.value(node)
        if not isinstance(value, INTEGERS):
            raise self.refusal(node, f"{what} must be an integer, not {ast.unparse(node)!r}, which is an f32")
        return value

    def number(self, node: ast.expr) -> SSAValue:
        """The value of an expression as an f32."""
        return self.as_float(self.value(node))

    def as_float(self, value: Value) -> SSAValue:
        """A value as an f32."""
        if isinstance(value, Float):
            return value.value
        if isinstance(value, Number | Constant):
            with np.errstate(over="ignore"):
                return self.scopes.float_constant(float(np.float32(value.value)))
        return self.scopes.as_float(self.rename(value))

    def _constant(self, node: ast.Constant) -> Value:
        if type(node.value) in (int, float):
            return _number(node.value)
        raise self.refusal(node, f"a constant must be an integer or a float, not {node.value!r}")

    def _name(self, node: ast.Name) -> Value:
        bound = self.bindings.get(node.id)
        if isinstance(bound, Cell):
            return Float(self.load_cell(bound))
        if isinstance(bound, Row):
            raise self.refusal(node, f"{node.id} is a row: use its elements, as {node.id}[d]")
        if bound is not None:
            return bound
        if node.id in self._locals():
            raise self.refusal(node, f"{node.id} may have no value here: give it one before the loop or the condition")
        argument = self.signature.arguments.get(node.id)
        if argument is not None and argument.shape is not None:
            raise self.refusal(node, f"{node.id} is an array: use its elements, as {node.id}[i]")
        if argument is not None:
            return Float(self._arrays[node.id]) if argument.element == "f32" else Given(node.id)
        meaning = self.source.names.get(node.id)
        symbol = meaning.text if isinstance(meaning, Dim) else node.id
        if symbol in self.signature.symbols and type(meaning) is not int:
            return Number(self._fixed[symbol]) if symbol in self._fixed else Given(symbol)
        if type(meaning) in (int, float):
            return _number(meaning)
        raise self.refusal(node, f"name {node.id!r} must be an argument, a size of the signature, a local or a number")

    def _locals(self) -> set[str]:
        return {each.id for each in ast.walk(self.source.tree) if isinstance(each, ast.Name) and _is_stored(each)}

    # ------------------------------------------------------------------ elements of arrays

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
        return buffer, indices

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
        self.note(Access(node.lineno, name, dimension, index, size))
        return index

    def note(self, access: Access) -> None:
        """An index is used: note who checks it, and under which conditions that must not happen too early."""
        loaded = self.bounds.access(access)
        if loaded is not None:
            depth = self.scopes.depth(loaded)
            conditions = [scope.condition for scope in self.scopes.open[depth + 1 :] if scope.condition is not None]
            for condition, holds in conditions:
                self.guarded.setdefault(condition, {True: set(), False: set()})[holds].add(loaded)
            if not conditions:
                self.always.add(loaded)

    def needs_guard(self) -> set[int]:
        """Conditions that decide whether something is checked."""
        return {
            condition
            for condition, uses in self.guarded.items()
            if uses[True] - self.always != uses[False] - self.always
        }

    def rename(self, expression: Integer) -> Integer:
        """The expression with loads done again where that is wanted."""
        for old, new, which in self.renamed:
            for part in list(parts(expression)):
                if isinstance(part, Element) and (which is None or part in which):
                    expression = replace_in(expression, part, _load_again(part, old, new, deep=which is None))
        return expression

    def _element(self, node: ast.Subscript) -> Value:
        buffer, indices = self.place(node)
        assert isinstance(node.value, ast.Name)
        name = node.value.id
        argument = self.signature.arguments.get(name)
        if not isinstance(self.bindings.get(name), Row) and argument is not None and argument.element != "f32":
            return self.rename(Element(name, indices))
        self._note_row(node, name, indices)
        kept = self.kept.get(name)
        return Float(self.load(buffer, indices, name) if kept is None else self.load_cell(kept))

    def _note_row(self, node: ast.Subscript, name: str, indices: tuple[Integer, ...]) -> None:
        column = self.scopes.inner.variable
        if not self.scopes.inner.is_row or column is None or isinstance(self.bindings.get(name), Row):
            return
        core, offset = split_sum(indices[-1])
        lower, upper = self.bounds.loops[column]
        if core == column and isinstance(lower, Number) and isinstance(upper, Number):
            first = combine("add", offset, lower)
            self.bounds.rows[RowRead(node.lineno, name, first, upper.value - lower.value)] = None

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
            known[key] = self.scopes.value(memref.LoadOp.get(buffer, where), f"{name}_element", depth=at)
        return known[key]

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

    # ------------------------------------------------------------------ arithmetic

    def _binary(self, node: ast.BinOp) -> Value:
        return self.combine(node, node.op, self.value(node.left), self.value(node.right))

    def combine(self, node: ast.AST, operator: ast.operator, a: Value, b: Value) -> Value:
        """``a operator b``."""
        kind = type(operator)
        if isinstance(a, INTEGERS) and isinstance(b, INTEGERS):
            if kind not in _INTEGER_OPERATORS:
                raise self.refusal(
                    node, f"integers can be added, subtracted, multiplied, shifted and masked (&), {_no(kind)}"
                )
            return combine(_INTEGER_OPERATORS[kind], a, b)
        if kind not in _FLOAT_OPERATORS:
            raise self.refusal(node, f"f32 can be added, subtracted, multiplied and divided, {_no(kind)}")
        if isinstance(a, Number | Constant) and isinstance(b, Number | Constant):
            return self._fold(node, kind, float(a.value), float(b.value))
        op = _FLOAT_OPERATORS[kind].create(operands=[self.as_float(a), self.as_float(b)], result_types=[f32],
                                           properties=_flags())  # fmt: skip
        return Float(self.scopes.pure(op))

    def _fold(self, node: ast.AST, kind: type[ast.operator], a: float, b: float) -> Value:
        if kind is ast.Div and b == 0:
            raise self.refusal(node, "division by zero")
        return Constant({ast.Add: a + b, ast.Sub: a - b, ast.Mult: a * b, ast.Div: a / (b or 1)}[kind])

    def _sign(self, node: ast.UnaryOp) -> Value:
        value = self.value(node.operand)
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(value, Constant):
            return Constant(-value.value)
        if isinstance(value, Float):
            return Float(self.scopes.pure(arith.NegfOp(value.value)))
        return combine("sub", Number(0), value)

    def _call(self, node: ast.Call) -> Value:
        meaning = self.source.meaning(node.func)
        handler = next((made for known, made in self._calls.items() if known is meaning), None)
        if handler is None or node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
            raise self.refusal(
                node,
                f"call {ast.unparse(node)!r} is not supported: max, min, abs, float, daedal.exp, daedal.sqrt, "
                "daedal.sigmoid and daedal.dot are, with plain arguments",
            )
        return handler(node)

    def _extreme(self, node: ast.Call) -> Value:
        """Python's max and min: a later argument is taken if it is greater (less) than those before."""
        is_max = self.source.meaning(node.func) is max
        if len(node.args) < 2:
            raise self.refusal(node, f"{ast.unparse(node)!r} must have two arguments or more")
        best, *others = [self.value(argument) for argument in node.args]
        for other in others:
            if isinstance(best, INTEGERS) and isinstance(other, INTEGERS):
                best = combine("max" if is_max else "min", best, other)
            else:
                a, b = self.as_float(best), self.as_float(other)
                better = self.scopes.pure(arith.CmpfOp(b, a, "ogt" if is_max else "olt"))
                best = Float(self.scopes.pure(arith.SelectOp(better, b, a)))
        return best

    def _absolute(self, node: ast.Call) -> Value:
        value = self._only(node)
        if isinstance(value, INTEGERS):
            return combine("max", value, combine("sub", Number(0), value))
        if isinstance(value, Constant):
            return Constant(abs(value.value))
        return Float(self.scopes.pure(math.AbsFOp(value.value)))

    def _to_float(self, node: ast.Call) -> Value:
        value = self._only(node)
        return Constant(value.value) if isinstance(value, Number) else Float(self.as_float(value))

    def _function(self, node: ast.Call) -> Value:
        operand = self.as_float(self._only(node))
        meaning = self.source.meaning(node.func)
        if meaning is names.sqrt:
            return Float(self.scopes.pure(math.SqrtOp(operand)))
        name = "daedal_exp" if meaning is names.exp else "daedal_sigmoid"
        return Float(self.scopes.value(func.CallOp(name, [operand], [f32])))

    def _only(self, node: ast.Call) -> Value:
        if len(node.args) != 1:
            raise self.refusal(node, f"{ast.unparse(node)!r} must have one argument, not {len(node.args)}")
        return self.value(node.args[0])

    def _dot(self, node: ast.Call) -> Value:
        if self.dot is None or self.scopes.inner.is_row:
            raise self.refusal(node, "daedal.dot must stand outside of loops along rows")
        return Float(self.dot(node))

    # ------------------------------------------------------------------ conditions

    def condition(self, node: ast.expr) -> Condition:
        """What must hold for a condition."""
        found = self._condition(node, opposite=False)
        if len({each.is_float for each in found.comparisons}) > 1:
            raise self.refusal(node, "comparisons of integers and of f32 must be in conditions of their own")
        return found

    def _condition(self, node: ast.expr, *, opposite: bool) -> Condition:
        match node:
            case ast.Compare():
                return self._compare(node, opposite=opposite)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._condition(operand, opposite=not opposite)
            case ast.BoolOp(op=operator, values=values):
                is_or = isinstance(operator, ast.Or) is not opposite
                found = [self._condition(each, opposite=opposite is not is_or) for each in values]
                if any(each.negated for each in found) or (is_or and any(each.is_float for each in found)):
                    raise self.refusal(
                        node, "`and` and `or` must not be mixed, and `or` is for integers: use nested `if`"
                    )
                return Condition(tuple(one for each in found for one in each.comparisons), negated=is_or)
        raise self.refusal(node, f"condition {ast.unparse(node)!r} must be a comparison, or several with and, or, not")

    def _compare(self, node: ast.Compare, *, opposite: bool) -> Condition:
        sides = [self.value(each) for each in (node.left, *node.comparators)]
        kinds = [_COMPARISONS.get(type(op)) for op in node.ops]
        made = []
        for kind, a, b in zip(kinds, sides[:-1], sides[1:], strict=True):
            if kind is None:
                raise self.refusal(node, f"{ast.unparse(node)!r} must compare with <, <=, >, >=, == or !=")
            made.append(Comparison(kind, a, b))
        if not opposite:
            return Condition(tuple(made))
        if len(made) > 1 or made[0].is_float:
            return Condition(tuple(made), negated=True)
        return Condition((Comparison(OPPOSITES[made[0].kind], made[0].a, made[0].b),))

    def test(self, condition: Condition) -> SSAValue:
        """The i1 that all comparisons hold."""
        results = [self._test(each) for each in condition.comparisons]
        result = results[0]
        for other in results[1:]:
            result = self.scopes.pure(arith.AndIOp(result, other))
        return result

    def _test(self, comparison: Comparison) -> SSAValue:
        a, b = comparison.a, comparison.b
        if isinstance(a, INTEGERS) and isinstance(b, INTEGERS):
            kind, a, b = _strict(comparison.kind, self.rename(a), self.rename(b))
            operands = [self.scopes.integer(side) for side in (a, b)]
            return self.scopes.pure(arith.CmpiOp(operands[0], operands[1], _INTEGER_PREDICATES[kind]))
        sides = [self.as_float(side) for side in (a, b)]
        return self.scopes.pure(arith.CmpfOp(sides[0], sides[1], _FLOAT_PREDICATES[comparison.kind]))

    def _choice(self, node: ast.IfExp) -> Value:
        condition = self.condition(node.test)
        if not condition.is_float:
            raise self.refusal(node, "a choice must compare f32; for a condition of integers use an `if` statement")
        yes, no = self.number(node.body), self.number(node.orelse)
        if condition.negated:
            yes, no = no, yes
        return Float(self.scopes.pure(arith.SelectOp(self.test(condition), yes, no)))

    def under_masks(self, new: SSAValue, old: Callable[[], SSAValue]) -> SSAValue:
        """``new`` where all conditions of f32 hold, else ``old``."""
        for test, opposite in reversed(self.masks):
            yes, no = (old(), new) if opposite else (new, old())
            new = self.scopes.pure(arith.SelectOp(test, yes, no))
        return new


def _strict(kind: str, a: Integer, b: Integer) -> tuple[str, Integer, Integer]:
    """A comparison as one with < or >, which the machine has, if a side can be one more or less at no cost."""
    if kind in ("<=", ">="):
        sign = "add" if kind == "<=" else "sub"
        if is_given(b):
            return kind[0], a, combine(sign, b, Number(1))
        if is_given(a):
            return kind[0], combine("sub" if kind == "<=" else "add", a, Number(1)), b
    return kind, a, b


def _number(value: Any) -> Value:
    return Number(value) if isinstance(value, int) else Constant(float(value))


def _flags() -> dict[str, Any]:
    return {"fastmath": arith.FastMathFlagsAttr("none")}


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _load_again(element: Element, old: Induction, new: Induction, *, deep: bool) -> Element:
    """The element with loop ``new`` in the place of ``old``; unless ``deep``, not in what its indices load."""

    def change(index: Integer) -> Integer:
        if isinstance(index, Binary) and not deep:
            return combine(index.kind, change(index.a), change(index.b))
        return index if isinstance(index, Element) and not deep else replace_in(index, old, new)

    return Element(element.array, tuple(change(index) for index in element.indices))


def _no(kind: type[ast.operator]) -> str:
    signs = {
        ast.Div: "/",
        ast.FloorDiv: "//",
        ast.Mod: "%",
        ast.Pow: "**",
        ast.MatMult: "@",
        ast.BitOr: "|",
        ast.BitXor: "^",
    }
    return f"not combined with {signs.get(kind, kind.__name__)}"


def _kind(node: ast.expr) -> str:
    """What kind of thing an expression is that is not supported."""
    known: Sequence[tuple[type[ast.expr], str]] = (
        (ast.Attribute, "attributes are not known to the machine; sizes are named in the signature"),
        (ast.Compare, "a comparison must be the condition of an `if`"),
        (ast.BoolOp, "a comparison must be the condition of an `if`"),
        (ast.Tuple, "there are no tuples, only numbers"),
        (ast.List, "there are no lists, only numbers"),
        (ast.ListComp, "write the loop"),
        (ast.Lambda, "there are no functions"),
    )
    return next((text for kind, text in known if isinstance(node, kind)), "only numbers, elements and arithmetic are")
