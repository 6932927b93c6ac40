"""Random programs, one after the other, on all that must agree; what fails is made smaller and kept."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from daedal.base.files import read_text
from daedal.errors import FileError, ProgramError
from daedal.hw.config.core import Config
from daedal.hw.isa.launch import State
from tests.fuzz.judge import Expected, Failure, expect, judge
from tests.fuzz.machines import SECONDS, SHORT, Machine
from tests.fuzz.programs.case import Case
from tests.fuzz.programs.generator import legal_case
from tests.fuzz.programs.mutations import MUTATIONS, mutants
from tests.fuzz.residue import outcome_of
from tests.fuzz.shrink import shrink

MEMORIES = ("ideal", "ideal:stall=0.3,seed=5", "ideal:latency=3,lines=4", "ideal:latency=300,stall=0.05,seed=2")
"""Memory models of the simulated machines."""

KEPT = Path(__file__).parent / "kept"
NEXT = "; next\n"
"""Between cases of one file, which are launched one behind the other."""

MOST_TRIES, FIRST_TRIES = 60, 12
"""Programs tried for one mutation until it makes a difference; fewer if the first have nothing that it can change."""

QUEUED = 4


def parse(text: str, configs: dict[str, Config]) -> list[Case]:
    """The cases in a kept file; ValueError for what is none."""
    return [Case.parse(part, configs) for part in text.split(NEXT)]


def read_cases(path: Path, configs: dict[str, Config]) -> list[Case]:
    """The cases in the kept file ``path``; FileError names it, and what is wrong."""
    text = read_text(path)
    try:
        return parse(text, configs)
    except (ValueError, ProgramError) as error:
        raise FileError(f"{path} must be a kept program: {error}") from error


class Campaign:
    """The emulator and, with ``memories``, the RTL of one configuration. Use it in a ``with`` block.

    With ``accesses``, registers of the RTL are read while it works.
    """

    def __init__(
        self, config: Config, memories: Sequence[str] = (), keep: Path | None = None, *, accesses: bool = False
    ) -> None:
        self.config, self.keep = config, keep
        self.emulator = Machine(config, "emulator")
        self.machines = [Machine(config, "verilator", memory, accesses=accesses) for memory in memories]
        self.mutations: Counter[str] = Counter()
        """How often each mutation was used."""
        self.ordered: Counter[bool] = Counter()
        """Of programs that update rows, whether it was sure that they read them first."""
        self._turn = 0

    def __enter__(self) -> "Campaign":
        return self

    def __exit__(self, *exception: object) -> None:
        with ExitStack() as stack:
            for machine in (self.emulator, *self.machines):
                stack.callback(machine.close)

    def legal(self, seed: list[int]) -> None:
        """One legal program; Failure if any two disagree about it."""
        self.check([legal_case(seed, self.config)])

    def updates(self, seed: list[int]) -> None:
        """A program that may read what it stores: on the RTL only if it is sure to do so before."""
        self.ordered[self.check([legal_case(seed, self.config, updates=True)])] += 1

    def queued(self, seed: list[int]) -> None:
        """Some legal programs queued at once, seldom with an illegal one among them."""
        rng = np.random.default_rng([*seed, QUEUED])
        cases = [legal_case([*seed, k], self.config) for k in range(int(rng.integers(2, QUEUED + 1)))]
        if rng.random() < 0.3:
            # All run on the first one's memory, where a fault may not come about that depends on data.
            bad = replace(self.faulting([*seed, 99], int(rng.integers(len(MUTATIONS)))), image=cases[0].image)
            self.emulator.seconds = SHORT
            outcome = outcome_of(bad, self.emulator)
            self.emulator.seconds = SECONDS
            if outcome is not None and outcome.records[0].state is State.FAULTED:
                cases[int(rng.integers(len(cases)))] = bad
        self.check(cases)

    def illegal(self, seed: list[int], number: int) -> None:
        """A program with mutation ``number``, and a legal one after it, which must not notice."""
        self.check([self.faulting(seed, number)])
        self.check([legal_case([*seed, 7], self.config)], same_machine=True)

    def faulting(self, seed: list[int], number: int) -> Case:
        """A mutated program that faults for the reason that the mutation, or if it is too seldom one of those after it,
        is to bring about.
        """
        mutation, causes = list(MUTATIONS.items())[number % len(MUTATIONS)]
        self.emulator.seconds = SHORT
        unchanged = 0
        for tries, case in enumerate(islice(mutants(seed, self.config, mutation), MOST_TRIES)):
            unchanged += case is None
            if unchanged == tries + 1 == FIRST_TRIES:
                break
            outcome = outcome_of(case, self.emulator) if case else None
            if case is None or outcome is None:
                continue
            record = outcome.records[0]
            if record.state is State.FAULTED and record.cause in causes:
                self.mutations[mutation.__name__] += 1
                self.emulator.seconds = SECONDS
                return case
        return self.faulting(seed, number + 1)

    def check(self, cases: Sequence[Case], *, same_machine: bool = False) -> bool:
        """Run cases on all that there is, the RTL in turn, if it must do the same; whether it must. Failure after they
        were made smaller and kept.
        """
        machine = None
        if self.machines:
            self._turn += not same_machine
            machine = self.machines[self._turn % len(self.machines)]
        try:
            return self.compare(cases, machine).is_ordered
        except Failure as failure:
            if self.keep is None:
                raise
            path = self._keep(self._smaller(cases, machine, failure), machine, failure)
            raise Failure(failure.kind, f"{failure.message} (kept in {path})") from failure

    def compare(self, cases: Sequence[Case], machine: Machine | None) -> Expected:
        """Run cases on the emulator and on one RTL; Failure if they disagree."""
        expected = expect(cases, self.emulator)
        if machine and expected.is_ordered:
            judge(cases, expected, machine)
        return expected

    def _smaller(self, cases: Sequence[Case], machine: Machine | None, failure: Failure) -> list[Case]:
        self.emulator.seconds = SHORT

        def fails(listed: Sequence[Case]) -> bool:
            if not all(outcome_of(case, self.emulator) for case in listed):
                return False
            try:
                self.compare(listed, machine)
            except Failure as other:
                return other.kind == failure.kind
            return False

        def among(before: Sequence[Case], after: Sequence[Case], case: Case) -> bool:
            return fails([*before, case, *after])

        small = list(cases)
        for case in cases:
            less = [one for one in small if one is not case]
            if less and fails(less):
                small = less
        for place in range(len(small)):
            before, after = small[:place], small[place + 1 :]
            small[place] = shrink(small[place], partial(among, before, after))
        return small

    def _keep(self, cases: Sequence[Case], machine: Machine | None, failure: Failure) -> Path:
        assert self.keep is not None
        memory = machine.memory if machine else ""
        parts = [
            replace(case, memory=memory).text(str(failure)[:300] if k == 0 else "") for k, case in enumerate(cases)
        ]
        text = NEXT.join(parts)
        self.keep.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(text.encode()).hexdigest()[:8]
        path = self.keep / f"{failure.kind.lower().replace(' ', '-')}-{self.config.name}-{name}.txt"
        path.write_text(text, encoding="utf-8")
        return path


KINDS = ("legal", "illegal", "updates", "queued")


def run(
    campaign: Campaign, seed: int, numbers: Iterator[int], kinds: Sequence[str] = KINDS
) -> Iterator[tuple[int, str]]:
    """Programs of these numbers: of eight, four legal, two illegal, one that updates rows, one of several launches;
    yields each number and kind once it has passed. Failure for the first that does not.
    """
    for number in numbers:
        place = number % 8
        kind = {2: "illegal", 4: "updates", 5: "illegal", 7: "queued"}.get(place, "legal")
        if kind not in kinds:
            kind = kinds[0]
        if kind == "legal":
            campaign.legal([seed, number])
        elif kind == "updates":
            campaign.updates([seed, number])
        elif kind == "queued":
            campaign.queued([seed, number])
        else:
            campaign.illegal([seed, number], number // 8 * 2 + (place == 5))
        yield number, kind
