"""Every level of the compiler, run by the interpreter, gives the bits of the loops; what it cannot run is refused."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import daedal
from daedal.compiler.frontends.requests.emb_builder import build
from daedal.compiler.interpreters import interpret
from daedal.compiler.pipeline import compile_emb, compile_scf
from daedal.hw.config.core import Config
from daedal.runtime.operations import Bag, BagList, Kind, Lookup
from tests.compiler.kernels.kernel_support import in_python
from tests.compiler.kernels.kernel_support import same_bits as same
from tests.compiler.kernels.test_kernels import KERNELS, arguments
from tests.compiler.scalars.scalar_kernels import (
    ACTIVATIONS,
    ELEMENTWISE,
    REDUCTIONS,
    SCORES,
    Case,
    block_attention,
    conditional,
    cosines,
    elementwise,
    function_of_numbers,
    message_passing,
    reduction,
    sddmm,
    singles,
    triples,
    updates,
)

CONFIG = Config.preset("ddr3")
LEVELS = ("scf", "slc", "slcv", "dlc")
COPIED = """
func.func @f(%t: memref<?x8xf32>, %out: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %n = memref.dim %out, %c0 : memref<?x8xf32>
  scf.for %p = %c0 to %n step %c1 {
    scf.for %d = %c0 to %c8 step %c1 {
      %x = memref.load %t[%p, %d] : memref<?x8xf32>
      memref.store %x, %out[%p, %d] : memref<?x8xf32>
    }
  }
  func.return
}"""


def cases() -> dict[str, Any]:
    """Every class of operation, by name: from a generator of random data."""
    found: dict[str, Any] = {
        **{f"message-passing-{name}": lambda rng, n=name: message_passing(rng, n, 20) for name in ACTIVATIONS},
        **{f"score-{name}": lambda rng, n=name: triples(rng, n, 20) for name in SCORES},
        **{f"elementwise-{name}": lambda rng, n=name: elementwise(rng, n, 7) for name in ELEMENTWISE},
        **{f"reduction-{name}": lambda rng, n=name: reduction(rng, n, 40) for name in REDUCTIONS},
        "sddmm": lambda rng: sddmm(rng, 20),
        "block-attention": lambda rng: block_attention(rng, 20),
        "singles": singles,
        "cosines": lambda rng: cosines(rng, 20),
        "updates": lambda rng: updates(rng, 20),
        "conditional": lambda rng: conditional(rng, 20),
    }
    for name in ("exp", "sigmoid"):
        found[name] = lambda rng, n=name: function_of_numbers(n, rng.standard_normal(40).astype(np.float32) * 9)
    return found


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", cases())
def test_classes_of_operations(name: str, level: str, rng: np.random.Generator) -> None:
    case: Case = cases()[name](rng)
    text = compile_scf(case.text, CONFIG).ir(level)
    buffers = {name: np.zeros(given, np.float32) if isinstance(given, tuple) else given
               for name, given in case.buffers.items()}  # fmt: skip
    assert same(interpret(text, buffers, case.values)["out"], np.asarray(case.expected))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str, level: str, rng: np.random.Generator) -> None:
    given = arguments(name, rng, 12)
    kernel = KERNELS[name]
    with daedal.Device.open("emulator", config="ddr3") as device:
        text = daedal.compile(kernel, given, device=device).ir(level)
    names = list(kernel.signature.arguments)
    arrays = {n: a for n, a in zip(names, given, strict=True) if isinstance(a, np.ndarray)}
    numbers = {n: a for n, a in zip(names, given, strict=True) if not isinstance(a, np.ndarray)}
    sizes = kernel.signature.sizes({n: a.shape for n, a in arrays.items()}, {})
    found = interpret(text, arrays, {**sizes, **numbers})
    for n, wanted in zip(names, in_python(kernel, *given), strict=True):
        if isinstance(wanted, np.ndarray):
            assert same(found[n], wanted), n


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode: str, level: str, rng: np.random.Generator) -> None:
    bag = nn.EmbeddingBag(20, 12, mode=mode, include_last_offset=True)
    indices, offsets = torch.from_numpy(rng.integers(0, 20, 30)), torch.tensor([0, 4, 4, 11, 30])
    with daedal.Device.open("emulator", config="ddr3") as device:
        text = daedal.compile(bag, (indices, offsets), device=device).ir(level)
    arrays = {"table": bag.weight.detach().numpy(), "indices": indices.numpy(), "offsets": offsets.numpy(),
              "out": np.zeros((4, 12), np.float32)}  # fmt: skip
    assert same(interpret(text, arrays)["out"], bag(indices, offsets).detach().numpy())


def test_what_cannot_be_interpreted_is_refused() -> None:
    with pytest.raises(daedal.UnsupportedOperation, match="the text cannot be read"):
        interpret("func.func @f(", {})
    with pytest.raises(daedal.UnsupportedOperation, match="one function with a body, not 0"):
        interpret("builtin.module {}", {})
    out = np.zeros((4, 8), np.float32)
    with pytest.raises(daedal.UnsupportedOperation, match="buffer 't' must be given"):
        interpret(COPIED, {"out": out})
    with pytest.raises(daedal.IndexOutOfRange, match=r"outside of a buffer of shape \(3, 8\)"):
        interpret(compile_scf(COPIED, CONFIG).ir("slcv"), {"t": np.zeros((3, 8), np.float32), "out": out})
    dlc = compile_scf(COPIED, CONFIG).ir("dlc")
    with pytest.raises(daedal.UnsupportedOperation, match="something is left in a queue"):
        interpret(
            dlc.replace("dlc.push_store", 'dlc.fetch "store"', 1).replace(" stream :", " :", 1), {"t": out, "out": out}
        )


@pytest.mark.parametrize("read", [lambda text: compile_scf(text, CONFIG), lambda text: interpret(text, {})])
def test_text_that_the_parser_would_not_come_to_an_end_with(read) -> None:
    with pytest.raises(daedal.UnsupportedOperation, match='cannot be read: line 2: what a " begins must end'):
        read('// a "\n"' + "a" * 40 + "\n")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"indices": [1, 4]}, r"index 4 at 1 must be from 0 to 3"),
        ({"indices": [-1, 0]}, r"index -1 at 0 must be from 0 to 3"),
        ({"offsets": [0, 2, 1]}, r"a bag of the entries 2 to 1 is not within the 2 indices"),
        ({"offsets": [0, 3, 3]}, r"a bag of the entries 0 to 3 is not within the 2 indices"),
    ],
)
def test_bad_input_of_operations(given: dict[str, list[int]], wanted: str) -> None:
    text = str(build(Bag("sum", 3, 64, 64)))
    buffers: dict[str, Any] = {"table": np.ones((4, 3), np.float32), "indices": np.array([1, 2]),
                               "offsets": np.array([0, 1, 2])}  # fmt: skip
    with pytest.raises((daedal.IndexOutOfRange, daedal.InvalidOffsets), match=wanted):
        interpret(text, buffers | {name: np.array(values) for name, values in given.items()})
    with pytest.raises(daedal.UnsupportedOperation, match="buffer 'table' must be given"):
        interpret(text, {name: values for name, values in buffers.items() if name != "table"})
    mixed = text.replace("func.return", "%c = arith.constant 0 : index\n func.return", 1)
    with pytest.raises(daedal.UnsupportedOperation, match=r"arith\.constant cannot be interpreted among operations"):
        interpret(mixed, buffers)


def test_bad_indices_of_gathers() -> None:
    table = np.ones((4, 3), np.float32)
    with pytest.raises(daedal.IndexOutOfRange, match=r"index 4 at 0 must be from 0 to 3"):
        interpret(str(build(Lookup(3, 32))), {"table": table, "indices": np.array([4], np.int32)})


def test_lists_of_tables_need_memory() -> None:
    kind = Kind("sum", 4, 4, 4, 64, is_weighted=False, is_fused=False, padding=None)
    levels = compile_emb(build(BagList(((kind, 1),))), CONFIG).levels
    buffers = {"list": np.array([[1], [64], [1 << 20]]), "indices64": np.array([0]), "offsets": np.array([0, 1])}
    for level in ("emb", "scf", "slc", "slcv"):
        with pytest.raises(daedal.UnsupportedOperation, match="buffer 'memory' must be given"):
            interpret(levels[level], buffers, {"bags": 1})
        with pytest.raises(daedal.IndexOutOfRange, match="at address 1048576, is outside of memory"):
            interpret(levels[level], {**buffers, "memory": np.zeros(256, np.uint8)}, {"bags": 1})


CHOSEN = """
func.func @f(%out: memref<4x1xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %base = dlc.argument "base" "out" : index
  dlc.access {
    slc.for %v = %c0 to %c4 step %c1 : index, index {
      %is_two = slc.alu "equal" %v, %c2 : !slc.stream<index>, index -> !slc.stream<i1>
      dlc.event "iteration" {
        dlc.push_store %base[%v * %c4] bytes 4 : index, !slc.stream<index>, index
        dlc.push_token 5 plus %is_two : !slc.stream<i1>
      }
    }
  }
  dlc.execute {
    dlc.callback 5 {
      %one = arith.constant 1.0 : f32
      dlc.push %one : f32
    }
    dlc.callback 6 {
      %two = arith.constant 2.0 : f32
      dlc.push %two : f32
    }
  }
  func.return
}
"""


def test_a_stream_chooses_the_callback() -> None:
    assert interpret(CHOSEN, {"out": np.zeros((4, 1), np.float32)})["out"].tolist() == [[1], [1], [2], [1]]
