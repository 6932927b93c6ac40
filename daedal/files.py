"""Files that are there as a whole, or as they were."""

import json
import os
from pathlib import Path
from typing import Any


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


def write_json(path: Path, document: Any) -> None:
    """Write ``document`` as :func:`write_whole` does; folders on the way are made. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())
