"""What a kernel must not do is refused with the file, the line and the reason; devices work on."""

import copy
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import daedal
from daedal.compiler.frontends.python.function import KernelFunction
from tests.compiler.kernels.kernel_support import HEAD, check, copied, floats, load_kernel
from tests.compiler.layers.compiler_support import ddr3, device

__all__ = ["ddr3", "device"]

ROWS = "out: f32[N, D], x: f32[N, D], idx: i64[N], n: i64, alpha: f32"

BODIES = {
    "while": ("while n > 0:\n    pass  # end", "`while` has no place in the machine", 0),
    "break": ("for i in range(N):\n    break", "a loop must not be left early", 1),
    "continue": ("for i in range(N):\n    continue", "put the rest of the body under the opposite condition", 1),
    "return": ("for i in range(N):\n    return", "a kernel must return nothing", 1),
    "return a value": ("return out", "a kernel must return nothing", 0),
    "function": ("def g():\n    pass", "a kernel must not define functions", 0),
    "assert": ("assert n > 0", "assertions are not supported", 0),
    "import": ("import math", "a kernel must not import", 0),
    "print": ("print(n)", "statement 'print\\(n\\)' is not supported", 0),
    "tuple": ("a, b = 1, 2", "an assignment must be to one name or one element", 0),
    "partial sums": (
        "for i in range(N):\n    out[i, 0] = daedal.dot(x[i, :], x[i, :], partial_sums=4)",
        "partial_sums must be 16 or 8, not 4",
        1,
    ),
    "iteration": ("for i in out:\n    pass", "a loop must be of the form `for name in range", 0),
    "else of a loop": ("for i in range(N):\n    pass\nelse:\n    pass", "without else", 0),
    "step": (
        "for i in range(N, 0, -1):\n    out[i, 0] = 1.0",
        "the step of a loop must be a constant of at least 1",
        0,
    ),
    "step of a call": ("for i in range(0, N, n):\n    out[i, 0] = 1.0", "the step of a loop must be a constant", 0),
    "float bound": ("for i in range(1.5):\n    out[i, 0] = 1.0", "a bound of a loop must be an integer", 0),
    "float bound of an array": ("for i in range(x[0, 0]):\n    pass", "a bound of a loop must be an integer", 0),
    "range by name": ("for i in range(stop=N):\n    pass", "range must have one to three plain arguments", 0),
    "variable is a size": ("for N in range(3):\n    pass", "N is an argument or a size", 0),
    "variable of two loops": (
        "for i in range(N):\n    for i in range(3):\n        out[i, 0] = 1.0",
        "i has a value already: give the variable another name",
        1,
    ),
    "variable is a local": (
        "k = 4\nfor i in range(N):\n    for k in range(2):\n        out[i, k] = 1.0",
        "k has a value already: give the variable another name",
        2,
    ),
    "variable changes": (
        "for i in range(N):\n    for j in range(3):\n        i = i + 1\n        out[i, 0] = 1.0",
        "i is the variable of a loop: give the number another name",
        2,
    ),
    "local is an argument": ("alpha = 1.0", "alpha is an argument or a size", 0),
    "slice": ("for i in range(N):\n    out[i, :] = 1.0", "slice ':' of out is not supported: write the loop", 1),
    "slice with a step": ("for i in range(N):\n    out[i, 0] = x[i, 0:D:2]", "slice '0:D:2' of x is not supported", 1),
    "negative index": ("for i in range(N):\n    out[i, -1] = 1.0", "index -1 of out must not be negative", 1),
    "too few indices": ("for i in range(N):\n    out[i] = 1.0", "out has 2 dimensions, so there must be 2 indices", 1),
    "float index": ("for i in range(N):\n    out[i, 0] = x[alpha, 0]", "an index of x must be an integer", 1),
    "unknown array": ("for i in range(N):\n    out[i, 0] = y[i]", "y must be an array or a local row", 1),
    "unknown name": ("for i in range(N):\n    out[i, 0] = y", "name 'y' must be an argument, a size", 1),
    "array as a number": ("for i in range(N):\n    out[i, 0] = x", "x is an array: use its elements", 1),
    "row as a number": (
        "r = daedal.zeros(4)\nfor i in range(N):\n    out[i, 0] = r",
        "r is a row: use its elements",
        2,
    ),
    "number over a row": ("r = daedal.zeros(4)\nr = 1.0", "r is a row: give the number another name", 1),
    "width of a row": ("r = daedal.zeros(n)", "the width of a local row must be a number, or a size", 0),
    "call": (
        "for i in range(N):\n    out[i, 0] = round(x[i, 0])",
        "call 'round\\(x\\[i, 0\\]\\)' is not supported: max",
        1,
    ),
    "method": ("for i in range(N):\n    out[i, 0] = x.sum()", "call 'x.sum\\(\\)' is not supported", 1),
    "one maximum": ("for i in range(N):\n    out[i, 0] = max(x[i, 0])", "must have two arguments or more", 1),
    "attribute": ("for i in range(x.shape[0]):\n    pass", "must be an element of an argument", 0),
    "text": ("for i in range(N):\n    out[i, 0] = 'a'", "a constant must be an integer or a float, not 'a'", 1),
    "bool": ("for i in range(N):\n    out[i, 0] = True", "a constant must be an integer or a float, not True", 1),
    "list": ("for i in range(N):\n    out[i, 0] = [1]", "there are no lists", 1),
    "power": ("for i in range(N):\n    out[i, 0] = x[i, 0] ** 2", "f32 can be added, .*, not combined with \\*\\*", 1),
    "whole division": (
        "for i in range(N):\n    out[i // 2, 0] = 1.0",
        "integers can be added, .* not combined with //",
        1,
    ),
    "division of integers": ("for i in range(N):\n    out[i, 0] = n / 2", "not combined with /", 1),
    "by zero": ("for i in range(N):\n    out[i, 0] = 1.0 / 0", "division by zero", 1),
    "not a comparison": (
        "for i in range(N):\n    if i:\n        out[i, 0] = 1.0",
        "condition 'i' must be a comparison",
        1,
    ),
    "is": ("for i in range(N):\n    if i is N:\n        out[i, 0] = 1.0", "must compare with <, <=", 1),
    "mixed conditions": (
        "for i in range(N):\n    if i < 3 and x[i, 0] > 0.0:\n        out[i, 0] = 1.0",
        "comparisons of integers and of f32 must be in conditions of their own",
        1,
    ),
    "and in or": (
        "for i in range(N):\n    if i < 3 or (i > 5 and i < 7):\n        out[i, 0] = 1.0",
        "`and` and `or` must not be mixed",
        1,
    ),
    "choice of integers": ("for i in range(N):\n    out[i, 0] = 1.0 if i > 3 else 2.0", "a choice must compare f32", 1),
    "condition of the call": ("if n > 3:\n    pass", "a condition must depend on the loops around it", 0),
    "outside of loops": ("out[0, 0] = 1.0", "there must be a loop around the work on rows", None),
    "integer changes": (
        "for i in range(N):\n    k = 0\n    for j in range(N):\n        k += 1\n    out[i, 0] = k",
        "k is an integer, and integers must not change in loops or conditions",
        1,
    ),
    "value of a loop after it": (
        "for i in range(N):\n    for j in range(N):\n        s = x[j, 0]\n    out[i, 0] = s",
        "s may have no value here: give it one before the loop",
        3,
    ),
    "variable of a loop after it": (
        "for i in range(N):\n    pass\nfor j in range(N):\n    out[i, 0] = 1.0",
        "i may have no value",
        3,
    ),
    "dot of widths": (
        "for i in range(N):\n    out[i, 0] = daedal.dot(x[i, :], idx)",
        "'idx\\[:\\]' must be a row of f32",
        1,
    ),
    "no iterations": (
        "for i in range(N):\n    for d in range(3, 3):\n        out[i, d] = 1.0",
        "the loop must have iterations",
        1,
    ),
    "five levels": (
        "for i in range(N):\n    for j in range(N):\n        for k in range(N):\n            for m in range(N):\n"
        "                for q in range(N):\n                    out[q, 0] = 1.0",
        "loop %q is loop 5 of its nest; configuration ddr3 has 4 levels",
        4,
    ),
    "two loops in one": (
        "for i in range(N):\n    for j in range(N):\n        out[i, 0] += x[j, 0]\n    for k in range(2):\n"
        "        out[i, 0] += x[k, 1]",
        "loop %i must have one loop in its body, not loop %j and loop %k",
        0,
    ),
    "another row": (
        "for i in range(N):\n    for d in range(D):\n        out[i, d] = out[i + 1, d] + 1.0",
        "buffer %out is read and written, but not at the same row",
        2,
    ),
    "a loaded row in each turn of a loop": (
        "for j in range(N):\n    for i in range(N):\n        for d in range(D):\n            out[idx[i], d] += x[j, d]",
        "buffer %out must not be both read and written",
        None,
    ),
    "rows that loaded floats choose": (
        "for i in range(N):\n    out[idx[idx[i]], 0] += 1.0\n    out[idx[i], 1] = out[idx[idx[i]], 0]",
        "buffer %out is read and written, but not ",
        None,
    ),
    "too much arithmetic": (
        "for i in range(N):\n    for j in range(N):\n        for d in range(D):\n"
        "            out[i * 3 + j * 5 + max(i, j) - min(i, j), d] = 1.0",
        "needs \\d+ ALU operations; level \\d of configuration ddr3 has",
        None,
    ),
}


