"""Whatever reads what a user gives, with texts that it takes: each by name, called with the damaged text in a file.

A reader returns, or raises an error of one line; anything else is a failure. Those that write what they have read
check that it comes back as it was.
"""

import io
import json
import re
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import click
import numpy as np
from click.testing import CliRunner

from bench.synthesis import history
from daedal.base.boundary import line_of
from daedal.bench import registry
from daedal.bench.report import document, html
from daedal.bench.report.table import COLUMNS, markdown, with_means
from daedal.bench.suites import model_runs, prediction
from daedal.bench.workloads import reuse_traces
from daedal.cli import cli
from daedal.compiler import opt_main
from daedal.compiler.interpreters import interpret
from daedal.compiler.text import read_module
from daedal.cosim.memory_spec import MemorySpec
from daedal.driver.targets.description import read_description
from daedal.errors import DaedalError
from daedal.hw.config.core import PRESETS
from daedal.hw.config.file import read_config
from daedal.hw.isa.program import Program, end_of
from daedal.hw.isa.tools.assembler import assemble, disassemble
from daedal.runtime.kernel import BufferSpec, Kernel
from daedal.runtime.launch_arguments import Leaf
from daedal.runtime.operations import Lookup
from daedal.runtime.saved.container import pack
from daedal.runtime.saved.contents import (
    HostStep,
    Items,
    LaunchStep,
    OperationKernel,
    SavedCall,
    SavedGraph,
    SavedInput,
    SavedModel,
    SavedPlan,
    SavedSlot,
    SavedTable,
    Value,
)
from daedal.runtime.saved.files import SavedFile, Writer
from daedal.runtime.saved.operations import SavedLookup
from daedal.runtime.saved.validity import check_contents
from daedal.system.plan import Piece, Plan, PlannedTable, read_plan
from tests.fuzz.campaign import KEPT, read_cases
from tests.fuzz.configs import KNOWN
from tests.unit.isa.words import random_words

ROOT = Path(__file__).resolve().parents[3]

MOST_WORDS = 2000
"""Characters of the longest message."""


class NotOneLine(AssertionError):
    """What a reader said is not one line, or what it did is wrong."""


class Refused(DaedalError):
    """What a command said of a text."""


@dataclass(frozen=True)
class Reader:
    """``read`` takes the file with a text; ``texts`` gives those that are right; ``weight``: its part of all turns."""

    name: str
    suffix: str
    read: Callable[[Path], object]
    texts: Callable[[], list[bytes]]
    weight: int = 1


def one_line(message: str) -> None:
    """That a message is one line for a user."""
    if not message.strip() or "\n" in message.strip("\n") or "Traceback" in message or len(message) > MOST_WORDS:
        raise NotOneLine(f"a message must be one short line, not {message[:600]!r}")


