"""Options and files that several subcommands have in common."""

import errno
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, TypeVar

import click

from daedal.base.files import decode_text, read_whole, write_whole
from daedal.base.messages import shown
from daedal.errors import ConfigMismatch, DaedalError, FileError
from daedal.hw.config.core import PRESETS, Config
from daedal.hw.config.file import find_config

if TYPE_CHECKING:
    from daedal.hw.isa.program import Program

F = TypeVar("F", bound=Callable[..., Any])


class InputError(DaedalError):
    """What a file named on the command line defines is not what the command takes."""

    status = 2


class OutputFile(click.Path):
    """A file to write, ``-`` for the standard output; that it cannot be is said before the run, not after it."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False, writable=True, allow_dash=True)

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        path = Path(str(super().convert(value, parameter, context)))
        if str(path) != "-" and not path.absolute().parent.is_dir():
            self.fail(f"the folder of {str(path)!r} must exist: make it first", parameter, context)
        return path


def config_option(text: str, *, default: str | None = "ddr3") -> Callable[[F], F]:
    """The option ``--config``: a preset's name or a file; the command gets a ``Config``, or None without a default.

    What is wrong with a file is an error of status 1 that says where.
    """

    def convert(context: click.Context, parameter: click.Parameter, value: str | None) -> Config | None:
        if value is not None and value not in PRESETS and not Path(value).suffix:
            raise click.BadParameter(f"{shown(value)} is not one of {', '.join(PRESETS)}, nor a .toml or .json file")
        return None if value is None else find_config(value)

    metavar = f"[{'|'.join(PRESETS)}|FILE]"
    return click.option(
        "--config", default=default, show_default=default is not None, metavar=metavar, callback=convert, help=text
    )


def read_bytes(path: str) -> bytes:
    """The bytes of a file, or of the standard input for ``-``; FileError if it cannot be read."""
    name = source_name(path)
    if path != "-":
        return read_whole(Path(path), name)
    try:
        return read_whole(_binary(sys.stdin), name)
    except OSError as error:
        raise FileError(f"{name} cannot be read: {error.strerror}") from error


def read_text(path: str) -> str:
    """The text in UTF-8 of a file, or of the standard input for ``-``; FileError if it cannot be read or is none."""
    return decode_text(read_bytes(path), source_name(path))


def write_bytes(path: str, data: bytes) -> None:
    """Write a file, or the standard output for ``-``; FileError if it cannot be written."""
    with writing(path):
        if path == "-":
            stream = _binary(sys.stdout)
            stream.write(data)
            stream.flush()
        else:
            write_whole(Path(path), data)


@contextmanager
def writing(path: str = "-") -> Iterator[None]:
    """While a file is written, or printed to the standard output for ``-``: FileError if it cannot be."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of the pipe has seen enough: no error to speak of
    except OSError as error:
        name = "standard output" if path == "-" else path
        raise FileError(f"{name} cannot be written: {error.strerror}") from error


def _binary(stream: TextIO | None) -> BinaryIO:
    """The bytes of a standard stream; OSError if it was closed when Python started, which then has None."""
    if stream is None:
        raise OSError(errno.EBADF, "it is closed")
    return stream.buffer


def source_name(path: str) -> str:
    """How messages call the file ``path``."""
    return "standard input" if path == "-" else path


def check_configuration(name: str, programs: "Sequence[Program]", config: Config | None) -> None:
    """That all programs of the file ``name`` are for ``config``, if one is given; else ConfigMismatch."""
    for program in programs:
        if config is not None and program.config_hash != config.hash:
            known = {each.hash: f"{each.name} " for each in PRESETS.values()}
            raise ConfigMismatch(
                f"{name} must be a program for configuration {config.name} {config.hash:#010x}, "
                f"not {known.get(program.config_hash, '')}{program.config_hash:#010x}: compile it for that one"
            )
