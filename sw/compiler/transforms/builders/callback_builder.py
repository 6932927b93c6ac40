"""Builds one callback of ``slc`` out of statements of the loops."""

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from daedal.compiler.dialects import slc
from daedal.errors import UnsupportedOperation


def free_values(op: Operation) -> list[SSAValue]:
    """The values that ``op`` and its regions use but do not define, in order of use."""
    inside = {id(inner) for inner in op.walk()}
    found: dict[SSAValue, None] = {}
    for inner in op.walk():
        for value in inner.operands:
            owner = value.owner
            defining = owner if isinstance(owner, Operation) else owner.parent_op()
            if id(defining) not in inside:
                found[value] = None
    return list(found)


class CallbackBuilder:
    """Collects the statements of one event.

    Parameters
    ----------
    event, condition
        As in ``slc.callback``.
    translate
        Gives what became of a value of the loops, or None if its operation belongs into callbacks.
    """

    def __init__(
        self, event: str, condition: SSAValue | None, translate: Callable[[SSAValue], SSAValue | None]
    ) -> None:
        self.event, self.condition = event, condition
        self._translate = translate
        self._inputs: dict[SSAValue, SSAValue] = {}
        self._block = Block()
        self._known: dict[SSAValue, SSAValue] = {}

    def add(self, statement: Operation) -> None:
        """Append a loop over a row, or the store of a single f32."""
        for value in free_values(statement):
            self._value(value)
        copy = statement.clone(dict(self._known))
        self._block.add_op(copy)
        for old, new in zip(statement.results, copy.results, strict=True):
            new.name_hint = old.name_hint
            self._known[old] = new

    def finish(self) -> slc.CallbackOp:
        """The operation."""
        return slc.CallbackOp(self.event, self.condition, list(self._inputs), [self._block])

    def _value(self, old: SSAValue) -> SSAValue:
        if old not in self._known:
            new = self._translate(old)
            if new is None:
                self._known[old] = self._recompute(old)
            elif isinstance(new.type, slc.StreamType):
                self._known[old] = self._as(old.type, self._input(new))
            else:
                self._known[old] = new
        return self._known[old]

    def _input(self, stream: SSAValue) -> SSAValue:
        if stream not in self._inputs:
            argument = self._block.insert_arg(slc.element_of(stream.type), len(self._block.args))
            argument.name_hint = stream.name_hint
            self._inputs[stream] = argument
        return self._inputs[stream]

    def _as(self, kind: Attribute, value: SSAValue) -> SSAValue:
        """A loaded integer in its own type: streams are of index."""
        if not isinstance(kind, IntegerType) or value.type == kind:
            return value
        cast = arith.IndexCastOp(value, kind)
        self._block.add_op(cast)
        return cast.result

    def _recompute(self, old: SSAValue) -> SSAValue:
        op = old.owner
        assert isinstance(op, Operation)
        if op.regions:
            raise UnsupportedOperation(f"value %{old.name_hint or '?'} must be used where it is computed")
        for operand in op.operands:
            self._value(operand)
        copy = op.clone(dict(self._known))
        self._block.add_op(copy)
        result = copy.results[op.results.index(old)]
        result.name_hint = old.name_hint
        return result
