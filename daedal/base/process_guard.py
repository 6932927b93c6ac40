"""Runs a command that ends with the process that wanted it: a program, and the function that starts it.

::

    python process_guard.py COMMAND…    # a session of its own; its standard input is open as long as it is wanted

A compiler is started by make, a router by a command: a signal that ends the one that started them leaves them at
work, if it cannot be caught, or comes before they are known. So this stands in between, and when its input comes to
its end it kills all of its session. It uses the standard library only, and starts without anything else.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO


def start(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str] | None, log: IO[str]
) -> subprocess.Popen[bytes]:
    """Start a command in ``folder`` with its output going to ``log``.

    Its processes end with this one, however and whenever that ends, and with the ``with`` block of what this returns.
    """
    words = [sys.executable, "-I", "-S", __file__, *command]
    return subprocess.Popen(
        words, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip


def run(command: Sequence[str], *, folder: Path, environment: Mapping[str, str] | None, log: IO[str]) -> int:
    """Run a command as :func:`start` does; its status."""
    with start(command, folder=folder, environment=environment, log=log) as process:
        return process.wait()


def main(command: Sequence[str]) -> int:
    """What runs in between."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return 127


def _end_with_input() -> None:
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
