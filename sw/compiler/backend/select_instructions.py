"""Chooses instructions for one callback.

Pops are folded into the instruction that uses them where it can take them (operands ``a`` and ``b``), else
they are moved to a register first; pops of one queue happen in the order of the callback.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue

from daedal.compiler.backend.value_locations import Place, Places, is_shortened, is_spread
from daedal.compiler.dialects import dlc, narrow, slcv, slcv_scalars
from daedal.compiler.dialects.elements import row_element
from daedal.compiler.dialects.narrow_packed import AffineOp, UnpackOp
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.hw.isa.elements import LENGTH_ELEMENTS, UNSIGNED, UNSTORED
from daedal.hw.isa.instructions import HEAD, Mode, OperandKind, VectorOp
from daedal.hw.isa.words import LengthField


def field_of(row: SSAValue) -> LengthField:
    """The type of a row in memory, as a length register says it."""
    element = row_element(slcv.element_type(row))
    fields = [field for field, each in LENGTH_ELEMENTS.items() if each is element]
    is_away = isinstance(row.owner, narrow.RoundOp) and row.owner.away is not None
    return fields[-1] if is_away else fields[0]


def whole_width(row: SSAValue, field: LengthField | None) -> int:
    """The elements that are popped of a row of this type; what is behind it in its last granule is no part of it."""
    multiple = 1 if field is None else LENGTH_ELEMENTS[field].multiple
    return -(-slcv.width_of(row) // multiple) * multiple


def _popped_field(row: SSAValue) -> LengthField:
    """The type of a row that is popped: of words with a head, that of the integers in them."""
    for use in row.uses:
        if isinstance(use.operation, UnpackOp | AffineOp):
            bits = use.operation.bits.value.data
            return next(field for field in UNSIGNED if LENGTH_ELEMENTS[field].bits == bits)
    return field_of(row)


@dataclass
class CallbackSelection:
    """Instructions of one callback.

    Parameters
    ----------
    callback
        The callback.
    accumulators, constants
        Accumulator -> vector register, constant (``dlc.scalar``) -> scalar register.
    config
        The machine.
    length
        Gives the length register for a row's number of elements, and their type where it is popped or stored.
    """

    callback: dlc.CallbackOp
    accumulators: Mapping[SSAValue, int]
    constants: Mapping[SSAValue, int]
    config: Config
    length: Callable[[int, LengthField], int]
    _code: list[dict[str, object]] = field(default_factory=list)

    def run(self) -> list[dict[str, object]]:
        """The members of each instruction."""
        taken = max(self.accumulators.values(), default=-1) + 1, len(self.constants)
        self._places = Places(self.callback, self.config.vector_registers, self.config.scalars, taken)
        for value, register in self.constants.items():
            self._places.constant(value, register)
        handlers: dict[type[Operation], Callable[..., None]] = {
            dlc.PopOp: self._pop,
            dlc.PopScalarOp: self._pop,
            narrow.WidenOp: self._widen,
            narrow.RoundOp: self._round,
            UnpackOp: self._unpack,
            AffineOp: self._affine,
            vector.BroadcastOp: self._spread,
            slcv.GetOp: self._get,
            slcv.SetOp: self._set,
            dlc.PushOp: self._push,
            dlc.DivideCountOp: self._divide,
            arith.AddfOp: self._add,
            arith.SubfOp: self._subtract,
            arith.MulfOp: self._multiply,
            math.FmaOp: self._fma,
            math.AbsFOp: self._absolute,
            slcv.KeepGreaterOp: self._keep,
            slcv.KeepLessOp: self._keep,
            slcv_scalars.CompareOp: self._compare,
            slcv_scalars.SelectOp: self._choose,
            slcv_scalars.ReduceOp: self._reduce,
            slcv_scalars.ElementOp: self._element,
            dlc.KeepOp: self._keep_constant,
            arith.DivfOp: self._quotient,
            math.SqrtOp: self._of_one,
            arith.SIToFPOp: self._of_one,
            slcv_scalars.ToIntegerOp: self._of_one,
            slcv_scalars.ScaleOp: self._scale,
        }
        for op in self.callback.body.block.ops:
            if type(op) not in handlers:
                raise UnsupportedOperation(f"{op.name} has no instruction")
            handlers[type(op)](op)
        for value in self._places.pending():
            self._materialize(value)
        if not self._code:
            self._code.append({"op": VectorOp.NOP, "destination": 0, "length": 0})
        self._code[-1]["last"] = 1
        return self._code

    # ------------------------------------------------------------------ values

    def _pop(self, op: dlc.PopOp | dlc.PopScalarOp) -> None:
        kind = OperandKind.QUEUE if isinstance(op, dlc.PopOp) else OperandKind.SCALAR
        number = dlc.QUEUES.index(op.queue.data) if isinstance(op, dlc.PopOp) else 0
        field = _popped_field(op.result) if isinstance(op, dlc.PopOp) else LengthField.ELEMENTS
        self._places.define(op.result, Place(kind, number, field=field))

    def _spread(self, op: vector.BroadcastOp) -> None:
        self._places.alias(op.vector, op.source)

    def _element(self, op: slcv_scalars.ElementOp) -> None:
        if not is_spread(op):
            self._places.alias(op.result, op.row)
            return
        operand = self._as_operand(op.row)
        self._places.use(op.row)
        self._places.release()
        register = self._places.new_scalar()
        self._emit_single(VectorOp.MOVE, register, a=operand)
        self._places.define(op.result, Place(OperandKind.SCALAR_REGISTER, register))

    def _get(self, op: slcv.GetOp) -> None:
        register = self.accumulators[op.accumulator]
        place = Place(OperandKind.REGISTER, register, is_accumulator=True, clear=op.clear is not None)
        self._places.define(op.result, place)

    def _widen(self, op: narrow.WidenOp) -> None:
        if is_shortened(op):
            self._shorten(op)
        elif isinstance(op.narrow.owner, dlc.PopOp):
            self._places.alias(op.result, op.narrow)
        else:
            raise UnsupportedOperation("rows must be widened as they come from memory, or as they are rounded")

    def _shorten(self, op: narrow.WidenOp) -> None:
        """What a row is rounded to, as f32."""
        if not isinstance(op.result.type, VectorType):
            raise UnsupportedOperation("single numbers are not rounded but where they are stored")
        row, field = op.narrow, field_of(op.narrow)
        place = self._places[row]
        of_other = place.kind is OperandKind.QUEUE and place.field is not field
        if of_other or (place.clear and self._places.remaining(row) > 1):
            self._materialize(row)
        clear = self._places[row].clear
        operand = self._places[row].operand if clear else self._as_operand(row)
        self._finish(op, VectorOp.ROUND, field, a=operand, clear=int(clear))

    def _round(self, op: narrow.RoundOp) -> None:
        if not all(isinstance(use.operation, dlc.PushOp | narrow.WidenOp) for use in op.result.uses):
            raise UnsupportedOperation("rows must be rounded where they are stored, or to be widened again")
        self._places.alias(op.result, op.wide)

    def _unpack(self, op: UnpackOp) -> None:
        if not isinstance(op.words.owner, dlc.PopOp):
            raise UnsupportedOperation("rows must be unpacked as they come from memory")
        queue, field = self._places[op.words].number, self._places[op.words].field
        self._claim(op.words)
        self._places.popped(op.words)
        self._places.use(op.words)
        head = Place(OperandKind.QUEUE, HEAD + queue, field=None)
        if self._is_factor(op.scale):
            self._places.define(op.scale, head)
        else:
            register = self._places.new_scalar()
            self._emit_single(VectorOp.MOVE, register, a=head.operand)
            self._places.define(op.scale, Place(OperandKind.SCALAR_REGISTER, register))
        self._places.define(op.bias, head)
        self._places.define(op.row, Place(OperandKind.QUEUE, queue, field=field))

    def _affine(self, op: AffineOp) -> None:
        if not isinstance(op.words.owner, dlc.PopOp):
            raise UnsupportedOperation("rows must be added as they come from memory")
        c = self._addend(op.addend)
        members = {} if op.weight is None else {"b": self._as_operand(op.weight)}
        self._claim(op.words)
        self._places.popped(op.words)
        place = self._places[op.words]
        self._finish(op, VectorOp.AFFINE, place.field, a=place.operand, c=c, **members)

    def _is_factor(self, scale: SSAValue) -> bool:
        """Whether a scale is for one product of single numbers, which can take it off its row."""
        users = [use.operation for use in scale.uses]
        return len(users) == 1 and isinstance(users[0], arith.MulfOp) and users[0].lhs is scale is not users[0].rhs

    def _width(self, value: SSAValue) -> int:
        return slcv.width_of(value)

    def _emit(
        self, op: VectorOp, destination: int, width: int, field: LengthField | None = None, /, **members: object
    ) -> None:
        """An instruction on rows of so many elements; of type ``field``, or of that of the queues that it pops."""
        length = self.length(width, self._type_of(members) if field is None else field)
        self._code.append({"op": op, "destination": destination, "length": length, **_without_field(members)})

    def _type_of(self, members: Mapping[str, object]) -> LengthField:
        """That of the rows that an instruction pops: ``_factors`` sees to it that it is one."""
        operands = [each for each in members.values() if isinstance(each, dict)]
        fields = [each["field"] for each in operands if each["kind"] is OperandKind.QUEUE]
        return next((each for each in fields if each is not None), LengthField.ELEMENTS)

    def _emit_single(self, op: VectorOp, destination: int, **members: object) -> None:
        self._code.append({"op": op, "destination": destination, "mode": Mode.SCALAR, **_without_field(members)})

    def _materialize(self, value: SSAValue) -> int:
        """Move a value that is in a queue, or about to be overwritten, to a register of its own."""
        self._claim(value)
        place = self._places[value]
        if self._places.is_single(value):
            register = self._places.new_scalar()
            self._emit_single(VectorOp.MOVE, register, a=place.operand)
            self._places.move(value, register, OperandKind.SCALAR_REGISTER)
            return register
        register = self._places.new_register()
        length = whole_width(self._places.row_of(value), place.field)
        self._emit(VectorOp.MOVE, register, length, a=place.operand, clear=int(place.clear))
        self._places.move(value, register)
        return register

    def _claim(self, value: SSAValue) -> None:
        """Pop what comes before ``value`` in its queue."""
        for earlier in self._places.before(value):
            self._materialize(earlier)

    def _as_scalar(self, value: SSAValue) -> int:
        """The scalar register of a value, as operand ``c`` must be one; a copy of an element of a row."""
        if self._places[value].kind is OperandKind.SCALAR and self._places.is_single(value):
            self._materialize(value)
        place = self._places[value]
        if place.kind is OperandKind.SCALAR_REGISTER:
            return place.number
        register = self._places.new_scalar()
        self._emit_single(VectorOp.MOVE, register, a=self._as_operand(value))
        self._places.free(OperandKind.SCALAR_REGISTER, register)
        return register

    def _as_register(self, value: SSAValue) -> int:
        """The vector register of a row; a copy of a scalar register in all elements."""
        place = self._places[value]
        if place.kind is OperandKind.SCALAR_REGISTER:
            register = self._places.new_register()
            self._emit(VectorOp.MOVE, register, self._width(value), a=place.operand)
            self._places.free(OperandKind.REGISTER, register)
            return register
        if place.kind is not OperandKind.REGISTER or place.clear:
            return self._materialize(value)
        return place.number

    def _as_operand(self, value: SSAValue) -> dict[str, object]:
        """Operand ``a`` or ``b``: a pop if this is the only use."""
        place = self._places[value]
        if place.clear or self._is_odd(value, place) or (place.queue is not None and self._places.remaining(value) > 1):
            self._materialize(value)
        else:
            self._claim(value)
            self._places.popped(value)
        return self._places[value].operand

    def _is_odd(self, value: SSAValue, place: Place) -> bool:
        """Whether a row is popped with more elements than it has: it must be in a register before it is used."""
        row = self._places.row_of(value) if place.field in UNSTORED else value
        return place.field in UNSTORED and whole_width(row, place.field) != self._width(row)

    def _is_register(self, value: SSAValue) -> bool:
        """Whether a value can be operand ``c`` as it is."""
        place = self._places[value]
        if isinstance(value.type, VectorType):
            return place.kind is OperandKind.REGISTER and not place.clear
        return place.kind is OperandKind.SCALAR_REGISTER

    def _addend(self, value: SSAValue) -> int:
        """The register that is operand ``c``."""
        return self._as_register(value) if isinstance(value.type, VectorType) else self._as_scalar(value)

    # ------------------------------------------------------------------ results

    def _finish(self, op: Operation, kind: VectorOp, field: LengthField | None = None, /, **members: object) -> None:
        """Emit an instruction for the result of ``op``; its operands are used up."""
        result = op.results[0]
        self._places.use(*op.operands)
        if not isinstance(result.type, VectorType):
            self._places.release()
            register = self._places.new_scalar()
            self._places.define(result, Place(OperandKind.SCALAR_REGISTER, register))
            self._emit_single(kind, register, **members)
            return
        accumulator = self._only_set(result)
        if accumulator is not None:
            self._save(accumulator)
        self._places.release()
        destination = self._places.new_register() if accumulator is None else accumulator
        place = Place(OperandKind.REGISTER, destination, is_accumulator=accumulator is not None)
        self._places.define(result, place)
        self._emit(kind, destination, self._width(result), field, **members)

    def _only_set(self, result: SSAValue) -> int | None:
        """The accumulator that takes ``result``, if that is all it is for and happens before anything
        else.
        """
        uses = list(result.uses)
        if len(uses) != 1 or not isinstance(uses[0].operation, slcv.SetOp):
            return None
        target = uses[0].operation
        between = result.owner.next_op if isinstance(result.owner, Operation) else None
        while between is not None and between is not target:
            if isinstance(between, slcv.GetOp | slcv.SetOp) and between.accumulator is target.accumulator:
                return None
            between = between.next_op
        return self.accumulators[target.accumulator]

    def _save(self, accumulator: int) -> None:
        """Keep what is still needed of an accumulator that is about to be written."""
        for value in self._places.readers_of(accumulator):
            register = self._places.new_register()
            length = self._width(self._places.row_of(value))
            self._emit(VectorOp.MOVE, register, length, a=self._places[value].operand)
            self._places.move(value, register)

    def _set(self, op: slcv.SetOp) -> None:
        register = self.accumulators[op.accumulator]
        place = self._places[op.row]
        if place.kind is OperandKind.REGISTER and place.number == register and not place.clear:
            self._places.use(op.row)
            return
        operand = self._as_operand(op.row)
        self._places.use(op.row)
        self._save(register)
        self._places.release()
        self._emit(VectorOp.MOVE, register, self._width(op.row), a=operand)

    def _keep_constant(self, op: dlc.KeepOp) -> None:
        operand = self._as_operand(op.value)
        self._places.use(op.value, op.scalar)
        self._places.release()
        self._emit_single(VectorOp.MOVE, self.constants[op.scalar], a=operand)

    def _push(self, op: dlc.PushOp) -> None:
        if self._is_stored(op.row):
            return
        if not isinstance(op.row.type, VectorType):
            register = self._as_scalar(op.row)
            self._places.use(op.row)
            self._places.release()
            operand = Place(OperandKind.SCALAR_REGISTER, register).operand
            self._emit_single(VectorOp.STORE, 0, a=operand)
            return
        place = self._places[op.row]
        if place.kind is OperandKind.SCALAR_REGISTER:
            register = self._as_register(op.row)
            place = Place(OperandKind.REGISTER, register)
        elif place.kind is not OperandKind.REGISTER:
            self._materialize(op.row)
            place = self._places[op.row]
        if place.clear and self._places.remaining(op.row) > 1:
            self._materialize(op.row)
            place = self._places[op.row]
        self._places.use(op.row)
        self._places.release()
        field = field_of(op.row)
        self._emit(VectorOp.STORE, 0, self._width(op.row), field, a=place.operand, clear=int(place.clear))

    def _is_stored(self, row: SSAValue) -> bool:
        """Whether it is a quotient, maybe rounded, that the division has stored."""
        op = row.owner.wide.owner if isinstance(row.owner, narrow.RoundOp) else row.owner
        return isinstance(op, dlc.DivideCountOp) and row not in self._places

    def _divide(self, op: dlc.DivideCountOp) -> None:
        place = self._places[op.row]
        if place.kind is OperandKind.SCALAR_REGISTER:
            place = Place(OperandKind.REGISTER, self._as_register(op.row))
        elif place.kind is not OperandKind.REGISTER or (place.clear and self._places.remaining(op.row) > 1):
            self._materialize(op.row)
            place = self._places[op.row]
        self._claim(op.count)
        self._places.popped(op.count)
        row = _stored(op)
        if row is not None and self._is_last_use(op.row, place):
            self._places.use(*op.operands)
            self._places.release()
            self._emit(VectorOp.STORE_QUOTIENT, 0, self._width(op.row), field_of(row), a=place.operand, clear=1)
            return
        self._finish(op, VectorOp.DIVIDE_COUNT, a=place.operand, clear=int(place.clear))

    def _is_last_use(self, row: SSAValue, place: Place) -> bool:
        """Whether nobody needs what is in a row's register after one more use of the row."""
        if self._places.remaining(row) > 1 or not place.is_accumulator:
            return self._places.remaining(row) == 1
        return place.clear and len(self._places.readers_of(place.number)) == 1

    # ------------------------------------------------------------------ arithmetic

    def _product(self, value: SSAValue) -> arith.MulfOp | None:
        """The product that ``value`` is, if it is for one sum and can be made in the same instruction."""
        op = value.owner
        if not isinstance(op, arith.MulfOp) or value in self._places:
            return None
        return op

    def _multiply(self, op: arith.MulfOp) -> None:
        uses = list(op.result.uses)
        if len(uses) == 1 and isinstance(uses[0].operation, arith.AddfOp):
            add = uses[0].operation
            other = add.rhs if add.lhs is op.result else add.lhs
            if other is not op.result and not self._is_waiting_product(other) and self._is_undisturbed(op, add):
                return
        self._finish(op, VectorOp.MULTIPLY, **self._product_of(op.lhs, op.rhs))

    def _is_waiting_product(self, value: SSAValue) -> bool:
        return isinstance(value.owner, arith.MulfOp) and value not in self._places

    def _is_undisturbed(self, op: Operation, until: Operation) -> bool:
        """Whether no accumulator is written between two operations, so that the first can wait for the
        second.
        """
        between = op.next_op
        while between is not None and between is not until:
            if isinstance(between, slcv.SetOp):
                return False
            between = between.next_op
        return True

    def _factors(self, first: SSAValue, second: SSAValue) -> dict[str, object]:
        """Operands ``a`` and ``b``, which must pop different queues, and rows of one type."""
        one, other = self._places[first], self._places[second]
        same = one.queue is not None and one.queue == other.queue
        fields = {each.field for each in (one, other) if each.kind is OperandKind.QUEUE} - {None}
        if same or len(fields) > 1:
            earlier = first if self._places.is_before(first, second) else second
            self._materialize(earlier)
        if self._places.is_before(second, first):
            b = self._as_operand(second)
            return {"a": self._as_operand(first), "b": b}
        return {"a": self._as_operand(first), "b": self._as_operand(second)}

    def _product_of(self, first: SSAValue, second: SSAValue) -> dict[str, object]:
        """Operands of a product: ``a`` is the one whose register the instruction can clear."""
        if not self._can_clear(first) and self._can_clear(second):
            first, second = second, first
        if first is second or not self._can_clear(first):
            return self._factors(first, second)
        return {"a": self._places[first].operand, "b": self._as_operand(second), "clear": 1}

    def _add(self, op: arith.AddfOp) -> None:
        for value, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            product = self._product(value)
            if product is not None:
                c = self._addend(other)
                factors = self._product_of(product.lhs, product.rhs)
                self._places.use(*product.operands)
                kind = OperandKind.REGISTER if isinstance(value.type, VectorType) else OperandKind.SCALAR_REGISTER
                self._places.define(value, Place(kind, c, is_accumulator=True))
                self._finish(op, VectorOp.MUL_ADD, c=c, **factors)
                return
        first, second = (op.lhs, op.rhs) if self._is_register(op.rhs) else (op.rhs, op.lhs)
        if self._can_clear(first) and self._is_register(second):
            a, c = self._places[first].operand, self._addend(second)
            self._finish(op, VectorOp.ADD, a=a, c=c, clear=1)
            return
        self._finish(op, VectorOp.ADD, **self._terms(first, second))

    def _can_clear(self, row: SSAValue) -> bool:
        """Whether an instruction that reads a row can clear its register: nothing else is to read that."""
        place = self._places[row]
        alone = place.clear and len(self._places.readers_of(place.number)) == 1
        return alone and self._places.remaining(row) == 1 and isinstance(row.type, VectorType)

    def _with_register(self, first: SSAValue, second: SSAValue) -> dict[str, object]:
        """Operands ``a`` and ``c``; ``c`` must be a register."""
        c = self._addend(second)
        return {"a": self._as_operand(first), "c": c}

    def _terms(self, first: SSAValue, second: SSAValue) -> dict[str, object]:
        """Operands of ADD or SUBTRACT: ``b`` takes what can be no ``c`` as it is."""
        if self._is_register(second) or self._places[second].kind is OperandKind.REGISTER:
            return self._with_register(first, second)
        if self._places[second].queue is not None and self._places.remaining(second) > 1:
            return self._with_register(first, second)
        members = self._factors(first, second)
        b = members["b"]
        assert isinstance(b, dict)
        return {"a": members["a"], "c": b["number"]} if b["kind"] is OperandKind.REGISTER else members

    def _subtract(self, op: arith.SubfOp) -> None:
        first, second = op.lhs, op.rhs
        if not self._is_register(second) and self._is_register(first) and _is_without_sign(op):
            first, second = second, first
        self._finish(op, VectorOp.SUBTRACT, **self._terms(first, second))

    def _keep(self, op: slcv.KeepGreaterOp | slcv.KeepLessOp) -> None:
        kind = VectorOp.MAX if isinstance(op, slcv.KeepGreaterOp) else VectorOp.MIN
        self._finish(op, kind, **self._with_register(op.a, op.b))

    def _fma(self, op: math.FmaOp) -> None:
        c = self._addend(op.c)
        self._finish(op, VectorOp.FMA, c=c, **self._product_of(op.a, op.b))

    def _absolute(self, op: math.AbsFOp) -> None:
        if self._summed(op) is not None:
            return
        self._finish(op, VectorOp.ABS, a=self._as_operand(op.operand))

    def _compare(self, op: slcv_scalars.CompareOp) -> None:
        self._finish(op, VectorOp[op.kind.data.upper()], **self._with_register(op.a, op.b))

    def _choose(self, op: slcv_scalars.SelectOp) -> None:
        c = self._addend(op.b)
        self._finish(op, VectorOp.SELECT, c=c, **self._factors(op.a, op.mask))

    def _reduce(self, op: slcv_scalars.ReduceOp) -> None:
        a, b, kind = op.rows[0], op.rows[-1], VectorOp[op.kind.data.upper()]
        if isinstance(a.owner, math.AbsFOp) and self._summed(a.owner) is op:
            kind, source = VectorOp.ABS, a.owner.operand
            members: dict[str, object] = {"a": self._as_operand(source)}
            self._places.alias(a, source)
        elif len(op.rows) > 1:
            members = self._factors(a, b)
        else:
            members = {"a": self._as_operand(a)}
        length = self.length(self._width(a), self._type_of(members))
        self._finish(op, kind, c=self._places.spare_register(), length=length, **members)
        self._code[-1]["mode"] = Mode.REDUCE
        if op.octets is not None:
            if not self.config.octets:
                raise UnsupportedOperation("sums of eight partial sums take 4 or 8 lanes")
            self._code[-1]["octets"] = 1

    def _summed(self, op: math.AbsFOp) -> slcv_scalars.ReduceOp | None:
        """The reduction that sums absolute values, if they are for nothing else and nothing is written before it."""
        uses = list(op.result.uses)
        if len(uses) != 1 or not isinstance(uses[0].operation, slcv_scalars.ReduceOp):
            return None
        total = uses[0].operation
        return total if total.kind.data == "add" and self._is_undisturbed(op, total) else None

    # ------------------------------------------------------------------ what only single numbers have

    def _of_one(self, op: Operation) -> None:
        kind = {
            math.SqrtOp: VectorOp.SQUARE_ROOT,
            arith.SIToFPOp: VectorOp.TO_FLOAT,
            slcv_scalars.ToIntegerOp: VectorOp.TO_INTEGER,
        }[type(op)]
        self._finish(op, kind, a=self._as_operand(op.operands[0]))

    def _scale(self, op: slcv_scalars.ScaleOp) -> None:
        self._finish(op, VectorOp.SCALE, **self._factors(op.value, op.power))

    def _quotient(self, op: arith.DivfOp) -> None:
        self._finish(op, VectorOp.DIVIDE, **self._factors(op.lhs, op.rhs))


def _without_field(members: Mapping[str, object]) -> dict[str, object]:
    """The members of an instruction: an operand's without its type, which the length has."""

    def plain(value: object) -> object:
        return {name: each for name, each in value.items() if name != "field"} if isinstance(value, dict) else value

    return {name: plain(value) for name, value in members.items()}


def _stored(op: dlc.DivideCountOp) -> SSAValue | None:
    """The quotient, maybe rounded, if it is stored at once and for nothing else."""
    row: SSAValue = op.result
    after = op.next_op
    if isinstance(after, narrow.RoundOp) and after.wide is row:
        if len(list(row.uses)) > 1:
            return None
        row, after = after.result, after.next_op
    is_stored = isinstance(after, dlc.PushOp) and after.row is row and len(list(row.uses)) == 1
    return row if is_stored else None


def _is_without_sign(op: arith.SubfOp) -> bool:
    """Whether all that is done with a difference is the same for its negative: absolute values and squares."""
    return all(
        isinstance(use.operation, math.AbsFOp)
        or (
            isinstance(use.operation, arith.MulfOp | math.FmaOp | slcv_scalars.ReduceOp)
            and list(use.operation.operands)[:2] == [op.result, op.result]
            and use.index < 2
        )
        for use in op.result.uses
    )
