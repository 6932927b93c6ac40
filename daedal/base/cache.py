"""Files and folders that are made once and kept in the cache: found whole, or made anew.

Beside what is kept lies its digest (``NAME.sum``), which is written last: what was damaged, or is there without one, is
made once more. It is made in a folder of its own beside its place, and moved there. Whoever is killed meanwhile leaves
such a folder, which whoever makes something next clears away: its lock is free.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from daedal.errors import DaedalError

WORKSHOP = ".making"
"""How the names of the folders end in which something is made."""

LOCK = ".lock"
"""The file in such a folder that is locked as long as somebody is at work there."""


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
"""Errors of writing to a file that do not say which."""


class BuildError(DaedalError):
    """A compiler or Verilator refused a source, or there is no place for what it makes.

    The message has the end of the log and where the rest is, or the folder and what to do.
    """


def cache_directory() -> Path:
    """Where finished builds are kept: ``DAEDAL_CACHE`` or ``~/.cache/daedal``."""
    chosen = os.environ.get("DAEDAL_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "daedal"


def keep(place: Path, make: Callable[[Path], Path]) -> Path:
    """``place``, which is a whole file or folder: as it was kept, or what ``make`` gives.

    ``make`` gets an empty folder to work in and returns the file or folder in it that is to be kept. Several processes
    may want the same: one makes it, the others wait.

    Raises BuildError if the cache cannot be written, and what ``make`` raises.
    """
    if is_whole(place):
        return place
    with _writable(place.parent):
        place.parent.mkdir(parents=True, exist_ok=True)
        with _locked(place.with_suffix(LOCK)):
            if not is_whole(place):
                with _workshop(place) as folder:
                    _move(make(folder), place, folder)
    return place


def keep_text(place: Path, make: Callable[[], str]) -> str:
    """The text of a file that is kept, or what ``make`` gives; BuildError as for :func:`keep`."""

    def write(folder: Path) -> Path:
        made = folder / place.name
        made.write_text(make(), encoding="utf-8")
        return made

    return keep(place, write).read_text(encoding="utf-8")


def is_whole(place: Path) -> bool:
    """Whether it is there, as it was made."""
    try:
        return _sum_of(place).read_text(encoding="ascii") == digest(place)
    except (OSError, ValueError):
        return False


def digest(place: Path) -> str:
    """Of a file's content; of a folder, of the names and contents of all that is in it."""
    if not place.is_dir():
        with place.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    found = hashlib.sha256()
    for file in sorted(path for path in place.rglob("*") if not path.is_dir()):
        found.update(f"{file.relative_to(place)}\0{digest(file)}\n".encode())
    return found.hexdigest()


def _sum_of(place: Path) -> Path:
    return place.with_name(f"{place.name}.sum")


def _move(made: Path, place: Path, folder: Path) -> None:
    """Put what was made in its place, and then its digest."""
    for old in (place, _sum_of(place)):
        if old.is_dir() and not old.is_symlink():
            shutil.rmtree(old)
    if made.is_dir():
        place.unlink(missing_ok=True)
    text, note = digest(made), folder / "sum"
    os.replace(made, place)
    note.write_text(text, encoding="ascii")
    os.replace(note, _sum_of(place))


@contextmanager
def _workshop(place: Path) -> Iterator[Path]:
    """An empty folder beside ``place``, which is gone afterwards; those that nobody works in any more go before."""
    with _locked(place.with_name(f"workshops{LOCK}")):
        for left in place.parent.glob(f"*{WORKSHOP}"):
            _clear_away(left)
        folder = Path(tempfile.mkdtemp(prefix=f"{place.stem}-", suffix=WORKSHOP, dir=place.parent))
        lock = (folder / LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()


def _clear_away(folder: Path) -> None:
    try:
        with (folder / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return  # somebody is at work there
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # also for processes that were forked meanwhile and have the file too


@contextmanager
def _writable(cache: Path) -> Iterator[None]:
    """Errors of the file system are told as such of the cache."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM and not str(error.filename).startswith(str(cache)):
            raise
        raise BuildError(
            f"builds cannot be kept in {cache}: {error.strerror or error}; make room or give permission there, or set "
            "DAEDAL_CACHE to a folder that can be written"
        ) from error
