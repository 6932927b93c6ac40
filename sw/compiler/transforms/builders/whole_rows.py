"""Sums of quantised rows that one instruction does, on machines that have it: ``narrow.affine``."""

from xdsl.dialects import arith, func, math, vector
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from daedal.compiler.dialects import dlc, slcv
from daedal.compiler.dialects.narrow_packed import AffineOp, UnpackOp


def take_whole_rows(function: func.FuncOp) -> None:
    """Replace ``fma(q, scale, s + bias)`` in callbacks, both numbers of a head by the same weight or by none.

    A weight that is sent for each of the two products is sent once.
    """
    for op in list(function.walk()):
        if isinstance(op, UnpackOp) and isinstance(op.parent_op(), dlc.CallbackOp):
            found = _Sum.of(op)
            if found is not None and found.is_together():
                found.replace(function)


class _Sum:
    """The operations of one sum, if they are nothing else."""

    def __init__(self, unpack: UnpackOp, added: math.FmaOp, parts: list[Operation]) -> None:
        self._unpack, self._added, self._parts = unpack, added, parts
        self._weights: list[SSAValue] = []
        self._addend = added.c

    @staticmethod
    def of(unpack: UnpackOp) -> "_Sum | None":
        """What becomes of a row and its head; None if that is not such a sum."""
        added, biased = _user(unpack.row), None
        if not isinstance(added, math.FmaOp) or added.a is not unpack.row:
            return None
        found = _Sum(unpack, added, [])
        scale, bias = found._weighted(unpack.scale), found._weighted(unpack.bias)
        biased = None if bias is None else _user(bias)
        if scale is None or scale is not added.b or not isinstance(biased, arith.AddfOp):
            return None
        if added.c is not biased.result or _user(biased.result) is not added:
            return None
        found._parts.append(biased)
        found._addend = biased.rhs if biased.lhs is bias else biased.lhs
        return found if found._addend is not bias and len(found._weights) in (0, 2) else None

    def _weighted(self, number: SSAValue) -> SSAValue | None:
        """A number of the head spread along the row, times a weight before or after, if there is one."""
        value, is_spread = number, False
        while True:
            user = _user(value)
            if isinstance(user, vector.BroadcastOp) and not is_spread:
                is_spread = True
            elif isinstance(user, arith.MulfOp):
                weight = user.rhs if user.lhs is value else user.lhs
                if isinstance(weight.owner, vector.BroadcastOp):
                    if _user(weight) is not user:
                        return None
                    self._parts.append(weight.owner)
                    weight = weight.owner.source
                if not isinstance(weight.owner, dlc.PopScalarOp):
                    return None
                self._weights.append(weight)
            else:
                return value if is_spread else None
            self._parts.append(user)
            value = user.results[0]

    def is_together(self) -> bool:
        """Whether nothing else is taken from a queue in between, and weights are the same."""
        if self._weights and not self._same_weight():
            return False
        own = {*self._parts, *(weight.owner for weight in self._weights)}
        between = self._unpack.next_op
        while between is not None and between is not self._added:
            if between not in own and not isinstance(between, slcv.GetOp):
                return False
            between = between.next_op
        return between is not None

    def _same_weight(self) -> bool:
        first, second = self._weights
        if first is second:
            return len(list(first.uses)) == 2
        if any(len(list(weight.uses)) != 1 for weight in self._weights):
            return False
        pushed = [_pushes(self._unpack, weight) for weight in self._weights]
        return bool(pushed[0]) and [push.value for push in pushed[0]] == [push.value for push in pushed[1]]

    def replace(self, function: func.FuncOp) -> None:
        weight = self._weights[0] if self._weights else None
        if self._weights and self._weights[1] is not weight:
            for push in _pushes(self._unpack, self._weights[1]):
                Rewriter.erase_op(push)
        new = AffineOp(self._unpack.words, self._addend, weight, self._unpack.bits.value.data)
        block = self._added.parent_block()
        assert block is not None
        block.insert_op_before(new, self._added)
        self._added.result.replace_all_uses_with(new.result)
        new.result.name_hint = self._added.result.name_hint
        gone: list[Operation] = [self._added, *sorted(self._parts, key=block.get_operation_index, reverse=True)]
        for op in gone:
            Rewriter.erase_op(op)
        Rewriter.erase_op(self._unpack)
        if self._weights and self._weights[1] is not weight:
            Rewriter.erase_op(_owner(self._weights[1]))


def _owner(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation)
    return value.owner


def _user(value: SSAValue) -> Operation | None:
    """What uses a value, if that is one operation, once."""
    uses = list(value.uses)
    return uses[0].operation if len(uses) == 1 else None


def _pushes(inside: Operation, popped: SSAValue) -> list[dlc.PushScalarOp]:
    """What is sent for a scalar that the callback of ``inside`` pops, in each event that sends its token."""
    callback = inside.parent_op()
    assert isinstance(callback, dlc.CallbackOp)
    pops = [op for op in callback.body.block.ops if isinstance(op, dlc.PopScalarOp)]
    place, top = pops.index(popped.owner), callback.get_toplevel_object()  # type: ignore[arg-type]
    found = []
    for event in top.walk():
        if isinstance(event, dlc.EventOp):
            tokens = [op for op in event.body.block.ops if isinstance(op, dlc.PushTokenOp)]
            pushes = [op for op in event.body.block.ops if isinstance(op, dlc.PushScalarOp)]
            if [op.token for op in tokens] == [callback.token] and len(pushes) == len(pops):
                found.append(pushes[place])
            elif callback.token in [op.token for op in tokens]:
                return []
    return found
