"""The ``daedal`` command.

Each subcommand is one module of this package, named as the subcommand, with a click command called
``command`` in it. A module is imported only when its subcommand is used (or listed in the help), so
``daedal --version`` costs nothing.

Exit status: as ``daedal.base.boundary`` says, and 2 also for a file that defines something else than the command takes.
"""

import signal
import sys
from importlib import import_module
from pkgutil import iter_modules

import click

from daedal.base.boundary import VARIABLE, line_of, one_line, status_of
from daedal.errors import DaedalError
from daedal.version import __version__

__all__ = ["cli", "main"]

TRACEBACK = "--traceback"


class LazyGroup(click.Group):
    """A group whose subcommands are the public modules of this package, imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all subcommands, sorted."""
        return sorted(info.name for info in iter_modules(__path__) if not info.name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand ``cmd_name``, or ``None`` if there is no such one."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command = import_module(f"{__name__}.{cmd_name}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"{__name__}.{cmd_name}.command must be a click command, not {command!r}")
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand; an error of Daedal's own becomes one line and a status, unless all of it is wanted."""
        try:
            return super().invoke(ctx)
        except DaedalError as error:
            if ctx.params["traceback"]:
                raise
            click.echo(f"daedal: {line_of(error)}", err=True)
            ctx.exit(status_of(error))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="daedal")
@click.option(TRACEBACK, is_flag=True, envvar=VARIABLE,
              help=f"Show the Python traceback of an error (or the variable {VARIABLE}=1).")  # fmt: skip
def cli(traceback: bool) -> None:
    """Daedal: an open decoupled access-execute accelerator for embedding operations."""


def main() -> None:
    """Run the command with the process's arguments and exit; an error ends in a traceback only on request.

    When it is told to terminate it ends what it has started, such as a router, as it does for Ctrl-C.
    """
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with one_line("daedal", traceback=TRACEBACK in sys.argv):
        cli(prog_name="daedal")
