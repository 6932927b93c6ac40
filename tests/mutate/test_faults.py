"""The list of faults does not rot: each still has its place, and there are enough, of every area."""

import pytest

from tests.conftest import ROOT
from tests.mutate.__main__ import main
from tests.mutate.fault import Edit, Fault, FaultDoesNotApply
from tests.mutate.faults import AREAS, FAULTS

ENOUGH = 100


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


def test_there_are_enough() -> None:
    assert sum(not fault.is_neutral for fault in FAULTS) >= ENOUGH
    assert len({fault.id for fault in FAULTS}) == len(FAULTS)
    assert all(area.FAULTS for area in AREAS)


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


def test_a_sample_has_so_many_faults_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    def listed(*options: str) -> list[str]:
        assert main(["--list", *options]) == 0
        return [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()]

    everything, one, again, other = (listed(*extra) for extra in ((), ("--sample", "30"), ("--sample", "30"),
                                                                  ("--sample", "30", "--seed", "2")))  # fmt: skip
    assert len(one) == len(set(one)) == 30 and one == again != other
    assert one == [name for name in everything if name in one]
    assert listed("--only", "rtl_queues/*", "--sample", "1000") == listed("--only", "rtl_queues/*")
    assert main(["--list", "--sample", "0"]) == 2
