"""Expressions of a kernel: integers become ``Integer``, f32 are written as they are met."""

import ast
from collections.abc import Callable, Sequence
from math import frexp
from typing import Any

from xdsl.dialects import arith, func, math
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from daedal.compiler.frontends.python import names
from daedal.compiler.frontends.python.names import Dim
from daedal.compiler.frontends.python.scf.array_elements import FACTOR_LIMIT, INDEX_LIMIT
from daedal.compiler.frontends.python.scf.comparisons import Comparisons
from daedal.compiler.frontends.python.scf.values import (
    INTEGERS,
    Cell,
    Constant,
    Float,
    Row,
    Value,
)
from daedal.runtime.loops.integers import (
    LONGEST,
    UNKNOWN,
    Binary,
    Element,
    Given,
    Integer,
    Number,
    combine,
    is_given,
    is_longer,
)

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


class Expressions(Comparisons):
    """Evaluates expressions in the scopes that are open; see ``Elements``."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.dot: Callable[[ast.Call], SSAValue] | None = None
        """Writes a sum of products."""
        self._calls: dict[Any, Callable[[ast.Call], Value]] = {
            max: self._extreme, min: self._extreme, abs: self._absolute, float: self._to_float,
            names.exp: self._function, names.sqrt: self._function, names.sigmoid: self._function, names.dot: self._dot,
            names.fma: self._fused,
        }  # fmt: skip

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

    def _constant(self, node: ast.Constant) -> Value:
        if type(node.value) in (int, float):
            if isinstance(node.value, int) and node.value >= 1 << 1000:
                raise self.refusal(node, "a constant must be below 2**1000: write an f32, as 1e30")
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
            return Float(self._arrays[node.id]) if argument.is_float else Given(node.id)
        meaning = self.source.names.get(node.id)
        symbol = meaning.text if isinstance(meaning, Dim) else node.id
        if symbol in self.signature.symbols and type(meaning) is not int:
            return Number(self._fixed[symbol]) if symbol in self._fixed else Given(symbol)
        if type(meaning) in (int, float):
            return _number(meaning)
        raise self.refusal(node, f"name {node.id!r} must be an argument, a size of the signature, a local or a number")

    def _locals(self) -> set[str]:
        return {each.id for each in ast.walk(self.source.tree) if isinstance(each, ast.Name) and _is_stored(each)}

    def _element(self, node: ast.Subscript) -> Value:
        chained = self.chained(node)
        if chained is not None:
            return chained
        buffer, indices = self.place(node)
        assert isinstance(node.value, ast.Name)
        name = node.value.id
        argument = self.signature.arguments.get(name)
        self._note_single(name, indices)
        if not isinstance(self.bindings.get(name), Row) and argument is not None and not argument.is_float:
            return self.rename(Element(name, indices))
        self._note_row(node, name, indices)
        kept = self.kept.get(name)
        return Float(self.load(buffer, indices, name) if kept is None else self.load_cell(kept))

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
            return self._whole(node, _INTEGER_OPERATORS[kind], a, b)
        if kind not in _FLOAT_OPERATORS:
            raise self.refusal(node, f"f32 can be added, subtracted, multiplied and divided, {_no(kind)}")
        if isinstance(a, Number | Constant) and isinstance(b, Number | Constant):
            return self._fold(node, kind, float(a.value), float(b.value))
        if kind is ast.Div and isinstance(b, Binary) and b.kind == "max":
            self.need(b, (UNKNOWN[0], FACTOR_LIMIT), "a count that is divided by", "multiply by a reciprocal")
        if kind is ast.Div and isinstance(b, Number | Constant) and _has_reciprocal(b.value):
            kind, b = ast.Mult, Constant(1 / b.value)
        op = _FLOAT_OPERATORS[kind].create(operands=[self.as_float(a), self.as_float(b)], result_types=[f32],
                                           properties=_flags())  # fmt: skip
        return Float(self.scopes.pure(op))

    def _whole(self, node: ast.AST, kind: str, a: Integer, b: Integer) -> Integer:
        """Arithmetic on integers, and what the machine asks of its operands."""
        if isinstance(a, Number) and isinstance(b, Number):
            is_shift = kind in ("shift_left", "shift_right")
            if is_shift and not 0 <= b.value < self.bits:
                raise self.refusal(node, f"an integer must be shifted by 0 to {self.bits - 1}, not by {b.value}")
            if max(abs(a.value), abs(b.value)) >= 1 << (2 * self.bits):
                raise self.refusal(
                    node, f"a constant must be below 2**{2 * self.bits} for arithmetic: write an f32, as 1e30"
                )
        result = combine(kind, a, b)
        if is_longer(result, LONGEST):
            raise self.refusal(node, "an integer takes more arithmetic here than the machine has: loop over it instead")
        if is_given(result):
            return result
        if kind == "mul":
            small, large = (a, b) if is_given(a) else (b, a)
            hint = "its factors have no signs, and 32 and 24 bits"
            for factor, limit in ((large, INDEX_LIMIT), (small, FACTOR_LIMIT)):
                if not isinstance(factor, Number) or factor.value > limit:
                    self.need(factor, (0, limit), "a factor of a product", hint)
        elif kind in ("min", "max"):
            for side in (a, b):
                self.need_wide(side, f"what {kind} compares")
        elif kind in ("shift_left", "shift_right"):
            self.need(b, (0, self.bits - 1), "what an integer is shifted by", "shift by less")
            low = 0 if kind == "shift_right" else self.wide[0]
            self.need(a, (low, self.wide[1]), "what is shifted", "bits that are shifted in are 0")
        return result

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
        return self._whole(node, "sub", Number(0), value)

    def _call(self, node: ast.Call) -> Value:
        meaning = self.source.meaning(node.func)
        handler = next((made for known, made in self._calls.items() if known is meaning), None)
        keywords = node.keywords and meaning is not names.dot
        if handler is None or keywords or any(isinstance(each, ast.Starred) for each in node.args):
            raise self.refusal(
                node,
                f"call {ast.unparse(node)!r} is not supported: max, min, abs, float, daedal.exp, daedal.sqrt, "
                "daedal.sigmoid, daedal.fma and daedal.dot are, with plain arguments",
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
                best = self._whole(node, "max" if is_max else "min", best, other)
            else:
                a, b = self.as_float(best), self.as_float(other)
                better = self.scopes.pure(arith.CmpfOp(b, a, "ogt" if is_max else "olt"))
                best = Float(self.scopes.pure(arith.SelectOp(better, b, a)))
        return best

    def _absolute(self, node: ast.Call) -> Value:
        value = self._only(node)
        if isinstance(value, INTEGERS):
            return self._whole(node, "max", value, combine("sub", Number(0), value))
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

    def _fused(self, node: ast.Call) -> Value:
        if len(node.args) != 3:
            raise self.refusal(node, f"{ast.unparse(node)!r} must have three arguments, not {len(node.args)}")
        a, b, c = (self.as_float(self.value(each)) for each in node.args)
        return Float(self.scopes.pure(math.FmaOp(a, b, c)))

    def _only(self, node: ast.Call) -> Value:
        if len(node.args) != 1:
            raise self.refusal(node, f"{ast.unparse(node)!r} must have one argument, not {len(node.args)}")
        return self.value(node.args[0])

    def _dot(self, node: ast.Call) -> Value:
        if self.dot is None or self.scopes.inner.is_row:
            raise self.refusal(node, "daedal.dot must stand outside of loops along rows")
        return Float(self.dot(node))


def _has_reciprocal(value: float) -> bool:
    """Whether a product with the reciprocal has the bits of a quotient: it is a power of two, as is the other."""
    return abs(frexp(value)[0]) == 0.5 and 2.0**-126 <= abs(value) <= 2.0**126


def _number(value: Any) -> Value:
    return Number(value) if isinstance(value, int) else Constant(float(value))


def _flags() -> dict[str, Any]:
    return {"fastmath": arith.FastMathFlagsAttr("none")}


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


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
