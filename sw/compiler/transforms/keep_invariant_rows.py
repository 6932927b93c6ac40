"""Pass ``keep-invariant-rows``: a row that all iterations of a loop read is fetched once, in front of the loop.

It stays in an accumulator meanwhile. Loops that may well have one iteration only (those that the front end makes for
a check or a condition) are left as they are.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from daedal.compiler.analysis.row_loops import constant_of
from daedal.compiler.dialects import slc, slcv
from daedal.compiler.dialects.narrow_packed import UnpackOp

SPARE = 4
"""Vector registers that are left to what callbacks compute."""


def _is_outside(value: SSAValue, loop: slc.ForOp) -> bool:
    owner = value.owner
    inner: Operation | Block | None = owner.parent if isinstance(owner, Operation) else owner
    while inner is not None:
        if inner is loop.body.block:
            return False
        around = inner.parent_op()
        inner = None if around is None else around.parent
    return True


def _runs_often(loop: slc.ForOp) -> bool:
    """Whether a loop ends where an array says, or a size, or a number of more than one."""
    upper = loop.upper
    if isinstance(upper.type, slc.StreamType):
        return isinstance(upper.owner, slc.LoadOp)
    first, end = constant_of(loop.lower), constant_of(upper)
    return end is None or first is None or end - first > 1


def _inputs(callback: slc.CallbackOp, fetch: slcv.FetchOp, loop: slc.ForOp) -> list[SSAValue] | None:
    """The streams behind the indices of a row, or what is fixed by the launch; None if they change in ``loop``."""
    found = [callback.source(index) for index in fetch.indices]
    return found if all(_is_outside(index, loop) for index in found) else None


def _before(loop: slc.ForOp) -> slc.CallbackOp | None:
    """The callback at the iteration of the loop around ``loop``, of which there can be one."""
    assert loop.parent is not None
    callbacks = [op for op in loop.parent.ops if isinstance(op, slc.CallbackOp) and op.event.data == "iteration"]
    return callbacks[0] if callbacks else None


def _in_front_of(loop: slc.ForOp, streams: list[SSAValue]) -> tuple[Block, dict[SSAValue, SSAValue]]:
    """The body of a callback in front of ``loop``, and its arguments for ``streams``."""
    old = _before(loop)
    inputs = [] if old is None else list(old.inputs)
    inputs += [stream for stream in streams if stream not in inputs]
    region = Region(Block()) if old is None else old.detach_region(old.body)
    block = region.block
    for stream in inputs[len(block.args) :]:
        assert isinstance(stream.type, slc.StreamType)
        block.insert_arg(stream.type.element_type, len(block.args)).name_hint = stream.name_hint
    assert loop.parent is not None
    loop.parent.insert_op_before(slc.CallbackOp("iteration", None, inputs, region), loop if old is None else old)
    if old is not None:
        old.detach()
        old.erase()
    return block, dict(zip(inputs, block.args, strict=True))


def _keep(loop: slc.ForOp, callback: slc.CallbackOp, fetch: slcv.FetchOp, inputs: list[SSAValue]) -> None:
    """Fetch in front of ``loop``; read the accumulator in its place."""
    accumulator = slcv.AccumulatorOp(slcv.width_of(fetch.result))
    accumulator.result.name_hint = fetch.result.name_hint
    function = loop.parent_op()
    while not isinstance(function, func.FuncOp):
        assert function is not None
        function = function.parent_op()
    first = function.body.block.first_op
    assert first is not None
    function.body.block.insert_op_before(accumulator, first)
    block, arguments = _in_front_of(loop, [value for value in inputs if isinstance(value.type, slc.StreamType)])
    once = slcv.FetchOp(fetch.memref, [arguments.get(value, value) for value in inputs], slcv.width_of(fetch.result))
    once.result.name_hint = fetch.result.name_hint
    block.add_ops([once, slcv.SetOp(accumulator.result, once.result)])
    kept = slcv.GetOp(accumulator.result, slcv.width_of(fetch.result))
    kept.result.name_hint = fetch.result.name_hint
    callback.body.block.insert_op_before(kept, fetch)
    fetch.result.replace_all_uses_with(kept.result)
    fetch.detach()
    fetch.erase()


@dataclass(frozen=True)
class KeepInvariantRows(ModulePass):
    """See the module; ``registers``: vector registers of the machine."""

    name = "keep-invariant-rows"

    registers: int = 8

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every callback of an iteration."""
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                self._function(function)

    def _function(self, function: func.FuncOp) -> None:
        stored = {op.memref for op in function.walk() if isinstance(op, slcv.StoreOp)}
        left = self.registers - SPARE - sum(isinstance(op, slcv.AccumulatorOp) for op in function.body.block.ops)
        for callback in [op for op in function.walk() if isinstance(op, slc.CallbackOp)]:
            loop = callback.parent_op()
            if not isinstance(loop, slc.ForOp) or not isinstance(loop.parent_op(), slc.ForOp):
                continue
            if callback.event.data != "iteration" or callback.condition is not None or not _runs_often(loop):
                continue
            before = _before(loop)
            if before is not None and before.condition is not None:
                continue
            for fetch in [op for op in callback.body.block.ops if isinstance(op, slcv.FetchOp)]:
                inputs = _inputs(callback, fetch, loop)
                if _is_packed(fetch):
                    continue
                if left > 0 and inputs is not None and fetch.memref not in stored and not _is_only_copied(fetch):
                    _keep(loop, callback, fetch, inputs)
                    left -= 1


def _is_packed(fetch: slcv.FetchOp) -> bool:
    """Whether it is a row with a head, which is unpacked as it is popped."""
    return any(isinstance(use.operation, UnpackOp) for use in fetch.result.uses)


def _is_only_copied(fetch: slcv.FetchOp) -> bool:
    """Whether a row goes to memory as it is, which the execute unit has no part in."""
    return all(isinstance(use.operation, slcv.StoreOp) for use in fetch.result.uses)
