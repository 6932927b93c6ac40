"""A router that gets no nearer to an end is noticed; one that does is left alone."""

from pathlib import Path

import pytest

from daedal.fpga.flow.router_progress import RouterProgress


class Router:
    """A log that grows, under a clock that moves only when told."""

    def __init__(self, path: Path) -> None:
        self.log, self.now, self.round = path / "nextpnr.log", 0.0, 0
        self.log.write_text("Info: Running router2...\n")
        self.progress = RouterProgress(rounds=5, seconds=100.0, clock=lambda: self.now)

    def rounds(self, *overused: int, seconds: float = 1.0) -> str | None:
        """What is said after these rounds, one after the other."""
        said = None
        for count in overused:
            self.round, self.now = self.round + 1, self.now + seconds
            with self.log.open("a") as log:
                log.write(f"Info:     iter={self.round} wires=9 overused={count} overuse=7 resources=0 overused=0 \n")
            said = self.progress(self.log)
        return said


@pytest.fixture
def router(tmp_path: Path) -> Router:
    return Router(tmp_path)


def test_before_the_first_round_nothing_is_said(router: Router) -> None:
    router.now = 1e6
    assert router.progress(router.log) is None


def test_a_router_that_gets_nearer_is_left_alone(router: Router) -> None:
    assert router.rounds(*range(100, 0, -1), 0) is None


def test_a_new_least_within_the_rounds_is_enough(router: Router) -> None:
    assert router.rounds(50, 60, 70, 80, 90, 49, 60, 70, 80, 90) is None


def test_too_many_rounds_above_the_least_are_named(router: Router) -> None:
    assert router.rounds(90, 50, 60, 70, 80, 99) is None
    said = router.rounds(120)
    assert said is not None
    for part in ("50 wires in use twice after round 2", "120 after round 7", "--seed", "--config"):
        assert part in said


def test_the_same_least_again_is_no_progress(router: Router) -> None:
    assert router.rounds(3, 3, 3, 3, 3) is None
    assert router.rounds(3) is not None


def test_too_much_time_above_the_least_is_named_between_rounds_as_well(router: Router) -> None:
    assert router.rounds(50, 60, seconds=40.0) is None
    router.now += 59.0
    assert router.progress(router.log) is None
    router.now += 1.0
    assert router.progress(router.log) is not None


def test_a_router_that_is_done_is_left_to_the_steps_after_it(router: Router) -> None:
    assert router.rounds(5, 0) is None
    router.now += 1e6
    assert router.progress(router.log) is None
