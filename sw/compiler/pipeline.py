"""From ``emb`` or ``scf`` to a kernel, level by level, verified before and after every pass."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache

from xdsl.context import Context
from xdsl.dialects import arith, math, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.utils.exceptions import VerifyException

from daedal.base.float_mode import default_float_mode
from daedal.compiler.analysis.addresses import buffer_name
from daedal.compiler.analysis.aliases import distinct_names
from daedal.compiler.analysis.scalars import is_float
from daedal.compiler.backend.interleave_bags import Turns
from daedal.compiler.backend.program_builder import Generated, generate, only_function, program_bytes
from daedal.compiler.context import make_context
from daedal.compiler.dialects import slcv, slcv_scalars
from daedal.compiler.dialects.elements import ELEMENT_NAMES, LANE, row_element
from daedal.compiler.opt_levels import BEST
from daedal.compiler.pass_table import LEVELS, make_pass, value_at
from daedal.compiler.text import read_module
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config
from daedal.runtime.kernel import BufferSpec, Kernel

_SLOW = (slcv_scalars.ReduceOp, slcv_scalars.ScaleOp, slcv_scalars.ToIntegerOp, arith.DivfOp, math.SqrtOp)
"""What takes so long that other things are better done meanwhile."""

KEPT = 256
"""Kernels that are kept for the next time: the same layer or loops on another device, or once more."""


@dataclass(frozen=True)
class _Source:
    """A module that is known by its text."""

    text: str
    module: ModuleOp = field(compare=False)


@default_float_mode()
def compile_emb(
    module: ModuleOp, config: Config, bounds: str = "fatal", opt: int = BEST, *, turns: Turns = Turns.LONG
) -> Kernel:
    """A kernel for the module's only function, which has operations of ``emb``; ``bounds`` and ``opt`` as in
    ``daedal.compile``; ``turns``: how bags may come in turn.

    Raises UnsupportedOperation if it does not fit the configuration.
    """
    _verify(module, "front end")
    return _compile_emb(_Source(str(module), module), config, bounds, opt, turns)


@lru_cache(maxsize=KEPT)
def _compile_emb(source: _Source, config: Config, bounds: str, opt: int, turns: Turns) -> Kernel:
    context, module = make_context(), source.module.clone()
    levels = {"emb": source.text}
    passes = _advance(context, module, "scf", config, bounds)
    levels["scf"] = str(module)

    def compile_at(level: int) -> Kernel:
        return _finish(context, module.clone(), config, dict(levels), passes, level, turns=turns)

    return _first_that_fits(compile_at, opt)


@lru_cache(maxsize=KEPT)
@default_float_mode()
def compile_scf(text: str, config: Config, opt: int = BEST) -> Kernel:
    """A kernel for the only function in ``text``, which works on memrefs with plain loops; ``opt`` as in
    ``daedal.compile``.

    The names of the function's arguments are those of its buffers and numbers. Raises UnsupportedOperation,
    saying where and why, for text that cannot be read, loops that cannot be decoupled, and programs that do
    not fit.
    """
    context = make_context()
    module = read_module(text, "the loops")
    return _first_that_fits(lambda level: _finish(context, module.clone(), config, {"scf": text}, {}, level), opt)


def forget_kernels() -> None:
    """Compile all anew from here on."""
    _compile_emb.cache_clear()
    compile_scf.cache_clear()


def _first_that_fits(compile_at: Callable[[int], Kernel], opt: int) -> Kernel:
    """The kernel at level ``opt``, or at the next one that the program fits into, which then says why."""
    lacking = ""
    for level in range(opt, BEST):
        try:
            return replace(compile_at(level), lacking=lacking)
        except UnsupportedOperation as error:
            lacking += f"{'; ' if lacking else ''}at O{level} {error}"
    return replace(compile_at(BEST), lacking=lacking)


def _finish(
    context: Context, module: ModuleOp, config: Config, levels: dict[str, str], passes: Mapping[str, str], opt: int,
    *, turns: Turns = Turns.LONG,
) -> Kernel:  # fmt: skip
    function = only_function(module)
    arguments = list(function.body.block.args)
    for position, argument in enumerate(arguments):
        argument.name_hint = argument.name_hint or f"arg{position}"
    written = [op.memref for op in function.walk() if isinstance(op, memref.StoreOp)]
    specs = {a: _buffer(a, a in written) for a in arguments if isinstance(a.type, MemRefType)}
    values = tuple(a.name_hint or "" for a in arguments if isinstance(a.type, IndexType) or is_float(a))
    names = {a.name_hint: spec for a, spec in specs.items()}
    if len(specs) + len(values) != len(arguments):
        raise UnsupportedOperation(f"a function's arguments must be memrefs, indices and {LANE}")
    for level in ("slc", "slcv"):
        passes = {**passes, **_advance(context, module, level, config, opt=opt)}
        levels[level] = str(module)
    sources = [op.memref for op in module.walk() if isinstance(op, slcv.FetchOp)]
    fetched = {buffer_name(source) for source in sources if isinstance(source.owner, Block)}
    distinct = distinct_names(only_function(module))
    buffers = tuple(
        replace(spec, is_table=name in fetched, is_distinct=name in distinct) for name, spec in names.items()
    )
    passes = {**passes, **_advance(context, module, "dlc", config, opt=opt)}
    levels["dlc"] = str(module)
    overlaps = bool(value_at("software-pipelining", opt, config))
    turns = turns if value_at("interleave-bags", opt, config) else Turns.NONE
    made = _generated(context, module, config, opt, overlaps=overlaps, turns=turns)
    levels["mach"] = str(made.module)
    program = program_bytes(made.module)
    return Kernel(program, made.arguments, buffers, values, levels, opt, passes=passes, choices=made.choices)


def _generated(
    context: Context, module: ModuleOp, config: Config, opt: int, *, overlaps: bool, turns: Turns
) -> Generated:
    """What the back end makes of a module; runs of a loop are joined, and what rows end with is done in stages, if the
    machine has room for that.
    """
    if overlaps and any(isinstance(op, _SLOW) for op in module.walk()):
        for stages in (True, False):
            with suppress(UnsupportedOperation):
                made = generate(module.clone(), config, overlaps=overlaps, joins=True, stages=stages, turns=turns)
                _advance(context, made.module, "mach", config, opt=opt)
                return made
    made = generate(module, config, overlaps=overlaps, turns=turns)
    _advance(context, made.module, "mach", config, opt=opt)
    return made


def _buffer(argument: SSAValue, is_output: bool) -> BufferSpec:
    kind = argument.type
    assert isinstance(kind, MemRefType)
    name = argument.name_hint or ""
    element = row_element(kind.element_type)
    dtype = f"int{_width(kind, name)}" if element is None else element.dtype
    shape = tuple(None if size == DYNAMIC_INDEX else size for size in kind.get_shape())
    if not shape:
        raise UnsupportedOperation(f"buffer %{name} must have at least one dimension: memref<1x{kind.element_type}>")
    strides = kind.get_strides() or ()
    has_free_pitch = len(strides) > 1 and strides[-2] is None
    return BufferSpec(name, dtype, shape, is_output, is_table=False, has_free_pitch=has_free_pitch)


def _width(kind: MemRefType, name: str) -> int:
    text = str(kind.element_type)
    if text not in ("i32", "i64"):
        raise UnsupportedOperation(f"buffer %{name} must be of {ELEMENT_NAMES}, i32 or i64, not of {text}")
    return int(text[1:])


def _advance(
    context: Context, module: ModuleOp, level: str, config: Config, bounds: str = "fatal", opt: int = BEST
) -> dict[str, str]:
    """Run the passes that lead to a level; what each did. The level is verified (``daedal-opt`` verifies each pass)."""
    done, before = {}, _counts(module)
    for name in LEVELS[level]:
        make_pass(name, config, bounds, opt).apply(context, module)
        after = _counts(module)
        more, fewer = after - before, before - after
        done[name] = ", ".join([*_listed("+", more), *_listed("-", fewer)]) or "no operation more or fewer"
        before = after
    _verify(module, f"the passes to {level}")
    return done


def _counts(module: ModuleOp) -> Counter[str]:
    return Counter(op.name for op in module.walk())


def _listed(sign: str, counts: Counter[str]) -> list[str]:
    return [f"{sign}{count} {name}" for name, count in sorted(counts.items())]


def _verify(module: ModuleOp, maker: str) -> None:
    try:
        module.verify()
    except VerifyException as error:
        raise UnsupportedOperation(f"after {maker}: {error}") from error
