"""Checked reads and writes over a bad line, against a board in Python; and what a dead line becomes."""

import random
import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from daedal.driver.link.checked_link import CheckedLink
from daedal.driver.link.etherbone import EtherboneBridge, parse_answer, read_packet
from daedal.driver.link.frames import pieces
from daedal.driver.link.transport import SerialTransport, SocketTransport
from daedal.driver.link.uartbone import PROBE, UartBridge, command
from daedal.driver.link.words import swapped
from daedal.errors import ConfigMismatch, DaedalError, LinkLost
from daedal.hw.isa.link import LINK_BASE, MOST_DATA, REGISTERS, SEQUENCE_MODULUS
from tests.driver.link.link_peer import EtherbonePeer, GateModel, Peer, UartModel, uart_peer

BAUD, ATTEMPTS = 3_000_000, 4

PATIENT, HASTY = 0.5, 0.03
"""Seconds until an answer is given up: where none is lost, and where that is waited for."""

SIZES = (1, 2, 3, 4, 5, 7, 8, 4 * MOST_DATA - 1, 4 * MOST_DATA, 4 * MOST_DATA + 1, 9001)


@pytest.fixture
def peer() -> Iterator[Peer]:
    with uart_peer(GateModel()) as found:
        yield found


def open_link(peer: Peer, slack: float = PATIENT) -> CheckedLink:
    transport = SocketTransport(peer.socket, BAUD, slack=HASTY)
    link = CheckedLink(UartBridge(transport))
    transport.slack = slack
    return link


def check_round_trip(link: CheckedLink, gate: GateModel, at: int, data: bytes) -> None:
    before = bytes(gate.memory)
    link.write(gate.base + at, data)
    assert gate.memory == before[:at] + data + before[at + len(data) :]
    assert link.read(gate.base + at, len(data)) == data


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("offset", range(4))
def test_any_bytes_go_there_and_back(peer: Peer, offset: int, size: int) -> None:
    link = open_link(peer)
    check_round_trip(link, peer.gate, 100 + offset, random.randbytes(size))
    assert link.retries == 0
    assert len(peer.gate.written) == (offset + size + 3) // 4


def test_several_writes_go_at_once_and_in_order(peer: Peer) -> None:
    link, base = open_link(peer), peer.gate.base
    link.write_all([(base, b"abcdefgh"), (base + 2, b"XY"), (0x8000_0000, b"\1\0\0\0"), (0x8000_0000, b"\2\0\0\0")])
    assert peer.gate.memory[:8] == b"abXYefgh"
    assert [at for at, _ in peer.gate.written[-2:]] == [0x8000_0000] * 2
    assert peer.gate.registers == {0x8000_0000: 2}


@pytest.mark.parametrize("fault", ["flip", "drop", "insert"])
@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("access", ["write", "read"])
def test_a_bad_byte_anywhere_is_made_good(peer: Peer, access: str, way: str, fault: str, seed: int) -> None:
    """Frames are copied once: as many words reach the bus as were to be written, whatever was sent again."""
    link, gate, rng = open_link(peer, HASTY), peer.gate, random.Random(seed)
    data = rng.randbytes(3000)
    line = getattr(peer, way)
    # A read has few bytes on its way up, and so has a write on its way down.
    reach = {("write", "up"): 3000, ("read", "down"): 3000}.get((access, way), 30)
    for position in [0, 1, 5, 6, *(rng.randrange(reach) for _ in range(3))]:
        if access == "read":
            gate.memory[8 : 8 + len(data)] = data
        number, retries, words = line.count + position, link.retries, len(gate.written)
        if fault == "flip":
            line.flip[number] = 1 << rng.randrange(8)
        elif fault == "drop":
            line.drop.add(number)
        else:
            line.insert[number] = rng.randbytes(1)
        if access == "write":
            link.write(gate.base + 8, data)
            assert len(gate.written) == words + 750
        else:
            assert link.read(gate.base + 8, len(data)) == data
            assert len(gate.written) == words
        assert gate.memory[8 : 8 + len(data)] == data
        assert link.retries > retries or fault == "insert"


def test_nothing_but_the_slots_is_written_whatever_comes(seed: int) -> None:
    """Not by commands made of noise either; and the bridge is found again after them."""
    rng = random.Random(seed)
    with uart_peer(GateModel()) as peer:
        for _ in range(10):
            noise = bytearray(rng.randbytes(400))
            for at in range(0, 400, 40):
                noise[at : at + 6] = command(
                    1, rng.choice([peer.gate.base, 0x8000_0000, LINK_BASE]), rng.randrange(1, 9)
                )
            peer.socket.send(noise)
            link = open_link(peer, HASTY)
            assert peer.gate.written == []
            assert not any(peer.gate.memory)
            assert link.design == peer.gate.design


