"""``daedal compile``: every level of Python kernels and of text, and what is said about wrong ones."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from daedal.cli import cli
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import PRESETS
from daedal.hw.isa.program import Program
from daedal.hw.isa.tools.assembler import assemble
from tests.compiler.kernels.kernel_support import HEAD

POOLED = f"""{HEAD}

@daedal.kernel
def pooled(out: f32[B, D], table: f32[N, D], idx: i64[P], off: i64[B + 1]):
    for b in range(B):
        for p in range(off[b], off[b + 1]):
            for d in range(D):
                out[b, d] += table[idx[p], d]
"""
TWO = f"""{POOLED}

@daedal.kernel
def ones(out: f32[N]):
    for i in range(N):
        out[i] = 1.0
"""
SUMS = """
import daedal
from daedal import f32

D, N = daedal.dims("D N")


@daedal.kernel
def sums(out: f32[N], x: f32[N, D]):
    for i in range(N):
        s = 0.0
        for d in range(D):
            s += x[i, d]
        out[i] = s
"""
EMB = """
func.func @bag(%table: tensor<?x64xf32>, %indices: tensor<?xi64>, %offsets: tensor<?xi64>) -> tensor<?x64xf32> {
  %0 = emb.bag "sum" %table[%indices] offsets %offsets
    : tensor<?x64xf32>, tensor<?xi64> offsets tensor<?xi64> -> tensor<?x64xf32>
  func.return %0 : tensor<?x64xf32>
}
"""
WORDS = {
    "scf": "scf.for %b",
    "slc": "slc.for %b",
    "slcv": "slcv.accumulator",
    "dlc": "dlc.access",
    "mach": "mach.callback 0",
    "asm": "instruction 0",
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch):
    """Runs the command in a folder with the files."""
    monkeypatch.chdir(tmp_path)
    Path("pooled.py").write_text(POOLED)
    Path("two.py").write_text(TWO)

    def invoke(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(cli, ["compile", *arguments], input=stdin)

    return invoke


def failed(result: Result, status: int = 1) -> str:
    assert (result.exit_code, result.stdout_bytes) == (status, b"")
    return result.stderr


@pytest.mark.parametrize("level", WORDS)
def test_levels(run, level: str) -> None:
    result = run("pooled.py", "--emit", level, "--shape", "D=64")
    assert result.exit_code == 0
    assert WORDS[level] in result.stdout
    if level not in ("slcv", "mach", "asm"):
        assert "pooled" in result.stdout


def test_a_kernel_begins_at_scf(run) -> None:
    options = ("pooled.py", "--shape", "D=64", "--emit")
    assert run(*options, "emb").stdout == run(*options, "scf").stdout


MODEL = """
import torch
from torch import nn


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.tags = nn.EmbeddingBag(20, 16, mode="sum"), nn.Embedding(9, 8)

    def forward(self, words, offsets, tags):
        return self.words(words, offsets), self.tags(tags)


