"""The command behind `make test-full`, with little to do."""

from itertools import islice

import pytest

from daedal.hw.execute_unit.fpu.lane_op import LaneOp
from tests.full.__main__ import main, run, table
from tests.full.jobs import Job, jobs
from tests.unit.float.models import Division, Kind

pytestmark = pytest.mark.rtl


def _right() -> Division:
    return Division(checked=5)


def _wrong() -> Division:
    return Division(checked=7, wrong=2, first=3)


def test_reports_what_is_wrong(capsys):
    totals = run([Job("one", _right), Job("two", _wrong), Job("one", _right)], 1)
    out = capsys.readouterr().out
    assert "WRONG two: 2 of 7 quotients wrong, first by 3" in out
    assert "3 of 3 pieces, 17 results" in out
    assert (totals["one"].checked, totals["two"].wrong) == (10, 2)
    assert [line.split()[:3] for line in table(totals).splitlines()[1:]] == [["one", "10", "0"], ["two", "7", "2"]]


def test_every_operation_gets_every_kind():
    work = [job for job in jobs(1, 44_800, largest=64) if job.group in LaneOp.__members__]
    assert len(work) == len(LaneOp) * len(Kind)
    assert all(not job.run().wrong for job in islice(work, 3))
    assert sum(job.run.args[3] for job in work) <= 44_800


def test_says_which_arguments_there_are(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "--largest" in capsys.readouterr().out
