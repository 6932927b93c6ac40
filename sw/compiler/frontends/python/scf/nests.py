"""Loops: levels of the access unit, and loops along rows."""

import ast

from daedal.compiler.frontends.python.scf.cells import name_of
from daedal.compiler.frontends.python.scf.sums import Sums
from daedal.compiler.frontends.python.syntax import is_range
from daedal.runtime.loops.integers import (
    Induction,
    Integer,
    Number,
    combine,
    depends_directly,
    is_given,
)


class Nests(Sums):
    """Writes loops."""

    def _for(self, node: ast.For) -> None:
        if not is_range(node, self._source) or node.orelse:
            raise self._source.refusal(node, "a loop must be of the form `for name in range(...)`, without else")
        call, target = node.iter, node.target
        assert isinstance(call, ast.Call)
        assert isinstance(target, ast.Name)
        if target.id in self._signature.arguments or target.id in self._signature.symbols:
            raise self._source.refusal(node, f"{target.id} is an argument or a size: give the variable another name")
        if target.id in self._e.bindings:
            raise self._source.refusal(node, f"{target.id} has a value already: give the variable another name")
        if call.keywords or not 1 <= len(call.args) <= 3:
            raise self._source.refusal(node, "range must have one to three plain arguments")
        bounds = [self._e.rename(self._e.integer(each, "a bound of a loop")) for each in call.args]
        lower, upper = (Number(0), bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
        step = bounds[2] if len(bounds) == 3 else Number(1)
        if not isinstance(step, Number) or step.value < 1:
            raise self._source.refusal(node, "the step of a loop must be a constant of at least 1")
        if is_given(lower) and is_given(upper) and not self._is_in_order(lower, upper):
            upper = combine("max", lower, upper)
        is_row = id(node) in self._shape.rows or id(node) in self._shape.sums
        if is_row and isinstance(lower, Number) and isinstance(upper, Number) and lower.value >= upper.value:
            raise self._source.refusal(
                node, f"the loop must have iterations: its bounds are {lower.value}, {upper.value}"
            )
        if is_row:
            self._row_loop(node, target.id, lower, upper)
        else:
            self._level(node, target.id, lower, upper, step)
        self._e.bindings.pop(target.id, None)

    def _level(self, node: ast.For, name: str, lower: Integer, upper: Integer, step: Integer) -> None:
        if self._scopes.inner.is_row:
            raise self._source.refusal(node, "a loop along a row must not have loops inside")
        if self._e.masks:
            raise self._source.refusal(node, "a loop must not be under a condition of f32")
        self._notes.append((node.lineno, f"a loop of the access unit over {name}"))
        self._e.forget(None)
        outer = dict(self._e.bindings)
        variable = Induction(self._number(node, 0), name)
        opened = len(self._scopes.open)
        self._open(lower, upper, variable, line=node.lineno, step=step)
        self._e.bindings[name] = variable
        renamed = len(self._e.renamed)
        self._load_again(variable, node)
        kept = [self._keep(*element) for element in self._shape.kept.get(id(node), ())]
        self._block(node.body)
        for element, cell in kept:
            self._copy_element(element, cell, is_load=False)
            del self._e.kept[name_of(element)]
        del self._e.renamed[renamed:]
        self._close_to(opened)
        self._leave(outer)

    def _load_again(self, variable: Induction, node: ast.AST) -> None:
        """Open loops of one iteration, each with a check of its own."""
        for copy, element in enumerate(self._plan.again.get(variable, ()), 1):
            again = Induction(variable.loop + copy, f"{variable.name}_again")
            self._notes.append((getattr(node, "lineno", 0), f"{element.array} is checked in a loop of one iteration"))
            self._open(variable, combine("add", variable, Number(1)), again, line=getattr(node, "lineno", 0))
            if depends_directly(element, variable):
                self._e.renamed.append((variable, again, frozenset([element])))
            else:
                self._scopes.placed[element] = again

    def _row_loop(self, node: ast.For, name: str, lower: Integer, upper: Integer) -> None:
        outer = dict(self._e.bindings)
        total = self._shape.sums.get(id(node))
        if total is not None:
            self._sum(node, name, lower, upper, total)
            return
        at_top = len(self._scopes.open) == 1
        if at_top:
            self._open(Number(0), Number(1), Induction(self._number(node.iter, 0), "once"), line=node.lineno)
        self._notes.append((node.lineno, f"work on rows, in the execute unit: {name} is no loop of the machine"))
        masks, self._e.masks = self._e.masks, []
        variable = Induction(self._number(node, 0), name)
        self._open(lower, upper, variable, line=node.lineno, is_row=True)
        self._e.bindings[name] = variable
        self._block(node.body)
        self._scopes.close()
        self._e.masks = masks
        self._e.forget(None)
        if at_top:
            self._close_to(1)
        self._leave(outer)

    def _is_level(self, node: ast.AST) -> bool:
        return isinstance(node, ast.For) and id(node) not in self._shape.rows and id(node) not in self._shape.sums
