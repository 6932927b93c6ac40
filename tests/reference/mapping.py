"""Mapping classes in plain arithmetic (docs/machine/memory.md); what is tested against it works from tables of bits."""

from daedal.hw.config.core import Config

UNMOVED = (0, 7)
"""Classes of which memory addresses are those of the program: plain arrays, and tables with copies."""


def granule(mapping: int, config: Config) -> int:
    """Bytes of a granule: a page for classes 0 and 7, else 64, 128, … for 1, 2, …, up to a page."""
    return config.page_bytes if mapping in UNMOVED else min(config.page_bytes, 32 * 2**mapping)


def memory_place(place: int, mapping: int, config: Config) -> int:
    """Where in memory the byte at ``place`` of class ``mapping`` is.

    A superblock is a page of each bank. Its granules are dealt out to the banks, one to each in turn, and lie behind
    each other in a bank's page. The bank is the XOR of all digits, to the base of ``banks``, of the granule's number in
    memory. Digits begin at the page and go on from there, up and down. Classes 0 and 7 move nothing.
    """
    page, banks, size = config.page_bytes, config.banks, granule(mapping, config)
    if mapping in UNMOVED or banks == 1:
        return place
    superblock, offset = divmod(place, page * banks)
    row, inside = offset // (banks * size), offset % size
    number, unit = place // size, page // size
    while not _is_power(unit, banks):
        number, unit = 2 * number, 2 * unit
    bank = 0
    while number:
        number, digit = divmod(number, banks)
        bank ^= digit
    return superblock * page * banks + bank * page + row * size + inside


def _is_power(value: int, base: int) -> bool:
    while value > 1:
        value, rest = divmod(value, base)
        if rest:
            return False
    return True
