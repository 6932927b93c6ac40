"""Writes the loops of a kernel as ``scf``."""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StridedLayoutAttr,
    StringAttr,
    UnitAttr,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from daedal.compiler.dialects import check
from daedal.compiler.loops import names
from daedal.compiler.loops.bounds import Bounds
from daedal.compiler.loops.expressions import Expressions
from daedal.compiler.loops.integers import (
    Binary,
    Element,
    Given,
    Induction,
    Integer,
    Number,
    combine,
    evaluate,
    is_given,
    parts,
)
from daedal.compiler.loops.scopes import Scopes
from daedal.compiler.loops.shape import Shape, assigned, indices_of, is_range, summand
from daedal.compiler.loops.signature import Argument, Signature
from daedal.compiler.loops.source import Source
from daedal.compiler.loops.values import INTEGERS, Binding, Cell, Float, Row, Value

REDUCE = "daedal.reduce"
"""Attribute of a loop whose sum is added up in the machine's fixed tree."""

_ONE = Number(1)
_ELEMENTS = {"f32": f32, "i32": i32, "i64": i64}


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
    """

    again: Mapping[Induction, tuple[Element, ...]] = field(default_factory=dict)
    guards: frozenset[int] = frozenset()


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
    notes
        Line -> what became of the loop in it.
    """

    text: str
    bounds: Bounds
    lines: dict[str, list[int]]
    notes: list[tuple[int, str]]


