"""``daedal-opt``: reads IR, runs passes, prints IR. Try ``daedal-opt -p lower-emb,hoist-invariants FILE``."""

import sys
from collections.abc import Callable
from functools import partial

from xdsl.passes import ModulePass
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.xdsl_opt_main import xDSLOptMain

from daedal.compiler.context import OWN_DIALECTS, load_pass
from daedal.compiler.transforms import PASSES
from daedal.errors import DaedalError


class DaedalOpt(xDSLOptMain):
    """xDSL's tool with the compiler's own dialects and passes, which are imported when they are used."""

    def register_all_dialects(self) -> None:
        """Register xDSL's dialects and the compiler's own."""
        super().register_all_dialects()
        for name, load in OWN_DIALECTS.items():
            self.ctx.register_dialect(name, load)

    def register_all_passes(self) -> None:
        """Register xDSL's passes and the compiler's own."""
        super().register_all_passes()
        for name in PASSES:
            factory: Callable[[], type[ModulePass]] = partial(load_pass, name)
            self.register_pass(name, factory)


def main() -> None:
    """Run the tool on the command line's arguments; what it refuses is one message and status 1."""
    try:
        DaedalOpt(description="Daedal's IR tool").run()
    except (DaedalError, OSError, ParseError, ValueError, VerifyException) as error:
        sys.exit(f"daedal-opt: {error}")


if __name__ == "__main__":
    main()
