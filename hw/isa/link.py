"""The host link's side of a board: where frames go, what they look like, and the registers beside them.

A *frame* is up to ``MOST_DATA`` words for consecutive addresses of the board's bus. The host writes it into one of
``SLOTS`` slots so that it ends with the slot: data, address, head, CRC. The write of the last word hands it over. The
board checks it, and copies the data to their address if CRC and number are right; it counts it as refused otherwise.
"""

from amaranth.lib import data, enum

LINK_BASE = 0xEFE0_0000
"""Byte address, as a bridge sees it, of the slots and registers; nothing else can be written by a bridge."""

LINK_BYTES = 0x2000

SLOTS, SLOT_WORDS = 2, 256

SLOT_CRC, SLOT_HEAD, SLOT_ADDRESS = 255, 254, 253
"""Words of a slot: CRC-32 of all the frame's words before it, the head, the byte address of the first data word."""

MOST_DATA = 252
"""Most data words of a frame: with address, head and CRC it is a burst of 255 words, the longest there is."""

REGISTERS = 0x1800
"""Byte offset of the registers. None of the bytes of a command that reads them is a command: see :mod:`uartbone`."""

MAGIC = 0x4B4E_4C44
"""Value of the register MAGIC: ``DLNK`` in ASCII, little endian."""

REVISION = 1
"""Value of the register REVISION: the revision of all that this module says."""

SEQUENCE_MODULUS = 1 << 16

CRC_POLYNOMIAL = 0xEDB8_8320
"""CRC-32 of IEEE 802.3, reflected, which starts and ends with an inversion; words count from their lowest byte on."""


class LinkRegister(enum.Enum, shape=3):
    """Registers of the link, words from ``REGISTERS`` on; they are read in this order, by one burst."""

    MAGIC = 0
    """Constant ``MAGIC``."""
    REVISION = 1
    """Constant ``REVISION``."""
    DESIGN = 2
    """A number that another design of this board does not have."""
    STATUS = 3
    """What came of frames, see LinkStatus."""
    READ_CRC = 4
    """CRC-32 of the byte address and the value of each word that the bridge has read since this was last read."""


class FrameHead(data.Struct):
    """The word HEAD of a frame."""

    count: 8
    """Data words."""
    first: 4
    """Bytes of the first word that are written."""
    last: 4
    """Bytes of the last word that are written; for a frame of one word those of ``first`` and ``last`` alike."""
    sequence: 16
    """The frame's number: one more than that of the frame before it."""


class LinkStatus(data.Struct):
    """The register STATUS."""

    sequence: 16
    """Number of the last frame that was copied."""
    refused: 8
    """Frames that were not taken, modulo 256."""
    busy: 1
    """A frame is in work, or waits."""
    interrupt: 1
    """The core's interrupt."""
    reserved: 6
    """0."""
