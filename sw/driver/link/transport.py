"""Lines that bytes go over: a serial device of the host, or a socket to something that behaves like one."""

import select
import socket
import time
from typing import Protocol

from daedal.base.handle import Handle
from daedal.errors import DaedalError, LinkLost

LEAST_BAUD, MOST_BAUD = 9600, 12_000_000
"""Bits per second; a start and a stop bit make ten of a byte."""

SERIAL_SLACK = 0.25
"""Seconds after which an answer that should be there is given up: USB adapters hold bytes back for up to 16 ms."""

WRITE_SECONDS = 5.0
"""Seconds for the operating system to take bytes, above the time that they take on the line."""


class Transport(Protocol):
    """A line of bytes in both directions."""

    name: str
    """What it is called in messages."""

    byte_seconds: float
    """Time of a byte on the line."""

    slack: float
    """Seconds without a byte after which an answer that should be there is given up."""

    def send(self, data: bytes, /) -> None:
        """Send all these bytes; LinkLost if the line takes no more."""
        ...

    def receive(self, size: int, seconds: float, /) -> bytes:
        """``size`` bytes, or those that came before so many seconds went by without one."""
        ...

    def pause(self, seconds: float, /) -> None:
        """Let time go by at the other end."""
        ...

    def close(self) -> None:
        """Give the line back."""
        ...


class SocketTransport(Handle):
    """A connected stream socket, with the timing of a serial line of ``baud`` bits per second."""

    def __init__(self, connection: socket.socket, baud: int, *, slack: float = SERIAL_SLACK) -> None:
        self.name, self.byte_seconds, self.slack = f"socket {connection.fileno()}", 10 / baud, slack
        self._socket = connection

    def send(self, data: bytes) -> None:
        """Send all these bytes."""
        self._socket.settimeout(WRITE_SECONDS + len(data) * self.byte_seconds)
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise LinkLost(f"{self.name} does not take bytes: {error}; open the device again") from error

    def receive(self, size: int, seconds: float) -> bytes:
        """``size`` bytes, or those that came before so many seconds went by without one."""
        got = bytearray()
        while len(got) < size:
            ready, _, _ = select.select([self._socket], [], [], seconds)
            if not ready:
                break
            try:
                part = self._socket.recv(size - len(got))
            except OSError as error:
                raise LinkLost(f"{self.name} was closed: {error}; open the device again") from error
            if not part:
                raise LinkLost(f"{self.name} was closed by the other end: start that and open the device again")
            got += part
        return bytes(got)

    def pause(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class SerialTransport(Handle):
    """A serial device, 8 data bits, no parity, one stop bit.

    Raises DaedalError if pyserial is missing, LinkLost if the device cannot be opened.
    """

    def __init__(self, device: str, baud: int, *, slack: float = SERIAL_SLACK) -> None:
        if not LEAST_BAUD <= baud <= MOST_BAUD:
            raise ValueError(f"baud must be from {LEAST_BAUD} to {MOST_BAUD} bits per second, not {baud!r}")
        try:
            import serial
        except ImportError:
            raise DaedalError(
                f"pyserial must be there to open {device}: install Daedal with its extra `boards`"
            ) from None
        self.name, self.byte_seconds, self.slack = device, 10 / baud, slack
        self._error = serial.SerialException
        try:
            self._port = serial.Serial(device, baud, timeout=0, write_timeout=WRITE_SECONDS, exclusive=True)
        except (OSError, ValueError) as error:
            raise LinkLost(
                f"{device} cannot be opened: {error}; check that the board is plugged in, that this is its port "
                "and that no other program has it open"
            ) from error
        self._port.reset_input_buffer()

    def send(self, data: bytes) -> None:
        """Send all these bytes, in pieces that the time to write is enough for."""
        piece = max(1, int(WRITE_SECONDS / 2 / self.byte_seconds))
        try:
            for start in range(0, len(data), piece):
                self._port.write(data[start : start + piece])
        except OSError as error:
            raise LinkLost(
                f"{self.name} does not take bytes: {error}; check the cable and open the device again"
            ) from error

    def receive(self, size: int, seconds: float) -> bytes:
        """``size`` bytes, or those that came before so many seconds went by without one."""
        got = bytearray()
        last = time.monotonic()
        try:
            while len(got) < size:
                self._port.timeout = max(0.0, last + seconds - time.monotonic())
                part = self._port.read(min(size - len(got), max(1, self._port.in_waiting)))
                if not part:
                    break
                got += part
                last = time.monotonic()
        except OSError as error:
            raise LinkLost(f"{self.name} is gone: {error}; check the cable and open the device again") from error
        return bytes(got)

    def pause(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def close(self) -> None:
        """Give the device back to the operating system."""
        self._port.close()
