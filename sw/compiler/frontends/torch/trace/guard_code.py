"""PyTorch's checks of a program's inputs, made in time that is linear in their number: ``ExportedProgram.module`` looks
for each input in each check.
"""

import ast
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import fx
from torch.export import ExportedProgram, _unlift
from torch.fx.experimental.symbolic_shapes import SYMPY_INTERP
from torch.utils import _pytree as pytree

Check = Callable[..., None]
"""Takes the leaves of the inputs; AssertionError for those that the program was not exported for."""

CONDITIONS = "daedal_conditions"
"""The attribute in which a check has what it evaluates: expressions of ``args``, the leaves."""

_FLAT = re.compile(r"L\['flat_args'\]\[(\d+)\]")
_INPUT = re.compile(r"L((?:\['[^']*'\]|\[\d+\]|\.\w+)+)")
_STEP = re.compile(r"\['[^']*'\]|\[\d+\]|\.\w+")

_unlift_private: Any = _unlift
"""PyTorch 2.13's own, without types."""


def graph_of(program: ExportedProgram) -> tuple[fx.GraphModule, Check | None]:
    """The program as a graph, and the checks of its inputs; None if there are none, or the graph makes them."""
    graph = program.module(check_guards=False)
    assert isinstance(graph, fx.GraphModule)
    places = graph.graph.find_nodes(op="placeholder")
    if not places or not program.example_inputs:
        return graph, None
    signature = inspect.signature(graph.forward)
    paths = _unlift_private._get_input_paths(program.example_inputs, signature)
    names = [pytree.keystr(path) for path in paths]
    own = [_FLAT.sub(lambda found: f"L{names[int(found[1])]}", each) for each in program._guards_code]
    texts = _unlift_private._get_input_guards_for_graph(places, program.range_constraints, paths)
    texts += _unlift_private._force_gm_signature_match(own, signature)
    return graph, _check(texts, paths)


def _check(texts: Sequence[str], paths: Sequence[Any]) -> Check | None:
    """A function that evaluates all checks, None if there are none; these texts call an input ``L`` and how it is
    reached.
    """
    if not texts:
        return None
    numbers = {pytree.keystr(path): number for number, path in enumerate(paths)}
    lines, conditions = ["def first_failed(args):"], list[str]()
    for number, text in enumerate(texts):
        condition = _with_inputs(text, numbers, lambda found: f"args[{found}]")
        conditions.append(condition)
        lines.append(f"    if not ({condition}): return {number}")
    names: dict[str, Any] = {**SYMPY_INTERP, "math": math, "inf": float("inf")}
    exec("\n".join([*lines, "    return None"]), names)
    first_failed = names["first_failed"]

    def shown(number: int) -> str:
        first, *others = paths[number]
        return f"{first.key}{pytree.keystr(tuple(others))}"

    def check(*inputs: Any) -> None:
        failed = first_failed(inputs)
        if failed is not None:
            text = _with_inputs(texts[failed], numbers, shown).replace("\n", "")
            raise AssertionError(f"Guard failed: {ast.unparse(ast.parse(text, mode='eval'))}")

    setattr(check, CONDITIONS, conditions)
    return check


def _with_inputs(text: str, numbers: Mapping[str, int], name_of: Callable[[int], str]) -> str:
    """The text of a check, with what inputs are called."""

    def replaced(found: re.Match[str]) -> str:
        steps = _STEP.findall(found[1])
        for count in range(len(steps), 0, -1):  # what follows an input is an attribute of it
            number = numbers.get("".join(steps[:count]))
            if number is not None:
                return name_of(number) + "".join(steps[count:])
        return found[0]

    return _INPUT.sub(replaced, text)
