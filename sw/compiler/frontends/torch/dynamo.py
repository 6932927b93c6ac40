"""``torch.compile(model, backend="daedal")``: Dynamo's graphs, whose embedding operations run on a device.

PyTorch finds :func:`backend` by its entry point of the group ``torch_dynamo_backends``.
"""

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import fx

from daedal.base.handle import Handle
from daedal.compiler.bounds import BOUNDS
from daedal.compiler.frontends.requests.checks import computed_types
from daedal.compiler.frontends.torch.host.host_subgraphs import Compiled, compile_graph
from daedal.compiler.frontends.torch.placement import Placement
from daedal.compiler.frontends.torch.registry import find_operations
from daedal.compiler.frontends.torch.trace.without_moves import drop_moves
from daedal.compiler.frontends.torch.traced_module import TracedGraph
from daedal.compiler.frontends.torch.training.suitability import fetch_tables, mark_owners, tables_of_devices
from daedal.compiler.operation_compiler import compiler_for
from daedal.compiler.opt_levels import BEST, check_exact, check_opt
from daedal.driver.device import Device
from daedal.driver.launch.record import Stats
from daedal.errors import UnsupportedOperation
from daedal.runtime.executable import Executable
from daedal.runtime.explanation import Explanation
from daedal.system.default_plan import default_plan
from daedal.system.executable import SystemExecutable
from daedal.system.system import System


@dataclass(frozen=True)
class Options:
    """What ``torch.compile(..., options={…})`` may say.

    Attributes
    ----------
    device
        The device to run on, or a system, for which a plan is made in the first call; left out, a ``ddr3`` emulator
        that is opened once and kept.
    bounds
        What an index outside its table does, as in ``daedal.compile``.
    opt
        The optimisation level, as in ``daedal.compile``.
    backend
        The Dynamo backend for all that PyTorch runs: ``eager`` (as it is, equal to eager PyTorch bit for bit),
        ``inductor``, or any other name that ``torch.compile`` knows.
    offload, budget, exact
        What may run on the device, as in ``daedal.compile``.
    """

    device: Device | System | None = None
    bounds: str = "fatal"
    opt: int = BEST
    backend: str = "eager"
    offload: Sequence[str] | None = None
    budget: int | None = None
    exact: bool = True

    @classmethod
    def read(cls, options: Mapping[str, Any] | None) -> "Options":
        """The options, checked. ValueError for a name or value that there is not, TypeError for another device."""
        names = list(cls.__dataclass_fields__)
        for name in options or ():
            if name not in names:
                raise ValueError(f"an option of backend 'daedal' must be one of {', '.join(names)}, not {name!r}")
        read = cls(**(options or {}))
        if read.device is not None and not isinstance(read.device, Device | System):
            raise TypeError(f"option device must be what daedal.Device.open or System.open gives, not {read.device!r}")
        if read.bounds not in BOUNDS:
            raise ValueError(f"option bounds must be one of {', '.join(BOUNDS)}, not {read.bounds!r}")
        check_opt(read.opt)
        check_exact(read.exact)
        if read.backend == "daedal" or read.backend not in torch._dynamo.list_backends(()):
            raise ValueError(
                f"option backend must be another backend of torch.compile, such as eager or inductor, "
                f"not {read.backend!r}"
            )
        return read


