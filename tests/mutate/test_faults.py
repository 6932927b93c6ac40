"""The faults made by hand do not rot: each still has its place and its tests."""

import pytest

from tests.conftest import ROOT
from tests.mutate.fault import NEUTRAL, Edit, Fault, FaultDoesNotApply
from tests.mutate.faults import FAULTS

MOST = 110
"""What operators make is not made by hand."""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_it_applies(fault: Fault) -> None:
    for name, text in fault.texts(ROOT).items():
        assert text != (ROOT / name).read_text(encoding="utf-8")
        if name.endswith(".py"):
            compile(text, name, "exec")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_its_suites_exist(fault: Fault) -> None:
    assert fault.suites
    for suite in fault.suites:
        paths = [part.partition("::")[0] for part in suite.split() if part.startswith("tests/")]
        assert paths and all((ROOT / path).exists() for path in paths)


def test_the_list_is_short() -> None:
    made = [fault for fault in FAULTS if fault.kind != NEUTRAL]
    assert len({fault.id for fault in FAULTS}) == len(FAULTS) and len(made) <= MOST


@pytest.mark.parametrize(
    ("edit", "found"),
    [(Edit("f", "b", "x"), 2), (Edit("f", "c", "x"), 0), (Edit("f", "b", "x", 2), 2)],
    ids=["twice", "never", "no third"],
)
def test_a_text_that_is_not_there_once_is_refused(edit: Edit, found: int) -> None:
    with pytest.raises(FaultDoesNotApply, match=f"found {found}"):
        edit.apply("a b b")


def test_which_one_can_be_named() -> None:
    assert Edit("f", "b", "x", 1).apply("a b b") == "a b x"
