"""The comparison itself: each thing that may go wrong is seen."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from daedal.hw.isa.launch import Counter, RecordWord, State
from tests.fuzz.campaign import Campaign
from tests.fuzz.configs import RTL
from tests.fuzz.judge import Failure, expect, judge
from tests.fuzz.machines import Machine, Outcome
from tests.fuzz.programs.case import Case
from tests.fuzz.programs.generator import legal_case
from tests.fuzz.programs.image import OUT
from tests.fuzz.programs.mutations import MUTATIONS, low_limit

CONFIG = RTL["small"]


class Altered(Machine):
    """An emulator whose outcome is changed before anybody sees it."""

    def __init__(self, change: Callable[[list[int], bytearray, dict[str, int]], None]) -> None:
        super().__init__(CONFIG, "emulator")
        self.change = change

    def run(self, *cases: Case) -> Outcome:
        outcome = super().run(*cases)
        words = list(outcome.records[0].words)
        memory, counted = bytearray(outcome.memory), dict(outcome.counted or {})
        self.change(words, memory, counted)
        record = replace(outcome.records[0], words=tuple(words))
        return replace(outcome, records=(record,), memory=bytes(memory), counted=counted)


def flip_out(words: list[int], memory: bytearray, counted: dict[str, int]) -> None:
    memory[OUT + 4001] ^= 1


def flip_input(words: list[int], memory: bytearray, counted: dict[str, int]) -> None:
    memory[OUT - 1] ^= 1


def one_row_more(words: list[int], memory: bytearray, counted: dict[str, int]) -> None:
    words[RecordWord.COUNTERS.value + Counter.ROWS.value] += 1


def other_nest(words: list[int], memory: bytearray, counted: dict[str, int]) -> None:
    words[RecordWord.HEAD.value] ^= 1 << 16


def other_value(words: list[int], memory: bytearray, counted: dict[str, int]) -> None:
    words[RecordWord.VALUE.value] ^= 1 << 63


def other_register(words: list[int], memory: bytearray, counted: dict[str, int]) -> None:
    words[RecordWord.REGISTER0.value + CONFIG.registers - 1] ^= 1


def bus_disagrees(words: list[int], memory: bytearray, counted: dict[str, int]) -> None:
    counted[Counter.LINES_READ.name] = words[RecordWord.COUNTERS.value + Counter.LINES_READ.value] + 1


def done(words: list[int], memory: bytearray, counted: dict[str, int]) -> None:
    words[RecordWord.HEAD.value] = State.DONE.value


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (flip_out, "memory"), (flip_input, "memory"), (one_row_more, "ROWS"), (other_nest, "record"),
        (other_value, "record"), (other_register, "record"), (bus_disagrees, "bus LINES_READ"),
    ],
)  # fmt: skip
def test_a_difference_of_a_legal_program_is_seen(change, kind, seed):
    case = legal_case([seed, 1], CONFIG)
    with Machine(CONFIG, "emulator") as emulator, Altered(lambda *_: None) as same, Altered(change) as other:
        expected = expect([case], emulator)
        judge([case], expected, same)
        with pytest.raises(Failure) as caught:
            judge([case], expected, other)
    assert caught.value.kind == kind


@pytest.mark.parametrize("change", [other_nest, other_value, other_register, done, flip_input])
def test_a_difference_of_a_fault_is_seen(change, seed):
    with Campaign(CONFIG) as campaign, Altered(lambda *_: None) as same, Altered(change) as other:
        case = campaign.faulting([seed], list(MUTATIONS).index(low_limit))
        expected = campaign.compare([case], None)
        judge([case], expected, same)
        with pytest.raises(Failure):
            judge([case], expected, other)


def test_a_legal_program_that_faults_is_a_failure(seed):
    with Campaign(CONFIG) as campaign:
        case = campaign.faulting([seed], 1)
        with pytest.raises(Failure, match="legal"):
            campaign.check([replace(case, expect="done")])
        with pytest.raises(Failure, match="illegal"):
            campaign.check([replace(legal_case([seed], CONFIG), expect="fault")])


@pytest.mark.parametrize("change", [flip_out, flip_input])
def test_what_the_emulator_writes_otherwise_than_specified_is_seen(change, seed):
    with Altered(change) as emulator, pytest.raises(Failure) as caught:
        expect([legal_case([seed, 1], CONFIG)], emulator)
    assert caught.value.kind == "specification memory"
