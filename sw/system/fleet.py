"""What many devices with links between them would give: a plan for them, and the bytes that results take."""

from collections.abc import Sequence
from dataclasses import dataclass

from daedal.base.messages import shown
from daedal.errors import InvalidSystem, OutOfDeviceMemory
from daedal.hw.config.core import Config
from daedal.system.demand import Demand
from daedal.system.plan import MOST_TILES
from daedal.system.planner import Planner


@dataclass(frozen=True)
class FleetEstimate:
    """Predicted for a number of devices, each with a memory channel of its own and a link to the others.

    Attributes
    ----------
    devices
        How many.
    cycles
        Of the device whose memory is busy longest.
    link_bytes
        Most bytes of results that a device sends: each device is taken to want an equal share of all bags.
    link_cycles
        What these take on its link.
    one
        Cycles of a single device with all tables.
    balance
        The longest memory time by the mean one.
    extra
        Bytes of copies ÷ bytes of tables.
    """

    devices: int
    cycles: int
    link_bytes: int
    link_cycles: float
    one: int
    balance: float
    extra: float

    @property
    def time(self) -> float:
        """Cycles from batch to batch: results go over the links while the next batch is worked at."""
        return max(float(self.cycles), self.link_cycles)

    @property
    def speed_up(self) -> float:
        """Times as fast as one device."""
        return self.one / self.time if self.time else 1.0

    @property
    def limit(self) -> str:
        """What the time is that of: ``memory``, ``tables`` that are not shared out evenly, or ``links``."""
        if self.link_cycles > self.cycles:
            return "links"
        return "tables" if self.balance > 1.2 else "memory"

    def __str__(self) -> str:
        return (
            f"{self.devices:>5,} devices: {self.speed_up:.1f} × one, {self.time:,.0f} cycles a batch, limited by "
            f"{self.limit}; {self.link_bytes:,} bytes on a link, {self.extra:.1%} more bytes in all"
        )


def estimate(
    demands: Sequence[Demand],
    config: Config,
    memory: str,
    memory_bytes: int,
    *,
    devices: int,
    link: float,
    extra_bytes: float,
) -> FleetEstimate:
    """For so many devices, whose links carry ``link`` bytes per cycle; InvalidSystem for what there is not."""
    if isinstance(devices, bool) or not isinstance(devices, int) or not 1 <= devices <= MOST_TILES:
        raise InvalidSystem(f"devices must be from 1 to {MOST_TILES}, not {shown(devices)}")
    if isinstance(link, bool) or not isinstance(link, int | float) or not link > 0:
        raise InvalidSystem(f"link must be bytes per cycle, more than 0, not {shown(link)}")

    try:
        plan = Planner(demands, config, memory, devices, memory_bytes, extra_bytes).plan()
    except OutOfDeviceMemory as error:
        raise OutOfDeviceMemory(f"{devices} devices of {memory_bytes:,} bytes must hold all tables: {error}") from error
    # One device is for comparison: whether its memory would hold all tables does not matter.
    one = Planner(demands, config, memory, 1, 1 << 62, 0.0).plan()
    demand_of = {demand.table.name: demand for demand in demands}
    sent = [0.0] * devices
    for piece in plan.pieces:
        demand = demand_of[piece.table]
        bags = (piece.bags[1] - piece.bags[0]) * demand.bags / demand.table.bags
        sent[piece.tile] += bags * (piece.columns[1] - piece.columns[0]) * demand.element
    most = max(sent) * (devices - 1) / devices
    return FleetEstimate(devices, max(plan.load), round(most), most / link, max(one.load), plan.balance, plan.extra)
