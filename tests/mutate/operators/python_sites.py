"""Operators over Python's own syntax tree."""

import ast
from collections.abc import Iterator

from tests.mutate.operators.site import (
    ARITHMETIC,
    ARITHMETICS,
    COMPARISON,
    COMPARISONS,
    DROPPED,
    EXTREME,
    FLIPPED,
    LOGIC,
    NEGATED,
    NOT,
    OFF_BY_ONE,
    RETURN,
    Site,
)  # fmt: skip

_COMPARISONS = {**COMPARISONS, "is": "is not", "is not": "is", "in": "not in", "not in": "in"}
_EXTREMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.LShift: "<<",
    ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
    ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in",
    ast.NotIn: "not in", ast.And: "and", ast.Or: "or",
}  # fmt: skip


def python_sites(text: str) -> Iterator[Site]:
    """Every place of a Python source at which an operator applies.

    Annotations, decorators, assertions and the texts of messages are left as they are: no test is meant to see them.
    """
    return _Walk(text).sites(ast.parse(text))


class _Walk:
    def __init__(self, text: str) -> None:
        self._raw = text.encode()
        self._lines = [0]
        for line in self._raw.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def sites(self, node: ast.AST) -> Iterator[Site]:
        yield from self._own(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr | ast.Assert):
                    yield from self.sites(child)

    def _own(self, node: ast.AST) -> Iterator[Site]:
        match node:
            case ast.Compare(left, ops, comparators):
                for operation, before, after in zip(ops, [left, *comparators], comparators, strict=False):
                    symbol = _SYMBOLS[type(operation)]
                    yield self._between(COMPARISON, before, after, symbol, _COMPARISONS[symbol])
            case ast.BinOp(left, operation, right) if (symbol := _SYMBOLS.get(type(operation))) in ARITHMETICS:
                yield self._between(ARITHMETIC, left, right, symbol, ARITHMETICS[symbol])
            case ast.BoolOp(operation, [first, second, *_]):
                symbol = _SYMBOLS[type(operation)]
                yield self._between(LOGIC, first, second, symbol, "or" if symbol == "and" else "and")
            case ast.UnaryOp(ast.Not(), operand):
                yield self._site(NOT, node, self._text(operand))
            case ast.Constant(bool() as value):
                yield self._site(FLIPPED, node, repr(not value))
            case ast.Constant(int() | float()):
                yield self._site(OFF_BY_ONE, node, f"({self._text(node)} + 1)")
            case ast.Name(str() as name, ast.Load()) if name in _EXTREMES:
                yield self._site(EXTREME, node, _EXTREMES[name])
            case ast.If(test) | ast.While(test) | ast.IfExp(test):
                yield self._site(NEGATED, test, f"(not ({self._text(test)}))")
            case ast.Return(ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
                yield self._site(RETURN, node, "return None")
            case _ if _can_be_dropped(node):
                yield self._site(DROPPED, node, "pass")

    def _between(self, operator: str, before: ast.expr, after: ast.expr, old: str, new: str) -> Site:
        """The operator's text between two operands, from which parentheses and line ends must be told."""
        gap_start, gap_end = self._place(before)[1], self._place(after)[0]
        gap = self._raw[gap_start:gap_end]
        found = gap.find(old.encode())
        while b"#" in gap[:found] and b"\n" not in gap[gap.find(b"#") : found]:  # in a comment
            found = gap.find(old.encode(), found + 1)
        start = gap_start + found
        return Site(operator, self._line(start), start, start + len(old), new)

    def _site(self, operator: str, node: ast.AST, new: str) -> Site:
        start, end = self._place(node)
        return Site(operator, self._line(start), start, end, new)

    def _place(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._lines[node.lineno - 1] + node.col_offset, self._lines[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.AST) -> str:
        start, end = self._place(node)
        return self._raw[start:end].decode()

    def _line(self, place: int) -> int:
        return self._raw.count(b"\n", 0, place) + 1


def _can_be_dropped(node: ast.AST) -> bool:
    """Whether it is a statement without which the rest still has all its names."""
    match node:
        case ast.Expr(ast.Constant()):
            return False
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            return True
        case ast.Assign([target]):
            return isinstance(target, ast.Attribute | ast.Subscript)
    return False
