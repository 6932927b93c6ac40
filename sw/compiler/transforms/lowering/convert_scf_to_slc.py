"""Pass ``convert-scf-to-slc``: decouples loops.

Every value falls on one side. What decides *where* data are (induction variables, loads of integers and the
f32 that do not change along a row, integer arithmetic, comparisons, checks) becomes streams of the access
unit. What is done *with* data (loops along rows, f32 arithmetic) goes into callbacks, placed at the event at
which the loops would reach it: before an inner loop at the iteration around it, after it at its end.
"""

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from daedal.compiler.analysis.counters import count_condition, first_of
from daedal.compiler.analysis.row_loops import constant_of, is_float_access, is_row_loop, loop_name
from daedal.compiler.analysis.scalars import is_float, is_local
from daedal.compiler.dialects import check, narrow, place, slc
from daedal.compiler.transforms.builders.callback_builder import CallbackBuilder
from daedal.errors import UnsupportedOperation

ALU_KINDS: dict[type[Operation], str] = {
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul",
    arith.AndIOp: "and",
    arith.MinSIOp: "min",
    arith.MaxSIOp: "max",
    arith.ShLIOp: "shift_left",
    arith.ShRUIOp: "shift_right",
}
"""Integer operations that the access unit has."""

COMPARISONS = {0: ("equal", False), 1: ("not_equal", False), 2: ("less", False), 4: ("less", True)}
"""Predicate of ``arith.cmpi`` -> comparison of ``slc.alu`` and whether the operands are swapped (eq, ne, slt,
sgt)."""

NEGATED = {3: 4, 5: 2}
"""Predicates that are the opposite of another: sle of sgt, sge of slt."""

CASTS = (arith.IndexCastOp, arith.ExtSIOp, arith.ExtUIOp)

_TOP_LEVEL = (arith.ConstantOp, arith.DivSIOp, memref.DimOp, memref.AllocaOp)


@dataclass
class _Level:
    """A loop that is being built."""

    loop: slc.ForOp
    inner: "_Level | None" = None
    callbacks: dict[str, CallbackBuilder] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return loop_name(self.loop)

    def insert(self, op: Operation, hint: str | None = None) -> SSAValue | None:
        """Add access-side work to the body, before the inner loop; its result."""
        block = self.loop.body.block
        if self.inner is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, self.inner.loop)
        if not op.results:
            return None
        op.results[0].name_hint = hint
        return op.results[0]


