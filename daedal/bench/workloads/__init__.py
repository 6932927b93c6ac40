"""Measured workloads: layers with data to run on, shared by ``daedal sim`` and the bench.

A workload is a function that yields :class:`Case` objects; ``WORKLOADS`` names those there are. Data are the
same in every run.
"""

from collections.abc import Callable, Iterator
from importlib import import_module

from daedal.bench.workloads.case import Case

WORKLOADS = {
    "text": "EmbeddingBag of a text classifier over the English text that ships with Python",
    "dlrm": "the embedding layers of a recommender: 8 tables, power-law indices",
    "gather": "rows of one table, unchanged",
}
"""Workload name -> what it is; each is a module of this package with a function ``cases``."""


def cases(workload: str) -> Iterator[Case]:
    """The cases of the workload called ``workload``; ValueError names those there are."""
    if workload not in WORKLOADS:
        raise ValueError(f"workload must be one of {', '.join(WORKLOADS)}, not {workload!r}")
    made: Callable[[], Iterator[Case]] = import_module(f"daedal.bench.workloads.{workload}").cases
    return made()
