"""What a kernel's syntax tree says before anything is written: which loops run along rows, which sizes that fixes."""

import ast
from dataclasses import dataclass, field

from daedal.compiler.frontends.python import names
from daedal.compiler.frontends.python.names import Dim
from daedal.compiler.frontends.python.source import Source
from daedal.compiler.frontends.python.syntax import (
    accesses_of,
    assigned,
    indices_of,
    is_column,
    is_range,
    is_store,
    starts_with,
    summand,
)
from daedal.runtime.loops.integers import Given, parts
from daedal.runtime.loops.signature import Signature


@dataclass
class Shape:
    """Loops along rows, and the sizes that must be known when a kernel is compiled.

    Attributes
    ----------
    rows
        Loops (by ``id``) that run along a row and store.
    sums
        Loops along a row into a scalar -> the name of the scalar.
    fixed
        Names of sizes.
    read, written
        Names of arrays that are read, and that are written.
    kept
        Loops -> single elements that are read and written in each turn: they are kept in a local number meanwhile,
        which is loaded first if that is True.
    """

    rows: set[int] = field(default_factory=set)
    sums: dict[int, str] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    kept: dict[int, list[tuple[ast.Subscript, bool]]] = field(default_factory=dict)


class Analysis:
    """Finds the shape of one kernel."""

    def __init__(self, source: Source, signature: Signature, tree: ast.FunctionDef) -> None:
        self._source, self._signature = source, signature
        self._tree, self._shape = tree, Shape()
        self._locals = {name for _, name in assigned(tree.body)}

    def run(self) -> Shape:
        """The shape."""
        for statement in self._tree.body:
            self._statement(statement, depth=0)
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
                self._access(node, node.value.id)
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
                array = node.target.value
                if isinstance(array, ast.Name):
                    self._shape.read.add(array.id)
            if isinstance(node, ast.If) and self._compares_floats(node.test):
                stores = [each for each in ast.walk(node) if isinstance(each, ast.Subscript)]
                kept = {each.value.id for each in stores if isinstance(each.value, ast.Name) and is_store(each)}
                self._shape.read |= kept & self._signature.arguments.keys()
            if isinstance(node, ast.Call) and self._source.meaning(node.func) is names.dot:
                self._dot(node)
        for statement in self._tree.body:
            for name in sorted(self._shape.read & self._shape.written):
                self._keep(statement, name)
        return self._shape

    def _compares_floats(self, test: ast.expr) -> bool:
        """Whether a condition is of f32, as far as it shows: what is stored under it is read as well."""
        return any(
            (isinstance(each, ast.Constant) and isinstance(each.value, float))
            or (isinstance(each, ast.Name) and each.id in self._signature.arguments
                and self._signature.arguments[each.id].is_float)
            for each in ast.walk(test)
        )  # fmt: skip

    def _keep(self, nest: ast.stmt, name: str) -> None:
        """Look whether all accesses of a nest to an array are to one element, which one of its loops decides."""
        found: list[tuple[ast.Subscript, list[ast.For]]] = []
        accesses_of(nest, name, [], found)
        if not found or len({ast.dump(node.slice) for node, _ in found}) > 1:
            return
        rows = self._shape.rows | self._shape.sums.keys()
        if any(id(loop) in rows for _, loops in found for loop in loops):
            return
        node, loops = found[0]
        used = {each.id for each in ast.walk(node.slice) if isinstance(each, ast.Name)}
        loaded = [each.value for each in ast.walk(node.slice) if isinstance(each, ast.Subscript)]
        if not all(map(self._is_integers, loaded)) or used & self._locals:
            return
        deciding = [loop for loop in loops if isinstance(loop.target, ast.Name) and loop.target.id in used]
        if deciding and all(deciding[-1] in others for _, others in found):
            self._shape.kept.setdefault(id(deciding[-1]), []).append((node, not starts_with(deciding[-1], name)))

    def _is_integers(self, array: ast.expr) -> bool:
        argument = self._signature.arguments.get(array.id) if isinstance(array, ast.Name) else None
        return argument is not None and not argument.is_float

    def _access(self, node: ast.Subscript, name: str) -> None:
        if name in self._signature.arguments:
            (self._shape.written if isinstance(node.ctx, ast.Store) else self._shape.read).add(name)

    def _dot(self, call: ast.Call) -> None:
        for argument in call.args:
            node = argument.value if isinstance(argument, ast.Subscript) else argument
            found = self._signature.arguments.get(node.id) if isinstance(node, ast.Name) else None
            if found is not None and found.shape:
                self._shape.read.add(found.name)
                self._fix_given({part.name for part in parts(found.shape[-1]) if isinstance(part, Given)})

    def _statement(self, node: ast.stmt, depth: int) -> None:
        if isinstance(node, ast.For):
            if is_range(node, self._source):
                self._loop(node, depth)
            for inner in node.body:
                self._statement(inner, depth + 1)
        elif isinstance(node, ast.If):
            for inner in (*node.body, *node.orelse):
                self._statement(inner, depth)
        elif isinstance(node, ast.Assign) and self._is_row(node.value):
            for size in ast.iter_child_nodes(node.value):
                self._fix(size)

    def _is_row(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and self._source.meaning(node.func) is names.zeros

    def _loop(self, loop: ast.For, depth: int) -> None:
        call, target = loop.iter, loop.target
        assert isinstance(call, ast.Call)
        assert isinstance(target, ast.Name)
        bounds = call.args
        is_fixed = all(self._is_fixed(bound, only_numbers=depth == 0) for bound in bounds)
        step_is_1 = len(bounds) < 3 or (isinstance(bounds[2], ast.Constant) and bounds[2].value == 1)
        if not is_fixed or not step_is_1 or loop.orelse or not self._is_along_row(loop, target.id):
            return
        stores = [n for n in ast.walk(loop) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)]
        carried = self._carried(loop)
        if stores and not carried:
            self._shape.rows.add(id(loop))
        elif carried and not stores and len(loop.body) >= 1 and self._is_sum(loop, carried):
            self._shape.sums[id(loop)] = next(iter(carried))
        else:
            return
        for bound in bounds:
            self._fix(bound)

    def _is_fixed(self, node: ast.expr, *, only_numbers: bool) -> bool:
        """Whether a bound is made of numbers and sizes only."""
        if isinstance(node, ast.Constant):
            return type(node.value) is int
        if isinstance(node, ast.BinOp):
            return all(self._is_fixed(side, only_numbers=only_numbers) for side in (node.left, node.right))
        if isinstance(node, ast.Name) and node.id not in self._locals and node.id not in self._signature.arguments:
            if node.id in self._signature.symbols:
                return not only_numbers
            meaning = self._source.names.get(node.id)
            if isinstance(meaning, Dim):
                return meaning.text in self._signature.symbols and not only_numbers
            return type(meaning) is int
        return False

    def _fix(self, node: ast.AST) -> None:
        found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        texts = {m.text if isinstance(m := self._source.names.get(name), Dim) else name for name in found}
        self._fix_given(texts & set(self._signature.symbols))

    def _fix_given(self, found: set[str]) -> None:
        self._shape.fixed |= found

    def _is_along_row(self, loop: ast.For, name: str) -> bool:
        """Whether ``name`` is only used in the last index of f32, and in that of every store."""
        allowed = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.Pass)
        good: set[int] = set()
        for node in ast.walk(loop):
            if isinstance(node, ast.stmt) and node is not loop and not isinstance(node, allowed):
                return False
            if isinstance(node, ast.If) and not self._is_float_condition(node.test):
                return False
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
                last = indices_of(node)[-1]
                along = self._is_float_array(node.value.id) and is_column(last, name)
                if isinstance(node.ctx, ast.Store) and not along:
                    return False
                if along:
                    good |= {id(each) for each in ast.walk(last) if isinstance(each, ast.Name) and each.id == name}
        uses = [n for each in loop.body for n in ast.walk(each) if isinstance(n, ast.Name) and n.id == name]
        return bool(uses) and all(id(use) in good for use in uses)

    def _is_float_array(self, name: str) -> bool:
        argument = self._signature.arguments.get(name)
        return argument is None or (argument.is_float and argument.shape is not None)

    def _is_float_condition(self, test: ast.expr) -> bool:
        """Whether a condition along a row may be one of f32."""
        return any(isinstance(each, ast.Subscript | ast.Constant | ast.Name) for each in ast.walk(test))

    def _carried(self, loop: ast.For) -> set[str]:
        """Names that the loop changes and that had a value before it."""
        known: set[str] = set()
        found: set[str] = set()

        def reads(node: ast.AST) -> None:
            for each in ast.walk(node):
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.id not in known:
                    found.add(each.id)

        changed = {name for _, name in assigned(loop.body)}
        for statement in loop.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                reads(statement.value)
                known |= {name for _, name in assigned([statement])}
            elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                reads(statement.value)
                if statement.target.id not in known:
                    found.add(statement.target.id)
            else:
                reads(statement)
                found |= {name for _, name in assigned([statement])} - known
        return found & changed

    def _is_sum(self, loop: ast.For, carried: set[str]) -> bool:
        if len(carried) != 1:
            return False
        (name,) = carried
        uses = [each for each in ast.walk(loop) if isinstance(each, ast.Name) and each.id == name]
        last = loop.body[-1]
        if isinstance(last, ast.AugAssign) and isinstance(last.op, ast.Add):
            return len(uses) == 1 and isinstance(last.target, ast.Name)
        return summand(last, name) is not None and len(uses) == 2
