"""What every test gets: one seed, one PyTorch thread, and the options of `make unit`."""

import gc
import os
import random
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
"""The top of the source tree."""

CAMPAIGNS = tuple(ROOT / "tests" / name for name in ("formal", "fuzz", "mutate"))
"""Proofs, random programs and planted faults: they try what other tests cover, and take long."""

SEED = int(os.environ.get("SEED", "1"))
"""Seed of all random tests; ``SEED=7 make test`` runs them with other data."""

os.environ.setdefault("DAEDAL_OPTIMIZE", "1")
"""Most tests run a model for less time than its compilation takes."""

os.environ.setdefault("DAEDAL_PRECOMPILE", "1")
"""They compile many models, each in parts of which each would read the same headers."""

gc.set_threshold(50_000, 20, 100)
"""Looking for cycles of garbage after every 700 objects, as is usual, takes a third of the time in which a core becomes
Verilog: designs are many objects that live long.
"""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what runs in its background
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    """Name the seed, so that a failure can be run again."""
    return f"seed: {SEED} (SEED=… changes it)"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--fast``, which is `make test-fast`."""
    parser.addoption(
        "--fast",
        action="store_true",
        help="leave out what is marked rtl or slow, and campaigns",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``--fast``, keep tests that compile no RTL, are of no campaign and take no more than some seconds."""
    if not config.getoption("--fast"):
        return
    left = [item for item in items if not _is_fast(item) or any(map(item.path.is_relative_to, CAMPAIGNS))]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in set(left)]


def _is_fast(item: pytest.Item) -> bool:
    return not any(item.get_closest_marker(name) for name in ("rtl", "slow", "full"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A fast test gets no compiled RTL: one that wants some and is not marked so fails, whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        if _is_fast(item):
            patch.setattr("daedal.cosim.builder.rtl_library._models", _refuse_model)
            if "tests.unit.harness" in sys.modules:
                patch.setattr("tests.unit.harness.build", _refuse_model)
        return (yield)


def _refuse_model(*_: object, **__: object) -> None:
    raise AssertionError("a test that compiles RTL, or takes a compiled model, must be marked rtl")


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the source tree."""
    return ROOT


@pytest.fixture(scope="session")
def waves() -> bool:
    """Whether waveforms are wanted (``make unit T=… WAVES=1``)."""
    return os.environ.get("WAVES", "") not in ("", "0")


@pytest.fixture
def seed() -> int:
    """The seed of this run."""
    return SEED


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    """A generator of its own for each test, so that the order of tests does not matter."""
    return np.random.default_rng(seed)


@pytest.fixture(autouse=True)
def _same_random_numbers(seed: int) -> None:
    """Seed the global generators, PyTorch's only if something has imported it."""
    random.seed(seed)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(seed)
        # More threads than one wait for each other for milliseconds when the machine is busy.
        torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _no_names_of_earlier_designs() -> None:
    """Migen looks at the objects of every design before when it names a signal: after a thousand tests that takes most
    of the time.
    """
    if (tracer := sys.modules.get("migen.fhdl.tracer")) is not None:
        tracer.name_to_idx.clear()
        tracer.classname_to_objs.clear()
