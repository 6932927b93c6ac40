"""How what the driver places lies in device memory: the pitch of rows, and mapping classes."""

from daedal.hw.config.core import Config
from daedal.hw.isa.address_mapping import COPIED, HASHED, granule_bytes
from daedal.hw.isa.elements import LENGTH_ELEMENTS, ROW_GRANULE, UNSIGNED
from daedal.hw.isa.words import PITCH_BITS

SMALLEST_PITCH = 4
"""Pitch of the narrowest row, bytes."""

ARRAY_GRANULE = 256
"""Bytes of an array's granule, if a burst of a load is no longer: bags whose indices are read side by side, or several
loads, so take several ports. A port has only so many bursts in flight."""

ODD_GRANULE = 256
"""Bytes of the smallest granule of rows whose pitch is no power of two."""


def row_pitch(row_bytes: int, config: Config) -> int:
    """Bytes from one row to the next, of rows that are fetched whole: the least at which none takes a line more.

    What a row has in its last line must fit behind any place at which a row may begin in a line: these are the
    multiples of the next power of two. So rows of 20 bytes follow each other without padding. Rows that are longer than
    a vector register, whatever the machine's elements of them are, are fetched in tiles, which begin at lines.
    """
    step = row_step(row_bytes, config.bus_bytes, longest_whole(config))
    return (
        line_pitch(row_bytes, config) if step == config.bus_bytes else _checked(-(-row_bytes // step) * step, row_bytes)
    )


def longest_whole(config: Config) -> int:
    """Bytes of the longest row that is fetched whole whatever it is of, if it is computed with; quantised ones are."""
    kinds = [kind for kind in config.length_fields if kind not in UNSIGNED]
    return config.vl_max * min(LENGTH_ELEMENTS[kind].bytes for kind in kinds)


def row_step(row_bytes: int, line: int, longest: int) -> int:
    """The power of two, up to a line's bytes, at multiples of which rows begin; ``longest`` of those that may begin
    inside of lines.
    """
    rest = -(-row_bytes // ROW_GRANULE) * ROW_GRANULE % line
    return line if not rest or row_bytes > longest else 1 << (rest - 1).bit_length()


def line_pitch(row_bytes: int, config: Config) -> int:
    """Bytes from one row to the next, of rows of which parts are fetched: a row starts at a line or lies inside one.

    Under a line: the next power of two, at least 4. From a line on: the next multiple of the line.
    """
    if row_bytes < config.bus_bytes:
        return _checked(max(SMALLEST_PITCH, 1 << (row_bytes - 1).bit_length()), row_bytes)
    return _checked(-(-row_bytes // config.bus_bytes) * config.bus_bytes, row_bytes)


def _checked(pitch: int, row_bytes: int) -> int:
    if row_bytes < 1:
        raise ValueError(f"a row must have at least one byte, not {row_bytes!r}")
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
    quarter of the rows, and 256 bytes or more to a tenth of the rows of few lines, of which a DRAM opens one in two
    cycles at most. No granule is longer than a page.
    """
    return _mapping(pitch if pitch & (pitch - 1) == 0 else max(4 * pitch, ODD_GRANULE), config)


def array_mapping(config: Config) -> int:
    """The mapping class of arrays that loads read."""
    return _mapping(max(ARRAY_GRANULE, config.burst_lines * config.bus_bytes), config)


def _mapping(granule: int, config: Config) -> int:
    """The hashed class whose granule is the smallest of at least so many bytes, or the largest there is."""
    wanted = min(granule, granule_bytes(HASHED[-1], config))
    return next(mapping for mapping in HASHED if granule_bytes(mapping, config) >= wanted)
