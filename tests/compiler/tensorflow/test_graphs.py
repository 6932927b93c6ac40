"""Graphs as TensorFlow's messages have them, read and cut without TensorFlow."""

import subprocess
import sys
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import daedal
from daedal.compiler.frontends.tensorflow import api
from daedal.compiler.frontends.tensorflow.graph import Graph, Node, Ref
from daedal.compiler.frontends.tensorflow.inlining import Inliner, lookups_inside
from daedal.compiler.frontends.tensorflow.ops.lookups import Gather
from daedal.compiler.frontends.tensorflow.ops.operation import Tables
from daedal.compiler.frontends.tensorflow.ops.reductions import SparseSegments
from daedal.compiler.frontends.tensorflow.registry import find_operations
from daedal.compiler.frontends.tensorflow.schedule import schedule
from daedal.errors import UnsupportedOperation

OUTPUTS = {"Unique": ["y", "idx"], "StatefulPartitionedCall": ["output"]}
FLOAT, RESOURCE = 1, 20


def attribute(**fields: Any) -> SimpleNamespace:
    empty = {"b": False, "i": 0, "type": 0, "func": SimpleNamespace(name=""), "list": SimpleNamespace(func=[])}
    return SimpleNamespace(**{**empty, **fields})


def message(name: str, op: str, *inputs: str, **attributes: Any) -> SimpleNamespace:
    """A node as a graph has it."""
    found = defaultdict[str, Any](attribute, {key: attribute(**each) for key, each in attributes.items()})
    return SimpleNamespace(name=name, op=op, input=list(inputs), attr=found)


def gather(name: str, table: str, indices: str, *controls: str) -> SimpleNamespace:
    return message(name, "ResourceGather", table, indices, *controls, dtype={"type": FLOAT})


def handle(name: str = "table") -> SimpleNamespace:
    return message(name, "Placeholder", dtype={"type": RESOURCE})


def read(*messages: Any, outputs: tuple[str, ...] = ("out",), functions: Any = (), effects: Any = ()) -> Graph:
    inliner = Inliner(functions, lambda op: OUTPUTS.get(op, ["output"]))
    return inliner.graph(messages, [Ref.read(each) for each in outputs], effects)


def tables(written: frozenset[str] = frozenset()) -> Tables:
    return Tables({"table": "users", "other": "items"}, {Ref("table"): (50, 8), Ref("other"): (9, 4)}.get, written)


def function(name: str, arguments: list[str], nodes: list[Any], results: dict[str, str]) -> Any:
    named = SimpleNamespace(
        name=name,
        input_arg=[SimpleNamespace(name=each) for each in arguments],
        output_arg=[SimpleNamespace(name=each) for each in results],
    )
    return SimpleNamespace(
        signature=named, node_def=nodes, ret=results, control_ret={"c": nodes[-1].name}, attr=defaultdict(attribute)
    )


SPARSE = (
    handle(),
    message("ids", "Placeholder"),
    message("bags", "Placeholder"),
    message("unique", "Unique", "ids"),
    gather("rows", "table", "unique"),
    message("same", "Identity", "rows"),
    message("out", "SparseSegmentSum", "same", "unique:1", "bags", T={"type": FLOAT}),
)
"""What ``embedding_lookup_sparse`` is."""


def test_distinct_rows_are_looked_up_as_they_are_wanted() -> None:
    graph = read(*SPARSE)
    found = find_operations(graph, tables(), {}).operations
    assert list(found) == ["out"]
    operation = found["out"]
    assert isinstance(operation, SparseSegments)
    assert (operation.indices, operation.segments) == (Ref("ids"), Ref("bags"))
    assert operation.absorbed == {"unique", "rows", "same", "out"}
    assert operation.label == "out of users"


def test_rows_that_others_want_are_looked_up_for_them() -> None:
    graph = read(*SPARSE, message("norm", "Square", "rows"), outputs=("out", "norm"))
    found = find_operations(graph, tables(), {}).operations
    assert [type(each) for each in found.values()] == [Gather, SparseSegments]


def test_what_is_changed_in_the_call_stays() -> None:
    found = find_operations(read(*SPARSE), tables(frozenset(["table"])), {})
    assert not found.operations
    assert found.reasons == dict.fromkeys(["rows", "out"], "the model changes its table, users, in the same call")


def test_independent_look_ups_are_one_launch_and_dependent_ones_are_not() -> None:
    graph = read(
        handle(),
        handle("other"),
        message("i", "Placeholder"),
        message("draw", "RandomUniform", "i"),
        gather("a", "table", "i"),
        gather("b", "other", "i"),
        message("next", "Cast", "a"),
        gather("c", "table", "next"),
        message("sum", "AddN", "b", "c", "draw"),
        outputs=("sum", "draw"),
    )
    made = schedule(graph, find_operations(graph, tables(), {}).operations)
    assert [[each.name for each in launch] for launch in made.launches] == [["a", "b"], ["c"]]
    assert [part.nodes for part in made.parts] == [(), ("next",), ("draw", "sum")]
    assert [part.gives for part in made.parts] == [(), (Ref("next"),), (Ref("sum"), Ref("draw"))]
    assert set(made.parts[2].takes) == {Ref("b"), Ref("c"), Ref("i")}


