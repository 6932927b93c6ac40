"""Pass ``convert-slcv-to-dlc``: separates the access program from the execute program.

Memrefs become byte addresses made of launch arguments and streams; callbacks become events, which fill
queues, on one side, and callbacks, which pop them, on the other. Constants that the scalar unit needs are put into
scalar registers by nests of one iteration in front of all others.
"""

import struct
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import FloatAttr, MemRefType, ModuleOp, f32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from daedal.compiler.analysis.addresses import Addresses, Linear, buffer_name, element_bytes
from daedal.compiler.analysis.event_steps import EventSteps
from daedal.compiler.analysis.row_loops import constant_of, loop_name, naming
from daedal.compiler.analysis.scalars import is_float
from daedal.compiler.analysis.uniforms import Uniform, Uniforms
from daedal.compiler.dialects import dlc, place, slc, slcv
from daedal.compiler.transforms.builders.callback_splitter import CallbackSplitter
from daedal.compiler.transforms.builders.whole_rows import take_whole_rows
from daedal.errors import UnsupportedOperation


@dataclass
class _Level:
    loop: slc.ForOp
    depth: int
    inner: slc.ForOp | None = None
    sums: dict[tuple[SSAValue, SSAValue], SSAValue] = field(default_factory=dict)

    def insert(self, op: Operation, hint: str | None = None) -> SSAValue:
        if self.inner is None:
            self.loop.body.block.add_op(op)
        else:
            self.loop.body.block.insert_op_before(op, self.inner)
        if op.results:
            op.results[0].name_hint = hint
            return op.results[0]
        return SSAValue.get(op.operands[0])


