"""Messages of protobuf, as far as SavedModels have what is read here: which fields they have, and their wire format.

No package is needed for that. The format has four kinds of fields and does not change, and a package would have to be
told the same fields, since TensorFlow's descriptions of them come with TensorFlow.
"""

import struct
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from daedal.errors import FileError

_DEEPEST = 64
"""Messages in messages, more of which are no model's."""

_SCHEMA = """
SavedModel 1:schema_version:int 2:meta_graphs:MetaGraph*
MetaGraph 1:meta_info_def:MetaInfo 2:graph_def:GraphDef 5:signature_def:SignatureDef{} 7:object_graph_def:ObjectGraph
MetaInfo 2:stripped_op_list:OpList 5:tensorflow_version:string
OpList 1:op:OpDef*
OpDef 1:name:string 2:input_arg:ArgDef* 3:output_arg:ArgDef*
ArgDef 1:name:string 3:type:int 4:type_attr:string 5:number_attr:string 6:type_list_attr:string
GraphDef 1:node:NodeDef* 2:library:Library
Library 1:function:FunctionDef*
FunctionDef 1:signature:OpDef 3:node_def:NodeDef* 4:ret:string{} 5:attr:AttrValue{} 6:control_ret:string{}
NodeDef 1:name:string 2:op:string 3:input:string* 4:device:string 5:attr:AttrValue{}
AttrValue 1:list:ListValue 2:s:bytes 3:i:int 4:f:float 5:b:bool 6:type:int 7:shape:Shape 8:tensor:Tensor
AttrValue 10:func:NameAttr
ListValue 2:s:bytes* 3:i:int* 4:f:float* 5:b:bool* 6:type:int* 7:shape:Shape* 8:tensor:Tensor* 9:func:NameAttr*
NameAttr 1:name:string 2:attr:AttrValue{}
Shape 2:dim:Dim* 3:unknown_rank:bool
Dim 1:size:int 2:name:string
Tensor 1:dtype:int 2:tensor_shape:Shape 4:tensor_content:bytes 5:float_val:float* 6:double_val:double* 7:int_val:int*
Tensor 8:string_val:bytes* 10:int64_val:int* 11:bool_val:bool* 13:half_val:int* 16:uint32_val:int* 17:uint64_val:int*
SignatureDef 1:inputs:TensorInfo{} 2:outputs:TensorInfo{} 3:method_name:string
TensorInfo 1:name:string 2:dtype:int 3:tensor_shape:Shape 4:coo_sparse:Sparse 5:composite_tensor:Composite
Sparse 1:values_tensor_name:string 2:indices_tensor_name:string 3:dense_shape_tensor_name:string
Composite 2:components:TensorInfo*
ObjectGraph 1:nodes:SavedObject* 2:concrete_functions:ConcreteFunction{}
SavedObject 1:children:Reference* 7:variable:Variable 8:bare_concrete_function:BareFunction
Reference 1:node_id:int 2:local_name:string
Variable 1:dtype:int 2:shape:Shape 6:name:string
BareFunction 1:concrete_function_name:string
ConcreteFunction 2:bound_inputs:int*
Checkpointed 1:nodes:CheckpointedObject*
CheckpointedObject 1:children:Reference* 2:attributes:SerializedTensor*
SerializedTensor 1:name:string 2:full_name:string 3:checkpoint_key:string
BundleHeader 1:num_shards:int 2:endianness:int
BundleEntry 1:dtype:int 2:shape:Shape 3:shard_id:int 4:offset:int 5:size:int 6:crc32c:fixed32 7:slices:Slice*
Slice 1:extent:Extent*
Extent 1:start:int 2:length:int
"""
"""Message, and number, name and kind of its fields: ``*`` for several, ``{}`` for a mapping from names."""


class Field(NamedTuple):
    """A field of a message."""

    name: str
    kind: str
    is_repeated: bool
    is_mapping: bool


class Message:
    """A message; fields that are not there are empty, and may be set, as those of protobuf's own classes."""

    fields: Mapping[str, Field] = {}

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        field = type(self).fields.get(name)
        if field is None:
            raise AttributeError(f"{type(self).__name__} has no field {name}")
        value: Any
        if field.is_mapping:
            value = _Mapping(field.kind)
        elif field.is_repeated:
            value = _Several(field.kind)
        elif field.kind in _EMPTY:
            return _EMPTY[field.kind]
        else:
            value = message_class(field.kind)()
        self.__dict__[name] = value
        return value

    def SetInParent(self) -> None:  # noqa: N802 (protobuf's name)
        """A message that is read is there."""


class _Several(list[Any]):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind

    def add(self, **values: Any) -> Message:
        """One message more."""
        self.append(made := message_class(self._kind)(**values))
        return made


class _Mapping(dict[str, Any]):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind

    def __missing__(self, key: str) -> Any:
        self[key] = made = _EMPTY[self._kind] if self._kind in _EMPTY else message_class(self._kind)()
        return made


