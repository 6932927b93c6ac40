"""The kernel itself: its statements, one after the other, and what comes of them."""

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import (
    MemRefType,
    ModuleOp,
    StringAttr,
    f32,
)
from xdsl.ir import Block, Operation, SSAValue

from daedal.compiler.dialects import check, narrow
from daedal.compiler.dialects.elements import LANE
from daedal.compiler.frontends.python import names
from daedal.compiler.frontends.python.scf.cells import name_of
from daedal.compiler.frontends.python.scf.conditions import Conditions
from daedal.compiler.frontends.python.scf.frame import Plan
from daedal.compiler.frontends.python.scf.values import INTEGERS, Cell, Float, Row, Value
from daedal.compiler.frontends.python.shape import Shape
from daedal.compiler.frontends.python.source import Source
from daedal.compiler.frontends.python.syntax import assigned
from daedal.runtime.loops.bounds import Bounds
from daedal.runtime.loops.integers import (
    Element,
    Induction,
    Number,
    combine,
    depends_directly,
    parts,
)
from daedal.runtime.loops.signature import INTEGER_ROWS, Signature, ir_name


@dataclass
class Written:
    """The text of a kernel, and what is known of it.

    Attributes
    ----------
    text
        A module with one function.
    bounds
        Who checks which index.
    lines
        What messages may name (``loop %p``, ``buffer %out``) -> lines of the source.
    names
        What messages may name (``local row %a_kept``) -> what the source has for it (``a[b]``).
    notes
        Line -> what became of the loop in it.
    """

    text: str
    bounds: Bounds
    lines: dict[str, list[int]]
    names: dict[str, str]
    notes: list[tuple[int, str]]