class Writer:
    """Writes one function.

    Parameters
    ----------
    tree
        The function; ``shape`` is what is known of its loops.
    fixed
        The sizes that the loops along rows have.
    bounds
        What an index outside its array does, as in ``daedal.compile``.
    """

    def __init__(
        self, source: Source, signature: Signature, tree: ast.FunctionDef, shape: Shape, fixed: dict[str, int],
        bounds: str, plan: Plan,
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
            argument.name_hint = name
        self._arrays = dict(zip(kinds, block.args, strict=True))
        self._function = func.FuncOp(tree.name, (list(kinds.values()), []), Region(block))
        hints = {value: name for name, value in fixed.items() if value > 1}
        self._scopes = scopes = Scopes(block, self._arrays, dimensions, hints)
        self._e = Expressions(source, signature, fixed, self._arrays, shape.written, scopes)
        self._e.dot = self._dot
        self._numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
        self._lines: dict[str, list[int]] = {}
        self._notes: list[tuple[int, str]] = []

    # ------------------------------------------------------------------ the function

    def run(self) -> Written:
        """The text."""
        for name, argument in self._signature.arguments.items():
            if argument.shape is not None and name in self._shape.written and argument.element != "f32":
                node = next(node for node in ast.walk(self._tree) if _is_store_to(node, name))
                raise self._source.refusal(node, f"{name} holds {argument.element}: the machine writes f32 only")
        self._scopes.integer(Number(0))
        self._block(self._tree.body)
        self._write_checks()
        self._scopes.insert(func.ReturnOp())
        module = ModuleOp([])
        called = {op.callee.string_value() for op in self._function.walk() if isinstance(op, func.CallOp)}
        for name in sorted(called):
            module.body.block.add_op(func.FuncOp.external(name, [f32], [f32]))
        module.body.block.add_op(self._function)
        return Written(str(module), self._e.bounds, self._lines, self._notes)

    def next_plan(self) -> Plan:
        """What the text should have been written with, as is known now."""
        checked = dict.fromkeys([*self._e.bounds.ends, *self._e.bounds.limits]) if self._mode != "none" else {}
        homes: dict[Induction, list[Element]] = {}
        for element in checked:
            home = self._home(element)
            if home is not None:
                homes.setdefault(home, []).append(element)
        again = dict(self._plan.again)
        for home, elements in homes.items():
            movable = [element for element in elements if _depends_directly(element, home)]
            if len(elements) > 1 and movable:
                stay = 0 if len(movable) < len(elements) else 1
                again[home] = (*again.get(home, ()), *movable[stay:])
        guards = self._plan.guards | (self._e.needs_guard() if self._mode != "none" else set())
        return Plan(again, frozenset(guards))

    def _home(self, element: Element) -> Induction | None:
        """The innermost loop that decides which element is loaded; loops are numbered from the outermost on."""
        variables = {part for part in parts(element) if isinstance(part, Induction)}
        return max(variables, key=lambda variable: variable.loop, default=None)

    def _type(self, argument: Argument) -> Attribute:
        if argument.shape is None:
            return f32 if argument.element == "f32" else IndexType()
        sizes = [self._static(size) for size in argument.shape]
        shape = [DYNAMIC_INDEX if size is None else size for size in sizes]
        is_rows = len(shape) > 1 and argument.element == "f32" and argument.name in self._shape.read
        if is_rows and sizes[-1] is not None:
            layout = StridedLayoutAttr([*(NoneAttr() for _ in shape[1:]), 1], 0)
            return MemRefType(f32, shape, layout)
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

    def _write_checks(self) -> None:
        if self._mode == "none":
            return
        mode = None if self._mode == "fatal" else StringAttr(self._mode)
        bounds = self._e.bounds
        for element in dict.fromkeys([*bounds.ends, *bounds.limits]):
            limits = [found[element] for found in (bounds.ends, bounds.limits) if element in found]
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
        if not self._scopes.open[1:] and not isinstance(self._e.bindings.get(_name_of(target)), Row):
            raise self._source.refusal(target, "work outside of all loops must be put into one, of one iteration")
        new = value()
        buffer, indices = self._e.place(target)
        name = _name_of(target)
        self._mark("buffer", buffer, target.lineno)
        kept = self._e.kept.get(name)
        if kept is not None:
            self._set(kept, new, target)
            return
        new = self._e.under_masks(new, lambda: self._e.load(buffer, indices, name))
        where = [self._scopes.integer(index) for index in indices]
        self._scopes.insert(memref.StoreOp.get(new, buffer, where))
        self._e.forget(buffer)

    def _mark(self, what: str, value: SSAValue, line: int) -> None:
        self._lines.setdefault(f"{what} %{value.name_hint}", []).append(line)

    # ------------------------------------------------------------------ local values

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
        if not isinstance(bound, Cell) and isinstance(value, INTEGERS) and not changed and not self._e.masks:
            self._e.bindings[name] = value
            return
        if isinstance(bound, Cell):
            self._set(bound, self._e.as_float(value), node)
        elif changed:
            if isinstance(value, INTEGERS) and not (isinstance(value, Number) and changed == "float"):
                raise self._source.refusal(
                    node, f"{name} is an integer, and integers must not change in loops or conditions"
                )
            cell = self._cell(name)
            self._e.bindings[name] = cell
            self._set(cell, self._e.as_float(value), node)
        elif self._e.masks and bound is not None and not isinstance(bound, Cell):
            old = bound
            self._e.bindings[name] = Float(self._e.under_masks(self._e.as_float(value), lambda: self._e.as_float(old)))
        elif isinstance(value, Float):
            if value.value.name_hint is None and not isinstance(value.value.owner, Block):
                value.value.name_hint = name
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

    def _cell(self, name: str) -> Cell:
        op = memref.AllocaOp.get(f32, shape=[1])
        return Cell(self._scopes.value(op, name, depth=0))

    def _set(self, cell: Cell, value: SSAValue, node: ast.stmt | ast.expr) -> None:
        if self._scopes.inner.is_row:
            raise self._source.refusal(
                node,
                f"{cell.buffer.name_hint} must not change here: a loop along a row changes rows, or sums up with +=",
            )
        self._mark("local row", cell.buffer, node.lineno)
        value = self._e.under_masks(value, lambda: self._e.load_cell(cell))
        self._scopes.insert(memref.StoreOp.get(value, cell.buffer, [self._scopes.integer(Number(0))]))
        self._e.forget(cell.buffer)

    def _row(self, call: ast.Call, name: str) -> None:
        if len(call.args) != 1 or call.keywords:
            raise self._source.refusal(call, "daedal.zeros must be given one size")
        width = self._e.integer(call.args[0], "a width")
        if not isinstance(width, Number) or width.value < 1:
            raise self._source.refusal(call, "the width of a local row must be a number, or a size, of at least 1")
        buffer = self._scopes.value(memref.AllocaOp.get(f32, shape=[width.value]), name, depth=0)
        self._e.bindings[name] = Row(buffer, width.value)
        self._mark("local row", buffer, call.lineno)
        zero = self._scopes.float_constant(0.0)
        variable = Induction(self._number(call, 0), "d")
        self._open(Number(0), width, variable, is_row=True, line=call.lineno)
        self._scopes.insert(memref.StoreOp.get(zero, buffer, [self._scopes.integer(variable)]))
        self._scopes.close()
        self._e.forget(buffer)

    # ------------------------------------------------------------------ loops

    def _number(self, node: ast.AST, copy: int) -> int:
        """A number for a loop, the same whenever the source is written; loops inside have greater ones."""
        return 8 * self._numbers[id(node)] + copy

    def _for(self, node: ast.For) -> None:
        if not is_range(node, self._source) or node.orelse:
            raise self._source.refusal(node, "a loop must be of the form `for name in range(...)`, without else")
        call, target = node.iter, node.target
        assert isinstance(call, ast.Call)
        assert isinstance(target, ast.Name)
        if target.id in self._signature.arguments or target.id in self._signature.symbols:
            raise self._source.refusal(node, f"{target.id} is an argument or a size: give the variable another name")
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
        bound = self._e.bindings.get(target.id)
        if is_row:
            self._row_loop(node, target.id, lower, upper)
        else:
            self._level(node, target.id, lower, upper, step)
        self._e.bindings.pop(target.id, None)
        if bound is not None:
            self._e.bindings[target.id] = bound

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
        self._lines.setdefault(f"loop %{variable.name}", []).append(line)
        low, high, by = (self._scopes.integer(each) for each in (lower, upper, step))
        return self._scopes.open_loop(low, high, by, variable, is_row=is_row, carried=carried)

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
            del self._e.kept[_name_of(element)]
        del self._e.renamed[renamed:]
        self._close_to(opened)
        self._leave(outer)

    def _keep(self, element: ast.Subscript, is_loaded: bool) -> tuple[ast.Subscript, Cell]:
        """Keep an element of an array in a local number from here on."""
        cell = self._cell(f"{_name_of(element)}_kept")
        if is_loaded:
            self._copy_element(element, cell, is_load=True)
        self._e.kept[_name_of(element)] = cell
        return element, cell

    def _copy_element(self, element: ast.Subscript, cell: Cell, *, is_load: bool) -> None:
        """Copy an element of an array to its cell, or back: a row of one."""
        buffer, (*leading, last) = self._e.place(element)
        column = Induction(self._number(element, 0 if is_load else 1), "d")
        self._open(Number(0), Number(1), column, line=element.lineno, is_row=True)
        where = [self._scopes.integer(index) for index in (*leading, combine("add", last, column))]
        here = [self._scopes.integer(column)]
        (source, source_at), (target, target_at) = (buffer, where), (cell.buffer, here)
        if not is_load:
            source, source_at, target, target_at = target, target_at, source, source_at
        value = self._scopes.value(memref.LoadOp.get(source, source_at))
        self._scopes.insert(memref.StoreOp.get(value, target, target_at))
        self._scopes.close()
        self._e.forget(None)

    def _load_again(self, variable: Induction, node: ast.AST) -> None:
        """Open loops of one iteration, each with a check of its own."""
        for copy, element in enumerate(self._plan.again.get(variable, ()), 1):
            again = Induction(variable.loop + copy, f"{variable.name}_again")
            self._notes.append((getattr(node, "lineno", 0), f"{element.array} is checked in a loop of one iteration"))
            self._open(variable, combine("add", variable, Number(1)), again, line=getattr(node, "lineno", 0))
            self._e.renamed.append((variable, again, frozenset([element])))

    def _close_to(self, count: int) -> None:
        while len(self._scopes.open) > count:
            self._scopes.close()
        self._e.forget(None)

    def _leave(self, outer: dict[str, Binding]) -> None:
        """What was bound inside of a block is not known after it."""
        self._e.bindings = dict(outer)

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

    def _sum(self, node: ast.For, name: str, lower: Integer, upper: Integer, total: str) -> None:
        """A loop along a row that adds to one number."""
        self._notes.append((node.lineno, f"a sum along a row, in the execute unit: {name} is no loop of the machine"))

        def body() -> SSAValue:
            *first, last = node.body
            self._block(first)
            added = summand(last, total)
            assert added is not None
            return self._e.number(added)

        before = self._e.bindings.get(total)
        if before is None or isinstance(before, Row):
            raise self._source.refusal(node, f"{total} must have a value before the loop that adds to it")
        initial = self._e.load_cell(before) if isinstance(before, Cell) else self._e.as_float(before)
        outer = dict(self._e.bindings)
        result = self._reduce(node, name, lower, upper, initial, total, body)
        self._leave(outer)
        if isinstance(before, Cell):
            self._set(before, result, node)
        else:
            self._e.bindings[total] = Float(result)

    def _reduce(
        self, node: ast.AST, name: str, lower: Integer, upper: Integer, initial: SSAValue, total: str,
        body: Callable[[], SSAValue],
    ) -> SSAValue:  # fmt: skip
        variable = Induction(self._number(node, 0), name)
        loop = self._open(lower, upper, variable, line=getattr(node, "lineno", 0), is_row=True, carried=initial)
        loop.attributes[REDUCE] = UnitAttr()
        carried = loop.body.block.args[1]
        carried.name_hint = total
        self._e.bindings[name] = variable
        added = body()
        new = self._scopes.value(arith.AddfOp(carried, added))
        self._scopes.close(new)
        loop.results[0].name_hint = total
        return loop.results[0]

    def _dot(self, call: ast.Call) -> SSAValue:
        """A sum of products of two rows."""
        if len(call.args) != 2 or call.keywords:
            raise self._source.refusal(call, "daedal.dot must be given two rows")
        variable = Induction(self._number(call, 0), "d")
        rows = [self._row_of(argument) for argument in call.args]
        widths = [width for _, width in rows]
        if widths[0] != widths[1] or not isinstance(widths[0], Number):
            raise self._source.refusal(call, "the rows of daedal.dot must have the same width")

        def body() -> SSAValue:
            a, b = (self._e.number(_element_of(node, "d")) for node, _ in rows)
            return self._scopes.value(arith.MulfOp(a, b))

        outer = dict(self._e.bindings)
        zero = self._scopes.float_constant(0.0)
        result = self._reduce(call, variable.name, Number(0), widths[0], zero, "dot", body)
        self._leave(outer)
        return result

    def _row_of(self, node: ast.expr) -> tuple[ast.Subscript, Integer]:
        """A row as a subscript that ends with a slice, and its width."""
        if isinstance(node, ast.Name):
            node = ast.copy_location(ast.Subscript(node, ast.Slice(), ast.Load()), node)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            name, last = node.value.id, indices_of(node)[-1]
            bound, argument = self._e.bindings.get(name), self._signature.arguments.get(name)
            is_whole = isinstance(last, ast.Slice) and last.lower is last.upper is last.step is None
            if is_whole and isinstance(bound, Row):
                return node, Number(bound.width)
            if is_whole and argument is not None and argument.shape is not None and argument.element == "f32":
                return node, self._e.size(argument.shape[-1])
        raise self._source.refusal(node, f"{ast.unparse(node)!r} must be a row of f32, as a[i, :]")

    # ------------------------------------------------------------------ conditions

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

    def _is_level(self, node: ast.AST) -> bool:
        return isinstance(node, ast.For) and id(node) not in self._shape.rows and id(node) not in self._shape.sums

    def _select(self, node: ast.If) -> None:
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
            self._block(node.body if holds else node.orelse)
            self._scopes.close()
            self._e.forget(None)
            self._leave(outer)

    def _guard(self, node: ast.If) -> None:
        """A condition as a loop of no iteration or one, which loads again what it uses."""
        condition = self._e.condition(node.test)
        variable = next((s.variable for s in reversed(self._scopes.open) if s.variable is not None), None)
        if condition.negated or node.orelse or variable is None:
            raise self._source.refusal(
                node,
                "a condition around loops, or around what is loaded at an index that was loaded, must have neither "
                "`or` nor else; use two conditions, or bounds='none' if indices need no check",
            )
        self._notes.append(
            (node.lineno, "a condition that is a loop of no iteration or one, so that nothing is read early")
        )
        test = self._e.test(condition)
        wide = self._scopes.value(arith.ExtUIOp(test, i64))
        taken = self._scopes.value(arith.IndexCastOp(wide, IndexType()), "taken")
        first = self._scopes.integer(variable)
        upper = self._scopes.value(arith.AddiOp(first, taken), "until")
        inner = Induction(self._number(node, 0), f"{variable.name}_if")
        self._e.bounds.loop(inner, variable, combine("add", variable, Number(1)), node.lineno)
        self._lines.setdefault(f"loop %{inner.name}", []).append(node.lineno)
        self._e.forget(None)
        outer, renamed, opened = dict(self._e.bindings), len(self._e.renamed), len(self._scopes.open)
        self._scopes.open_loop(first, upper, self._scopes.integer(Number(1)), inner)
        self._e.renamed.append((variable, inner, None))
        self._load_again(inner, node)
        self._block(node.body)
        del self._e.renamed[renamed:]
        self._close_to(opened)
        self._leave(outer)


def write(
    source: Source, signature: Signature, tree: ast.FunctionDef, shape: Shape, fixed: dict[str, int], bounds: str
) -> Written:
    """The loops of a kernel as text."""
    plan = Plan()
    for _ in range(6):
        writer = Writer(source, signature, tree, shape, fixed, bounds, plan)
        written = writer.run()
        following = writer.next_plan()
        if following == plan:
            return written
        plan = following
    raise source.refusal(tree, "the indices of this kernel need more checks than there are loops: use bounds='none'")


def _depends_directly(element: Element, variable: Induction) -> bool:
    """Whether an index of the element has the variable other than by way of something loaded."""

    def has(index: Integer) -> bool:
        if isinstance(index, Element):
            return False
        return index == variable or (isinstance(index, Binary) and (has(index.a) or has(index.b)))

    return any(has(index) for index in element.indices)


def _name_of(target: ast.Subscript) -> str:
    return target.value.id if isinstance(target.value, ast.Name) else ""


def _is_store_to(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _name_of(node) == name


def _as_load(target: ast.Subscript) -> ast.Subscript:
    return ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)


def _element_of(row: ast.Subscript, column: str) -> ast.Subscript:
    """The subscript with ``column`` in the place of the slice."""
    *leading, _ = indices_of(row)
    index: list[ast.expr] = [*leading, ast.Name(column, ast.Load())]
    slice_ = ast.Tuple(index, ast.Load()) if len(index) > 1 else index[0]
    return ast.fix_missing_locations(ast.copy_location(ast.Subscript(row.value, slice_, ast.Load()), row))


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
