"""``daedal-opt``: reads IR, runs passes, prints IR. Try ``daedal-opt -p lower-emb,loop-invariant-code-motion FILE``.

Whatever the text, what is refused is one line and status 1.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError, ShrinkException
from xdsl.xdsl_opt_main import xDSLOptMain

from daedal.base.boundary import one_line
from daedal.base.files import decode_text, read_whole
from daedal.compiler.context import OWN_DIALECTS, load_pass
from daedal.compiler.text import line_of, parse_module, reason_of
from daedal.compiler.transforms import PASSES
from daedal.errors import DaedalError, UnsupportedOperation


class DaedalOpt(xDSLOptMain):
    """xDSL's tool with the compiler's own dialects and passes, which are imported when they are used."""

    def register_all_dialects(self) -> None:
        """Register xDSL's dialects and the compiler's own."""
        super().register_all_dialects()
        for name, load in OWN_DIALECTS.items():
            self.ctx.register_dialect(name, load)

    def register_all_frontends(self) -> None:
        """Register the reader of text, with the checks that xDSL's own lacks."""

        def read(stream: IO[bytes]) -> ModuleOp:
            name = self.get_input_name()
            text = decode_text(read_whole(stream, name), name)
            return parse_module(self.ctx, text, name, implicit=not self.args.no_implicit_module)

        self.available_frontends["mlir"] = read

    def register_all_passes(self) -> None:
        """Register xDSL's passes and the compiler's own."""
        super().register_all_passes()
        for name in PASSES:
            factory: Callable[[], type[ModulePass]] = partial(load_pass, name)
            self.register_pass(name, factory)

    def apply_passes(self, prog: ModuleOp) -> None:
        """Apply passes in order; UnsupportedOperation for a module that one of them was not written for."""
        with _named(f"passes {self.args.passes!r} cannot be run" if self.args.passes else "the module cannot be used"):
            super().apply_passes(prog)

    def output_resulting_program(self, prog: ModuleOp) -> str:
        """The resulting program; UnsupportedOperation if the target cannot write it."""
        with _named("the module cannot be written"):
            return super().output_resulting_program(prog)


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Errors of xDSL's and Python's that are no messages to a user, as one that says ``what`` failed."""
    try:
        yield
    except (DaedalError, DiagnosticException, ParseError, ShrinkException):
        raise
    except Exception as error:  # a pass or a printer meets a module that it was not written for
        raise UnsupportedOperation(f"{what}: {reason_of(error)}") from error


def main() -> None:
    """Run the tool on the command line's arguments; what it refuses is one line and status 1."""
    with one_line("daedal-opt"):
        try:
            DaedalOpt(description="Daedal's IR tool").run()
        except (ParseError, DiagnosticException) as error:
            raise UnsupportedOperation(line_of(error)) from error
        except ArgSpecParseError as error:  # no Exception, so that nothing else would stop it
            raise UnsupportedOperation(str(error)) from error


if __name__ == "__main__":
    main()
