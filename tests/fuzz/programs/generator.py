"""Random legal programs: nests, loads, events, rows and callbacks, for any configuration.

A program keeps all rules of docs/machine/machine.md: it never faults, never hangs, and never reads what it stores; but
one that updates rows may, and then faults if it is not sure which comes first.
"""

import numpy as np

from daedal.hw.config.core import Config
from daedal.hw.isa.program import Word
from daedal.hw.isa.words import ControlField, EventField, EventKind, event_index
from tests.fuzz.programs.callbacks import Callbacks
from tests.fuzz.programs.case import Case
from tests.fuzz.programs.dice import Dice
from tests.fuzz.programs.groups import Group, GroupMaker, words
from tests.fuzz.programs.image import PLACE_BYTES, PROGRAM
from tests.fuzz.programs.levels import Known, Level, LevelMaker
from tests.fuzz.programs.ranges import Range

IMAGES = 8
"""Different memories."""

MOST_EVENT_STEPS = 15
MOST_WORDS = (PLACE_BYTES - PROGRAM) // 8
WORK = 1500
"""About so many beats of rows may a nest move."""


def legal_case(seed: int | list[int], config: Config, *, updates: bool = False) -> Case:
    """The random legal program of this seed; one that updates rows may read what it stores."""
    rng = np.random.default_rng(seed)
    while True:
        dice = Dice(rng, config, updates=updates)
        case = Case.of(config, dice.below(IMAGES), Generator(dice).body(), dice.arguments)
        if len(case.words) <= MOST_WORDS:
            return case


class Generator:
    """Makes one program."""

    def __init__(self, dice: Dice) -> None:
        self.dice, self.config = dice, dice.config

    def body(self) -> list[Word]:
        dice = self.dice
        dice.interleave = self.config.context_level is not None and dice.chance(0.6)
        self.callbacks = Callbacks(dice)
        self.callbacks.make()
        listed = list(self.callbacks.words)
        for number in range(dice.pick([1, 1, 1, 2, 2, 3, 5])):
            nest = self.nest()
            # What is for the execute unit comes before the first nest, in any order.
            listed = dice.shuffle(listed + nest) if number == 0 else listed + dice.shuffle(nest)
            listed.append(Word(ControlField.RUN))
        return listed if dice.chance(0.98) else []

    def nest(self) -> list[Word]:
        """The words of one nest, without RUN."""
        dice = self.dice
        count = (
            self.config.levels if dice.chance(0.4) else dice.between(0 if dice.chance(0.1) else 1, self.config.levels)
        )
        known = Known([Range.of(0)] * self.config.registers)
        levels: list[Level] = []
        trips, bundles = dice.pick([1, 2, 3, 4, 4, 5, 6, 8]), 1
        for level in range(count):
            most = trips if bundles * trips <= 60 else max(1, min(trips, 120 // bundles))
            if level == 0 and dice.chance(0.15):
                most = dice.between(1, 40)
            levels.append(LevelMaker(dice, level, known, most).make())
            known, bundles = levels[-1].iteration, bundles * max(1, levels[-1].trips)
        listed = [word for level in levels for word in level.words]
        at_events = known
        for level in levels:
            at_events = at_events.join(level.empty) if level.empty else at_events
        return listed + self.events(levels, at_events, bundles)

    def events(self, levels: list[Level], known: Known, bundles: int) -> list[Word]:
        """Steps and the events that do them."""
        dice = self.dice
        groups, first, listed = self.groups(known, max(4, WORK // bundles)), [], []
        number = dice.below(self.config.steps - sum(len(group.steps) for group in groups) + 1)
        for group in groups:
            first.append(number)
            for step in group.steps:
                listed += words(dice, number, step)
                number += 1
        first.append(number)
        if not groups:
            return []
        for level in range(len(levels)):
            for kind in EventKind:
                if dice.chance(0.55):
                    begin = dice.below(len(groups))
                    end = min(len(groups), begin + dice.pick([1, 1, 2, 3]))
                    while end > begin and first[end] - first[begin] > MOST_EVENT_STEPS:
                        end -= 1
                    listed.append(self.event(level, kind, first[begin], first[end] - first[begin]))
        return listed

    def event(self, level: int, kind: EventKind, first: int, count: int) -> Word:
        dice = self.dice
        predicate = dice.register() if dice.chance(0.45) else 0
        return dice.packed(
            EventField.CONTROL, event_index(level, kind), first=first, count=count, predicate=predicate,
            sense=dice.below(2),
        )  # fmt: skip

    def groups(self, known: Known, work: int) -> list[Group]:
        """Groups that fit the steps of the machine and move not too many beats."""
        dice, maker = self.dice, GroupMaker(self.dice, known)
        groups: list[Group] = []
        room = self.config.steps
        for _ in range(dice.between(1, 8)):
            if self.callbacks.made and dice.chance(0.75):
                group = maker.for_callback(dice.pick(self.callbacks.made))
            else:
                group = maker.stream(max(4, min(24000, work * self.config.bus_bytes) & -4))
            if len(group.steps) <= min(room, MOST_EVENT_STEPS) and group.beats <= work:
                groups.append(group)
                room -= len(group.steps)
        return groups