class _Decoupler:
    """Rewrites the body of one function."""

    def __init__(self, function: func.FuncOp) -> None:
        self._old = function.body.block
        self._new = Block(arg_types=[argument.type for argument in self._old.args])
        self._values: dict[SSAValue, SSAValue] = {}
        for old, new in zip(self._old.args, self._new.args, strict=True):
            new.name_hint = old.name_hint
            self._values[old] = new
        self._execute: set[SSAValue] = set()
        self._counters: set[SSAValue] = set()
        self._leading: list[Operation] = []
        self._root: _Level | None = None

    def run(self) -> Block:
        """The new body."""
        for op in self._old.ops:
            self._top(op)
        return self._new

    def _translate(self, value: SSAValue) -> SSAValue | None:
        return None if value in self._execute else self._value(value)

    def _value(self, value: SSAValue) -> SSAValue:
        if value not in self._values:
            raise UnsupportedOperation(
                f"value %{value.name_hint or '?'} must not be used here: it is not known to the access unit "
                "at this place"
            )
        return self._values[value]

    # ------------------------------------------------------------------ outside of all loops

    def _top(self, op: Operation) -> None:
        if isinstance(op, scf.ForOp) and not is_row_loop(op):
            self._top_loop(op)
        elif isinstance(op, scf.ForOp) or _is_single_store(op):
            self._execute.update(op.results)
            if self._root is None:
                self._leading.append(op)
            else:
                self._state(self._root, "end", op, None)
        elif isinstance(op, func.ReturnOp):
            self._finish_nest()
            if self._leading:
                raise UnsupportedOperation("there must be a loop around the work on rows: add one of one iteration")
            self._new.add_op(op.clone(self._values))
        elif isinstance(op, (*_TOP_LEVEL, *CASTS, *ALU_KINDS)):
            self._copy(op)
        elif self._is_execute(op):
            self._execute.update(op.results)
        else:
            raise UnsupportedOperation(f"{op.name} outside of all loops cannot be offloaded")

    def _copy(self, op: Operation) -> None:
        copy = op.clone(self._values)
        self._new.add_op(copy)
        self._values.update(zip(op.results, copy.results, strict=True))

    def _top_loop(self, op: scf.ForOp) -> None:
        self._finish_nest()
        self._root = root = self._loop(op, None)
        for statement in self._leading:
            self._state(root, "begin", statement, None)
        self._leading = []
        if "begin" in root.callbacks:
            callback, first = root.callbacks.pop("begin").finish(), root.loop.body.block.first_op
            if first is None:
                root.loop.body.block.add_op(callback)
            else:
                root.loop.body.block.insert_op_before(callback, first)

    def _finish_nest(self) -> None:
        if self._root is not None:
            self._flush(self._root, "end")

    # ------------------------------------------------------------------ loops

    def _loop(self, op: scf.ForOp, parent: _Level | None) -> _Level:
        lower, upper, step = self._value(op.lb), self._value(op.ub), self._value(op.step)
        if constant_of(op.step) is None or (constant_of(op.step) or 0) < 1:
            raise UnsupportedOperation(f"{loop_name(op)}: the step must be a constant of at least 1")
        level = _Level(slc.ForOp(lower, upper, step, name=op.body.block.args[0].name_hint))
        if parent is None:
            self._new.add_op(level.loop)
        else:
            self._flush(parent, "iteration")
            parent.loop.body.block.add_op(level.loop)
            parent.inner = level
        self._values[op.body.block.args[0]] = level.loop.induction
        self._counters.update(op.body.block.args[1:])
        self._body(level, op.body.block, None)
        self._flush(level, "iteration")
        if level.inner is not None:
            self._flush(level.inner, "end")
        self._add_counts(level, op)
        return level

    def _add_counts(self, level: _Level, op: scf.ForOp) -> None:
        for position, result in enumerate(op.results):
            condition = count_condition(op, position)
            self._counters.add(result)
            if result.first_use is None:
                continue
            new = None if condition is None else self._condition(level, condition)
            hint = result.name_hint or op.body.block.args[position + 1].name_hint
            count = level.insert(slc.CountOp(new), hint)
            assert count is not None
            self._values[result] = count

    def _flush(self, level: _Level, event: str) -> None:
        if event in level.callbacks:
            callback = level.callbacks.pop(event).finish()
            level.insert(callback) if event == "iteration" else level.loop.body.block.add_op(callback)

    def _state(self, level: _Level, event: str, statement: Operation, condition: SSAValue | None) -> None:
        callback = level.callbacks.setdefault(event, CallbackBuilder(event, condition, self._translate))
        if callback.condition is not condition:
            raise UnsupportedOperation(
                f"{level.name}: all work at its {event} must be under the same condition; move one part "
                "into a loop "
                "of its own"
            )
        callback.add(statement)

    # ------------------------------------------------------------------ bodies of loops

    def _body(self, level: _Level, block: Block, condition: SSAValue | None) -> None:
        for op in block.ops:
            if isinstance(op, scf.YieldOp):
                continue
            if isinstance(op, scf.ForOp):
                self._body_loop(level, op, condition)
            elif _is_single_store(op):
                self._work(level, op, condition)
            elif isinstance(op, scf.IfOp):
                self._if(level, op, condition)
            elif (first := first_of(op)) is not None and any(value in self._counters for value in op.operands):
                self._first(level, op, *first)
            elif any(value in self._counters for value in op.operands) and not self._is_execute(op):
                self._counters.update(op.results)
            elif self._is_execute(op):
                self._execute.update(op.results)
            else:
                self._access(level, op, condition)

    def _first(self, level: _Level, op: Operation, loop: scf.ForOp, position: int) -> None:
        """A comparison of a counter with 0: whether nothing was counted before."""
        if self._values.get(loop.body.block.args[0]) is not level.loop.induction:
            raise UnsupportedOperation(f"{level.name}: a counter must be compared in the loop that carries it")
        condition = count_condition(loop, position)
        counted = None if condition is None else self._condition(level, condition)
        first = level.insert(slc.FirstOp(counted), op.results[0].name_hint)
        assert first is not None
        self._values[op.results[0]] = first

    def _body_loop(self, level: _Level, op: scf.ForOp, condition: SSAValue | None) -> None:
        if is_row_loop(op):
            self._work(level, op, condition)
        elif condition is not None:
            raise UnsupportedOperation(f"{loop_name(op)} must not stand in a condition")
        elif level.inner is not None:
            raise UnsupportedOperation(
                f"{level.name} must have one loop in its body, not {level.inner.name} and {loop_name(op)}, which share "
                "a local row, a carried value or a buffer that both store to: two innermost loops with the same bounds "
                "can, others cannot"
            )
        else:
            self._loop(op, level)

    def _work(self, level: _Level, op: Operation, condition: SSAValue | None) -> None:
        """Put a loop along a row, or the store of a single f32, into the callback of its place."""
        self._execute.update(op.results)
        if level.inner is None:
            self._state(level, "iteration", op, condition)
        else:
            self._state(level.inner, "end", op, condition)

    def _if(self, level: _Level, op: scf.IfOp, outer: SSAValue | None) -> None:
        condition = self._condition(level, op.cond)
        self._body(level, op.true_region.block, self._both(level, outer, condition))
        block = op.false_region.first_block
        if block is not None and any(not isinstance(inner, scf.YieldOp) for inner in block.ops):
            zero = self._zero()
            negated = level.insert(slc.AluOp("equal", condition, zero))
            assert negated is not None
            self._body(level, block, self._both(level, outer, negated))
        self._counters.update(op.results)

    def _condition(self, level: _Level, condition: SSAValue) -> SSAValue:
        value = self._value(condition)
        if not isinstance(value.type, slc.StreamType):
            raise UnsupportedOperation(f"{level.name}: a condition must depend on the loops around it")
        return value

    def _both(self, level: _Level, outer: SSAValue | None, inner: SSAValue) -> SSAValue:
        if outer is None:
            return inner
        both = level.insert(slc.AluOp("and", outer, inner))
        assert both is not None
        return both

    def _zero(self) -> SSAValue:
        for op in self._new.ops:
            if isinstance(op, arith.ConstantOp) and op.value == IntegerAttr(0, IndexType()):
                return op.result
        zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
        first = self._new.first_op
        assert first is not None
        self._new.insert_op_before(zero, first)
        return zero.result

    # ------------------------------------------------------------------ single operations

    def _is_execute(self, op: Operation) -> bool:
        """Whether an operation belongs into callbacks: f32 arithmetic and what leads from a count to an
        f32.
        """
        if not op.results:
            return False
        if isinstance(op, memref.LoadOp):
            return is_local(op.memref)
        if is_float(op.results[0]) or isinstance(op, arith.CmpfOp | narrow.RoundOp):
            return True
        if any(value in self._execute for value in op.operands):
            return True
        return isinstance(op, (arith.MaxSIOp, *CASTS)) and _leads_to_float(op.results[0])

    def _access(self, level: _Level, op: Operation, condition: SSAValue | None) -> None:
        if isinstance(op, memref.LoadOp):
            self._load(level, op, condition)
        elif isinstance(op, place.MemrefOp):
            self._place(level, op)
        elif isinstance(op, check.BoundsOp):
            if condition is not None:
                raise UnsupportedOperation(f"{level.name}: a check must not stand in a condition")
            level.insert(slc.CheckOp(op.kind.data, self._value(op.value), self._value(op.limit), op.mode))
        elif isinstance(op, CASTS):
            self._values[op.results[0]] = self._renamed(op)
        elif isinstance(op, arith.CmpiOp):
            self._compare(level, op)
        elif type(op) in ALU_KINDS:
            self._alu(level, op)
        elif isinstance(op, _TOP_LEVEL):
            self._copy_out(op)
        else:
            raise UnsupportedOperation(f"{level.name}: {op.name} cannot be offloaded")

    def _renamed(self, op: Operation) -> SSAValue:
        value = self._value(op.operands[0])
        if op.results[0].name_hint is not None:
            value.name_hint = op.results[0].name_hint
        return value

    def _copy_out(self, op: Operation) -> None:
        """Constants, sizes and local rows stand outside of the loops."""
        copy = op.clone(self._values)
        outermost: Operation | None = next((o for o in self._new.ops if isinstance(o, slc.ForOp)), None)
        if outermost is None:
            self._new.add_op(copy)
        else:
            self._new.insert_op_before(copy, outermost)
        self._values.update(zip(op.results, copy.results, strict=True))

    def _load(self, level: _Level, op: memref.LoadOp, condition: SSAValue | None) -> None:
        indices = [self._value(index) for index in op.indices]
        if condition is not None and any(_is_loaded(index) for index in indices):
            raise UnsupportedOperation(f"{level.name}: a load whose index was loaded must not stand in a condition")
        loaded = level.insert(slc.LoadOp(self._value(op.memref), indices), op.res.name_hint)
        assert loaded is not None
        self._values[op.res] = loaded

    def _place(self, level: _Level, op: place.MemrefOp) -> None:
        placed = level.insert(place.MemrefOp(self._value(op.address), op.result.type), op.result.name_hint)
        assert placed is not None
        self._values[op.result] = placed

    def _alu(self, level: _Level, op: Operation) -> None:
        a, b = map(self._value, op.operands)
        if not any(isinstance(value.type, slc.StreamType) for value in (a, b)):
            self._copy_out(op)
            return
        result = level.insert(slc.AluOp(ALU_KINDS[type(op)], a, b), op.results[0].name_hint)
        assert result is not None
        self._values[op.results[0]] = result

    def _compare(self, level: _Level, op: arith.CmpiOp) -> None:
        predicate = op.predicate.value.data
        a, b = self._value(op.lhs), self._value(op.rhs)
        base = NEGATED.get(predicate, predicate)
        if base not in COMPARISONS:
            raise UnsupportedOperation(f"{level.name}: comparisons must be signed, not arith.cmpi {predicate}")
        kind, swapped = COMPARISONS[base]
        result = level.insert(slc.AluOp(kind, *((b, a) if swapped else (a, b))), op.result.name_hint)
        assert result is not None
        if predicate in NEGATED:
            result = level.insert(slc.AluOp("equal", result, self._zero()), op.result.name_hint)
            assert result is not None
        self._values[op.result] = result


def _leads_to_float(value: SSAValue) -> bool:
    """Whether all that is done with an integer is to make an f32 of it."""
    users = [use.operation for use in value.uses]
    return bool(users) and all(
        isinstance(user, arith.SIToFPOp | arith.UIToFPOp)
        or (isinstance(user, CASTS) and _leads_to_float(user.results[0]))
        for user in users
    )


def _is_single_store(op: Operation) -> bool:
    """Whether ``op`` stores an f32 outside of loops along rows."""
    return isinstance(op, memref.StoreOp) and is_float_access(op)


def _is_loaded(stream: SSAValue) -> bool:
    owner = stream.owner
    if isinstance(owner, slc.AluOp):
        return any(_is_loaded(value) for value in owner.operands)
    return isinstance(owner, slc.LoadOp)


@dataclass(frozen=True)
class ConvertScfToSlc(ModulePass):
    """See the module."""

    name = "convert-scf-to-slc"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Decouple every function."""
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                new = _Decoupler(function).run()
                function.detach_region(function.body)
                function.add_region(Region(new))