model = Two()
inputs = (torch.tensor([1, 2, 3]), torch.tensor([0, 2]), torch.tensor([4, 5]))
"""


def test_a_model_and_its_inputs(run) -> None:
    Path("model.py").write_text(MODEL)
    found = {level: run("model.py", "--emit", level) for level in ("emb", *WORDS)}
    assert all(result.exit_code == 0 for result in found.values()), found
    assert "emb.bag" in found["emb"].stdout
    assert assemble(found["asm"].stdout) == run("model.py", "--emit", "bin").stdout_bytes
    message = failed(run("model.py", "--function", "nothing"), 2)
    nodes = message.partition("has the operations ")[2].partition(", but not nothing")[0].split(", ")
    texts = [run("model.py", "--emit", "emb", "--function", node).stdout for node in nodes]
    assert len(texts) == 2
    assert "emb.lookup" in texts[1]
    assert "--shape is for kernels" in failed(run("model.py", "--shape", "D=4"), 2)


LAYER = "from torch import nn, ones, tensor\n"
WRONG_MODELS = {
    "no module": ("model = len\ninputs = ()", "model must be a torch.nn.Module or an ExportedProgram, not builtin"),
    "a class": ("model = nn.Linear\ninputs = ()", "ExportedProgram, not the class Linear"),
    "inputs": ("model = nn.Embedding(4, 4)\ninputs = 5", "inputs must be a tensor, or a tuple of what the model takes"),
    "no embedding": ("model = nn.Linear(2, 2)\ninputs = ones(1, 2)", "must have an embedding operation to offload"),
    "float indices": ("model = nn.Embedding(4, 4)\ninputs = ones(2)", "indices must be"),
    "too many": ("model = nn.Embedding(4, 4)\ninputs = (ones(2).int(),) * 2", "the number of inputs (input) must be 1"),
    "raises": (
        "class Bad(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.rows = nn.Embedding(4, 4)\n"
        "    def forward(self, indices):\n"
        "        raise KeyError('a\\nb')\n"
        "model = Bad()\ninputs = tensor([1])",
        "Bad cannot be traced: KeyError: 'a",
    ),
    "no forward": ("model = nn.Module()\ninputs = ()", "Module cannot be traced: "),
    "stops": (
        "class Bad(nn.Module):\n"
        "    def forward(self, indices):\n"
        "        raise SystemExit(3)\n"
        "model = Bad()\ninputs = tensor([1])",
        "SystemExit: 3",
    ),
}


@pytest.mark.parametrize("wrong", WRONG_MODELS)
def test_wrong_models_are_one_line(run, wrong: str) -> None:
    text, message = WRONG_MODELS[wrong]
    Path("wrong.py").write_text(LAYER + text)
    said = failed(run("wrong.py"), 2)
    assert said.startswith("daedal: wrong.py: ") and message in said and said.count("\n") == 1


def test_traceback_of_a_wrong_model(run) -> None:
    Path("wrong.py").write_text(LAYER + WRONG_MODELS["raises"][0])
    result = CliRunner().invoke(cli, ["--traceback", "compile", "wrong.py"])
    assert type(result.exception).__name__ == "InputError"
    assert isinstance(result.exception.__cause__, UnsupportedOperation)


def test_a_model_that_stays_in_pytorch(run) -> None:
    Path("left.py").write_text(
        "import torch\n" + LAYER + "class Left(nn.Module):\n"
        "    def forward(self, rows, lengths):\n"
        "        return torch.segment_reduce(rows, 'sum', lengths=lengths)\n"
        "model = Left()\ninputs = (ones(4, 3), tensor([1, 3]))"
    )
    Path("narrow.toml").write_text('base = "minimum"\nlevels = 2\nsequential_loads = [0, 0]\nrandom_loads = [0, 0]\n')
    said = failed(run("left.py", "--config", "narrow.toml"), 2)
    assert "the model must have an operation that runs on the device" in said and said.count("\n") == 1


def test_what_a_model_prints_is_not_output(run) -> None:
    Path("model.py").write_text(MODEL.replace("        return self", "        print('noise')\n        return self"))
    result = run("model.py", "--json")
    assert result.exit_code == 0 and json.loads(result.stdout)["level"] == "asm"


@pytest.mark.parametrize("config", ["ddr3", "edge"])
def test_bytes_are_those_of_the_text(run, config: str) -> None:
    options = ("pooled.py", "--shape", "D=64", "--config", config)
    raw = run(*options, "--emit", "bin").stdout_bytes
    assert Program.from_bytes(raw).config_hash == PRESETS[config].hash
    text = run(*options).stdout
    assert assemble(text) == raw
    assert run(*options, "--emit", "bin", "-o", "program.bin").exit_code == 0
    assert Path("program.bin").read_bytes() == raw


def test_text_gives_the_same_program(run) -> None:
    scf = run("pooled.py", "--shape", "D=64", "--emit", "scf").stdout
    wanted = run("pooled.py", "--shape", "D=64").stdout
    assert run("-", stdin=scf).stdout == wanted
    Path("pooled.mlir").write_text(scf)
    assert run("pooled.mlir").stdout == wanted
    assert run("pooled.mlir", "--emit", "scf").stdout == scf


def test_text_of_embedding_operations(run) -> None:
    import torch

    import daedal

    layer = torch.nn.EmbeddingBag(9, 8, mode="sum", include_last_offset=True)
    with daedal.Device.open("emulator", config="ddr3") as device:
        executable = daedal.compile(layer, (torch.zeros(20).long(), torch.tensor([0, 20])), device=device)
        emb, program = executable.ir("emb"), executable.program
    assert run("-", "--emit", "bin", stdin=emb).stdout_bytes == program
    assert "emb.bag" in run("-", "--emit", "emb", stdin=emb).stdout
    without = run("-", "--emit", "scf", "--bounds", "none", stdin=emb).stdout
    assert "check.bounds" not in without and "check.bounds" in run("-", "--emit", "scf", stdin=emb).stdout


def test_bounds_are_refused_where_the_text_has_its_checks(run) -> None:
    scf = run("pooled.py", "--shape", "D=64", "--emit", "scf").stdout
    assert "--bounds is for Python files and text of emb" in failed(run("-", "--bounds", "none", stdin=scf), 2)
    found = [json.loads(run("-", "--json", *more, stdin=text).stdout)["bounds"]
             for text, more in ((scf, ()), (EMB, ()), (EMB, ("--bounds", "warn")))]  # fmt: skip
    assert found == [None, "fatal", "warn"]


QUOTES = [
    ("\n" + '"' + "a" * 40 + "\n", 2),
    ('// it "is\n"sum" "a\\"b\\\\" "\\41" / "' + "a" * 100_000, 2),
    ('"' + "a" * 40 + '\\q"', 1),
]


@pytest.mark.parametrize(("text", "line"), QUOTES, ids=["open", "after others", "wrong escape"])
def test_strings_without_an_end(run, text: str, line: int) -> None:
    wanted = f'daedal: text.mlir cannot be read: line {line}: what a " begins must end with a " in the same line'
    Path("text.mlir").write_text(text)
    assert failed(run("text.mlir")).startswith(wanted)


def test_quotes_in_comments(run) -> None:
    wanted = run("-", stdin=EMB)
    assert wanted.exit_code == 0
    assert run("-", stdin=f'// it "is\n{EMB}// "so').stdout == wanted.stdout


ORDERS = {
    "in a loop": ("%D = arith", "%out_element =", "a value must be defined before it is used in `scf.for %d"),
    "beside": ("%c1 = arith", "%0 = arith", "%c1 must be defined before it is used in `%0 = arith.addi %P, %c1"),
}


@pytest.mark.parametrize("case", ORDERS)
def test_values_used_before_their_definition(run, case: str) -> None:
    moved, behind, message = ORDERS[case]
    lines = run("pooled.py", "--shape", "D=64", "--emit", "scf").stdout.splitlines()
    line = lines.pop(next(i for i, each in enumerate(lines) if moved in each))
    lines.insert(next(i for i, each in enumerate(lines) if behind in each) + 1, line)
    said = failed(run("-", stdin="\n".join(lines)))
    assert said.startswith(f"daedal: standard input cannot be read: {message}") and said.count("\n") == 1


COUNTED = """
func.func @k(%i: memref<?xi64>, %out: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %i, %c0 : memref<?xi64>
  %z = scf.for %p = %c0 to %n step %c1 iter_args(%count = %c0) -> (index) {
    %x = memref.load %i[%p] : memref<?xi64>
    %v = arith.index_cast %x : i64 to index
    %k = arith.cmpi ne, %v, %c0 : index
    %1 = scf.if %k -> (index) {
      %m = arith.addi %count, %c1 : index
      scf.yield %m : index
    } else {
    }
    scf.yield %1 : index
  }
  func.return
}
"""


def test_a_branch_that_yields_nothing(run) -> None:
    assert "loop %p: a value carried from one iteration to the next must be a counter" in failed(
        run("-", stdin=COUNTED)
    )


def test_json(run) -> None:
    document = json.loads(run("pooled.py", "--shape", "D=16", "--emit", "slc", "--json").stdout)
    assert (document["schema"], document["function"], document["sizes"]) == (1, "pooled", {"D": 16})
    assert document["config"] == {"name": "ddr3", "hash": PRESETS["ddr3"].hash}
    assert document["text"] == run("pooled.py", "--shape", "D=16", "--emit", "slc").stdout
    assert "size(out, 0)" in document["arguments"]
    document = json.loads(run("pooled.py", "--shape", "D=16", "--emit", "bin", "--json").stdout)
    assert bytes.fromhex(document["hex"]) == run("pooled.py", "--shape", "D=16", "--emit", "bin").stdout_bytes


@pytest.mark.parametrize("opt", range(4))
def test_optimisation_levels(run, opt: int) -> None:
    options = ("pooled.py", "--shape", "D=16", "--emit", "slcv")
    result = run(*options, "-O", str(opt))
    assert result.exit_code == 0 and result.stderr == ""
    assert ("%tile" in result.stdout) == (opt < 2)
    assert f"!slcv.accumulator<{(1, 4, 16, 16)[opt]} : i64>" in result.stdout
    assert (run(*options).stdout == result.stdout) == (opt >= 2)
    assert json.loads(run(*options, "--opt", str(opt), "--json").stdout)["opt"] == opt


def test_a_level_that_cannot_be(run) -> None:
    Path("sums.py").write_text(SUMS)
    result = run("sums.py", "--shape", "D=16", "-O", "0", "--json")
    assert result.stderr.startswith("sums is at O2, because at O0 loop %i: rows of 16 elements are reduced")
    assert json.loads(result.stdout)["opt"] == 2
    assert "4 is not in the range" in failed(run("pooled.py", "-O", "4"), 2)


def test_one_of_several_kernels(run) -> None:
    assert "func.func @ones" in run("two.py", "--function", "ones", "--emit", "scf").stdout
    assert "choose one with --function pooled|ones" in failed(run("two.py", "--emit", "scf"), 2)
    assert "has the kernels pooled, ones, but not three" in failed(run("two.py", "--function", "three"), 2)


def test_widths(run) -> None:
    assert "pooled has loops along rows: give their width, as --shape D=64" in failed(run("pooled.py"), 2)
    assert "'D=x' must be a size and its value, as D=64" in failed(run("pooled.py", "--shape", "D=x"), 2)
    assert "B is no width of rows of pooled; it has D" in failed(
        run("pooled.py", "--shape", "D=4", "--shape", "B=2"), 2
    )
    assert "for Python files" in failed(run("-", "--shape", "D=4", stdin=EMB), 2)


def test_errors(run) -> None:
    assert failed(run("none.py")) == "daedal: none.py cannot be read: there is no such file\n"
    assert "none.mlir cannot be read" in failed(run("none.mlir"))
    Path("empty.py").write_text("x = 1\n")
    wanted = "empty.py must have a function with @daedal.kernel, or a module `model` with its `inputs`, but has none"
    assert wanted in failed(run("empty.py"))
    Path("wrong.py").write_text("x = 1 / 0\n")
    assert "wrong.py cannot be run: ZeroDivisionError: division by zero" in failed(run("wrong.py"))
    Path("exit.py").write_text("import sys\nsys.exit(3)\n")
    assert "exit.py cannot be run: SystemExit: 3" in failed(run("exit.py"))
    Path("while.py").write_text(f"{HEAD}\n@daedal.kernel\ndef f(out: f32[N]):\n    while True:\n        pass\n")
    line = HEAD.count("\n") + 4
    assert f"while.py:{line}: `while True:`: `while` has no place in the machine" in failed(run("while.py"))
    assert "standard input cannot be read" in failed(run("-", stdin="func.func @f("))
    assert "is not one of" in failed(run("pooled.py", "--emit", "llvm"), 2)


def test_what_a_file_prints_is_not_output(run) -> None:
    Path("prints.py").write_text(Path("pooled.py").read_text() + "print('noise')\n")
    result = run("prints.py", "--shape", "D=4", "--json")
    assert json.loads(result.stdout)["function"] == "pooled"
    assert "noise" in result.stderr


def test_help(run) -> None:
    text = run("--help").stdout
    for word in ("FILE.py", "--emit", "emb|scf|slc|slcv|dlc|mach|asm|bin", "--shape", "--config"):
        assert word in text
