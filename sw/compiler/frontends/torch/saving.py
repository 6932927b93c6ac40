"""A traced module as a file has it: ``runtime/saved/contents.py`` says what that is."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import getitem
from typing import Any

import torch
from torch import Tensor, fx
from torch.utils import _pytree as pytree

from daedal.compiler.frontends.torch.examples import example_of
from daedal.compiler.frontends.torch.names import name_of
from daedal.compiler.frontends.torch.partition import Launched
from daedal.compiler.frontends.torch.saving_conditions import condition_steps
from daedal.compiler.frontends.torch.saving_inputs import leaf_names, saved_input, slots_of
from daedal.compiler.frontends.torch.saving_moves import form_of, is_finite, move_of, number_in
from daedal.compiler.frontends.torch.saving_operations import saved_operation
from daedal.compiler.frontends.torch.saving_tables import (
    Names,
    TracedParts,
    form_in_file,
    held_by,
    path_of,
    tables_of,
    tensors_of,
)
from daedal.driver.tables.table_sources import dtype_name
from daedal.errors import UnsupportedOperation
from daedal.runtime.saved.contents import (
    Argument,
    Blob,
    Dots,
    HostStep,
    Items,
    LaunchStep,
    SavedCall,
    SavedGraph,
    SavedInput,
    SavedJoin,
    SavedModel,
    SavedTable,
    Slice,
    Value,
)
from daedal.runtime.saved.files import Writer
from daedal.runtime.tensors import array_of

_MOST_SHOWN = 5
"""Nodes that a message names."""


def saved_model(traces: Sequence[TracedParts], names: Names, writer: Writer) -> SavedModel:
    """What a file says of these traces of a module, without programs.

    UnsupportedOperation, with what to do instead, for what a file cannot hold: what PyTorch computes between launches,
    sparse inputs, and inputs of other classes than tensors, numbers, tuples, lists and dictionaries.
    """
    tables = tables_of(traces, names)
    numbers = {name: number for number, name in enumerate(tables)}
    graphs = tuple(_Saving(trace, names, numbers, writer).graph() for trace in traces)
    return SavedModel(tuple(SavedTable(name, *form_in_file(tensor)) for name, tensor in tables.items()), graphs, ())


class _Saving:
    """One trace."""

    def __init__(self, trace: TracedParts, names: Names, tables: dict[str, int], writer: Writer) -> None:
        self._schedule, self._structure, self._guards = trace
        self._names, self._tables, self._writer, self._trace = names, tables, writer, trace
        self._values: dict[fx.Node, Argument] = {}
        self._given: dict[fx.Node, list[int]] = {}
        """Of each launch: the values of its results."""
        self._steps: list[HostStep | LaunchStep] = []
        self._first = 0
        """The number of the first step's first value."""
        self._count = 0

    def graph(self) -> SavedGraph:
        """What a file says of it."""
        nodes = list(self._schedule.graph.nodes)
        places = [node for node in nodes if node.op == "placeholder"]
        inputs, used = self._take_inputs(places)
        slots = slots_of(self._structure.inputs, used, self._names.by_position, self._names.by_name)
        tables, constants = self._take_tensors(places, nodes)
        self._steps += condition_steps(self._guards, len(inputs), lambda: self._next())
        needed = _needed(nodes)
        refused = list[fx.Node]()
        for node in nodes:
            if node not in needed or node.op in ("placeholder", "get_attr", "output"):
                continue
            try:
                is_held = self._take(node)
            except UnsupportedOperation:
                if not refused:
                    raise
                break  # it takes what one of those gives
            if not is_held:
                refused.append(node)
        if refused:
            raise UnsupportedOperation(_cannot(refused))
        (output,) = (node for node in nodes if node.op == "output")
        inputs = tuple(replace(each, name=name) for each, name in zip(inputs, leaf_names(slots), strict=True))
        return SavedGraph(slots, inputs, tables, constants, tuple(self._steps), self._results(output.args[0]))

    def _next(self) -> int:
        """The number of the next value."""
        self._count += 1
        return self._count - 1

    def _take_inputs(self, places: Sequence[fx.Node]) -> tuple[tuple[SavedInput, ...], list[tuple[str, bool]]]:
        """The leaves of the inputs, and their names, with whether they may be left out."""
        inputs, used = [], []
        kinds = [None] * len(places) if self._guards is None else list(self._guards.kinds)
        if len(kinds) != len(places):
            raise UnsupportedOperation("a file cannot hold a module whose inputs are of no fixed number")
        sizes = []
        for node, kind in zip(places, kinds, strict=True):
            if name_of(node) is not None:
                continue
            if isinstance(example_of(node), torch.SymInt):
                sizes.append(node)
                continue
            self._values[node] = Value(self._next())
            inputs.append(saved_input(node, kind))
            used.append((inputs[-1].name, bool(node.args)))
        for node in sizes:
            if node.users:
                self._take_size(node, [each for each in places if each in self._values])
        return tuple(inputs), used

    def _take_size(self, size: fx.Node, places: Sequence[fx.Node]) -> None:
        """Dynamo gives sizes as inputs of their own."""
        wanted = example_of(size).node.expr
        for place in places:
            shape: Sequence[Any] = getattr(example_of(place), "shape", ())
            for dim, each in enumerate(shape):
                if isinstance(each, torch.SymInt) and each.node.expr == wanted:
                    self._values[size] = Items("size", (self._values[place], dim))
                    return
        raise UnsupportedOperation(f"a file cannot hold {size.name}, a number that is no size of an input")

    def _take_tensors(
        self, places: Sequence[fx.Node], nodes: Sequence[fx.Node]
    ) -> tuple[tuple[int, ...], tuple[Blob, ...]]:
        """The tables and the constants that the graph reads."""
        own, others = list(tensors_of(self._schedule, self._names)), list[fx.Node]()
        for node in own:
            self._values[node] = Value(self._next())
        for node in nodes:
            if node.op == "get_attr" and node.users and node not in self._values:
                self._values[node] = Value(self._next())
                others.append(node)
        constants = []
        for node in others:
            tensor = held_by(self._trace, node)
            if not isinstance(tensor, Tensor) or tensor.layout is not torch.strided:
                raise UnsupportedOperation(f"a file cannot hold {node.target}, which is no dense tensor")
            constants.append(self._writer.array(array_of(tensor), dtype_name(tensor)))
        sizes = [node for node in places if isinstance(self._values.get(node), Items)]
        for node in sizes:
            asked = self._values[node]
            assert isinstance(asked, Items)
            self._steps.append(HostStep("size", asked.parts))
            self._values[node] = Value(self._next())
        return tuple(self._tables[path_of(node)] for node in own), tuple(constants)

    # ------------------------------------------------------------------ steps

    def _take(self, node: fx.Node) -> bool:
        """Write a node down; whether a file can hold it."""
        if node in self._schedule.launches:
            self._take_launch(node, self._schedule.launches[node])
            return True
        if self._schedule.is_own(node):
            return self._take_own(node)
        move = move_of(node)
        if move is None:
            return False
        name, arguments = move
        try:
            given = tuple(map(self._argument, arguments))
        except UnsupportedOperation:
            return False
        known = form_of(node)
        self._steps.append(HostStep(name, given, dtype_name(known) if isinstance(known, Tensor) else ""))
        self._values[node] = Value(self._next())
        return True

    def _take_own(self, node: fx.Node) -> bool:
        """A part of what a launch gives, or a wait."""
        if node.target is getitem:
            source, number = node.args
            assert isinstance(source, fx.Node)
            assert isinstance(number, int)
            self._values[node] = Value(self._given[source][number])
        elif node.args:  # the pooled rows as the first of several results
            self._values[node] = Items("tuple", (self._argument(node.args[0]), None, None, None))
        return True

    def _take_launch(self, node: fx.Node, launched: Launched) -> None:
        groups = node.args if launched.group is not None else (node.args,)
        calls = []
        for operation, sources in zip(launched.operations, groups, strict=True):
            assert isinstance(sources, tuple)
            number = operation.sources.index(operation.table)
            given = tuple(map(self._argument, sources))
            saved = saved_operation(operation)
            calls.append(SavedCall(operation.name, operation.label, operation.table_name, given[number], saved, given))
        joins = []
        if launched.group is not None:
            places = {member: number for number, member in enumerate(launched.group.members)}
            for join in launched.group.joins:
                parts, private = (tuple(places[part] for part in each) for each in (join.parts, join.private))
                joins.append(SavedJoin(join.dim, parts, tuple(sorted(private))))
        self._steps.append(LaunchStep(tuple(calls), tuple(joins)))
        self._given[node] = [self._next() for _ in range(len(calls) + len(joins))]
        if launched.group is None:
            self._values[node] = Value(self._given[node][0])

    def _argument(self, value: Any) -> Argument:
        """What a step is given."""
        if isinstance(value, fx.Node):
            if value not in self._values:
                raise UnsupportedOperation(f"a file cannot hold what {value.name} gives")
            return self._values[value]
        if isinstance(value, slice):
            return Slice(*(self._argument(number_in(each)) for each in (value.start, value.stop, value.step)))
        if isinstance(value, tuple | list):
            return Items("tuple" if isinstance(value, tuple) else "list", tuple(map(self._argument, value)))
        value = number_in(value)
        if value is None or (isinstance(value, bool | int | float | str) and is_finite(value)):
            return value
        if value is ...:
            return Dots()
        raise UnsupportedOperation(f"a file cannot hold {value!r}")

    def _results(self, given: Any) -> Argument:
        """The results, nested as the module has them."""
        spec = self._structure.results
        if spec is None:
            return self._argument(given)
        leaves = given if isinstance(given, tuple | list) else (given,)
        return nested(spec, iter(map(self._argument, leaves)))


