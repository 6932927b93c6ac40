"""Tables whose later rows are on a device: before another machine reads them, the host gets the rows."""

from typing import Protocol

from daedal.driver.device import Device


class Rows(Protocol):
    """The rows of a parameter that a device has."""

    device: Device

    def fetch(self) -> None:
        """Let the host have them."""
        ...


_ahead: set[Rows] = set()


def is_ahead(rows: Rows) -> None:
    """Note that a device has later rows than the host."""
    _ahead.add(rows)


def has_met(rows: Rows) -> None:
    """Note that the host has the same."""
    _ahead.discard(rows)


def fetch_for(device: object) -> None:
    """Let the host have all rows that other devices than this one have, as this one reads the host's memory."""
    for rows in [each for each in _ahead if each.device is not device]:
        rows.fetch()
