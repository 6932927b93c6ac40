"""Conditions: comparisons of integers and of f32."""

import ast
from collections.abc import Callable

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from daedal.compiler.frontends.python.scf.array_elements import Elements
from daedal.compiler.frontends.python.scf.values import (
    INTEGERS,
    OPPOSITES,
    Comparison,
    Condition,
    Constant,
    Float,
    Value,
)
from daedal.runtime.loops.integers import (
    Integer,
    Number,
    combine,
    is_given,
    split_sum,
)

FLOAT_LIMITS = (-(1 << 31), (1 << 31) - 1)
"""Integers that can become an f32."""

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


class Comparisons(Elements):
    """Evaluates conditions."""

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
        self.need(value, FLOAT_LIMITS, "an integer that becomes an f32", "32 bits are converted")
        return self.scopes.as_float(self.rename(value))

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
            for side in (a, b):
                self.need_wide(side, "what is compared")
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
    """A comparison as one with < or >, which the machine has, and what a call gives on one side, if that is free."""
    for one, other in ((a, b), (b, a)):
        core, offset = split_sum(one)
        if is_given(other) and core != Number(0):
            other = combine("sub", other, offset)
            a, b = (core, other) if one is a else (other, core)
            break
    if kind in ("<=", ">="):
        sign = "add" if kind == "<=" else "sub"
        if is_given(b):
            return kind[0], a, combine(sign, b, Number(1))
        if is_given(a):
            return kind[0], combine("sub" if kind == "<=" else "add", a, Number(1)), b
    return kind, a, b
