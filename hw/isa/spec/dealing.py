"""How the event unit deals bundles to contexts (docs/machine/machine.md), as an executable reference."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

BLOCKS = 8


class Dealt(Protocol):
    """What a bundle says of the activation that it is in: the levels that begin and end with it, and its fault."""

    @property
    def begin(self) -> frozenset[int]: ...

    @property
    def end(self) -> frozenset[int]: ...

    @property
    def fault(self) -> object | None: ...


T = TypeVar("T", bound=Dealt)


@dataclass
class Dealer(Generic[T]):
    """Hands out ``bundles``, which come activation by activation of ``level``, with the context of each.

    ``places``: as ``Config.dealt_bundles``.
    """

    bundles: Iterator[T]
    level: int
    contexts: int
    places: int
    _held: dict[int, T] = field(default_factory=dict)
    _lasts: set[int] = field(default_factory=set)
    _firsts: deque[int] = field(default_factory=deque)
    _came: int = 0
    _window: int = 0
    """The number of its first bundle."""
    _inside: bool = False
    _over: bool = False
    _poisoned: T | None = None

    def run(self) -> Iterator[tuple[T, int]]:
        """Bundles and their contexts; a poisoned one is the last."""
        following: list[int | None] = [None] * self.contexts
        free, turn = deque(range(self.contexts)), 0
        while True:
            while self._firsts and free:
                following[free.popleft()] = self._firsts.popleft()
            number = following[turn]
            if number is not None and number < self._came:
                yield self._held.pop(number), turn
                self._move_window()
                following[turn] = number + 1
                if number in self._lasts:
                    following[turn] = None
                    free.append(turn)
            elif not self._over and self._came < self._window + self.places - self.places // BLOCKS:
                self._come()
                continue
            elif not self._held:
                break
            turn = (turn + 1) % self.contexts
        if self._poisoned is not None:
            yield self._poisoned, turn

    def _come(self) -> None:
        """One more bundle, if there is one."""
        bundle = next(self.bundles, None)
        if bundle is None or bundle.fault is not None:
            self._over, self._poisoned = True, bundle
            return
        begins, ends = self.level in bundle.begin, self.level in bundle.end
        if begins or not self._inside:
            self._firsts.append(self._came)
        if ends or not (begins or self._inside):
            self._lasts.add(self._came)
        self._inside = (begins or self._inside) and not ends
        self._held[self._came] = bundle
        self._came += 1

    def _move_window(self) -> None:
        """The window begins with the block of the first bundle that is held."""
        block = self.places // BLOCKS
        while self._came >= self._window + block and not any(
            number in self._held for number in range(self._window, self._window + block)
        ):
            self._window += block


def deal(bundles: Iterable[T], level: int, contexts: int, places: int) -> Iterator[tuple[T, int]]:
    """``Dealer.run`` of these bundles."""
    return Dealer(iter(bundles), level, contexts, places).run()
