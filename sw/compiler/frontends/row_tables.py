"""Tables of rows that PyTorch or FBGEMM quantised, looked up from NumPy: this is ``daedal.quantized``.

::

    table = daedal.quantized.Table.from_rows(data, format="fbgemm-int8", rows=1000, dim=64)
    pooled = table.bags(device, indices, offsets, weights)
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daedal.base.messages import shown
from daedal.compiler.frontends.requests.bags import bag_request, ends_of
from daedal.compiler.frontends.requests.quantised_bags import quantised_request
from daedal.compiler.frontends.row_formats import FORMATS, Rows, rounded, rows_of
from daedal.compiler.operation_compiler import compiler_for
from daedal.compiler.opt_levels import BEST
from daedal.driver.device import Device
from daedal.driver.launch.record import Stats
from daedal.driver.tables.quantised import QuantisedRows
from daedal.driver.tables.table_sources import Source, dtype_name, is_tensor
from daedal.errors import IndexOutOfRange, InvalidOffsets, UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.hw.isa.elements import LANE
from daedal.runtime.diagnostics import say_where
from daedal.runtime.kernel_launch import run_kernel
from daedal.runtime.request import Request
from daedal.runtime.tensors import tensor_of
from daedal.system.system import check_device

if TYPE_CHECKING:  # tables do without PyTorch
    from torch.nn import Module

Array = NDArray[Any]

OUTPUTS = ("float32", "float16", "bfloat16")
"""Types that results can have; arrays have bfloat16 as the uint16 that are its bits."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows that were quantised; made by :meth:`from_rows`. A device has them once, in its own form.

    Attributes
    ----------
    format, dim, output_dtype
        As given to :meth:`from_rows`.
    name
        What device and messages call it.
    """

    format: str
    dim: int
    output_dtype: str
    name: str
    _layout: Rows
    _rows: NDArray[np.uint8]
    _sources: dict[bool, Source]
    _ran: list[Stats]

    @classmethod
    def from_rows(
        cls,
        data: Any,
        *,
        format: str,
        rows: int,
        dim: int,
        output_dtype: str = "float32",
        row_alignment: int = 1,
        exponent_bits: int | None = None,
        exponent_bias: int | None = None,
        name: str = "table",
    ) -> "Table":
        """A table of the bytes of its rows.

        Parameters
        ----------
        data
            Bytes, or an array or tensor of them of any shape; rows follow each other.
        format
            One of ``FORMATS``.
        rows, dim
            How many rows there are, of so many elements.
        output_dtype
            Of results, one of ``OUTPUTS``: binary32 rounded to float16 to nearest even, to bfloat16 with ties away.
        row_alignment
            A row takes a multiple of so many bytes.
        exponent_bits, exponent_bias
            Of ``fbgemm-fp8``: 4 and 7 if left out.
        name
            For messages, and in ``Device.tables``.

        Raises UnsupportedOperation for bytes that are not those of so many rows, and for formats and types that there
        are not.
        """
        if not isinstance(format, str) or format not in FORMATS:
            raise UnsupportedOperation(f"format must be one of {', '.join(FORMATS)}, not {shown(format)}")
        if not isinstance(output_dtype, str) or output_dtype not in OUTPUTS:
            raise UnsupportedOperation(f"output_dtype must be one of {', '.join(OUTPUTS)}, not {shown(output_dtype)}")
        if not isinstance(name, str):
            raise UnsupportedOperation(f"name must be a string, not {shown(name)}")
        rows, dim, row_alignment = (
            _count(what, number) for what, number in (("rows", rows), ("dim", dim), ("row_alignment", row_alignment))
        )
        layout = rows_of(format, dim, exponent_bits, exponent_bias)
        is_raw = isinstance(data, bytes | bytearray | memoryview)
        raw = np.array(np.frombuffer(data, np.uint8) if is_raw else _array("data", data))
        size = -(-layout.row_bytes // row_alignment) * row_alignment
        if raw.dtype != np.uint8:
            raise UnsupportedOperation(f"data must be bytes, an array or tensor of uint8, not of {raw.dtype}")
        if raw.size != rows * size:
            each = f"{size} for each of {rows} rows of {dim} elements of {format}"
            raise UnsupportedOperation(f"data must have {rows * size} bytes, {each}, not {raw.size}")
        kept = np.ascontiguousarray(raw.reshape(rows, size)[:, : layout.row_bytes])
        return cls(format, dim, output_dtype, name, layout, kept, {}, [])

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def stats(self) -> Stats:
        """The figures of the last call of :meth:`bags` or :meth:`rows`; see ``Executable.stats``."""
        return self._ran[-1] if self._ran else Stats()

    def bags(
        self,
        device: Device,
        indices: Any,
        offsets: Any = None,
        weights: Any = None,
        *,
        mode: str = "sum",
        include_last_offset: bool = False,
    ) -> Any:
        """Pooled rows, (bags, dim); an array, or a tensor if ``indices`` is one.

        Parameters
        ----------
        device
            Where the table is, or comes to be.
        indices
            Integers; 2-D with a bag in each row, or 1-D with ``offsets``. −1 stands for a row that was pruned: it adds
            nothing, and its weight is not another index's.
        offsets, include_last_offset
            Where bags begin, and whether the last one's end is among these.
        weights
            What rows are multiplied with, of the indices' shape, binary32.
        mode
            ``sum``, or ``mean``: times the binary32 reciprocal of the number of indices, pruned ones included.

        Raises IndexOutOfRange and InvalidOffsets as executables do, UnsupportedOperation for other arguments and for
        machines that have no such rows.
        """
        check_device(device)
        if mode not in ("sum", "mean"):
            raise UnsupportedOperation(f"mode must be sum or mean, not {shown(mode)}")
        given = _integers("indices", indices)
        ends = None if offsets is None else _integers("offsets", offsets)
        factors = None if weights is None else _numbers("weights", weights)
        if given.ndim == 1:
            ends, include_last_offset = ends_of(self.name, given, ends, include_last_offset), True
        request, lengths = self._request(device.config, given, ends, factors), _lengths(given, ends)
        pooled = self._run(device, request, given)
        if mode == "mean":
            reciprocals = np.divide(np.float32(1), lengths, dtype=np.float32, where=lengths > 0, out=_ones(lengths))
            with np.errstate(all="ignore"):
                pooled = pooled * reciprocals[:, None]
        result = rounded(pooled, self.output_dtype)
        return tensor_of(result, result.shape, self.output_dtype) if is_tensor(indices) else result

    def rows(self, device: Device, indices: Any) -> Any:
        """The rows of these indices as numbers, one behind the other: bags of one."""
        given = _integers("indices", indices).reshape(-1, 1)
        result = self.bags(device, given)
        return tensor_of(result, result.shape, self.output_dtype) if is_tensor(indices) else result

    def _source(self, config: Config) -> Source:
        """What a machine's table is made of: always the same, so that it is uploaded once."""
        if isinstance(self._layout, QuantisedRows):
            return self._rows
        if config.float8 not in self._sources:
            self._sources[config.float8] = self._layout.source(self._rows, config)
        return self._sources[config.float8]

    def _request(self, config: Config, indices: Array, ends: Array | None, weights: Array | None) -> Request:
        """The look-up without the rows that were pruned.

        Tiles of rows with weights take the places of bags from offsets: each computed place is an ALU operation.
        """
        flat, there = indices, indices != -1
        if not there.all() or (weights is not None and ends is None and self.dim > config.vl_max):
            if weights is not None and weights.shape != indices.shape:
                raise UnsupportedOperation(
                    f"{self.name}: weights must have the shape of the indices, {indices.shape}, not {weights.shape}"
                )
            if ends is None:
                ends = np.arange(len(indices) + 1, dtype=indices.dtype) * indices.dtype.type(indices.shape[1])
            before = np.concatenate([[0], np.cumsum(there.reshape(-1))]).astype(ends.dtype)
            ends, flat = before[ends], indices[there]
            weights = None if weights is None else weights[there]
        options: Any = {"include_last_offset": ends is not None}
        rows = self._source(config)
        if isinstance(self._layout, QuantisedRows):
            return quantised_request(self.name, rows, self._layout, flat, ends, weights, **options)
        options |= {"is_fused": weights is not None, "is_wide": dtype_name(rows) != LANE.dtype}
        return bag_request(self.name, rows, flat, ends, weights, **options)

    def _run(self, device: Device, request: Request, given: Array) -> Array:
        kernel = compiler_for(device.config, "fatal", BEST)(request.operation, request.has_long_bags)
        with device.turn, device.preparing():
            table = device.bind_table(self.name, request.table, form=request.form)
            buffers = {**request.buffers, "table": table, "out": (request.rows, self.dim)}
            try:
                run = run_kernel(device, kernel, buffers, request.values)
                self._ran[:] = [run.stats]
                return run.outputs["out"]
            except (IndexOutOfRange, InvalidOffsets) as error:
                if request.buffers["indices"].size == given.size:  # positions are those that were given
                    say_where(error, self.name, request, len(self))
                raise