@pytest.mark.parametrize("held", range(1, 30))
def test_the_bridge_is_found_wherever_it_was(held: int) -> None:
    """Left in the middle of a command, at each of its bytes."""
    with uart_peer(GateModel()) as peer:
        peer.socket.send((command(1, LINK_BASE, 6) + bytes(24))[:held])
        check_round_trip(open_link(peer), peer.gate, 0, b"found again")


def test_no_end_of_a_probe_is_a_command() -> None:
    """What :meth:`UartBridge.recover` relies on."""
    assert not {1, 2, 3, 4} & set(PROBE[1:])
    bridge = UartModel(GateModel())
    for start in range(1, 6):
        assert b"".join(bridge.take(byte) for byte in PROBE[start:] + bytes(1 + start)) == b""


def test_a_line_that_is_always_bad_is_given_up(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daedal.driver.link.checked_link.ATTEMPTS", ATTEMPTS)
    link = open_link(peer, HASTY)
    peer.up.flip = dict.fromkeys(range(peer.up.count + 20, peer.up.count + 2000000, 200), 1)
    with pytest.raises(LinkLost, match=f"nothing got through .* in {ATTEMPTS} attempts|does not answer"):
        link.write(peer.gate.base, bytes(4000))


@pytest.mark.parametrize("access", ["write", "read"])
def test_a_line_that_goes_silent_is_an_error_and_the_link_works_when_it_is_back(peer: Peer, access: str) -> None:
    link, gate = open_link(peer, HASTY), peer.gate
    data = random.randbytes(9000)
    gate.memory[0:9000] = data
    peer.down.silent_after = peer.down.count + (16 if access == "write" else 3000)
    with pytest.raises(LinkLost, match=r"does not answer: check that it is powered.*open the device again"):
        link.write(gate.base, data) if access == "write" else link.read(gate.base, 9000)
    with pytest.raises(LinkLost):
        link.status()
    peer.down.silent_after = None
    check_round_trip(link, gate, 5, random.randbytes(5000))


def test_a_board_that_was_restarted_is_noticed(peer: Peer) -> None:
    """Its memory may be gone."""
    link, gate = open_link(peer, HASTY), peer.gate
    for _ in range(20):
        link.write(gate.base, b"1234")
    gate.sequence = 0
    with pytest.raises(LinkLost, match=r"counts frames that were not sent from here: it was restarted"):
        link.write(gate.base, b"5678")
    with pytest.raises(LinkLost, match=r"was restarted, or another program used it"):
        link.read(gate.base, 4)


def test_an_access_that_was_broken_off_leaves_nothing_on_the_line(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Ctrl-C does, when answers are still to come."""
    link, gate = open_link(peer, HASTY), peer.gate
    gate.memory[:4000] = random.randbytes(4000)

    assert isinstance(link._bridge, UartBridge)

    def interrupted(size: int, seconds: float) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(link._bridge._transport, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            link.read(gate.base, 4000)
    assert link.read(gate.base, 4000) == gate.memory[:4000]
    check_round_trip(link, gate, 0, random.randbytes(3000))


def test_frame_numbers_go_round(peer: Peer) -> None:
    peer.gate.sequence = SEQUENCE_MODULUS - 3
    check_round_trip(open_link(peer), peer.gate, 0, random.randbytes(9000))


class DirectBridge:
    """A bridge that neither loses nor changes anything, nor takes any time."""

    name, words, window = "direct", 255, 4

    def __init__(self, gate: GateModel) -> None:
        self._gate = gate
        self._answers: list[bytes] = []

    def write(self, address: int, words: bytes) -> None:
        for at in range(0, len(words), 4):
            self._gate.write(address + at, int.from_bytes(words[at : at + 4], "little"))

    def read(self, address: int, count: int) -> None:
        words = [self._gate.read(address + 4 * n).to_bytes(4, "little") for n in range(count)]
        self._answers.append(b"".join(words))

    def answer(self) -> bytes | None:
        return self._answers.pop(0)

    def recover(self) -> None:
        self._answers.clear()

    def pause(self, seconds: float) -> None:
        raise AssertionError("nobody waits")

    def close(self) -> None:
        pass


@pytest.mark.parametrize("bit", range(32))
def test_all_bits_of_the_checksum_of_reads_are_looked_at(bit: int) -> None:
    """Any of 32 is wrong, and what was read is asked for again: who the board is, words, the state of its frames."""
    gate = GateModel()
    gate.spoiled[1] = 1 << bit  # the first one clears the line
    link = CheckedLink(DirectBridge(gate))
    assert link.retries == 1
    link.write(gate.base, b"what is there")
    gate.spoiled[0] = 1 << bit
    assert link.read(gate.base, 13) == b"what is there"
    assert link.retries == 2
    gate.spoiled[0] = 1 << bit
    assert link.status()["sequence"] == 1
    assert link.retries == 3


def test_a_board_that_never_finishes(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daedal.driver.link.checked_link.BUSY_SECONDS", 0.2)
    link = open_link(peer)
    peer.gate.busy = True
    monkeypatch.setattr(peer.gate, "_frame", lambda words: None)
    with pytest.raises(LinkLost, match="does not finish a write: its bus hangs"):
        link.write(0x1000_0000, b"1234")


def test_another_revision_is_refused(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.driver.link.link_peer.REVISION", 99)
    with pytest.raises(
        ConfigMismatch, match="must identify itself as 0x4b4e4c44 revision 1, not 0x4b4e4c44 revision 99"
    ):
        open_link(peer)


@pytest.mark.parametrize("baud", [9600, 115_200, 1_000_000])
def test_no_burst_takes_longer_than_the_bridge_waits(peer: Peer, baud: int) -> None:
    """LiteX's bridge forgets a command after 0.1 s."""
    transport = SocketTransport(peer.socket, baud, slack=HASTY)
    bridge = UartBridge(transport)
    assert (6 + 4 * bridge.words) * transport.byte_seconds < 0.09
    assert bridge.words == 255 or (6 + 4 * bridge.words) * transport.byte_seconds > 0.07


def test_over_a_real_serial_device() -> None:
    with uart_peer(GateModel(), over_pty=True) as peer:
        link = CheckedLink(UartBridge(SerialTransport(peer.device, BAUD, slack=HASTY)))
        peer.up.drop = {peer.up.count + 500}
        peer.down.flip = {peer.down.count + 30: 16}
        check_round_trip(link, peer.gate, 1, random.randbytes(5000))
        assert link.retries >= 1
        link.close()


def test_serial_devices_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(LinkLost, match=r"nowhere cannot be opened: .*check that the board is plugged in"):
        SerialTransport(str(tmp_path / "nowhere"), BAUD)
    with pytest.raises(ValueError, match=r"baud must be from 9600 to 12000000 bits per second, not 300"):
        SerialTransport("/dev/null", 300)


def test_a_socket_that_is_closed(peer: Peer) -> None:
    link = open_link(peer)
    peer._end.close()
    with pytest.raises(LinkLost, match="open the device again"):
        link.status()


def test_words_must_be_whole() -> None:
    assert swapped(b"abcdefgh") == b"dcbahgfe"
    with pytest.raises(DaedalError, match="words must be whole, not 5 bytes"):
        swapped(b"abcde")


@pytest.mark.parametrize("most", [1, 2, 5, MOST_DATA])
def test_pieces_cover_what_is_written_and_nothing_else(most: int, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        address, data = rng.randrange(64), rng.randbytes(rng.randrange(1, 60))
        memory = bytearray(200)
        found = list(pieces(address, data, most))
        for piece in found:
            count = len(piece.data) // 4
            assert piece.address % 4 == 0 and 1 <= count <= most
            for byte in range(4 * count):
                lanes = (piece.first if byte < 4 else 15) & (piece.last if byte >= 4 * count - 4 else 15)
                if lanes >> byte % 4 & 1:
                    memory[piece.address + byte] = piece.data[byte]
        assert memory == bytes(address) + data + bytes(200 - address - len(data))
        assert all(a.address + len(a.data) == b.address for a, b in pairwise(found))


ETHERBONE_PORT = 21234


def test_etherbone_with_packets_lost_and_repeated(seed: int) -> None:
    rng, gate = random.Random(seed), GateModel()
    with EtherbonePeer(gate, "127.0.0.2", ETHERBONE_PORT) as peer:
        bridge = EtherboneBridge("127.0.0.2", ETHERBONE_PORT, local="127.0.0.1", slack=0.05)
        link = CheckedLink(bridge)
        check_round_trip(link, gate, 3, rng.randbytes(6000))
        assert link.retries == 0
        for _ in range(6):
            at, words = peer.packets, len(gate.written)
            peer.lose, peer.repeat = {at + rng.randrange(14)}, {at + rng.randrange(14)}
            check_round_trip(link, gate, 4, rng.randbytes(4000))
            assert len(gate.written) == words + 1000
        assert link.retries > 0
        peer.silent = True
        with pytest.raises(LinkLost, match=r"board at 127.0.0.2:21234 does not answer.*this host is in its network"):
            link.write(gate.base, b"gone")
        peer.silent = False
        check_round_trip(link, gate, 0, b"and back")
        link.close()


def test_etherbone_addresses_that_cannot_be_used() -> None:
    with pytest.raises(LinkLost, match=r"no.such.host.invalid:1234 cannot be reached: .*check the board's address"):
        EtherboneBridge("no.such.host.invalid")
    with EtherbonePeer(GateModel(), "127.0.0.1", ETHERBONE_PORT + 1):
        with pytest.raises(LinkLost, match="no other program uses port 21235"):
            EtherboneBridge("127.0.0.2", ETHERBONE_PORT + 1, local="127.0.0.1")


@pytest.mark.parametrize(
    "raw", [b"", b"No", read_packet(LINK_BASE + REGISTERS, 2, 8), struct.pack(">H", 0x4E6E) + bytes(30)]
)
def test_packets_that_are_no_answers(raw: bytes) -> None:
    assert parse_answer(raw) is None
