"""The oracle: traffic on the verilated DRAM controller alone takes as many cycles as such a DRAM lets it."""

import numpy as np
import pytest

from daedal.bench.suites import calibration
from daedal.cosim.litedram.memories import MEMORIES
from daedal.cosim.oracle.traffic import REQUEST, Oracle, Policy, oracle_of
from daedal.errors import DaedalError

pytestmark = [pytest.mark.rtl, pytest.mark.slow]

DRAM = MEMORIES["litedram-ddr3-x16"]
IN_ORDER = Policy(256, open_first=False, write_batch=None)


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return oracle_of(DRAM)


def random_words(oracle: Oracle, count: int, *, beats: int = 1, write: bool = False) -> np.ndarray:
    """Requests for aligned words anywhere in 64 MiB."""
    words = np.random.default_rng(count).integers(0, (64 << 20) // DRAM.word_bytes // beats, count) * beats
    return make(words, beats, write)


def make(words: np.ndarray, beats: int, write: bool) -> np.ndarray:
    requests = np.empty(len(words), REQUEST)
    requests["word"], requests["beats"], requests["write"] = words, beats, write
    return requests


def bank_word(oracle: Oracle, row: np.ndarray, bank: int) -> np.ndarray:
    """The first word of rows of a bank."""
    split = oracle.description
    return row << (split.column_bits + split.bank_bits) | bank << split.column_bits


def test_it_reaches_what_is_known(oracle) -> None:
    rows = list(calibration.rows_of(DRAM, seed=1))
    assert [row["row_bytes"] for row in rows] == [32, 64, 128, 256, 512]
    for row in rows:
        assert row["difference"] >= -calibration.TOLERANCE, row
        assert row["share"] < 95, "refresh takes its part"
        assert row["verdict"] == ""


def test_no_more_than_a_word_in_a_cycle(oracle) -> None:
    reads, writes = random_words(oracle, 500, beats=8), random_words(oracle, 300, beats=8, write=True)
    both = np.concatenate([reads[:250], writes, reads[250:]])
    for policy in (IN_ORDER, Policy(None, True, None), Policy(256, False, 64)):
        assert oracle.cycles(reads, policy) > 8 * 500
        assert oracle.cycles(writes, policy) > 8 * 300
        assert oracle.cycles(both, policy) > 8 * 800


def test_rows_of_one_bank_take_its_row_cycle_each(oracle) -> None:
    count, cycle = 200, oracle.description.timing["tRC"]
    rows = np.arange(count)
    same = make(bank_word(oracle, rows, 3), 1, write=False)
    apart = make(bank_word(oracle, rows, 0) + (rows % 8 << oracle.description.column_bits), 1, write=False)
    assert oracle.cycles(same, IN_ORDER) >= count * cycle
    assert oracle.cycles(apart, IN_ORDER) < count * cycle / 2


def test_open_rows_are_worth_something(oracle) -> None:
    rows = np.tile(np.arange(2), 200)  # two rows of one bank in turn
    requests = make(bank_word(oracle, rows, 0), 1, write=False)
    in_order, open_first = (oracle.cycles(requests, Policy(None, first, None)) for first in (False, True))
    assert open_first < in_order / 2


def test_a_narrow_window_costs_cycles(oracle) -> None:
    requests = random_words(oracle, 2000, beats=4)
    narrow, wide = (oracle.cycles(requests, Policy(window, False, None)) for window in (8, 256))
    assert wide < 0.6 * narrow


def test_batches_of_writes_save_turns_of_the_bus(oracle) -> None:
    reads, writes = random_words(oracle, 2000), random_words(oracle, 1999, write=True)
    mixed = np.empty(3999, REQUEST)
    mixed[0::2], mixed[1::2] = reads, writes
    single, batches = (oracle.cycles(mixed, Policy(256, False, batch)) for batch in (1, 256))
    assert batches < 0.8 * single


def test_the_best_is_the_best(oracle) -> None:
    requests = random_words(oracle, 3000)
    best = oracle.best(requests)
    assert best.cycles == oracle.cycles(requests, best.policy) <= best.in_order
    assert best.cycles <= oracle.cycles(requests, IN_ORDER)
    assert best == oracle.best(requests)


def test_no_requests_take_no_cycles(oracle) -> None:
    assert oracle.cycles(np.empty(0, REQUEST), IN_ORDER) == 0


def test_traffic_that_does_not_end_is_an_error(oracle, monkeypatch) -> None:
    monkeypatch.setattr(oracle, "_run", lambda *arguments: 0)
    with pytest.raises(DaedalError, match="the traffic of 5 requests must end on litedram-ddr3-x16"):
        oracle.cycles(random_words(oracle, 5), IN_ORDER)
