"""Files that are there as a whole, or as they were."""

import os
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write ``data`` beside ``path``, then put it in its place; links are followed.

    What is there and is no regular file (a terminal, a pipe) is written to directly. Raises OSError.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    target = path.resolve()
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        if target.exists():
            part.chmod(target.stat().st_mode)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