_EMPTY: Mapping[str, Any] = {
    "int": 0, "bool": False, "string": "", "bytes": b"", "float": 0.0, "double": 0.0, "fixed32": 0,
}  # fmt: skip
_FIXED = {"float": "<f", "double": "<d", "fixed32": "<I"}
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5


@cache
def _schema() -> Mapping[str, Mapping[int, Field]]:
    found: dict[str, dict[int, Field]] = {}
    for line in _SCHEMA.split("\n"):
        message, *texts = line.split() or [""]
        for number, name, kind in (text.split(":") for text in texts):
            plain = kind.removesuffix("*").removesuffix("{}")
            field = Field(name, plain, kind.endswith("*"), kind.endswith("{}"))
            found.setdefault(message, {})[int(number)] = field
    return found


@cache
def message_class(name: str) -> type[Message]:
    """The class of messages of this name."""
    return type(name, (Message,), {"fields": {field.name: field for field in _schema()[name].values()}})


def read_message(name: str, raw: bytes, what: str) -> Any:
    """The message of this name that these bytes are; FileError, of ``what``, for bytes that are none."""
    try:
        return _message(name, memoryview(raw), 0)
    except (ValueError, IndexError, struct.error) as error:
        raise FileError(f"{what} must be a message {name} of protobuf, and is damaged: {error}") from error


def _message(name: str, raw: memoryview, depth: int) -> Message:
    if depth > _DEEPEST:
        raise ValueError(f"messages must be nested {_DEEPEST} deep at most")
    made, schema = message_class(name)(), _schema()[name]
    for number, wire, value in _fields(raw):
        field = schema.get(number)
        if field is None:
            continue
        if field.is_mapping:
            key, each = _entry(field, _bytes_of(wire, value), depth)
            getattr(made, field.name)[key] = each
        elif field.is_repeated:
            getattr(made, field.name).extend(_several(field, wire, value, depth))
        else:
            made.__dict__[field.name] = _single(field.kind, wire, value, depth)
    return made


def _fields(raw: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Number, kind on the wire, and value of each field."""
    place, end = 0, len(raw)
    while place < end:
        key, place = varint(raw, place)
        number, wire = key >> 3, key & 7
        value: Any
        if wire == _VARINT:
            value, place = varint(raw, place)
        elif wire in (_EIGHT, _FOUR, _BYTES):
            size, place = varint(raw, place) if wire == _BYTES else (8 if wire == _EIGHT else 4, place)
            if size > end - place:
                raise ValueError(f"field {number} ends behind its message")
            value = raw[place : place + size]
            place += size
        else:
            raise ValueError(f"field {number} is of kind {wire}, which there is not")
        yield number, wire, value


def varint(raw: memoryview | bytes, place: int) -> tuple[int, int]:
    """The integer that begins here, and where it ends; IndexError and ValueError for none."""
    value = shift = 0
    while True:
        byte = raw[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (1 << 64) - 1, place
        shift += 7
        if shift > 63:
            raise ValueError("an integer has more than 10 bytes")


def _bytes_of(wire: int, value: Any) -> memoryview:
    if wire != _BYTES:
        raise ValueError(f"a field must be bytes, not of kind {wire}")
    found: memoryview = value
    return found


def _single(kind: str, wire: int, value: Any, depth: int) -> Any:
    if kind in ("int", "bool"):
        if wire != _VARINT:
            raise ValueError(f"a field must be an integer, not of kind {wire}")
        return bool(value) if kind == "bool" else value - (1 << 64) if value >> 63 else value
    if kind in _FIXED:
        if wire != (_EIGHT if kind == "double" else _FOUR):
            raise ValueError(f"a field must be a {kind}, not of kind {wire}")
        return struct.unpack(_FIXED[kind], value)[0]
    raw = _bytes_of(wire, value)
    if kind == "bytes":
        return bytes(raw)
    return str(raw, "utf-8") if kind == "string" else _message(kind, raw, depth + 1)


def _several(field: Field, wire: int, value: Any, depth: int) -> list[Any]:
    """One value, or packed numbers."""
    if wire != _BYTES or field.kind not in (*_FIXED, "int", "bool"):
        return [_single(field.kind, wire, value, depth)]
    if field.kind in _FIXED:
        return [each for (each,) in struct.iter_unpack(_FIXED[field.kind], value)]
    found, place = [], 0
    while place < len(value):
        number, place = varint(value, place)
        found.append(_single(field.kind, _VARINT, number, depth))
    return found


def _entry(field: Field, raw: memoryview, depth: int) -> tuple[str, Any]:
    """Key and value of a mapping's entry."""
    key, made = "", None
    for number, wire, value in _fields(raw):
        if number == 1:
            key = str(_bytes_of(wire, value), "utf-8")
        elif number == 2:
            made = _single(field.kind, wire, value, depth)
    if made is None:
        made = _EMPTY[field.kind] if field.kind in _EMPTY else message_class(field.kind)()
    return key, made
