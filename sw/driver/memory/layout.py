"""How what the driver places lies in device memory: the pitch of rows, and mapping classes."""

from daedal.hw.config.core import Config
from daedal.hw.isa.address_mapping import COPIED, HASHED, granule_bytes
from daedal.hw.isa.words import PITCH_BITS

SMALLEST_PITCH = 4
"""Pitch of the narrowest row, bytes."""

ARRAY_GRANULE = 256
"""Bytes of an array's granule, if a burst of a load is no longer: bags whose indices are read side by side, or several
loads, so take several ports. A port has only so many bursts in flight."""


def row_pitch(row_bytes: int, config: Config) -> int:
    """Bytes from one row to the next: a row then starts at a line or lies inside one.

    Under a line: the next power of two, at least 4. From a line on: the next multiple of the line.
    """
    if row_bytes < 1:
        raise ValueError(f"a row must have at least one byte, not {row_bytes!r}")
    if row_bytes < config.bus_bytes:
        pitch = max(SMALLEST_PITCH, 1 << (row_bytes - 1).bit_length())
    else:
        pitch = -(-row_bytes // config.bus_bytes) * config.bus_bytes
    if pitch >= 1 << PITCH_BITS:
        raise ValueError(
            f"a row must be shorter than {1 << PITCH_BITS} bytes, not {row_bytes!r}: take some columns at a time"
        )
    return pitch


def table_mapping(rows: int, pitch: int, config: Config) -> int:
    """The mapping class of so many rows that programs do not write.

    A table that fits into a page has a copy for each port: its few granules would make few ports do all the work. Of
    any class but PLAIN it takes a whole superblock, so the copies take no memory that it would not have.
    """
    return COPIED if config.ports > 1 and 0 < rows * pitch <= config.page_bytes else row_mapping(pitch, config)


def row_mapping(pitch: int, config: Config) -> int:
    """The mapping class of rows that are ``pitch`` bytes apart, however many there are.

    Rows at a power of two lie in a granule each, shorter ones than the smallest granule several in one. Of others some
    go on into the next granule, in another bank, and are two requests; four or more of them to a granule keep that to a
    quarter of the rows. No granule is longer than a page.
    """
    return _mapping(pitch if pitch & (pitch - 1) == 0 else 4 * pitch, config)


def array_mapping(config: Config) -> int:
    """The mapping class of arrays that loads read."""
    return _mapping(max(ARRAY_GRANULE, config.burst_lines * config.bus_bytes), config)


def _mapping(granule: int, config: Config) -> int:
    """The hashed class whose granule is the smallest of at least so many bytes, or the largest there is."""
    wanted = min(granule, granule_bytes(HASHED[-1], config))
    return next(mapping for mapping in HASHED if granule_bytes(mapping, config) >= wanted)
