"""Text of any level to a module."""

import re

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from daedal.compiler.context import make_context
from daedal.errors import UnsupportedOperation

QUOTED = re.compile(r'(?:[^"/]+|//[^\n]*|/|"(?:[^"\\\n\v\f]|\\["nt\\]|\\[0-9A-Fa-f]{2})*")*')
"""Text up to the first quote that begins no string as xDSL knows them; comments may have any."""


def read_module(text: str, what: str) -> ModuleOp:
    """The verified module that ``text`` is. UnsupportedOperation, which calls it ``what``, says what is wrong."""
    try:
        _check_quotes(text)
        module = Parser(make_context(), text, what).parse_module()
        _check_order(module)
        module.verify()
    except (ParseError, VerifyException, RecursionError, UnsupportedOperation) as error:
        raise UnsupportedOperation(f"{what} cannot be read: {error}") from error
    return module


def _check_quotes(text: str) -> None:
    """That all strings end: xDSL takes time without end for one that does not."""
    match = QUOTED.match(text)
    assert match is not None  # it matches nothing as well
    if match.end() < len(text):
        line = text.count("\n", 0, match.end()) + 1
        raise UnsupportedOperation(f'line {line}: what a " begins must end with a " in the same line, as "sum"')


def _check_order(module: ModuleOp) -> None:
    """That values are defined before they are used: xDSL's own check ends in a ValueError, or lets it pass."""
    known: set[SSAValue] = set()
    for op in module.walk():
        for value in op.operands:
            if value not in known:
                what, line = f"%{value.name_hint}" if value.name_hint else "a value", str(op).partition("\n")[0]
                raise UnsupportedOperation(f"{what} must be defined before it is used in `{line}`")
        known.update(op.results)
        known.update(value for region in op.regions for block in region.blocks for value in block.args)
