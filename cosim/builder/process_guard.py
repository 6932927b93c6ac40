"""Runs a command that ends with the process that wanted it: a program, and the function that starts it.

::

    python supervised.py COMMAND…    # a session of its own; its standard input is open as long as it is wanted

A compiler is started by make, which is started by us: killing us with a signal that cannot be caught leaves them at
work. So this stands in between, and when its input comes to its end it kills all of its session. It uses the
standard library only, and starts without anything else.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO


def run(command: Sequence[str], *, folder: Path, environment: Mapping[str, str] | None, log: IO[str]) -> int:
    """Run a command in ``folder`` with its output going to ``log``; its status.

    Its processes end with this one, however that ends, and with this call, if that is interrupted.
    """
    words = [sys.executable, "-I", "-S", __file__, *command]
    with subprocess.Popen(
        words, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:  # fmt: skip
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