def run_cli(*words: str) -> None:
    """Run a subcommand: success, or status 1 and one line, or what click says of a wrong command line."""
    result = CliRunner().invoke(cli, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code not in (0, 1, 2):
        raise NotOneLine(f"the status must be 0, 1 or 2, not {result.exit_code}")
    if result.exit_code:  # of a wrong command line, click shows more than the message
        raise Refused(result.stderr if result.exit_code == 1 else result.stderr.splitlines()[-1])


def run_opt(path: Path, *words: str) -> None:
    """Run ``daedal-opt``: success, or status 1 and one line."""
    errors = io.StringIO()
    with patch.object(sys, "argv", ["daedal-opt", str(path), *words]):
        with redirect_stdout(io.StringIO()), redirect_stderr(errors):
            try:
                opt_main.main()
            except SystemExit as end:
                if end.code != 1:
                    raise NotOneLine(f"the status must be 1, not {end.code}: {errors.getvalue()[:600]}") from end
                raise Refused(errors.getvalue()) from end


# ---- programs


def _programs() -> list[bytes]:
    rng = np.random.default_rng(5)
    made = [Program(PRESETS["edge"].hash, random_words(rng, 12)).to_bytes() for _ in range(3)]
    return [*made, made[0] + made[1], Program(0, []).to_bytes()]


def _program_texts() -> list[bytes]:
    written = [f"config 0x81ca7515\n{path.read_text()}" for path in (ROOT / "daedal/bench/handwritten").glob("*.asm")]
    return [*(text.encode() for text in written[:4]), *(disassemble(raw).encode() for raw in _programs())]


def _assemble(path: Path) -> None:
    try:
        raw = assemble(path.read_bytes().decode("utf-8", errors="replace"))
    finally:
        run_cli("asm", str(path), "-o", str(path.with_suffix(".out")))
    if assemble(disassemble(raw)) != raw:
        raise NotOneLine("a program must come back from its text")


def _disassemble(path: Path) -> None:
    raw = path.read_bytes()
    words = len(raw) // 8
    if words >= 3 and words % 3:  # most with a length and a checksum that are right, so that the words are looked at
        listed = [int.from_bytes(raw[at : at + 8], "little") for at in range(0, 8 * words, 8)]
        raw = framed(listed)
        path.write_bytes(raw)
    run_cli("disasm", str(path), "--json", "-o", str(path.with_suffix(".out")))
    if assemble(text := disassemble(raw)) != raw or disassemble(assemble(text)) != text:
        raise NotOneLine("bytes must come back from their text")


def framed(words: list[int]) -> bytes:
    """A program of words with the number of them and the checksum put right, and the first two fields."""
    mask = (1 << 40) - 1 | 0b1111 << 46 | 0xFF << 56
    head, length = words[0] & ~(0b1111 << 46 | 0xFF << 56), words[1] & ~mask | 1 << 56 | len(words)
    raw = b"".join(word.to_bytes(8, "little") for word in (head, length, *words[2:-1]))
    return raw + end_of(raw)


# ---- IR


COPY = """
func.func @copy(%t: memref<?x8xf32>, %i: memref<?xi64>, %out: memref<?x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %w = arith.constant 2.5 : f32
  %n = memref.dim %i, %c0 : memref<?xi64>
  scf.for %p = %c0 to %n step %c1 {
    %k = memref.load %i[%p] : memref<?xi64>
    %r = arith.index_cast %k : i64 to index
    scf.for %d = %c0 to %c8 step %c1 {
      %x = memref.load %t[%r, %d] : memref<?x8xf32>
      %y = arith.mulf %x, %w : f32
      memref.store %y, %out[%p, %d] : memref<?x8xf32>
    }
  }
  func.return
}
"""
BAG = """
func.func @bag(%table: tensor<?x64xf32>, %indices: tensor<?xi64>, %offsets: tensor<?xi64>) -> tensor<?x64xf32> {
  %0 = emb.bag "sum" %table[%indices] offsets %offsets
    : tensor<?x64xf32>, tensor<?xi64> offsets tensor<?xi64> -> tensor<?x64xf32>
  func.return %0 : tensor<?x64xf32>
}
"""
GIVEN = {"t": np.ones((4, 8), np.float32), "i": np.array([1, 3]), "out": np.zeros((2, 8), np.float32)}
"""What the interpreter runs COPY on."""

LONGEST = 4000
"""Characters of the longest text of IR."""


@cache
def _ir_texts() -> list[bytes]:
    chunks: list[str] = []
    for path in sorted((ROOT / "tests/ir").rglob("*.mlir")):
        text = path.read_text()
        run = text.partition("\n")[0]  # the line that runs the file, for its pass
        chunks += [f"{run}\n{chunk}" for chunk in text.split("// -----") if len(chunk) < LONGEST]
    return [chunk.encode() for chunk in chunks] + [
        b"func.func @f() {\n  %c = arith.constant 1.0e+39 : f32\n  func.return\n}\n",
        b'func.func @f() {\n  %c = arith.constant dense<0.5> : vector<4xf32>\n  "x.y"() : () -> ()\n  func.return\n}\n',
    ]


PASSES = (
    "", "canonicalize", "cse", "lower-emb", "loop-invariant-code-motion", "convert-scf-to-slc", "convert-slc-to-slcv",
    "convert-slcv-to-dlc", "loop-distribution", "promote-rows", "expand-functions", "functions-from-calls",
    "elide-initialization", "promote-scalars", "tile-columns", "keep-invariant-rows", "remove-empty-loops",
    "clamp-counts", "lower-emb,loop-invariant-code-motion,convert-scf-to-slc,convert-slc-to-slcv,convert-slcv-to-dlc",
)  # fmt: skip


def _opt(path: Path) -> None:
    raw = path.read_bytes()
    asked = re.match(rb"// RUN: daedal-opt -p (\w[\w,-]*)", raw)
    passes = asked[1].decode() if asked and sum(raw) % 8 else PASSES[sum(raw) % len(PASSES)]
    run_opt(path, "-p", passes, *(["--split-input-file"] if len(raw) % 5 == 0 else []))


def _kernels() -> list[bytes]:
    return [COPY.encode(), BAG.encode()]


def _kernel(path: Path) -> None:
    run_cli("compile", str(path), "--emit", "asm", "-o", str(path.with_suffix(".out")))


def _interpret(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", errors="replace")
    read_module(text, "the text")
    interpret(text, {name: array.copy() for name, array in GIVEN.items()})


# ---- tables of values


def _configs() -> list[bytes]:
    return [
        b'base = "edge"\nports = 4\nshifters = [true, false, false, false]\nname = "mine"\nwatchdog = 4096\n',
        (ROOT / "docs/tiny.toml").read_bytes(), b'levels = 2\nalus = [1, 1]\nserial = [0, 1]\n[a.b]\nc = 1979-05-27\n',
    ]  # fmt: skip


def _json_configs() -> list[bytes]:
    return [json.dumps(asdict(PRESETS["edge"]), indent=1).encode(), b'{"base": "minimum", "watchdog": 4096}']


def _results() -> list[bytes]:
    row = {
        "suite": "rm2", "workload": "rm2", "distribution": "zipf", "config": "ddr3", "memory": "ideal", "placement": 1,
        "cycles": 1000, "flops": 64000, "lines_read": 900, "lines_written": 20, "stalls": {"load": 20, "store": 3},
        "limit_cycles": 950, "limit_share": 0.95, "line_share": 0.9, "row_share": 0.8, "bit_exact": True, "verdict": "",
        "row_bytes": 256, "torch_share": None, "data": "made",
    }  # fmt: skip
    oracle = {"workload": "oracle", "placement": 0, "distribution": "uniform", "memory": "litedram-ddr3-x16",
              "row_bytes": 64, "cycles": 5, "share": 93.1}  # fmt: skip
    results = {"rm2": [row, {**row, "placement": 2}], "calibration": [oracle], "linearity": [{"rows": 5, "cycles": 7}]}
    about = document.facts([(PRESETS["ddr3"], "ideal")], seed=1, placements=2, quick=True)
    return [json.dumps({"schema": 1, "facts": about, "results": results}, indent=1).encode()]


def _load_results(path: Path) -> None:
    found = document.load(path)
    rows = [row for rows in found["results"].values() for row in rows if "distribution" in row]
    html.table(COLUMNS, with_means(rows))
    for suite in (*model_runs.SUITES, *registry.DETAILS):
        if found["results"].get(suite.name):
            markdown(suite.columns, with_means(found["results"][suite.name]))


def _reports() -> list[bytes]:
    config = asdict(PRESETS["edge"]) | {"hash": PRESETS["edge"].hash}
    return [json.dumps({"board": "ecpix5", "config": config, "fmax_mhz": 75.5, "routed": True}, indent=1).encode()]


def _descriptions() -> list[bytes]:
    names = ("address", "baddress", "command", "command_issue", "wrdata", "rddata")
    registers = {f"sdram_dfii_pi0_{name}": {"addr": 64, "size": 1} for name in names}
    registers["sdram_dfii_control"] = {"addr": 128, "size": 1}
    step = {"comment": "", "address": 0, "bank": 0, "command": "DFII_CONTROL_ODT|DFII_CONTROL_CKE", "wait": 200}
    phy = {"nphases": 1, "rdphase": 0, "wrphase": 0, "databits": 16, "dfi_databits": 32, "read_leveling": False,
           "delays": 0, "bitslips": 0}  # fmt: skip
    described = {"design": 7, "board": "x", "baud": 115200, "clock_hz": 10, "memory": {"base": 0, "size": 1 << 20},
                 "registers": {"base": 1 << 30}, "soc": {"csr_registers": registers}}  # fmt: skip
    dram = {"sequence": [step], "phy": phy}
    return [json.dumps(described | {"sdram": each}, indent=1).encode() for each in (dram, None)]


def _histories() -> list[bytes]:
    landed = json.loads(history.HISTORY.read_text(encoding="utf-8"))
    unit = {"lut": 5, "ff": 6, "bram": 0, "dsp": 0}
    short = {"schema": landed["schema"], "landings": [{"config": "ddr3", "units": {"lane": unit}}]}
    return [json.dumps(short).encode()]


def _history(path: Path) -> None:
    history.landed(history.read(path), "ddr3")
    unit = {"config": "ddr3", "unit": "lane", "status": "ok", "lut": 9, "ff": 9, "bram": 9, "dsp": 9}
    history.growths([unit], history.landed(history.read(path), "ddr3"))


# ---- small things


def _memories() -> list[bytes]:
    return [
        b"ideal:latency=200,stall=0.1,seed=3",
        b"litedram-ddr3-x16:checks=1",
        b"ideal:pause_after=5,pause=7,lines=.5",
    ]


def _memory(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", errors="replace")
    MemorySpec.parse(text)


def _options(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", errors="replace")
    lines = (("compile", "none.py", "--shape", text), ("tune", "--memory", f"x{text}"), ("sim", "--config", text, text))
    run_cli(*lines[len(text) % len(lines)])


def _histograms() -> list[bytes]:
    return [
        b"table_t4_bs16\nAvg # of indices: 640\nAvg # of unique cols: 90\nRatio of index distribution\n"
        b"(0, 1]: 0.5, (1, 2]: 0.25, (128+): 0.25\n\nnext"
    ]


def _kept() -> list[bytes]:
    return [path.read_bytes() for path in sorted(KEPT.glob("*.txt"))]


def _plans() -> list[bytes]:
    tables = PlannedTable("a", 7, 8, "float32", 4, 9), PlannedTable("b", None, 2, "int8", 1, 0)
    pieces = Piece("a", (0, 4), (0, 4), 1), Piece("a", (4, 8), (0, 3), 0), Piece("a", (4, 8), (3, 4), 1)
    plan = Plan((*pieces, Piece("b", (0, 2), (0, 1), 0)), tables, ("edge", 5), "ideal", 2, (70, 90), 0.25)
    with TemporaryDirectory() as folder:
        plan.save(Path(folder) / "plan.json")
        return [(Path(folder) / "plan.json").read_bytes()]


def _saved_texts() -> list[bytes]:
    """Texts of saved executables, without the data behind them."""
    program = _programs()[0]
    with TemporaryDirectory() as folder:
        writer = Writer()
        kernel = Kernel(
            program, (1, Leaf("base", "t")), (BufferSpec("t", "float32", (None, 4), False, True, True),), (), {}, 3
        )
        lookup, call = SavedLookup(wraps=False, is_column=False), (Value(1), Value(0))
        launch = LaunchStep((SavedCall("a", "a of t", "t", Value(1), lookup, call),), ())
        slots, inputs = (SavedSlot("i", Value(0), False),), (SavedInput("i", "array", "int64", 1),)
        graph = SavedGraph(
            slots, inputs, (0,), (), (launch, HostStep("view", (Value(2), Items("list", (-1,))))), Value(3)
        )
        operation = OperationKernel(Lookup(4, 64), False, writer.kernel(kernel))
        plan = SavedPlan(_plans()[0].decode(), True)
        model = SavedModel((SavedTable("t", "float32", (9, 4)),), (graph,), (operation,), plan)
        writer.write(Path(folder) / "saved", PRESETS["edge"], "fatal", 3, model)
        raw = (Path(folder) / "saved").read_bytes()
    return [raw[32 : 32 + int.from_bytes(raw[24:32], "little")]]


def _saved(path: Path) -> None:
    """With a digest that is right, so that the text is looked at."""
    raw = path.read_bytes().decode("utf-8", errors="replace")
    path.write_bytes(pack(raw, [_programs()[0]]))
    run_cli("inspect", str(path))
    check_contents(SavedFile(path))


READERS = (
    Reader("program text", ".s", _assemble, _program_texts, 8),
    Reader("program", ".bin", _disassemble, _programs, 5),
    Reader("daedal-opt", ".mlir", _opt, _ir_texts, 8),
    Reader("kernel", ".mlir", _kernel, _kernels, 4),
    Reader("interpreter", ".mlir", _interpret, _kernels, 2),
    Reader("configuration", ".toml", read_config, _configs, 4),
    Reader("configuration in JSON", ".json", read_config, _json_configs, 3),
    Reader("result of daedal bench", ".json", _load_results, _results, 6),
    Reader("report of a bitstream", ".json", prediction.read_report, _reports, 2),
    Reader("description of a board", ".json", lambda path: read_description(str(path)), _descriptions, 3),
    Reader("plan of a system", ".json", read_plan, _plans, 3),
    Reader("saved executable", ".daedal", _saved, _saved_texts, 3),
    Reader("history of landings", ".json", _history, _histories, 1),
    Reader("memory", ".txt", _memory, _memories, 3),
    Reader("options", ".txt", _options, _memories, 1),
    Reader("histogram", ".txt", reuse_traces.read_histogram, _histograms, 1),
    Reader("kept program", ".txt", lambda path: read_cases(path, KNOWN), _kept, 2),
)

ALLOWED = (DaedalError, ValueError, click.ClickException)
"""What a reader may raise, with one line."""


def judge(reader: Reader, path: Path) -> str:
    """Have the file read; ``read`` or ``refused``, and raise what is neither."""
    try:
        reader.read(path)
    except ALLOWED as error:
        if not isinstance(error, DaedalError | click.ClickException) and " must " not in str(error):
            raise NotOneLine(f"an error must say what is wrong with what, not {error!r:.600}") from error
        said = str(error)
        one_line(said if isinstance(error, Refused | click.ClickException) or "\n" in said else line_of(error))
        return "refused"
    return "read"