def traceable(module: "Module", *, device: Device | None = None) -> "Module":
    """A module for ``torch.compile``, with operators on rows of bytes in place of PyTorch's quantised embeddings, which
    cannot be traced; with a device also of FBGEMM's modules, as far as it has their rows. The module is not changed,
    and the tables of quantised embeddings are as they are now.
    """
    from daedal.compiler.frontends.torch.ops import quantised_bags  # its operators' results have shapes then
    from daedal.compiler.frontends.torch.trace.quantised_modules import with_operators

    assert quantised_bags.LIBRARY is not None
    return with_operators(module, None if device is None else device.config)


def _count(what: str, number: Any) -> int:
    """An integer from 1 on, of Python or NumPy."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise UnsupportedOperation(f"{what} must be an integer, at least 1, not {shown(number)}")
    return int(number)


def _array(what: str, values: Any) -> Array:
    """An array, of a tensor or of what NumPy makes one of."""
    try:
        return np.asarray(values.detach().numpy() if is_tensor(values) else values)
    except (ValueError, TypeError) as error:
        raise UnsupportedOperation(f"{what} must be an array or a tensor, not {shown(values)}") from error


def _numbers(what: str, values: Any) -> NDArray[np.float32]:
    """As binary32, contiguous."""
    array = _array(what, values)
    if array.dtype.kind not in "biuf":
        raise UnsupportedOperation(f"{what} must be numbers, not {shown(values)}")
    return np.ascontiguousarray(array, np.float32)


def _integers(what: str, values: Any) -> Array:
    """As the machine takes them: int32 or int64, contiguous."""
    array = _array(what, values)
    if array.dtype.kind not in "iu" and array.size:
        raise UnsupportedOperation(f"{what} must be integers, not {array.dtype}")
    return np.ascontiguousarray(array, array.dtype if array.dtype in (np.int32, np.int64) else np.int64)


def _lengths(indices: Array, ends: Array | None) -> Array:
    """How many indices each bag has."""
    return np.full(len(indices), indices.shape[1]) if ends is None or indices.ndim == 2 else np.diff(ends)


def _ones(lengths: Array) -> NDArray[np.float32]:
    return np.ones(lengths.shape, np.float32)
