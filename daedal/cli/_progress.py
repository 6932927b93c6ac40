"""What a long command is doing, on the standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(text: str) -> Iterator[Callable[[str], None]]:
    """Show ``text``, then what the callable is given: in place on a terminal; elsewhere a line each, of the latter."""
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(text) as status:

        def say(text: str) -> None:
            status.update(text)
            if not console.is_terminal:
                console.print(text, highlight=False, markup=False, soft_wrap=True)

        yield say
