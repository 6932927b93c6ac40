"""Makes a failing case smaller, as long as it fails in the same way."""

from collections.abc import Callable, Iterator

from daedal.hw.isa.program import Word, unpack
from daedal.hw.isa.words import LevelField, ProgramWord, Unit
from tests.fuzz.programs.case import Case

Fails = Callable[[Case], bool]

TRIES = 400


def shrink(case: Case, fails: Fails, tries: int = TRIES) -> Case:
    """The smallest case found that ``fails``; ``case`` itself does.

    Words are left out, first many at a time, then loops are cut short. ``fails`` must be true only of cases that are
    as legal as the first one was.
    """
    left = [tries]

    def keeps(body: tuple[int, ...]) -> bool:
        if left[0] <= 0 or body == case.body:
            return False
        left[0] -= 1
        return fails(case.with_body(body))

    size = max(1, len(case.body) // 2)
    while size:
        before = case.body
        at = 0
        while at < len(case.body):
            body = case.body[:at] + case.body[at + size :]
            if keeps(body):
                case = case.with_body(body)
            else:
                at += size
        if case.body == before:
            size //= 2
    for at in range(len(case.body)):
        for word in simpler(case.body[at]):
            body = (*case.body[:at], word, *case.body[at + 1 :])
            if keeps(body):
                case = case.with_body(body)
                break
    return case


def simpler(bits: int) -> Iterator[int]:
    """Words that make a loop shorter than this one does."""
    raw = unpack(ProgramWord, bits)
    if raw["unit"] != Unit.LEVEL.value or raw["field"] != LevelField.UPPER.value or raw["substitute"]:
        return
    value = raw["value"]
    yield from (Word(LevelField.UPPER, raw["index"], less).encode() for less in (value // 2, value - 1) if less < value)
