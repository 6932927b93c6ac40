"""``daedal asm`` and ``daedal disasm``: round trips, and what is said about wrong text and wrong bytes."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from daedal.cli import cli
from daedal.hw.config.core import PRESETS
from daedal.hw.isa.program import Program
from daedal.hw.isa.tools.assembler import assemble, disassemble
from tests.unit.isa.words import random_words

EDGE = PRESETS["edge"]
TEXT = "level 1 load0_base = arg4 + 0x8\ninstruction 2 code op=add a.kind=queue last=1\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch):
    """Runs the command in a folder of its own; ``stdin`` is bytes."""
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: str, stdin: bytes | None = None) -> Result:
        return CliRunner().invoke(cli, list(arguments), input=stdin)

    return invoke


def failed(result: Result) -> str:
    """The one line of an error."""
    assert (result.exit_code, result.stdout_bytes) == (1, b"")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("daedal: ").rstrip("\n")


def test_round_trip_of_files(run, rng: np.random.Generator) -> None:
    raw = b"".join(Program(EDGE.hash, random_words(rng, 60)).to_bytes() for _ in range(3))
    Path("a.bin").write_bytes(raw)
    assert run("disasm", "a.bin", "-o", "a.s").exit_code == 0
    assert run("asm", "a.s", "-o", "b.bin", "--config", "edge").exit_code == 0
    assert Path("b.bin").read_bytes() == raw
    assert Path("a.s").read_text().startswith(f"config {EDGE.hash:#010x}  ; edge\n")


def test_round_trip_of_streams(run) -> None:
    raw = run("asm", "-", "-o", "-", "--config", "edge", stdin=TEXT.encode()).stdout_bytes
    assert Program.from_bytes(raw).config_hash == EDGE.hash
    text = run("disasm", "-", stdin=raw).stdout
    assert text.splitlines()[1:] == TEXT.splitlines()
    assert run("asm", "-", "-o", "-", stdin=text.encode()).stdout_bytes == raw


def test_words_as_json(run) -> None:
    raw = assemble(TEXT, config_hash=EDGE.hash)
    document = json.loads(run("disasm", "-", "--json", stdin=raw).stdout)
    (program,) = document["programs"]
    assert program["config_hash"] == EDGE.hash
    expected = {"unit": "level", "index": 1, "field": "load0_base", "value": 8, "argument": 4}
    assert program["words"][0] == expected


@pytest.mark.parametrize(("line", "message"), [
    ("nonsense", "a line must be `unit index field …`"),
    ("shelf 0 lower = 1", "a unit must be one of control, level, event, step, .*, not 'shelf'"),
    ("callback 0 begin = 1", "a field of unit callback must be one of start, not 'begin'"),
    ("instruction 0 code op=ad", "member op must be one of nop, move, add, .*, not 'ad'"),
    ("instruction 0 code colour=1", "member must be one of op, destination, a, b, .*, not 'colour'"),
    ("instruction 0 code a=1", "member a must be given by its parts a.number, a.kind"),
    ("instruction 0 code last", "a member must be given as `member=value`, not 'last'"),
    ("instruction 0 code op=add op=move", "a member must be given once, not op twice"),
    ("level 0 lower enable=1", "field lower must be given as `= NUMBER`"),
    ("level 0 lower = 0xzz", "a value must be a number, not '0xzz'"),
    ("level 64 lower = 1", "ProgramWord.index must fit 6 bits, not 64"),
    ("config", "a line must be `config HASH`"),
    ("config zz", "a configuration's hash must be a number, not 'zz'"),
])  # fmt: skip
def test_wrong_text_is_named(run, line: str, message: str) -> None:
    Path("x.s").write_text(f"config 1\n; fine so far\n{line}\n")
    said = failed(run("asm", "x.s", "-o", "x.bin"))
    assert said.startswith(f"x.s:3: {line!r} cannot be read: ")
    assert re.search(message, said), said
    assert not Path("x.bin").exists()


def test_text_for_no_machine_or_another(run) -> None:
    Path("x.s").write_text(TEXT)
    assert "x.s must name the configuration" in failed(run("asm", "x.s", "-o", "x.bin"))
    Path("x.s").write_text(f"config {EDGE.hash:#x}\n{TEXT}")
    said = failed(run("asm", "x.s", "-o", "x.bin", "--config", "ddr3"))
    assert "for configuration ddr3" in said
    assert f"not edge {EDGE.hash:#010x}" in said
    assert run("asm", "x.s", "-o", "x.bin", "--config", "edge").exit_code == 0


def test_wrong_bytes_are_named(run) -> None:
    raw = assemble(TEXT, config_hash=EDGE.hash)
    altered = bytearray(raw)
    altered[17] ^= 1
    cases = {
        "the program must have 5 words, as it says, not 4: truncated?": raw[:-8],
        "a program must be whole words of 8 bytes, at least 3, not 39 bytes": raw[:-1],
        "the program's checksum does not fit its bytes: it was altered": bytes(altered),
        "program 2, from byte 40: the program must have 5 words, as it says, not 3: truncated?": raw + raw[:24],
        "not 0 bytes": b"",
        "must name a unit and field of the machine": b"\xff" * 40,
    }
    for message, wrong in cases.items():
        said = failed(run("disasm", "-", stdin=wrong))
        assert said.startswith("standard input: ")
        assert message in said
    Path("a.bin").write_bytes(raw)
    assert "a.bin must be a program for configuration ddr3" in failed(run("disasm", "a.bin", "--config", "ddr3"))
    assert disassemble(raw) == run("disasm", "a.bin", "--config", "edge").stdout.replace("  ; edge", "")


def test_files_that_cannot_be_used(run) -> None:
    assert failed(run("disasm", "none.bin")) == "none.bin cannot be read: No such file or directory"
    Path("a.bin").write_bytes(b"\xff\xfe")
    assert "a.bin must be text in UTF-8" in failed(run("asm", "a.bin", "-o", "b.bin"))
    Path("a.s").write_text(TEXT)
    assert "no/b.bin cannot be written" in failed(run("asm", "a.s", "-o", "no/b.bin", "--config", "edge"))