REUSED = {
    "an element": ("for n in range(N):\n    t = a[n]\n    a[n] += 1.0\n    out[n] = t", "a\\[n\\]", 2),
    "a number": (
        "for n in range(N):\n    t = 0.0\n    for i in range(n, N):\n        u = t\n        t += a[i]\n"
        "        out[n] += u",
        "t",
        1,
    ),
}


@pytest.mark.parametrize("name", REUSED)
def test_what_is_read_again_has_the_name_that_the_kernel_gives_it(
    ddr3: daedal.Device, tmp_path: Path, name: str
) -> None:
    """Numbers are in rows of one, with names of their own in the levels."""
    body, named, line = REUSED[name]
    kernel = load_kernel(tmp_path, f"@daedal.kernel\ndef f(out: f32[N], a: f32[N]):\n{indented(body)}")
    with pytest.raises(daedal.UnsupportedOperation) as raised:
        daedal.compile(kernel, (np.zeros(4, np.float32), np.ones(4, np.float32)), device=ddr3)
    said = f"`{body.splitlines()[line].strip()}`: "
    assert re.search(rf"{re.escape(said)}{named} must not be written between where it is read", str(raised.value))
    assert "%" not in str(raised.value)


def indented(body: str) -> str:
    return "".join(f"    {line}\n" for line in body.splitlines())


