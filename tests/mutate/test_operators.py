"""What operators make of a piece of text or of a netlist, and which are drawn."""

from collections.abc import Callable, Iterator
from itertools import islice

import pytest
from amaranth.back import rtlil

from daedal.hw.queues.credit_counter import CreditCounter
from tests.conftest import ROOT
from tests.mutate.__main__ import main
from tests.mutate.draw import CPP as CPP_FOLDERS
from tests.mutate.draw import PYTHON as PYTHON_FOLDERS
from tests.mutate.draw import draw
from tests.mutate.fault import SiteEdit
from tests.mutate.operators import netlist
from tests.mutate.operators.cpp_sites import cpp_sites
from tests.mutate.operators.python_sites import python_sites
from tests.mutate.operators.site import Site
from tests.mutate.suites import ALL, suites_of_cell, suites_of_source

PYTHON = [
    ("x = a <= b", {"x = a < b"}),
    ("x = a is not b", {"x = a is b"}),
    ("x = (a) not in (b)", {"x = (a) in (b)"}),
    ("x = a == b != c", {"x = a != b != c", "x = a == b == c"}),
    ("x = a // b", {"x = a * b"}),
    ("x = a and b and c", {"x = a or b and c"}),
    ("x = not a", {"x = a"}),
    ("x = True", {"x = False"}),
    ("x = 7", {"x = (7 + 1)"}),
    ("x = min(a, b)", {"x = max(a, b)"}),
    ("x.y = a", {"pass"}),
    ("if a:\n    f()", {"if (not (a)):\n    f()", "if a:\n    pass"}),
    ("def f(a: 'A | B') -> int | None:\n    return a", {"def f(a: 'A | B') -> int | None:\n    return None"}),
    ("@f(1)\nclass A:\n    '''Says.'''", set()),
    ("assert a == 1, f'{a - 1}'", set()),
    ("ä = '€' # -\nx = (a  # - b\n     - b)", {"ä = '€' # -\nx = (a  # - b\n     + b)"}),
]

CPP = [
    ("bool x = a < b;", {"bool x = a <= b;"}),
    ("int x = a << 3;", {"int x = a >> 3;", "int x = a << (3 + 1);"}),
    ("bool x = !a && b;", {"bool x = a && b;", "bool x = !a || b;"}),
    ("void f() { g(); }", {"void f() { ; }"}),
    ("void f() { if (a) return; }", {"void f() { if (!(a)) return; }"}),
    ("void f() { x += y; }", {"void f() { ; }", "void f() { x -= y; }"}),
    ("std::array<int, 4> x;\nstatic_assert(a == b);", set()),
    ("int f() { switch (a) { case 3: return b; } }", set()),
]


def results(sites: Callable[[str], Iterator[Site]], text: str) -> set[str]:
    return {SiteEdit("f", site).apply(text) for site in sites(text)}


@pytest.mark.parametrize(("text", "expected"), PYTHON, ids=[text for text, _ in PYTHON])
def test_of_python(text: str, expected: set[str]) -> None:
    assert results(python_sites, text) == expected


@pytest.mark.parametrize(("text", "expected"), CPP, ids=[text for text, _ in CPP])
def test_of_cpp(text: str, expected: set[str]) -> None:
    assert results(cpp_sites, text) == expected


@pytest.mark.parametrize("language", ["python", "cpp"])
def test_what_is_drawn_is_source_with_tests_and_the_same_for_one_seed(language: str) -> None:
    drawn, again, other = (list(islice(draw(language, 20, seed), 20)) for seed in (3, 3, 4))
    assert [fault.id for fault in drawn] == [fault.id for fault in again] != [fault.id for fault in other]
    assert len({fault.id for fault in drawn}) == 20
    for fault in drawn:
        for name, text in fault.texts(ROOT).items():
            assert text != (ROOT / name).read_text(encoding="utf-8")
            if language == "python":
                compile(text, name, "exec")
        assert fault.suites


def test_cells_of_one_design_are_found_in_others() -> None:
    """A cell of a part is the same one in that part alone; what is mutated there is one bit."""
    design = rtlil.convert(CreditCounter(5), name="core")
    drawn = netlist.draw(design, "minimum", 20, 1)
    assert len(drawn) > 10 and drawn == netlist.draw(design, "minimum", 20, 1)
    alone = rtlil.convert(CreditCounter(5), name="another")
    for mutation in drawn[:3]:
        changed = netlist.mutated(alone, mutation)
        assert changed is not None and "module \\another" in changed
    assert netlist.mutated(rtlil.convert(CreditCounter(2), name="another"), drawn[0]) != netlist.mutated(
        alone, drawn[0]
    )


@pytest.mark.parametrize("suite", sorted(ALL))
def test_suites_exist(suite: str) -> None:
    paths = [part.partition("::")[0] for part in suite.split() if part.startswith("tests/")]
    assert paths and all((ROOT / path).exists() for path in paths)


@pytest.mark.parametrize("folder", [*PYTHON_FOLDERS, *CPP_FOLDERS])
def test_every_file_has_suites(folder: str) -> None:
    for file in (ROOT / folder).rglob("*.*"):
        assert suites_of_source(str(file.relative_to(ROOT)))


def test_suites_of_cells_end_with_the_core() -> None:
    near, *_, core = suites_of_cell("small", ("core", "store", "queue"), "daedal/hw/queues/fifo.py")
    assert "queues" in near and "system" in core
    assert "test_core" in suites_of_cell("minimum", ("core",), "amaranth/lib/enum.py")[0]


@pytest.mark.parametrize("words", [("3", "ada"), ("0", "rtl"), ("9" * 30, "cpp")], ids=["ada", "none", "too many"])
def test_what_is_drawn_is_checked(words: tuple[str, str]) -> None:
    with pytest.raises(
        SystemExit, match=f"--draw must be a number from 1 to 9999 and one of .*, not {' '.join(words)}$"
    ):
        main(["--draw", *words])


def test_options_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "nothing/*"]) == 2
    assert "no fault has such an id" in capsys.readouterr().err
    with pytest.raises(
        SystemExit, match="--draw must be a number from 1 to 9999 and one of rtl, cpp, python, not 3 ada"
    ):
        main(["--draw", "3", "ada"])