class Writer(Conditions):
    """Writes one function; see ``Frame``."""

    # ------------------------------------------------------------------ the function

    def run(self) -> Written:
        """The text."""
        for name, argument in self._signature.arguments.items():
            is_read_only = not argument.is_float or argument.element in INTEGER_ROWS
            if argument.shape is not None and name in self._shape.written and is_read_only:
                node = next(node for node in ast.walk(self._tree) if _is_store_to(node, name))
                why = "the machine writes f32, f16 and bf16 only: write one of these, and convert it"
                raise self._source.refusal(node, f"{name} holds {argument.element}: {why}")
        self._scopes.integer(Number(0))
        self._block(self._tree.body)
        self._write_checks()
        if self._mode == "none":
            early = self._e.singles.guards()
            self._notes += [
                (node.lineno, "loads of single numbers under this condition are done whether or not it holds")
                for node in ast.walk(self._tree)
                if isinstance(node, ast.If) and id(node) in early
            ]
        self._scopes.insert(func.ReturnOp())
        self._function.update_function_type()
        module = ModuleOp([])
        called = {op.callee.string_value() for op in self._function.walk() if isinstance(op, func.CallOp)}
        for name in sorted(called):
            module.body.block.add_op(func.FuncOp.external(name, [f32], [f32]))
        module.body.block.add_op(self._function)
        return Written(str(module), self._e.bounds, self._lines, self._names, self._notes)

    def next_plan(self) -> Plan:
        """What the text should have been written with, as is known now."""
        guards = self._guards()
        if guards != self._plan.guards:  # what is checked under them has another home then
            return replace(self._plan, guards=guards)
        checked = self._e.bounds.by_machine if self._mode != "none" else []
        homes: dict[Induction, list[Element]] = {}
        for element in checked:
            home = self._home(element)
            if home is not None:
                homes.setdefault(home, []).append(element)
        again = dict(self._plan.again)
        hosted = set(self._plan.hosted)
        for home, found in homes.items():
            elements = self._shared(found, hosted) if self._plan.shares else found
            nested = [element for element in elements if _inside(element, elements)]
            nested.sort(key=lambda element: len(list(parts(element))))
            needed = {part for element in nested for part in _inside(element, elements)}
            movable = [each for each in elements if each not in nested and depends_directly(each, home)]
            movable.sort(key=lambda element: element not in needed)
            if len(elements) > 1 and (movable or nested):
                stay = 0 if len(movable) + len(nested) < len(elements) else 1
                again[home] = (*again.get(home, ()), *nested, *movable[stay:])
        return replace(self._plan, again=again, hosted=frozenset(hosted))

    def _shared(self, elements: Sequence[Element], hosted: set[Element]) -> list[Element]:
        """Those of a loop's checks that stay with the machine; the others join ``hosted``.

        The host looks at all of an array, so what is met under a condition only stays, and so does an index if another
        one shall be in its place.
        """
        limits, always = self._e.bounds.limits, self._e.checked.always
        free = [
            each
            for each in elements
            if each not in limits
            or (self._mode == "fatal" and each in always and not self._guarded_by.intersection(parts(each)))
        ]
        if len(free) == len(elements):
            free.remove(next((each for each in elements if each in limits), elements[0]))
        hosted.update(free)
        return [each for each in elements if each not in free]

    def _guards(self) -> frozenset[int]:
        """Conditions that must be loops."""
        guards = set(self._plan.guards)
        if self._mode != "none":
            guards |= self._e.checked.guards()
        elif self._plan.guards_loads:
            guards |= self._e.singles.guards()
        return frozenset(guards)

    def _home(self, element: Element) -> Induction | None:
        """The innermost loop that decides which element is loaded; loops are numbered from the outermost on."""
        variables = {part for part in parts(element) if isinstance(part, Induction)}
        variables |= {self._scopes.placed[part] for part in parts(element) if part in self._scopes.placed}
        return max(variables, key=lambda variable: variable.loop, default=None)

    def _write_checks(self) -> None:
        if self._mode == "none":
            return
        mode = None if self._mode == "fatal" else StringAttr(self._mode)
        bounds = self._e.bounds
        ends = {} if bounds.ends_on_host else bounds.ends
        for element in bounds.by_machine:
            limits = [found[element] for found in (ends, bounds.limits) if element in found]
            limit = limits[0] if len(limits) == 1 else combine("min", *limits)
            is_index = element in bounds.limits
            value = self._scopes.elements.get(element)
            if value is None:
                continue
            size = self._scopes.integer(limit)
            op = check.BoundsOp("index" if is_index else "offset", value, size, mode if is_index else None)
            cast = value.owner
            assert isinstance(cast, Operation)
            assert cast.parent is not None
            cast.parent.insert_op_after(op, cast)

    # ------------------------------------------------------------------ statements

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for position, statement in enumerate(statements):
            self._statement(statement, statements[position + 1 :])

    def _statement(self, node: ast.stmt, later: Sequence[ast.stmt]) -> None:
        self._e.line = node.lineno
        match node:
            case ast.For():
                self._for(node)
            case ast.If():
                self._if(node)
            case ast.Assign(targets=[ast.Name(id=name)]):
                self._assign(node, name, node.value, later)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._assign(node, name, value, later)
            case ast.Assign(targets=[ast.Subscript() as target]):
                self._store(target, lambda: self._e.number(node.value))
            case ast.AugAssign(target=ast.Name(id=name)):
                self._change(node, name, later)
            case ast.AugAssign(target=ast.Subscript() as target):
                self._store(target, lambda: self._e.as_float(self._augmented(node, self._e.value(_as_load(target)))))
            case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.Return(value=None) if node is self._tree.body[-1]:
                pass
            case _:
                raise self._source.refusal(node, _why_not(node))

    def _augmented(self, node: ast.AugAssign, old: Value) -> Value:
        return self._e.combine(node, node.op, old, self._e.value(node.value))

    def _store(self, target: ast.Subscript, value: Callable[[], SSAValue]) -> None:
        new = value()
        buffer, indices = self._e.place(target)
        name = name_of(target)
        self._mark("buffer", buffer, target.lineno)
        kept = self._e.kept.get(name)
        if kept is not None:
            self._set(kept, new, target)
            return
        new = self._e.under_masks(new, lambda: self._e.load(buffer, indices, name))
        where = [self._scopes.integer(index) for index in indices]
        assert isinstance(buffer.type, MemRefType)
        element = buffer.type.element_type
        rounded = new if element == LANE else self._scopes.value(narrow.RoundOp(new, element), "rounded")
        self._scopes.insert(memref.StoreOp.get(rounded, buffer, where))
        self._e.forget(buffer)

    def _assign(self, node: ast.stmt, name: str, value: ast.expr, later: Sequence[ast.stmt]) -> None:
        if name in self._signature.arguments or name in self._signature.symbols:
            raise self._source.refusal(node, f"{name} is an argument or a size: give the local value another name")
        call = value if isinstance(value, ast.Call) else None
        if call is not None and self._source.meaning(call.func) is names.zeros:
            self._row(call, name)
        else:
            self._bind(node, name, self._e.value(value), later)

    def _change(self, node: ast.AugAssign, name: str, later: Sequence[ast.stmt]) -> None:
        old = self._e.value(ast.copy_location(ast.Name(name, ast.Load()), node))
        self._bind(node, name, self._augmented(node, old), later)

    def _bind(self, node: ast.stmt, name: str, value: Value, later: Sequence[ast.stmt]) -> None:
        bound = self._e.bindings.get(name)
        changed = self._changed_inside(later, name)
        if isinstance(bound, Row):
            raise self._source.refusal(node, f"{name} is a row: give the number another name")
        if any(scope.variable is not None and scope.variable.name == name for scope in self._scopes.open):
            raise self._source.refusal(node, f"{name} is the variable of a loop: give the number another name")
        if not isinstance(bound, Cell) and isinstance(value, INTEGERS) and not changed and not self._e.masks:
            self._e.bindings[name] = value
            return
        if isinstance(bound, Cell):
            self._set(bound, self._e.as_float(value), node)
        elif changed:
            if isinstance(value, INTEGERS) and not (isinstance(value, Number) and changed == "float"):
                raise self._source.refusal(
                    node, f"{name} is an integer, and integers must not change in loops or conditions; count in f32"
                )
            cell = self._cell(name, name)
            self._e.bindings[name] = cell
            self._set(cell, self._e.as_float(value), node)
        elif self._e.masks and bound is not None and not isinstance(bound, Cell):
            old = bound
            self._e.bindings[name] = Float(self._e.under_masks(self._e.as_float(value), lambda: self._e.as_float(old)))
        elif isinstance(value, Float):
            if value.value.name_hint is None and not isinstance(value.value.owner, Block):
                value.value.name_hint = ir_name(name)
            self._e.bindings[name] = value
        else:
            self._e.bindings[name] = value

    def _changed_inside(self, later: Sequence[ast.stmt], name: str) -> str | None:
        """Whether a loop or condition further on gives ``name`` another value, and of which type that seems to be."""
        for statement in later:
            if not isinstance(statement, ast.For | ast.If | ast.While):
                continue
            found = [node for node, changed in assigned([statement]) if changed == name]
            sums = {id(inner) for loop in ast.walk(statement) if self._shape.sums.get(id(loop)) == name
                    for inner in ast.walk(loop)}  # fmt: skip
            if any(id(node) not in sums for node in found) or (found and id(statement) not in self._shape.sums):
                numbers = (ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp)
                whole = all(
                    isinstance(node, ast.AugAssign)
                    and isinstance(node.value, ast.Constant)
                    and type(node.value.value) is int
                    for node in found
                )
                return "integer" if whole and numbers else "float"
        return None