def nested(spec: pytree.TreeSpec, leaves: Iterator[Argument]) -> Argument:
    """Leaves, nested so; UnsupportedOperation for other kinds than tuples, lists and dictionaries."""
    if spec.is_leaf():
        return next(leaves)
    if spec.type not in (tuple, list, dict):
        raise UnsupportedOperation(
            f"a file cannot hold a {getattr(spec.type, '__name__', spec.type)}: have the module take and give tensors, "
            "in tuples, lists and dictionaries"
        )
    parts = tuple(nested(child, leaves) for child in spec.children())
    return Items(spec.type.__name__, parts, tuple(spec.context) if spec.type is dict else ())


def _needed(nodes: Sequence[fx.Node]) -> set[fx.Node]:
    """The nodes that the result depends on, and checks."""
    found: set[fx.Node] = set()
    for node in reversed(nodes):
        is_check = getattr(node.target, "__name__", "") == "check_size"
        if node.op == "output" or is_check or node in found:
            found |= {node, *node.all_input_nodes}
    return found


def _cannot(refused: Sequence[fx.Node]) -> str:
    names = ", ".join(node.name for node in refused[:_MOST_SHOWN]) + (", …" if len(refused) > _MOST_SHOWN else "")
    return (
        f"a file cannot hold what PyTorch computes: {names}; compile and save a module of the embedding operations "
        "alone, whose results the rest takes"
    )