class CompiledGraph(Handle):
    """A graph that ``torch.compile`` gave to Daedal, and what became of it; see :func:`graphs`.

    ``device`` is where its embedding operations run; ``executable`` does them, None if all of the graph is PyTorch's.
    """

    def __init__(
        self,
        device: Device | System,
        reasons: Mapping[str, str],
        others: Sequence[str],
        executable: Executable | None,
        run: Compiled,
        tables: Sequence[tuple[int, bool]] = (),
    ) -> None:
        self.device, self.executable = device, executable
        self._reasons, self._others, self._run = dict(reasons), list(others), run
        self._tables = tables
        self.on_call: Callable[[tuple[Any, ...]], Any] | None = None
        """Is shown the inputs of each call: the graph's placeholders, parameters among them."""

    def __call__(self, *inputs: Any) -> Any:
        """The graph's results for these inputs."""
        if self.on_call is not None:
            self.on_call(inputs)
        if self._tables:
            fetch_tables(inputs, self._tables, self.device)
        return self._run(*inputs)

    @property
    def offloaded(self) -> tuple[str, ...]:
        """The nodes that run on the device."""
        return () if self.executable is None else self.executable.offloaded

    @property
    def stats(self) -> Stats:
        """The figures of the last call, summed over its launches."""
        return Stats() if self.executable is None else self.executable.stats

    def save(self, path: Path | str) -> None:
        """Write a file for ``daedal.load``; see ``Executable.save``. Parameters of the module are its tables."""
        if self.executable is None:
            raise UnsupportedOperation("a file must have an operation of the device, but all of the graph is PyTorch's")
        self.executable.save(path)

    def explain(self, *, passes: bool = False) -> str:
        """Which operations run on the device, and why others do not; see ``Executable.explain``."""
        if self.executable is not None:
            return self.executable.explain(passes=passes)
        return Explanation(reasons=self._reasons, others=self._others).text(passes=passes)


_graphs: "list[weakref.ref[CompiledGraph]]" = []
_default: list[Device] = []


def graphs(device: Device | System | None = None) -> list[CompiledGraph]:
    """What ``torch.compile(backend="daedal")`` has compiled and PyTorch still holds, oldest first; for all devices
    or for one, or a system.

    Each tells which of its nodes run on the device (``offloaded``), why others do not (``explain()``), and what the
    last call cost (``stats``).
    """
    found = [graph for reference in _graphs if (graph := reference()) is not None]
    _graphs[:] = [weakref.ref(graph) for graph in found]
    return [graph for graph in found if device is None or graph.device is device]


def default_device() -> Device:
    """The device for compilations that name none: an emulator, configuration ``ddr3``, opened when first needed."""
    if not _default or _default[0].closed:
        _default[:] = [Device.open("emulator", config="ddr3")]
    return _default[0]


def backend(
    graph: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> CompiledGraph:
    """Compile a graph of Dynamo's; see :class:`Options`.

    Operations that need a gradient stay in PyTorch, which trains them, as does all that the machine cannot do; but for
    those on tables that an optimizer of ``daedal.optim`` updates on the device.
    """
    if mode is not None:
        raise ValueError(f"mode must be left out for backend 'daedal', not {mode!r}: it is Inductor's")
    chosen = Options.read(options)
    device = chosen.device or default_device()
    if isinstance(device, System):
        device.check_open()
    trains = torch.is_grad_enabled() or any(node.target is torch._C._set_grad_enabled for node in graph.graph.nodes)
    drop_moves(graph)
    mark_owners(graph.graph, example_inputs)
    placement = Placement.read(device, chosen.offload, chosen.budget)
    types = computed_types(device.config)
    calls, reasons = find_operations(
        graph.graph, trains=trains, types=types, placement=placement, exact=chosen.exact, device=device
    )
    executable: Executable | None = None
    if calls:
        program = TracedGraph(
            graph,
            trains=trains,
            rest=chosen.backend,
            types=types,
            placement=placement,
            exact=chosen.exact,
            device=device,
        )
        compile_operation = compiler_for(device.config, chosen.bounds, chosen.opt)
        if isinstance(device, System):
            executable = SystemExecutable(program, device, compile_operation, chosen.bounds, chosen.opt, default_plan)
        else:
            executable = Executable(program, device, compile_operation, chosen.bounds, chosen.opt)
        run: Compiled = executable
    else:
        run = compile_graph(chosen.backend, graph, example_inputs)
    others = [node.name for node in graph.graph.nodes if node.op.startswith("call_")]
    compiled = CompiledGraph(device, reasons, others, executable, run, tables_of_devices(graph.graph, calls))
    _graphs.append(weakref.ref(compiled))
    return compiled
