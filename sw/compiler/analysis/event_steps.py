"""The order in which an event fills queues.

A step of the machine enqueues a scalar, a store address, a token, and then issues a fetch. Scalars and rows
come in the order in which the callback pops them; the callback's token goes with the first step, and so do
store addresses as far as possible, so that nothing that the execute unit waits for is behind something that
waits for it.
"""

from dataclasses import dataclass, field

from xdsl.ir import Operation


@dataclass
class _Step:
    scalar: Operation | None = None
    store: Operation | None = None
    token: Operation | None = None
    fetch: Operation | None = None

    @property
    def operations(self) -> list[Operation]:
        return [op for op in (self.scalar, self.store, self.token, self.fetch) if op is not None]


@dataclass
class EventSteps:
    """Collects what one event does."""

    steps: list[_Step] = field(default_factory=list)
    _stores: list[Operation] = field(default_factory=list)

    def scalar(self, op: Operation) -> None:
        """Add a scalar; it may go before a row that the callback pops just before it."""
        if not self.steps or self.steps[-1].scalar is not None:
            self.steps.append(_Step())
        self.steps[-1].scalar = op

    def fetch(self, op: Operation) -> None:
        """Add a row for the callback, after all that it pops before it."""
        if not self.steps or self.steps[-1].fetch is not None:
            self.steps.append(_Step())
        self.steps[-1].fetch = op

    def store(self, op: Operation) -> None:
        """Add the address of a row that the callback stores."""
        self._stores.append(op)

    def stream(self, store: Operation, fetch: Operation) -> None:
        """Add a row that goes from memory to memory."""
        if not self.steps or self.steps[-1].fetch is not None or self.steps[-1].store is not None:
            self.steps.append(_Step())
        self.steps[-1].store, self.steps[-1].fetch = store, fetch

    def finish(self, token: Operation | None) -> list[Operation]:
        """All operations in their order."""
        position = 0
        for store in self._stores:
            while position < len(self.steps) and self.steps[position].store is not None:
                position += 1
            if position == len(self.steps):
                self.steps.append(_Step())
            self.steps[position].store = store
        if token is not None:
            if not self.steps:
                self.steps.append(_Step())
            self.steps[0].token = token
        return [op for step in self.steps for op in step.operations]
