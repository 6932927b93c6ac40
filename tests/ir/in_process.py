"""How a test of the IR is run, by pytest and by lit: its commands are functions of one process.

Starting a process for each would take a third of a second, nearly all of it for imports, and there are eighty.
"""

import io
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import filecheck.main
import lit.formats
import lit.Test

from daedal.compiler import opt_main

COMMANDS: dict[str, Callable[[], None]] = {"daedal-opt": opt_main.main, "filecheck": filecheck.main.main}
RUN = "// RUN: "


class InProcess(lit.formats.FileBasedTest):
    """Files with lines ``// RUN: command … | command …``; ``%s`` is the file. All commands must end with status 0."""

    def execute(self, test: Any, lit_config: Any) -> tuple[Any, str]:
        """Run one file; lit's verdict, and what failed."""
        failure = run_file(Path(test.getSourcePath()))
        return lit.Test.FAIL if failure else lit.Test.PASS, failure


def run_file(path: Path) -> str:
    """Run the lines of a file; which one failed and what it printed, or nothing."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith(RUN)]
    for line in lines:
        failure = run_pipe(line.removeprefix(RUN).replace("%s", str(path)))
        if failure:
            return f"{line}\n{failure}"
    return "" if lines else f"{path} has no line that begins with {RUN}"


def run_pipe(line: str) -> str:
    """Run commands with a bar between them; what one that failed said, or nothing."""
    words, given = shlex.split(line), ""
    while words:
        end = words.index("|") if "|" in words else len(words)
        if words[0] not in COMMANDS:
            return f"a command must be one of {', '.join(COMMANDS)}, not {words[0]}"
        status, given, errors = run_command(words[:end], given)
        if status:
            return f"{words[0]} ended with status {status}:\n{errors}{given}"
        words = words[end + 1 :]
    return ""


def run_command(words: Sequence[str], given: str) -> tuple[int, str, str]:
    """Call what the command calls, with ``given`` for its standard input; its status, output and errors."""
    stdin = io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8")
    output, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    status = 0
    with patch.object(sys, "argv", [*words]), patch.object(sys, "stdin", stdin):
        with redirect_stdout(output), redirect_stderr(errors):
            try:
                COMMANDS[words[0]]()
            except SystemExit as end:
                if isinstance(end.code, str):
                    print(end.code, file=sys.stderr)
                status = end.code if isinstance(end.code, int) else int(end.code is not None)
    return status, _text(output), _text(errors)


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
