"""What belongs to one machine: there is no second one that a copy could be for."""

from typing import ClassVar, NoReturn, SupportsIndex


class Handle:
    """A base of what a device hands out and hangs together with it.

    Copies and pickles of it are refused with a TypeError: a copy would give the same memory back twice, or ask a
    machine for what another process has.
    """

    hint: ClassVar[str] = "ask the device for what is needed"
    """What to do instead of a copy."""

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> NoReturn:
        raise TypeError(f"{type(self).__name__} cannot be copied or pickled, it belongs to one device: {self.hint}")