def test_what_is_fused_is_in_one_part_as_far_as_it_can_be() -> None:
    """A quotient by a root behind the launch; what the launch, or what has to run before it, needs comes before."""
    graph = read(
        handle(),
        message("i", "Placeholder"),
        message("count", "Cast", "i"),
        message("root", "Sqrt", "count"),
        message("one", "Const"),
        message("next", "AddV2", "i", "one"),
        message("check", "Assert", "count"),
        gather("a", "table", "next", "^check"),
        message("quotient", "RealDiv", "a", "root"),
        outputs=("quotient",),
    )
    made = schedule(graph, find_operations(graph, tables(), {}).operations)
    assert [set(part.nodes) for part in made.parts] == [{"count", "one", "next", "check"}, {"root", "quotient"}]
    assert made.parts[0].effects == ("check",)
    assert made.parts[1].takes == (Ref("count"), Ref("a"))


@pytest.mark.parametrize(
    ("op", "axis", "length", "width", "what"),
    [
        ("Sum", 1, None, 16, "op"),
        ("Sum", -2, 16, 16, "op"),
        ("Sum", 0, 3, 16, "none"),
        ("Sum", 2, 3, 16, "none"),
        ("Sum", 1, 15, 12, "op"),
        ("Mean", 1, 16, 12, "rows must have a multiple of 8 elements, or fewer, not 12, where there are more than 15"),
        ("Mean", 1, 3, 1, "rows must have 2 elements at least for mode mean: single numbers it takes in another order"),
        ("Prod", 1, 16, 7, "op"),
        ("Prod", 1, 16, 8, "there must be at most 15 rows for a product, or rows fewer than 8 columns: of 16 rows"),
        ("Max", 1, 99, 12, "op"),
        ("Min", 1, None, 1, "op"),
    ],
)
def test_reductions_of_bags_of_one_length(op: str, axis: int, length: int | None, width: int, what: str) -> None:
    shapes = {"table": (50, width), "ids": (None, length)}
    content = np.array(axis, np.int32).tobytes()
    tensor = SimpleNamespace(dtype=3, tensor_shape=SimpleNamespace(dim=[]), tensor_content=content)
    graph = read(
        handle(),
        message("ids", "Placeholder"),
        gather("rows", "table", "ids"),
        message("axis", "Const", value={"tensor": tensor}),
        message("out", op, "rows", "axis", T={"type": FLOAT}),
    )
    found = find_operations(graph, Tables({"table": "users"}, lambda ref: shapes.get(ref.node)), {})
    assert list(found.operations) == (["out"] if what == "op" else ["rows"])
    assert list(found.reasons) == ([] if what in ("op", "none") else ["out"])
    assert all(reason.startswith(what) for reason in found.reasons.values())


def test_effects_stay_in_their_places() -> None:
    graph = read(
        handle(),
        message("i", "Placeholder"),
        message("check", "Assert", "i"),
        gather("a", "table", "i", "^check"),
        message("log", "Print", "a"),
        effects=["check", "log", "a"],
        outputs=("a",),
    )
    made = schedule(graph, find_operations(graph, tables(), {}).operations)
    assert [part.effects for part in made.parts] == [("check",), ("log",)]


def test_functions_are_put_in_the_places_of_calls() -> None:
    inner = function("inner", ["t", "k"], [gather("g", "t", "k")], {"rows": "g:output:0"})
    call = message("call", "StatefulPartitionedCall", "t", "i", f={"func": SimpleNamespace(name="inner")})
    outer = function("outer", ["t", "i"], [call], {"rows": "call:output:0"})
    graph = read(
        handle(),
        message("i", "Placeholder"),
        message("out", "StatefulPartitionedCall", "table", "i", f={"func": SimpleNamespace(name="outer")}),
        functions=[inner, outer],
        effects=["out"],
    )
    assert graph.outputs == (Ref("out/call/g"),)
    assert graph.nodes["out/call/g"].inputs == (Ref("table"), Ref("i"))
    assert lookups_inside([inner, outer])["outer"] == {"ResourceGather", "StatefulPartitionedCall"}


def test_branches_stay() -> None:
    body = function("body", ["t", "k"], [gather("g", "t", "k")], {"rows": "g:output:0"})
    graph = read(
        handle(),
        message("i", "Placeholder"),
        message("out", "If", "i", "table", then_branch={"func": SimpleNamespace(name="body")}),
        functions=[body],
    )
    found = find_operations(graph, tables(), lookups_inside([body]))
    assert found.reasons == {
        "out": "ResourceGather is inside of a branch or loop, of which TensorFlow decides what runs"
    }


def test_a_reference_is_read_as_it_is_written() -> None:
    assert [str(Ref.read(each)) for each in ("a/b", "a:1")] == ["a/b:0", "a:1"]
    assert Node.read(message("n", "Add", "a", "b:2", "^c")).controls == ("c",)


def test_tensorflow_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with daedal.Device.open("emulator", config="edge") as device:
        with pytest.raises(UnsupportedOperation, match=r"must be installed .* pip install 'daedal\[tensorflow\]'$"):
            daedal.tensorflow.compile(lambda i: i, device=device)


def test_tensorflow_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(**{"__version__": "2.15.1"}))
    with pytest.raises(UnsupportedOperation, match=r"must be 2\.18 or later, the first for NumPy 2, not 2\.15\.1"):
        api.check_installed()


def test_the_front_end_is_there_without_tensorflow() -> None:
    code = "import sys, daedal; daedal.tensorflow.compile; print({'tensorflow', 'torch', 'keras'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
