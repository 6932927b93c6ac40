"""The edge of every command: what goes wrong becomes one line on the standard error, and a status.

Statuses: 0 for success; 1 for what Daedal refuses or cannot do, which the line says with the way out; 2 for a wrong
command line; 70 (``EX_SOFTWARE`` of ``sysexits.h``) for an unforeseen error, which is a defect of Daedal's.
With the environment variable ``DAEDAL_TRACEBACK`` set to 1 the Python traceback is shown instead.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import extract_tb

from daedal.base.messages import one_line_of
from daedal.errors import DaedalError

VARIABLE = "DAEDAL_TRACEBACK"
"""The environment variable that asks for tracebacks."""

DEFECT = 70
"""The status for an unforeseen error."""


@contextmanager
def one_line(command: str, *, traceback: bool = False) -> Iterator[None]:
    """Run what is inside as ``command``; an error ends the process with one line and a status, as above.

    With ``traceback`` it is raised, as with the environment variable.
    """
    try:
        yield
    except BrokenPipeError:  # the reader has seen enough; the interpreter is not to find out again when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if traceback or os.environ.get(VARIABLE, "") not in ("", "0"):
            raise
        print(f"{command}: {line_of(error)}", file=sys.stderr)
        sys.exit(status_of(error))


def line_of(error: Exception) -> str:
    """An error as one line for a user."""
    if isinstance(error, DaedalError):
        return one_line_of(str(error))
    if isinstance(error, RecursionError):
        return "what was given is nested too deeply: make it flatter, or split it"
    if isinstance(error, MemoryError):
        return "this computer has not enough memory for what was given: make it smaller"
    if isinstance(error, OSError | ValueError):
        return one_line_of(str(error))
    where = extract_tb(error.__traceback__)
    place = f" at {os.path.basename(where[-1].filename)}:{where[-1].lineno}" if where else ""
    return one_line_of(
        f"{type(error).__name__}{place}: {error}. This is a defect of Daedal's: {VARIABLE}=1 shows all of it to report"
    )


def status_of(error: Exception) -> int:
    """The status with which a command ends that raised this error."""
    if isinstance(error, DaedalError):
        return int(getattr(error, "status", 1))
    return 1 if isinstance(error, OSError | ValueError | RecursionError | MemoryError) else DEFECT
