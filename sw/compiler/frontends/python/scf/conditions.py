"""Conditions: branches, selections, and loops of no iteration or one."""

import ast
from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    IndexType,
    i64,
)
from xdsl.ir import Block

from daedal.compiler.frontends.python.scf.nests import Nests
from daedal.compiler.frontends.python.scf.values import INTEGERS
from daedal.runtime.loops.integers import (
    Induction,
    Number,
    combine,
    is_given,
)
from daedal.runtime.loops.signature import ir_name


class Conditions(Nests):
    """Writes conditions."""

    def _if(self, node: ast.If) -> None:
        condition = self._e.condition(node.test)
        if condition.is_float:
            self._select(node)
        elif all(
            is_given(side) for each in condition.comparisons for side in (each.a, each.b) if isinstance(side, INTEGERS)
        ):
            raise self._source.refusal(
                node, "a condition must depend on the loops around it: decide it before the call"
            )
        elif self._scopes.inner.is_row or self._e.masks:
            raise self._source.refusal(node, "a condition of integers along a row must be the same all along it")
        elif id(node) in self._plan.guards or any(self._is_level(each) for each in ast.walk(node)):
            self._guard(node)
        else:
            self._branch(node)

    def _select(self, node: ast.If) -> None:
        choice = _as_choice(node)
        if choice is not None:
            self._block([choice])
            return
        condition = self._e.condition(node.test)
        test = self._e.test(condition)
        for statements, opposite in ((node.body, condition.negated), (node.orelse, not condition.negated)):
            self._e.masks.append((test, opposite))
            self._block(statements)
            self._e.masks.pop()

    def _branch(self, node: ast.If) -> None:
        condition = self._e.condition(node.test)
        test = self._e.test(condition)
        then, otherwise = Block(), Block()
        op = scf.IfOp(test, [], [then], [otherwise])
        self._scopes.insert(op)
        blocks = (otherwise, then) if condition.negated else (then, otherwise)
        for block, holds in zip(blocks, (True, False), strict=True):
            outer = dict(self._e.bindings)
            self._e.forget(None)
            self._scopes.open_branch(op, block, (id(node), holds))
            self._scopes.inner.facts = condition.facts(holds=holds)
            self._block(node.body if holds else node.orelse)
            self._scopes.close()
            self._e.forget(None)
            self._leave(outer)

    def _guard(self, node: ast.If) -> None:
        """A condition as a loop of no iteration or one, and another one for else."""
        self._guarded(node, node.body, holds=True)
        if node.orelse:
            self._guarded(node, node.orelse, holds=False)

    def _guarded(self, node: ast.If, statements: Sequence[ast.stmt], *, holds: bool) -> None:
        """A loop of one iteration if the condition holds, or does not, which loads again what it uses."""
        condition = self._e.condition(node.test)
        variable = next((s.variable for s in reversed(self._scopes.open) if s.variable is not None), None)
        if variable is None:
            raise self._source.refusal(
                node,
                "a condition around loops, or around what is loaded at an index that was loaded, must be in a loop",
            )
        self._notes.append(
            (node.lineno, "a condition that is a loop of no iteration or one, so that nothing is read early")
        )
        test = self._e.test(condition)
        wide = self._scopes.value(arith.ExtUIOp(test, i64))
        taken = self._scopes.value(arith.IndexCastOp(wide, IndexType()), "taken")
        first = self._scopes.integer(variable)
        if condition.negated is holds:
            one = self._scopes.integer(Number(1))
            taken = self._scopes.value(arith.SubiOp(one, taken), "taken")
        upper = self._scopes.value(arith.AddiOp(first, taken), "until")
        inner = Induction(self._number(node, 0 if holds else 4), f"{variable.name}_{'if' if holds else 'else'}")
        self._guarded_by.add(inner)
        self._e.bounds.loop(inner, variable, combine("add", variable, Number(1)), node.lineno)
        self._lines.setdefault(f"loop %{ir_name(inner.name)}", []).append(node.lineno)
        self._e.forget(None)
        outer, renamed, opened = dict(self._e.bindings), len(self._e.renamed), len(self._scopes.open)
        self._scopes.open_loop(first, upper, self._scopes.integer(Number(1)), inner)
        self._scopes.inner.facts = condition.facts(holds=holds)
        self._e.renamed.append((variable, inner, None))
        self._load_again(inner, node)
        self._block(statements)
        del self._e.renamed[renamed:]
        self._close_to(opened)
        self._leave(outer)


def _as_choice(node: ast.If) -> ast.Assign | None:
    """A condition that gives one and the same element a value either way, as one assignment."""
    match node.body, node.orelse:
        case [ast.Assign([yes], a)], [ast.Assign([no], b)] if ast.dump(yes) == ast.dump(no):
            chosen = ast.IfExp(node.test, a, b)
            return ast.copy_location(ast.Assign([yes], ast.copy_location(chosen, node)), node)
    return None
