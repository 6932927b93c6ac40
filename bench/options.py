"""What the command line says, as one object."""

from dataclasses import dataclass

from daedal.hw.config import Config


@dataclass(frozen=True)
class Options:
    """What to measure on.

    Attributes
    ----------
    config
        The machine's configuration.
    target, memory
        Target of the suites ``machine`` and ``levels``, and the memory model of simulations.
    seed
        Start of all random data.
    quick
        Small workloads: they show that everything runs, their figures mean nothing.
    units
        Units to synthesise; all if empty.
    place_seeds
        Placements of each unit; their median counts.
    route_large
        Whether to route the large units, which takes very long.
    """

    config: Config
    target: str = "verilator"
    memory: str = "ideal"
    seed: int = 1
    quick: bool = False
    units: tuple[str, ...] = ()
    place_seeds: int = 1
    route_large: bool = False
