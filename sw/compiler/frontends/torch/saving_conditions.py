"""What a trace asks of its inputs' sizes as steps of a file."""

import ast
from collections.abc import Callable
from typing import Any

from torch import fx

from daedal.compiler.frontends.torch.saving_moves import move_of
from daedal.compiler.frontends.torch.trace.guard_code import CONDITIONS
from daedal.compiler.frontends.torch.trace.guards import Guards
from daedal.errors import UnsupportedOperation
from daedal.runtime.saved.contents import Argument, HostStep, Value

_BINARY = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "floordiv", ast.Mod: "mod"}
_COMPARED = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}


def condition_steps(guards: Guards | None, inputs: int, number: Callable[[], int]) -> list[HostStep]:
    """The steps that check what a trace asks; ``number`` gives the number of the next value.

    UnsupportedOperation for what a file cannot hold.
    """
    checks: Any = None if guards is None else guards.checks
    if checks is None:
        return []
    writer = _Writer(inputs, number)
    if hasattr(checks, CONDITIONS):
        for text in getattr(checks, CONDITIONS):
            writer.check(text)
    else:
        writer.take(checks.__self__.graph)
    return writer.steps


class _Writer:
    def __init__(self, inputs: int, number: Callable[[], int]) -> None:
        self._inputs, self._number = inputs, number
        self.steps: list[HostStep] = []

    def check(self, text: str) -> None:
        """A condition, as PyTorch writes it, of the leaves ``args``."""
        try:
            condition = self._expression(ast.parse(" ".join(text.split()), mode="eval").body)
        except (SyntaxError, KeyError, ValueError) as error:
            raise UnsupportedOperation(f"a file cannot hold the condition {text!r} of inputs") from error
        self._step("check", condition, True)

    def take(self, graph: fx.Graph) -> None:
        """A graph of checks of sizes."""
        values: dict[fx.Node, Argument] = {}
        for node in graph.nodes:
            if node.op == "placeholder":
                values[node] = Value(len(values))
            elif node.op != "output":
                move = move_of(node)
                assert move is not None
                given = [values[each] if isinstance(each, fx.Node) else each for each in move[1]]
                values[node] = self._step(move[0], *given)

    def _step(self, name: str, *arguments: Any) -> Value:
        self.steps.append(HostStep(name, tuple(arguments)))
        return Value(self._number())

    def _expression(self, node: ast.expr) -> Argument:
        if isinstance(node, ast.Constant) and isinstance(node.value, bool | int):
            return node.value
        if isinstance(node, ast.BoolOp):
            return self._step("all" if isinstance(node.op, ast.And) else "any", *map(self._expression, node.values))
        if isinstance(node, ast.UnaryOp):
            kinds = {ast.Not: "not", ast.USub: "neg"}
            return self._step(kinds[type(node.op)], self._expression(node.operand))
        if isinstance(node, ast.BinOp):
            return self._step(_BINARY[type(node.op)], self._expression(node.left), self._expression(node.right))
        if isinstance(node, ast.Compare):
            parts = list(map(self._expression, (node.left, *node.comparators)))
            found = [self._step(_COMPARED[type(op)], *parts[n : n + 2]) for n, op in enumerate(node.ops)]
            return found[0] if len(found) == 1 else self._step("all", *found)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Mod", "FloorDiv"):
            return self._step("mod" if node.func.id == "Mod" else "floordiv", *map(self._expression, node.args))
        return self._size(node)

    def _size(self, node: ast.expr) -> Value:
        """``args[n].size()[dim]``, or ``args[n]``."""
        match node:
            case ast.Subscript(value=ast.Name(id="args"), slice=place):
                number = ast.literal_eval(place)
                if isinstance(number, int) and 0 <= number < self._inputs:
                    return Value(number)
            case ast.Subscript(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Subscript(value=ast.Name(id="args"), slice=place), attr="size"),
                    args=[],
                ),
                slice=dim,
            ):
                number, at = ast.literal_eval(place), ast.literal_eval(dim)
                if isinstance(number, int) and isinstance(at, int) and 0 <= number < self._inputs:
                    return self._step("size", Value(number), at)
        raise ValueError(ast.unparse(node))