def write(
    source: Source, signature: Signature, tree: ast.FunctionDef, shape: Shape, fixed: dict[str, int], bounds: str,
    bits: int, first: Plan,
) -> Written:  # fmt: skip
    """The loops of a kernel as text, for a machine whose integers have ``bits``; ``first`` says what may be done."""
    plan = first
    for _ in range(6):
        writer = Writer(source, signature, tree, shape, fixed, bounds, bits, plan)
        written = writer.run()
        following = writer.next_plan()
        if following == plan:
            return written
        plan = following
    raise source.refusal(tree, "the indices of this kernel need more checks than there are loops: use bounds='none'")


def _inside(element: Element, others: Sequence[Element]) -> list[Element]:
    """Which of the others have to be loaded for an element."""
    return [other for other in others if other != element and other in list(parts(element))]


def _is_store_to(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and name_of(node) == name


def _as_load(target: ast.Subscript) -> ast.Subscript:
    return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)


def _why_not(node: ast.stmt) -> str:
    known: tuple[tuple[type[ast.stmt], str], ...] = (
        (ast.While, "`while` has no place in the machine: its loops are `for name in range(...)`"),
        (ast.Break, "a loop must not be left early: give it the bounds that it shall have"),
        (ast.Continue, "`continue` is not supported: put the rest of the body under the opposite condition"),
        (ast.Return, "a kernel must return nothing: it fills arrays that it is given"),
        (ast.Assert, "assertions are not supported: check on the host"),
        (ast.FunctionDef, "a kernel must not define functions"),
        (ast.Import, "a kernel must not import"),
        (ast.With, "`with` is not supported"),
        (ast.Try, "`try` is not supported"),
        (ast.Raise, "a kernel must not raise"),
        (ast.Delete, "`del` is not supported"),
    )
    for kind, text in known:
        if isinstance(node, kind):
            return text
    if isinstance(node, ast.Assign):
        return "an assignment must be to one name or one element"
    return f"statement {ast.unparse(node).splitlines()[0]!r} is not supported: loops, conditions and assignments are"
