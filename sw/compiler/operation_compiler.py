"""The kernels of operations that a framework hands over, as an executable asks for them."""

from daedal.compiler.backend.interleave_bags import Turns
from daedal.compiler.frontends.requests.emb_builder import build
from daedal.compiler.pipeline import compile_emb
from daedal.hw.config.core import Config
from daedal.runtime.executable import Compile
from daedal.runtime.kernel import Kernel
from daedal.runtime.operations import Operation


def compiler_for(config: Config, bounds: str, opt: int) -> Compile:
    """Compiles operations for a machine; ``bounds`` and ``opt`` as in ``daedal.compile``."""

    def compile_operation(operation: Operation, has_long_bags: bool) -> Kernel:
        turns = Turns.LONG if has_long_bags else Turns.SHORT
        return compile_emb(build(operation), config, bounds, opt, turns=turns)

    return compile_operation
