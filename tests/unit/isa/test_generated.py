"""What is generated from the encodings: the pages and the C++ header."""

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest

from daedal.cosim.builder.library import build_library
from daedal.hw.config.core import PRESETS, Config
from daedal.hw.isa import instructions, launch, operations, registers, words
from daedal.hw.isa.instructions import Instruction, VectorOp
from daedal.hw.isa.program import FIELD_STRUCTS, UNIT_FIELDS, pack, struct_width, unpack
from daedal.hw.isa.tools import c_header, docs
from daedal.hw.isa.words import ProgramWord


def test_the_pages_are_current() -> None:
    assert docs.check(), "docs/isa must be generated anew: python -m daedal.hw.isa.tools.docs"


def test_an_old_page_is_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not docs.check(tmp_path)
    docs.write(tmp_path)
    assert docs.check(tmp_path)
    page = tmp_path / "programs.md"
    page.write_text(page.read_text().replace("| 39:0 | `value`", "| 38:0 | `value`"), encoding="utf-8")
    assert not docs.check(tmp_path)
    (tmp_path / "gone.md").touch()
    docs.write(tmp_path)
    assert docs.check(tmp_path)
    assert docs.main(["--what"]) == 2
    assert "--check" in capsys.readouterr().err


def test_the_pages_have_every_encoding() -> None:
    pages = docs.generate()
    text = "\n".join(pages.values())
    for module in (words, instructions, operations, registers, launch):
        for kind in (*c_header.enums(module), *c_header.structs(module)):
            assert text.count(f"\n## {kind.__name__}\n") == (kind is not VectorOp), kind
    for page in pages.values():
        assert page.count("\n") <= 200
        for target, anchor in re.findall(r"\]\((\w+\.md)?(?:#([\w-]+))?\)", page):
            heads = re.findall(r"^#+ (.*)$", pages[target] if target else page, re.MULTILINE)
            assert not anchor or anchor in {head.lower().replace(" ", "-") for head in heads}
    assert "| 10:9 | `a.number`" not in text
    assert "| 12:9 | `a.number` | 4 bit |" in text  # after op and destination
    assert "| 0x20 | `DOORBELL` |" in text


PROBE = """
#include "encodings.h"
using namespace daedal;
extern "C" {
std::uint64_t op(std::uint64_t bits) { return Instruction::decode(bits).op; }
std::uint64_t b_kind(std::uint64_t bits) { return Instruction::decode(bits).b_kind; }
std::uint64_t again(std::uint64_t bits) { return ProgramWord::decode(bits).encode(); }
std::uint64_t width() { return ProgramWord::width; }
std::uint64_t known(std::uint64_t unit, std::uint64_t field) { return known_field(unit, field); }
std::uint64_t config_words() { return sizeof(Config) / 8; }
std::int64_t last_shifter(const Config* config) { return config->shifters[config->levels - 1]; }
std::int64_t hash(const Config* config) { return config->hash; }
}
"""


@pytest.fixture(scope="module")
def probe() -> ctypes.CDLL:
    files = {"encodings.h": c_header.generate(), "probe.cpp": PROBE}
    library = ctypes.CDLL(str(build_library("probe", files)))
    for name in ("op", "b_kind", "again", "width", "known", "config_words"):
        getattr(library, name).restype = ctypes.c_uint64
    for name in ("last_shifter", "hash"):
        getattr(library, name).restype = ctypes.c_int64
    return library


def word(value: int) -> ctypes.c_uint64:
    return ctypes.c_uint64(value)


def test_header_decodes_as_python_does(probe: ctypes.CDLL, rng: np.random.Generator) -> None:
    for _ in range(50):
        bits = int(rng.integers(1 << 63))
        members = unpack(Instruction, bits)
        assert probe.op(word(bits)) == members["op"]
        assert probe.b_kind(word(bits)) == members["b.kind"]
        assert probe.again(word(bits)) == bits
    assert probe.width() == struct_width(ProgramWord) == 64


def test_header_knows_the_fields(probe: ctypes.CDLL) -> None:
    values = {unit.value: {field.value for field in fields} for unit, fields in UNIT_FIELDS.items()}
    for unit in range(16):
        for field in range(256):
            assert bool(probe.known(word(unit), word(field))) == (field in values.get(unit, ()))


@pytest.mark.parametrize("config", [*PRESETS.values(), Config(shifters=(False, False, False, True))])
def test_configuration_arrives(probe: ctypes.CDLL, config: Config) -> None:
    values = c_header.config_values(config)
    assert len(values) == probe.config_words()
    array = (ctypes.c_int64 * len(values))(*values)
    assert probe.last_shifter(array) == config.shifters[-1]
    assert probe.hash(array) == config.hash


def test_members_cover_each_structure() -> None:
    for struct in {*FIELD_STRUCTS.values(), ProgramWord}:
        covered = 0
        for _, offset, width in c_header.members(struct):
            bits = ((1 << width) - 1) << offset
            assert not covered & bits
            covered |= bits
        assert covered == (1 << struct_width(struct)) - 1
    assert pack(ProgramWord, {"field": 255, "index": 63}) >> 50 == (1 << 14) - 1