def given(rows: int = 6, width: int = 8) -> tuple[Any, ...]:
    return (np.zeros((rows, width), np.float32), np.ones((rows, width), np.float32), np.arange(rows), 3, 0.5)


@pytest.mark.parametrize("name", BODIES)
def test_bodies(ddr3: daedal.Device, tmp_path: Path, name: str) -> None:
    body, reason, line = BODIES[name]
    kernel = load_kernel(tmp_path, f"@daedal.kernel\ndef f({ROWS}):\n{indented(body)}")
    with pytest.raises(daedal.UnsupportedOperation, match=reason) as raised:
        daedal.compile(kernel, given(), device=ddr3)
    place = str(tmp_path / "kernel.py")
    assert str(raised.value).startswith(f"{place}:")
    if line is not None:
        number = HEAD.count("\n") + 3 + line
        assert str(raised.value).startswith(f"{place}:{number}: `{body.splitlines()[line].strip()}`: ")


SIGNATURES = {
    "no type": ("out", "argument 'out' must be annotated"),
    "another type": ("out: float", "argument 'out' must be .*, not float"),
    "float64": ("out: f64[N]", "argument 'out' must be .*, not f64\\[N\\]"),
    "default": ("out: f32[N], n: i64 = 3", "plain arguments only"),
    "star": ("*out: f32[N]", "plain arguments only"),
    "by name": ("out: f32[N], *, n: i64", "plain arguments only"),
    "size": ("out: f32[N / 2]", "a size must be a number, a name, or a sum"),
    "half an annotation": ("out: 'f32[N'", "annotation 'f32\\[N' cannot be read"),
    "text as a size": ("out: f32['N']", "a size must be a number, a name"),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(tmp_path: Path, name: str) -> None:
    arguments, reason = SIGNATURES[name]
    with pytest.raises(daedal.UnsupportedOperation, match=reason) as raised:
        load_kernel(tmp_path, f"@daedal.kernel\ndef f({arguments}):\n    pass\n")
    assert f"kernel.py:{HEAD.count(chr(10)) + 2}: `def f({arguments}):`: " in str(raised.value)


def test_what_is_no_function(tmp_path: Path) -> None:
    with pytest.raises(daedal.UnsupportedOperation, match="must be put on a function made with def"):
        daedal.kernel(len)
    with pytest.raises(daedal.UnsupportedOperation, match="must be put on a function made with def"):
        load_kernel(tmp_path, "f = daedal.kernel(lambda out: None)\n")
    with pytest.raises(daedal.UnsupportedOperation, match="a kernel must return nothing"):
        load_kernel(tmp_path, "@daedal.kernel\ndef f(out: f32[N]) -> f32:\n    pass\n")
    names: dict[str, Any] = {"daedal": daedal}
    with pytest.raises(
        daedal.UnsupportedOperation, match=r"the source of f cannot be read .* put the kernel into a file"
    ):
        exec("@daedal.kernel\ndef f(out: daedal.f32):\n    pass\n", names)  # no file has it
    with pytest.raises(daedal.DaedalError, match="dims must be given names"):
        daedal.dims("B 3")


def test_what_is_deep(tmp_path: Path) -> None:
    sum_ = "+".join(["x[i]"] * 1500)
    with pytest.raises(daedal.UnsupportedOperation, match=r"kernel.py:7: `def f.*nested too deeply: split it up"):
        load_kernel(
            tmp_path, f"@daedal.kernel\ndef f(out: f32[N], x: f32[N]):\n    for i in range(N): out[i] = {sum_}\n"
        )


BODY = "(out: f32[N], x: f32[N]):\n        for i in range(N):\n            out[i] = k * x[i]\n"
INNER = {
    "comment": "@daedal.kernel\n    def f" + BODY.replace(":\n", ":\n# to the left\n", 1),
    "text": "@daedal.kernel\n    def f" + BODY.replace(":\n", ':\n        """Text\nto the left."""\n', 1),
}


@pytest.mark.parametrize("name", INNER)
def test_functions_in_functions(ddr3: daedal.Device, tmp_path: Path, name: str) -> None:
    kernel = load_kernel(tmp_path, f"def make(k):\n    {INNER[name]}    return f\n\nf = make(3.0)\n")
    check(ddr3, kernel, np.zeros(4, np.float32), floats(np.random.default_rng(1), 4))


def test_a_value_that_comes_later(ddr3: daedal.Device, tmp_path: Path) -> None:
    kernel = load_kernel(
        tmp_path, f"def make():\n    @daedal.kernel\n    def f{BODY}    k = 3.0\n    return f\n\nf = make()\n"
    )
    with pytest.raises(daedal.UnsupportedOperation, match="name 'k' must be an argument"):
        daedal.compile(kernel, (np.zeros(4, np.float32), np.ones(4, np.float32)), device=ddr3)


def test_other_decorators(ddr3: daedal.Device, tmp_path: Path) -> None:
    """Below: what runs would not be the function that is read. Above: the kernel is what they are given."""
    deco = "import functools\ndef twice(g):\n    @functools.wraps(g)\n    def h(*a):\n        g(*a)\n    return h\n\n"
    function = "def f(out: f32[N]):\n    for i in range(N):\n        out[i] = 1.0\n"
    with pytest.raises(daedal.UnsupportedOperation, match="must be put on f itself, below other decorators"):
        load_kernel(tmp_path, f"{deco}@daedal.kernel\n@twice\n{function}")
    kernel = load_kernel(tmp_path, f"same = lambda g: g\n@same\n@daedal.kernel\n{function}", "above")
    check(ddr3, kernel, np.zeros(3, np.float32))


def test_copies_of_kernels_are_kernels(ddr3: daedal.Device, tmp_path: Path) -> None:
    kernel = load_kernel(
        tmp_path, "@daedal.kernel\ndef f(out: f32[N]):\n    for i in range(N):\n        out[i] = 1.0\n"
    )
    assert copy.deepcopy(kernel) is kernel
    executable = daedal.compile(kernel, (np.zeros(3, np.float32),), device=ddr3)
    out = np.zeros(3, np.float32)
    copy.deepcopy(executable)(out)
    assert out.tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="a Device, and what was compiled for it, cannot be pickled"):
        pickle.dumps(ddr3)