class _Separator:
    """Rewrites one function."""

    def __init__(self, function: func.FuncOp, steps: int, lockstep: int, *, streams: bool) -> None:
        self._old, self._steps, self.lockstep, self.streams = function.body.block, steps, lockstep, streams
        self._new = Block()
        self._access, self._execute = dlc.AccessOp(), dlc.ExecuteOp()
        self._uniforms = Uniforms(self._new)
        self._addresses = Addresses(self._uniforms, self._uniform)
        self._fixed: dict[SSAValue, Uniform] = {}
        self._streams: dict[SSAValue, SSAValue] = {}
        self._levels: dict[SSAValue, _Level] = {}
        self._scales: dict[SSAValue, int] = {}
        self._accumulators: dict[SSAValue, SSAValue] = {}
        self._constants: dict[bytes, SSAValue] = {}
        self._token = 0

    def run(self) -> Block:
        """The new body."""
        for op in self._old.ops:
            if isinstance(op, slc.ForOp):
                self._loop(op, None)
        self._send_constants()
        for body in (self._access, self._execute):
            self._new.add_op(body)
        self._new.add_op(func.ReturnOp())
        return self._new

    # ------------------------------------------------------------------ what a launch fixes

    def _uniform(self, value: SSAValue) -> Uniform:
        if value not in self._fixed:
            self._fixed[value] = self._make_uniform(value)
        return self._fixed[value]

    def _make_uniform(self, value: SSAValue) -> Uniform:
        op = value.owner
        if isinstance(op, Block):
            return self._uniforms.argument("value", buffer_name(value))
        number = constant_of(value)
        if number is not None:
            return number
        if isinstance(op, memref.DimOp):
            return self._size(op)
        if isinstance(op, arith.AddiOp):
            return self._uniforms.add(self._uniform(op.lhs), self._uniform(op.rhs))
        if isinstance(op, arith.MuliOp):
            return self._uniforms.mul(self._uniform(op.lhs), self._uniform(op.rhs))
        if isinstance(op, arith.SubiOp):
            negative = self._uniforms.mul(self._uniform(op.rhs), -1)
            return self._uniforms.add(self._uniform(op.lhs), negative)
        if isinstance(op, arith.MinSIOp | arith.MaxSIOp | arith.DivSIOp):
            return self._uniforms.combine(type(op), self._uniform(op.lhs), self._uniform(op.rhs))
        if isinstance(op, arith.IndexCastOp):
            return self._uniform(op.input)
        raise UnsupportedOperation(f"{op.name} outside of all loops cannot be offloaded")

    def _size(self, op: memref.DimOp) -> Uniform:
        dimension = constant_of(op.index)
        assert isinstance(op.source.type, MemRefType)
        shape = op.source.type.get_shape()
        if dimension is None or not 0 <= dimension < len(shape):
            raise UnsupportedOperation(f"memref.dim must be of a constant dimension that exists, not {dimension}")
        if shape[dimension] >= 0:
            return shape[dimension]
        return self._uniforms.argument("size", buffer_name(op.source), dimension)

    # ------------------------------------------------------------------ the access program

    def stream(self, value: SSAValue) -> SSAValue:
        """What a stream, a fixed index, an f32 constant or an f32 argument became."""
        if isinstance(value.type, slc.StreamType):
            return self._streams[value]
        if is_float(value):
            if value not in self._streams:
                op = value.owner
                if isinstance(op, Block):
                    self._streams[value] = self._uniforms.argument("value", buffer_name(value))
                else:
                    self._streams[value] = self._uniforms.insert(op.clone(), value.name_hint)
            return self._streams[value]
        return self._uniforms.value(self._uniform(value))

    def count(self, number: int) -> SSAValue:
        """A constant index."""
        return self._uniforms.value(number)

    def _loop(self, old: slc.ForOp, parent: _Level | None) -> None:
        scale = _column_bytes(old)
        lower, upper, step = (self._bound(value, scale) for value in (old.lower, old.upper, old.step))
        new = slc.ForOp(lower, upper, step, name=old.induction.name_hint)
        level = _Level(new, 0 if parent is None else parent.depth + 1)
        self._scales[old.induction] = scale
        self._define(old.induction, new.induction, level)
        if parent is None:
            self._access.body.block.add_op(new)
        else:
            parent.loop.body.block.add_op(new)
            parent.inner = new
        for op in old.body.block.ops:
            self._operation(op, level)

    def _bound(self, value: SSAValue, scale: int) -> SSAValue:
        if isinstance(value.type, slc.StreamType):
            return self.stream(value)
        return self._uniforms.value(self._uniforms.mul(self._uniform(value), scale))

    def _define(self, old: SSAValue, new: SSAValue, level: _Level) -> None:
        new.name_hint = old.name_hint
        self._streams[old], self._levels[old] = new, level

    def _operation(self, op: Operation, level: _Level) -> None:
        if isinstance(op, slc.ForOp):
            self._loop(op, level)
        elif isinstance(op, slc.CallbackOp):
            self._callback(op, level)
        elif isinstance(op, slc.LoadOp):
            self._define(op.result, self._load(op, level), level)
        elif isinstance(op, slc.AluOp):
            new = level.insert(slc.AluOp(op.kind.data, self.stream(op.a), self.stream(op.b)))
            self._define(op.result, new, level)
        elif isinstance(op, slc.CheckOp):
            level.insert(slc.CheckOp(op.kind.data, self.stream(op.value), self.stream(op.limit), op.mode))
        elif isinstance(op, slc.CountOp):
            condition = None if op.condition is None else self.stream(op.condition)
            self._define(op.result, level.insert(slc.CountOp(condition)), level)

    def _load(self, op: slc.LoadOp, level: _Level) -> SSAValue:
        if isinstance(op.memref.owner, place.MemrefOp):
            raise UnsupportedOperation(
                f"{loop_name(level.loop)}: only rows can be read at an address that was loaded, not single elements"
            )
        size = element_bytes(op.memref)
        address = self._addresses.address(op.memref, list(op.indices))
        unit = [stream for stream, factor in address.terms.items() if factor == size]
        if not unit:
            raise UnsupportedOperation(
                f"{loop_name(level.loop)}: a load must be indexed by a stream, element by element"
            )
        index = max(unit, key=lambda stream: self._levels[stream].depth)
        base = self._base(address, index)
        end = self._uniforms.argument("end", buffer_name(op.memref))
        signed = op.result.type != slc.FLOAT_STREAM
        return level.insert(dlc.LoadOp(base, self._streams[index], end, size, op.result.type, signed=signed))

    def _base(self, address: Linear, index: SSAValue | None) -> SSAValue:
        """An address without the term of ``index``; what streams add to it is added where they are made."""
        total = self._uniforms.value(address.offset)
        others = [stream for stream in address.terms if stream is not index]
        for stream in sorted(others, key=lambda stream: self._levels[stream].depth):
            level, new = self._levels[stream], self._streams[stream]
            factor = address.terms[stream]
            scale = self._scales.get(stream, 1)
            if isinstance(factor, int) and factor % scale == 0:
                factor //= scale
            if factor != 1:
                new = self._sum("mul", new, self._uniforms.value(factor), level)
            is_zero = constant_of(total) == 0
            total = new if is_zero else self._sum("add", total, new, level)
        return total

    def _sum(self, kind: str, a: SSAValue, b: SSAValue, level: _Level) -> SSAValue:
        key = (a, b)
        if key not in level.sums:
            level.sums[key] = level.insert(slc.AluOp(kind, a, b), a.name_hint)
        return level.sums[key]

    def row(self, buffer: SSAValue, indices: list[SSAValue]) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Base, index and pitch of a row."""
        address = self._addresses.address(buffer, indices)
        candidates = [stream for stream in address.terms if self._scales.get(stream, 1) == 1]
        if not candidates:
            zero = self._uniforms.value(0)
            return self._base(address, None), zero, zero
        index = max(candidates, key=lambda stream: self._levels[stream].depth)
        pitch = self._uniforms.value(address.terms[index])
        return self._base(address, index), self._streams[index], pitch

    # ------------------------------------------------------------------ callbacks

    def accumulator(self, value: SSAValue) -> SSAValue:
        """What an accumulator became."""
        if value not in self._accumulators:
            op = slcv.AccumulatorOp(slcv.width_of(value))
            op.result.name_hint = value.name_hint
            self._declare(op)
            self._accumulators[value] = op.result
        return self._accumulators[value]

    def constant(self, number: float) -> SSAValue:
        """A constant f32 in a scalar register."""
        bits = struct.pack("<f", number)
        if bits not in self._constants:
            op = dlc.ScalarOp()
            self._declare(op)
            self._constants[bits] = op.result
        return self._constants[bits]

    def _declare(self, op: Operation) -> None:
        """Put what all callbacks can use in front of them."""
        block = self._execute.body.block
        if block.first_op is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, block.first_op)

    def _send_constants(self) -> None:
        constants = list(self._constants.items())
        place = self._access.body.block.first_op
        for first in range(0, len(constants), self._steps):
            steps, callback = EventSteps(), dlc.CallbackOp(self._token)
            for bits, scalar in constants[first : first + self._steps]:
                number = arith.ConstantOp(FloatAttr(struct.unpack("<f", bits)[0], f32))
                steps.scalar(dlc.PushScalarOp(self._uniforms.insert(number)))
                popped = dlc.PopScalarOp(f32)
                callback.body.block.add_ops([popped, dlc.KeepOp(scalar, popped.result)])
            loop = slc.ForOp(self.count(0), self.count(1), self.count(1), name="constants")
            loop.body.block.add_op(dlc.EventOp("iteration", None, steps.finish(dlc.PushTokenOp(self._token))))
            assert place is not None
            self._access.body.block.insert_op_before(loop, place)
            self._execute.body.block.add_op(callback)
            self._token += 1

    def _callback(self, op: slc.CallbackOp, level: _Level) -> None:
        with naming(op):
            event, callback = CallbackSplitter(op, self).run(self._token)
        if event is not None:
            level.loop.body.block.add_op(event)
        if callback is not None:
            self._execute.body.block.add_op(callback)
            self._token += 1


def _column_bytes(loop: slc.ForOp) -> int:
    """What a loop that counts columns of rows counts in, bytes; 1 for one whose variable is anything else as well."""
    sizes = set()
    for use in loop.induction.uses:
        callback = use.operation
        if not isinstance(callback, slc.CallbackOp):
            return 1
        position = list(callback.operands).index(loop.induction) - (callback.condition is not None)
        for inner in callback.body.block.args[position].uses:
            added = inner.operation
            if not isinstance(added, arith.AddiOp):
                return 1
            for access in added.result.uses:
                op = access.operation
                if not isinstance(op, slcv.FetchOp | slcv.StoreOp) or access.index != len(op.operands) - 1:
                    return 1
                sizes.add(element_bytes(op.memref))
    return min(sizes, default=1)


@dataclass(frozen=True)
class ConvertSlcvToDlc(ModulePass):
    """See the module.

    Attributes
    ----------
    steps
        How many constants one nest can send.
    lockstep
        Bytes of the rows that one callback may pop two at a time, from both vector queues: each of these must hold all
        of them. 0: all rows come through one queue.
    streams
        Whether rows that are only copied go straight from memory to memory.
    affine
        Whether one instruction adds a quantised row.
    """

    name = "convert-slcv-to-dlc"

    steps: int = 16
    lockstep: int = 0
    streams: bool = True
    affine: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Separate every function."""
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                body = _Separator(function, self.steps, self.lockstep, streams=self.streams).run()
                new = func.FuncOp(function.sym_name.data, ([], []), Region(body))
                op.body.block.insert_op_before(new, function)
                Rewriter.erase_op(function)
                if self.affine:
                    take_whole_rows(new)
                _remove_unused(new)


def _remove_unused(function: func.FuncOp) -> None:
    """Drop streams and numbers that nothing uses."""
    for op in reversed(list(function.walk())):
        droppable = isinstance(
            op, slc.AluOp | dlc.LoadOp | dlc.ArgumentOp | arith.ConstantOp | arith.AddiOp | arith.MuliOp
        )
        if droppable and all(result.first_use is None for result in op.results):
            Rewriter.erase_op(op)
