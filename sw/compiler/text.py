"""Text of any level to a module."""

import re
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException
from xdsl.utils.lexer import Input, Span

from daedal.base.messages import one_line_of, shown
from daedal.compiler.context import make_context
from daedal.errors import UnsupportedOperation

QUOTED = re.compile(r'(?:[^"/]+|//[^\n]*|/|"(?:[^"\\\n\v\f]|\\["nt\\]|\\[0-9A-Fa-f]{2})*")*')
"""Text up to the first quote that begins no string as xDSL knows them; comments may have any."""

SPLAT = re.compile(r"(?:dense<[^<>\[\]]*>\s*:|![\w.$-]+\s*=)\s*(?:tensor|vector|memref)<((?:[0-9]+x)+)")
"""One value for all elements of a shape, or a name for a shape."""

MOST_ELEMENTS = 1 << 24
"""Elements of the largest constant: xDSL makes all of them, also where they are equal."""

WIDE = re.compile(r"(?:(?<![\w.%@!#^$\"])|(?<=[0-9?]x))[su]?i([0-9]{8,})\b")
"""A type of integers that may have too many bits."""

MOST_BITS = (1 << 24) - 1
"""Bits of the widest integers, as in MLIR: xDSL makes the numbers that bound them."""

NUMBER = re.compile(r"(?<![\w.%])-?[0-9][\w.]*(?:(?<=[eE])[+-][0-9]+)?")


def read_module(text: str, what: str) -> ModuleOp:
    """The verified module that ``text`` is. UnsupportedOperation, which calls it ``what``, says what is wrong."""
    try:
        module = parse_module(make_context(), text, what)
        _check_order(module)
        verify(module)
    except ParseError as error:
        line = error.span.get_location().line
        raise UnsupportedOperation(f"{what} cannot be read: line {line}: {one_line_of(error.msg)}") from error
    except (DiagnosticException, UnsupportedOperation) as error:
        raise UnsupportedOperation(f"{what} cannot be read: {line_of(error)}") from error
    return module


def parse_module(context: Context, text: str, name: str, *, implicit: bool = True) -> ModuleOp:
    """The module that ``text``, which messages call ``name``, is: with ``implicit``, or of operations alone.

    Raises ParseError for whatever text, also where xDSL's parser ends in an error of Python's; and VerifyException for
    attributes that cannot be.
    """
    source = Input(text, name)
    _check_strings(source)
    _check_sizes(source)
    parser = Parser(context, text, name)
    try:
        return parser.parse_module(implicit)
    except (ParseError, DiagnosticException):
        raise
    except Exception as error:  # xDSL's parser meets text that it was not written for
        numbers = NUMBER.findall(text, 0, parser.pos)
        reason = reason_of(error, numbers[-1] if numbers else "")
    raise ParseError(Span(parser.pos, parser.pos, source), reason)


def verify(module: ModuleOp) -> None:
    """That a module is as its operations must be; VerifyException else, whatever xDSL's checks end in."""
    try:
        module.verify()
    except DiagnosticException:
        raise
    except Exception as error:  # a check meets a module that it was not written for
        raise VerifyException(f"the module cannot be checked: {reason_of(error)}") from error


def reason_of(error: Exception, number: str = "") -> str:
    """Why text cannot be used, of which xDSL has not said it; ``number`` is the one that was read last.

    Python refuses to read or write very long numbers.
    """
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, OverflowError) or (isinstance(error, ValueError) and "integer string" in str(error)):
        return f"{shown(number) if number else 'a number'} does not fit its type"
    if isinstance(error, MemoryError):
        return "this computer has not enough memory for it"
    return f"{type(error).__name__}: {error}"


def line_of(error: Exception) -> str:
    """An error of xDSL's as one line; that of a parser begins with the place."""
    if isinstance(error, ParseError):
        return one_line_of(f"{error.span.get_location()}: {error.msg}")
    return one_line_of(str(error))


def _check_strings(source: Input[str]) -> None:
    """That all strings end: xDSL takes time without end for one that does not."""
    match = QUOTED.match(source.content)
    assert match is not None  # it matches nothing as well
    if match.end() < len(source):
        at = Span(match.end(), match.end() + 1, source)
        raise ParseError(at, 'what a " begins must end with a " in the same line, as "sum"')


def _check_sizes(source: Input[str]) -> None:
    """That no constant has so many equal elements, and no type so many bits, that they fill memory."""
    for match in WIDE.finditer(source.content):
        if len(match[1]) > 20 or int(match[1]) > MOST_BITS:
            at = Span(match.start(), match.end(), source)
            raise ParseError(at, f"type {one_line_of(match[0])} must have at most {MOST_BITS:,} bits")
    for match in SPLAT.finditer(source.content) if "dense<" in source.content else ():
        sizes = [size.lstrip("0") or "0" for size in match[1].split("x")[:-1]]
        if sum(map(len, sizes)) > 40 or prod(map(int, sizes)) > MOST_ELEMENTS:
            at = Span(match.start(), match.end(), source)
            raise ParseError(at, f"a constant must have at most {MOST_ELEMENTS:,} elements, not {shown(match[1][:-1])}")


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