POOLED = """
@daedal.kernel
def f(out: f32[B, D], table: f32[N, D], idx: i64[P], off: i64[B + 1]):
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                out[b, d] += table[idx[p], d]
"""


@pytest.fixture
def pooled(tmp_path: Path) -> KernelFunction:
    return load_kernel(tmp_path, POOLED)


def bags() -> list[Any]:
    idx, off = np.array([1, 2, 3, 4, 0]), np.array([0, 2, 2, 5])
    return [np.zeros((3, 8), np.float32), np.ones((5, 8), np.float32), idx, off]


def changed(position: int, value: Any) -> list[Any]:
    arguments = bags()
    arguments[position] = value
    return arguments


ARGUMENTS = {
    "too few": (lambda: bags()[:3], "f must be given 4 arguments \\(out, table, idx, off\\), not 3"),
    "list": (
        lambda: changed(2, [1, 2]),
        "argument 'idx' must be a torch tensor or a NumPy array \\(i64\\[P\\]\\), not list",
    ),
    "float64": (
        lambda: changed(1, np.ones((5, 8))),
        "argument 'table' must be of float32 \\(f32\\[N, D\\]\\), not of float64",
    ),
    "half": (lambda: changed(1, torch.ones(5, 8).half()), "argument 'table' must be of float32 .*, not of float16"),
    "int32": (lambda: changed(3, np.zeros(4, np.int32)), "argument 'off' must be of int64 .*, not of int32"),
    "dimensions": (lambda: changed(1, np.ones(8, np.float32)), "argument 'table' must have 2 dimensions .*, not 1"),
    "width": (
        lambda: changed(1, np.ones((5, 7), np.float32)),
        "dimension 1 of argument 'table' must be 8 \\(f32\\[N, D\\]\\), not 7; D is dimension 1 of 'out'",
    ),
    "sum": (
        lambda: changed(3, np.zeros(6, np.int64)),
        "dimension 0 of argument 'off' must be 4 \\(i64\\[B \\+ 1\\]\\), not 6; B is dimension 0 of 'out'",
    ),
    "meta": (lambda: changed(1, torch.ones(5, 8, device="meta")), "argument 'table' must be on the CPU, not on meta"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(ddr3: daedal.Device, pooled: KernelFunction, name: str) -> None:
    make, reason = ARGUMENTS[name]
    with pytest.raises(daedal.UnsupportedOperation, match=reason):
        daedal.compile(pooled, make(), device=ddr3)
    executable = daedal.compile(pooled, bags(), device=ddr3)
    with pytest.raises(daedal.UnsupportedOperation, match=reason):
        executable(*make())


def test_scalars(ddr3: daedal.Device, tmp_path: Path) -> None:
    kernel = load_kernel(
        tmp_path,
        "@daedal.kernel\ndef f(out: f32[N], a: f32, n: i32):\n    for i in range(n):\n        out[i] = a\n",
    )
    out = np.zeros(4, np.float32)
    executable = daedal.compile(kernel, (out, 1.0, 2), device=ddr3)
    executable(out, torch.tensor(2.5), np.int32(3))
    assert out.tolist() == [2.5, 2.5, 2.5, 0]
    executable(out, -1, 1)
    assert out.tolist() == [-1, 2.5, 2.5, 0]
    for a, n in (("x", 2), (10**400, 2), (1.0, 2.0), (1.0, 1 << 31), (1.0, True), (None, 1)):
        with pytest.raises(daedal.UnsupportedOperation, match=r"must be a single [fi]32, not"):
            executable(out, a, n)


def overlapping(*strides: int) -> Any:
    return np.lib.stride_tricks.as_strided(np.zeros(64, np.float32), (3, 8), strides)


def read_only() -> Any:
    array = np.zeros((3, 8), np.float32)
    array.flags.writeable = False
    return array


def inference_tensor() -> torch.Tensor:
    with torch.inference_mode():
        return torch.zeros(3, 8)


OUTPUTS = {
    "read-only": (read_only, "read-only: give a copy"),
    "expanded": (lambda: torch.zeros(1, 8).expand(3, 8), "several of its elements share memory"),
    "one row": (lambda: overlapping(0, 4), "several of its elements share memory"),
    "rows that overlap": (lambda: overlapping(16, 4), "several of its elements share memory"),
    "from inference mode": (inference_tensor, "outside of inference mode"),
    "sparse": (lambda: torch.zeros(3, 8).to_sparse(), "must be dense, not torch.sparse_coo"),
    "masked": (lambda: np.ma.zeros((3, 8), np.float32), "must not be masked"),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_what_cannot_be_written(ddr3: daedal.Device, pooled: KernelFunction, name: str) -> None:
    make, reason = OUTPUTS[name]
    executable = daedal.compile(pooled, bags(), device=ddr3)
    with pytest.raises(daedal.UnsupportedOperation, match=reason):
        executable(*changed(0, make()))


def test_outputs_of_any_layout(ddr3: daedal.Device, pooled: KernelFunction) -> None:
    executable = daedal.compile(pooled, bags(), device=ddr3)
    wanted, before = bags(), np.zeros((6, 16), np.float32)
    executable(*wanted)
    for out in (before[::2, ::2], np.zeros((8, 3), np.float32).T, np.zeros((3, 8), np.float32)[::-1]):
        executable(*changed(0, out))
        assert np.array_equal(out, wanted[0])
    executable(*changed(1, torch._neg_view(torch.ones(5, 8))))
    executable(np.zeros((0, 8), np.float32), *bags()[1:3], np.zeros(1, np.int64))


def test_threads_take_turns(ddr3: daedal.Device, pooled: KernelFunction) -> None:
    executable = daedal.compile(pooled, bags(), device=ddr3)

    def call(number: int) -> bool:
        arguments = bags()
        arguments[1][:] = number
        executable(*arguments)
        return bool(arguments[0].sum() == 5 * 8 * number)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(call, range(40)))


def test_a_size_that_nothing_has(ddr3: daedal.Device, tmp_path: Path) -> None:
    kernel = load_kernel(
        tmp_path, "@daedal.kernel\ndef f(out: f32[N + M]):\n    for i in range(N):\n        out[i] = 1.0\n"
    )
    with pytest.raises(daedal.UnsupportedOperation, match="size N does not follow from the shapes"):
        daedal.compile(kernel, (np.zeros(4, np.float32),), device=ddr3)


def test_outputs_must_not_share_memory(ddr3: daedal.Device, tmp_path: Path) -> None:
    kernel = load_kernel(
        tmp_path,
        "@daedal.kernel\ndef f(out: f32[N, D], x: f32[N, D], y: f32[N, D]):\n    for i in range(N):\n"
        "        for d in range(D):\n            out[i, d] = x[i, d] + y[i, d]\n",
    )
    both, x = np.zeros((8, 4), np.float32), np.ones((4, 4), np.float32)
    executable = daedal.compile(kernel, (both[:4], x, x), device=ddr3)
    executable(both[:4], x, both[4:])
    for overlapping in (both[:4], both[2:6], torch.from_numpy(both)[1:5]):
        with pytest.raises(daedal.UnsupportedOperation, match="'out' and 'y' must not share memory, because 'out' is"):
            executable(both[:4], x, overlapping)
    assert (both[:4] == 1).all()


# ------------------------------------------------------------------ indices


def fails(executable: Any, arguments: list[Any], error: type[Exception], match: str) -> None:
    """A call fails and leaves its arrays as they are; the device works on."""
    before = copied(tuple(arguments))
    with pytest.raises(error, match=match):
        executable(*arguments)
    assert all(np.array_equal(a, b) for a, b in zip(arguments, before, strict=True))
    fine = bags()
    executable(*fine)
    assert fine[0].sum() == 5 * 8


def test_bad_indices(device: daedal.Device, pooled: KernelFunction) -> None:
    executable = daedal.compile(pooled, bags(), device=device)
    line = HEAD.count("\n") + 7
    for bad in (5, -1, 1 << 45):
        idx = np.array([1, 2, bad, 4, 0])
        fails(
            executable,
            changed(2, idx),
            daedal.IndexOutOfRange,
            rf"kernel.py:{line}: `out\[b, d\] .*index {bad} is out of .* it is element 2 of idx, and must be below 5",
        )
    place = rf"kernel.py:{line - 2}: `for p in range\(off"
    for off, reason in (
        ([0, 2, 2, 6], "6 points outside .* element 3 of off, and must be below 6"),
        ([0, 3, 2, 5], "must not decrease, but 2 is below .* it is element 2 of off$"),
    ):
        fails(executable, changed(3, np.array(off)), daedal.InvalidOffsets, f"{place}.*{reason}")
    fails(
        executable,
        changed(3, np.array([-1, 2, 2, 5])),
        daedal.InvalidOffsets,
        "off must not be negative .* element 0 is -1",
    )


def test_a_bad_index_that_its_array_has_lost(device: daedal.Device, pooled: KernelFunction) -> None:
    """What is found out later, when the caller has changed the array, is told with the function's line alone."""
    arguments = changed(2, np.array([1, 2, 77, 4, 0]))
    future = daedal.compile(pooled, arguments, device=device).submit(*arguments)
    arguments[2][:] = 0
    with pytest.raises(daedal.IndexOutOfRange, match=r"kernel.py:\d+: `def f\(.*index 77 is out of (?!.*element)"):
        future.result()


def test_what_takes_the_place_of_bad_indices(device: daedal.Device, pooled: KernelFunction) -> None:
    arguments = bags()
    arguments[1][:] = np.arange(5, dtype=np.float32)[:, None]
    arguments[2][2] = 77
    for mode in ("warn", "ignore"):
        executable = daedal.compile(pooled, arguments, device=device, bounds=mode)
        out = np.zeros((3, 8), np.float32)
        if mode == "warn":
            with pytest.warns(daedal.BoundsWarning, match="f: 1 indices were out of range, the first one met 77"):
                executable(out, *arguments[1:])
        else:
            executable(out, *arguments[1:])
        assert out[:, 0].tolist() == [3, 0, 4]
        assert executable.stats.bounds_warnings == 1
        with pytest.raises(daedal.IndexOutOfRange, match="the array has no rows"):
            executable(out, np.zeros((0, 8), np.float32), *arguments[2:])


def test_what_sizes_let_reach_too_far(ddr3: daedal.Device, tmp_path: Path) -> None:
    kernel = load_kernel(
        tmp_path,
        "@daedal.kernel\ndef f(out: f32[N, D], x: f32[M, D], n: i64, k: i64):\n    for i in range(n):\n"
        "        for d in range(D):\n            out[i, d] = x[i + k, d]\n",
    )
    out, x = np.zeros((4, 8), np.float32), np.ones((6, 8), np.float32)
    executable = daedal.compile(kernel, (out, x, 4, 2), device=ddr3)
    executable(out, x, 4, 2)
    line = HEAD.count("\n") + 5
    for n, k, reason in (
        (5, 0, r"index i of out in dimension 0 reaches 4, but must be from 0 to 3"),
        (4, 3, r"index i \+ k of x in dimension 0 reaches 6, but must be from 0 to 5"),
        (4, -1, r"index i \+ k of x in dimension 0 reaches -1"),
    ):
        with pytest.raises(daedal.IndexOutOfRange, match=rf"kernel.py:{line}: `out\[i, d\].*{reason}"):
            executable(out, x, n, k)
    executable(out, x, 0, 100)
    executable(out, x, -3, 0)


def test_conditions_count_for_indices(ddr3: daedal.Device, tmp_path: Path) -> None:
    """What a condition of sizes and variables keeps inside of an array is no fault."""
    out, x = np.zeros((6, 4), np.float32), floats(np.random.default_rng(1), 3, 4)
    first = load_kernel(
        tmp_path,
        "@daedal.kernel\ndef f(out: f32[N, D], x: f32[M, D], k: i64):\n    for i in range(N):\n        if k > i:\n"
        "            for d in range(D):\n                out[i, d] = x[i, d]\n",
    )
    check(ddr3, first, out, x, 3)
    for arguments in ((out, x, 4), (out, x, 7)):
        with pytest.raises(
            daedal.IndexOutOfRange, match=f"index i of x in dimension 0 reaches {min(arguments[2], 6) - 1}"
        ):
            daedal.compile(first, arguments, device=ddr3)(*arguments)


def test_rows_must_start_at_lines(ddr3: daedal.Device, tmp_path: Path) -> None:
    kernel = load_kernel(
        tmp_path,
        "@daedal.kernel\ndef f(out: f32[N, D], x: f32[N, M], k: i64):\n    for i in range(N):\n"
        "        for d in range(D):\n            out[i, d] = x[i, d + k]\n",
    )
    line = ddr3.config.bus_bytes // 4
    x = floats(np.random.default_rng(1), 4, 5 * line)
    for width, first in ((2 * line, line), (line - 1, line + 1), (1, 3), (3 * line, 0)):
        check(ddr3, kernel, np.zeros((4, width), np.float32), x, first)
    out = np.zeros((4, 2 * line), np.float32)
    executable = daedal.compile(kernel, (out, x, 0), device=ddr3)
    number = HEAD.count("\n") + 5
    with pytest.raises(
        daedal.UnsupportedOperation, match=rf"kernel.py:{number}: .*the row of x starts at element 3; rows"
    ):
        executable(out, x, 3)


def test_what_cannot_be_checked(ddr3: daedal.Device, tmp_path: Path) -> None:
    """The machine checks what was loaded, which says nothing of a product of two such numbers."""
    kernel = load_kernel(
        tmp_path,
        "@daedal.kernel\ndef f(out: f32[N, D], x: f32[M, D], idx: i64[N]):\n    for i in range(N):\n"
        "        for d in range(D):\n            out[i, d] = x[idx[i] * idx[i], d]\n",
    )
    arguments = (np.zeros((4, 8), np.float32), floats(np.random.default_rng(1), 9, 8), np.array([1, 2, 0, 2]))
    executable = daedal.compile(kernel, arguments, device=ddr3)
    with pytest.raises(daedal.IndexOutOfRange, match=r"index idx\[i\] \* idx\[i\] of x .*bounds='none'"):
        executable(*arguments)
    check(ddr3, kernel, *arguments, bounds="none")
