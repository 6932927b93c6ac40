"""Operators over the syntax tree of C++ that tree-sitter makes."""

from collections.abc import Iterator

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from tests.mutate.operators.site import (
    ARITHMETIC,
    ARITHMETICS,
    COMPARISON,
    COMPARISONS,
    DROPPED,
    EXTREME,
    FLIPPED,
    LOGIC,
    NEGATED,
    NOT,
    OFF_BY_ONE,
    Site,
)  # fmt: skip

_LOGICS = {"&&": "||", "||": "&&"}
_EXTREMES = {"std::min": "std::max", "std::max": "std::min"}
_UPDATES = {"++": "--", "--": "++"}
_ASSIGNMENTS = {f"{old}=": f"{new}=" for old, new in ARITHMETICS.items() if old != "//"}

_LEFT_ALONE = frozenset(
    ("comment", "preproc_include", "preproc_ifdef_condition", "static_assert_declaration", "template_argument_list",
     "template_parameter_list", "string_literal", "raw_string_literal", "char_literal", "linkage_specification_name")
)  # fmt: skip
"""Kinds of nodes in which nothing is changed."""

_PARSER = Parser(Language(tree_sitter_cpp.language()))


def cpp_sites(text: str) -> Iterator[Site]:
    """Every place of a C++ source at which an operator applies."""
    return _sites(_PARSER.parse(text.encode()).root_node)


def _sites(node: Node) -> Iterator[Site]:
    if node.type in _LEFT_ALONE:
        return
    yield from _own(node)
    for child in node.children:
        if not (node.type == "case_statement" and child == node.child_by_field_name("value")):
            yield from _sites(child)


def _own(node: Node) -> Iterator[Site]:
    text = _text(node)
    match node.type:
        case "binary_expression":
            yield from _swapped(node, {COMPARISON: COMPARISONS, ARITHMETIC: ARITHMETICS, LOGIC: _LOGICS})
        case "assignment_expression":
            yield from _swapped(node, {ARITHMETIC: _ASSIGNMENTS})
        case "update_expression":
            yield from _swapped(node, {ARITHMETIC: _UPDATES})
        case "unary_expression" if text.startswith(("!", "~")):
            yield _site(NOT, node, text[1:])
        case "number_literal":
            yield _site(OFF_BY_ONE, node, f"({text} + 1)")
        case "true" | "false":
            yield _site(FLIPPED, node, "false" if text == "true" else "true")
        case "qualified_identifier" if text in _EXTREMES:
            yield _site(EXTREME, node, _EXTREMES[text])
        case "expression_statement" | "break_statement" | "continue_statement" | "throw_statement" if len(text) > 1:
            yield _site(DROPPED, node, ";")
    if node.type in ("if_statement", "while_statement", "for_statement", "conditional_expression"):
        condition = node.child_by_field_name("condition")
        if condition is not None and condition.type == "condition_clause":
            condition = condition.child_by_field_name("value")
        if condition is not None and not condition.type.endswith("declaration"):
            yield _site(NEGATED, condition, f"!({_text(condition)})")


def _swapped(node: Node, tables: dict[str, dict[str, str]]) -> Iterator[Site]:
    symbol = node.child_by_field_name("operator")
    assert symbol is not None
    for operator, table in tables.items():
        if _text(symbol) in table:
            yield _site(operator, symbol, table[_text(symbol)])


def _site(operator: str, node: Node, new: str) -> Site:
    return Site(operator, node.start_point[0] + 1, node.start_byte, node.end_byte, new)


def _text(node: Node) -> str:
    assert node.text is not None
    return node.text.decode()
