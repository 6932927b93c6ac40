"""Runs the IR of every level on NumPy arrays, without the machine: what the text says, op by op.

::

    kernel = compile_scf(text, config)
    for level in ("scf", "slc", "slcv", "dlc"):
        outputs = interpret(kernel.ir(level), {"table": table, "indices": indices, "out": out})

Text of ``emb`` takes tensors, 2-D indices as such, and makes ``out``. Addresses in a list of tables
(``place.memref``, ``emb.bag_list``, ``emb.lookup_list``) are positions in a buffer of bytes called ``memory``.

It is slow and simple. A pass is right if the text before it and after it gives the same bits.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.func import FuncOp

from daedal.base.float_mode import default_float_mode
from daedal.compiler.dialects import dlc, emb
from daedal.compiler.dialects.emb_score import ScoreOp
from daedal.compiler.interpreters.loops import Loops
from daedal.compiler.interpreters.queues import Queues
from daedal.compiler.interpreters.tensors import Tensors
from daedal.compiler.text import read_module, reason_of
from daedal.errors import DaedalError, UnsupportedOperation

__all__ = ["interpret"]


@default_float_mode()
def interpret(
    text: str, buffers: Mapping[str, NDArray[Any]], values: Mapping[str, float] | None = None
) -> dict[str, NDArray[Any]]:
    """What the only function in ``text`` leaves in its buffers, by name; the given ones are not changed.

    Raises UnsupportedOperation for text that cannot be read, names of buffers and numbers that are missing, and
    operations that have no meaning here or numbers that they cannot have; IndexOutOfRange and InvalidOffsets for what a
    check finds.
    """
    function = _read(text)
    arrays = {name: np.array(array) for name, array in buffers.items()}
    machine = _machine(function)(function, arrays, dict(values or {}))
    with np.errstate(all="ignore"):
        try:
            machine.run()
        except DaedalError:
            raise
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # numbers that an operation cannot have
            raise UnsupportedOperation(f"the text cannot be run: {reason_of(error)}") from error
    return arrays


@lru_cache(maxsize=16)
def _read(text: str) -> FuncOp:
    """The only function in ``text``. The last ones are kept: to read a text takes about as long as to run it."""
    module = read_module(text, "the text")
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp) and not op.is_declaration]
    if len(functions) != 1:
        raise UnsupportedOperation(f"the text must have one function with a body, not {len(functions)}")
    return functions[0]


def _machine(function: FuncOp) -> type[Tensors | Loops | Queues]:
    """What runs a function: its operations say which level it is of."""
    operations = list(function.body.block.ops)
    if any(isinstance(op, emb.BagOp | emb.BagListOp | emb.LookupOp | emb.LookupListOp | ScoreOp) for op in operations):
        return Tensors
    return Queues if any(isinstance(op, dlc.AccessOp) for op in operations) else Loops
