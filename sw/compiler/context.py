"""The dialects and passes that the compiler knows."""

from collections.abc import Callable
from importlib import import_module

from xdsl.context import Context
from xdsl.ir import Dialect
from xdsl.passes import ModulePass

from daedal.compiler.transforms import PASSES


def _own(module: str, attribute: str) -> Callable[[], Dialect]:
    def load() -> Dialect:
        dialect = getattr(import_module(f"daedal.compiler.dialects.{module}"), attribute)
        assert isinstance(dialect, Dialect)
        return dialect

    return load


def _builtin(module: str, attribute: str) -> Callable[[], Dialect]:
    def load() -> Dialect:
        dialect = getattr(import_module(f"xdsl.dialects.{module}"), attribute)
        assert isinstance(dialect, Dialect)
        return dialect

    return load


OWN_DIALECTS = {
    name: _own(name, name.upper()) for name in ("check", "emb", "narrow", "place", "slc", "slcv", "dlc", "mach")
}
"""The compiler's dialects by name, loaded when called."""

_USED_DIALECTS = {
    name: _builtin(name, attribute)
    for name, attribute in (
        ("builtin", "Builtin"),
        ("func", "Func"),
        ("arith", "Arith"),
        ("math", "Math"),
        ("memref", "MemRef"),
        ("scf", "Scf"),
        ("vector", "Vector"),
    )
}


def make_context() -> Context:
    """A context with all dialects of the compiler's levels, loaded when first met."""
    context = Context()
    for name, load in {**_USED_DIALECTS, **OWN_DIALECTS}.items():
        context.register_dialect(name, load)
    return context


def load_pass(name: str) -> type[ModulePass]:
    """The pass called ``name``."""
    module, _, attribute = PASSES[name].partition(":")
    found: type[ModulePass] = getattr(import_module(f"daedal.compiler.transforms.{module}"), attribute)
    return found
