"""Kernels that are text of scf or emb, for ``daedal compile``."""

from typing import TYPE_CHECKING

import click

from daedal.cli._options import read_text, source_name
from daedal.hw.config.core import Config

if TYPE_CHECKING:
    from daedal.runtime.kernel import Kernel

DEFAULT_BOUNDS = "fatal"
"""What an index outside its array does, if nothing is said."""


def text_kernel(source: str, config: Config, bounds: str | None, opt: int) -> "tuple[str, Kernel, str | None]":
    """The only function in a file, or in the standard input for ``-``: its name, what it is compiled to, and its
    ``bounds``: those asked for, if any were, else the default; None for text of scf, which has its checks in it.
    """
    from daedal.compiler.backend.program_builder import only_function
    from daedal.compiler.pipeline import compile_emb, compile_scf
    from daedal.compiler.text import read_module

    name = source_name(source)
    text = read_text(source)
    module = read_module(text, name)
    function = only_function(module).sym_name.data
    if any(op.name.startswith("emb.") for op in module.walk()):
        bounds = bounds or DEFAULT_BOUNDS
        return function, compile_emb(module, config, bounds, opt), bounds
    if bounds is not None:
        raise click.BadParameter("--bounds is for Python files and text of emb: text of scf has its checks in it")
    return function, compile_scf(text, config, opt), None
