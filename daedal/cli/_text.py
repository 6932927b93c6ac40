"""Kernels that are text of scf or emb, for ``daedal compile``."""

import re
from typing import TYPE_CHECKING

import click

from daedal.cli._options import read_bytes, source_name
from daedal.errors import UnsupportedOperation
from daedal.hw.config import Config

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import SSAValue

    from daedal.compiler.kernel import Kernel

DEFAULT_BOUNDS = "fatal"
"""What an index outside its array does, if nothing is said."""

QUOTED = re.compile(r'(?:[^"/]+|//[^\n]*|/|"(?:[^"\\\n\v\f]|\\["nt\\]|\\[0-9A-Fa-f]{2})*")*')
"""Text up to the first quote that begins no string as xDSL knows them; comments may have any."""


def text_kernel(source: str, config: Config, bounds: str | None, opt: int) -> "tuple[str, Kernel, str | None]":
    """The only function in a file, or in the standard input for ``-``: its name, what it is compiled to, and its
    ``bounds``: those asked for, if any were, else the default; None for text of scf, which has its checks in it.
    """
    from xdsl.parser import Parser
    from xdsl.utils.exceptions import ParseError, VerifyException

    from daedal.compiler.codegen.program import only_function
    from daedal.compiler.context import make_context
    from daedal.compiler.pipeline import compile_emb, compile_scf

    name = source_name(source)
    try:
        text = read_bytes(source).decode("utf-8")
        _check_quotes(text)
        module = Parser(make_context(), text, name).parse_module()
        _check_order(module)
        module.verify()
    except (ParseError, VerifyException, UnicodeDecodeError, RecursionError, UnsupportedOperation) as error:
        raise UnsupportedOperation(f"{name} cannot be read: {error}") from error
    function = only_function(module).sym_name.data
    if any(op.name.startswith("emb.") for op in module.walk()):
        bounds = bounds or DEFAULT_BOUNDS
        return function, compile_emb(module, config, bounds, opt), bounds
    if bounds is not None:
        raise click.BadParameter("--bounds is for Python files and text of emb: text of scf has its checks in it")
    return function, compile_scf(text, config, opt), None


def _check_quotes(text: str) -> None:
    """That all strings end: xDSL takes time without end for one that does not."""
    match = QUOTED.match(text)
    assert match is not None  # it matches nothing as well
    if match.end() < len(text):
        line = text.count("\n", 0, match.end()) + 1
        raise UnsupportedOperation(f'line {line}: what a " begins must end with a " in the same line, as "sum"')


def _check_order(module: "ModuleOp") -> None:
    """That values are defined before they are used: xDSL's own check ends in a ValueError, or lets it pass."""
    known: set[SSAValue] = set()
    for op in module.walk():
        for value in op.operands:
            if value not in known:
                what, line = f"%{value.name_hint}" if value.name_hint else "a value", str(op).partition("\n")[0]
                raise UnsupportedOperation(f"{what} must be defined before it is used in `{line}`")
        known.update(op.results)
        known.update(value for region in op.regions for block in region.blocks for value in block.args)
