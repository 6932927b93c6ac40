"""Coverage of the RTL, on request.

The environment variable ``DAEDAL_COVERAGE`` names a folder. With it, models are built with Verilator's counters of
lines and branches (so in cache entries of their own), from Verilog that names its sources. Each model writes its counts
into the folder when it is closed; the text that the counts are of is kept beside them. ``make coverage`` reads both.
"""

import hashlib
import os
from pathlib import Path

VARIABLE = "DAEDAL_COVERAGE"


def coverage_folder() -> Path | None:
    """The folder for counts, made if need be; None if no coverage is wanted."""
    name = os.environ.get(VARIABLE)
    if not name:
        return None
    folder = Path(name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def is_wanted() -> bool:
    """Whether models count; Verilog is then to be made with ``emit_src``."""
    return coverage_folder() is not None


def keep_text(verilog: str) -> str:
    """Keep the text of a model that counts, as ``NAME.v``; the NAME with which its counts are to begin."""
    name = hashlib.sha256(verilog.encode()).hexdigest()[:20]
    folder = coverage_folder()
    if folder is not None:
        (folder / f"{name}.v").write_text(verilog, encoding="utf-8")
    return name
