"""What a place may hold, whichever way the loops of a nest go."""

from abc import ABC, abstractmethod
from enum import IntEnum
from typing import Generic, TypeVar

from daedal.compiler.dialects import dlc, slc

Event = slc.CallbackOp | dlc.EventOp
"""What happens where a loop begins, in its iterations, or where it ends: at either level."""

Held = TypeVar("Held", bound=IntEnum)
"""What the place may hold: of two of them the larger one stands for both."""


class NestWalk(ABC, Generic[Held]):
    """Goes through a nest as the machine does."""

    def loop(self, loop: slc.ForOp, holds: Held) -> Held:
        """What the place may hold behind a loop; ``holds`` in front of it."""
        holds = self._events(loop, "begin", holds)
        while True:
            after = self._events(loop, "iteration", holds)
            for op in loop.body.block.ops:
                after = self.loop(op, after) if isinstance(op, slc.ForOp) else after
            if after <= holds:
                return self._events(loop, "end", holds)
            holds = after

    def _events(self, loop: slc.ForOp, name: str, holds: Held) -> Held:
        for op in loop.body.block.ops:
            if isinstance(op, Event) and op.event.data == name:
                after = self.event(op, holds)
                holds = after if op.condition is None else max(holds, after)
        return holds

    @abstractmethod
    def event(self, event: Event, holds: Held) -> Held:
        """What the place may hold behind an event that happens."""
