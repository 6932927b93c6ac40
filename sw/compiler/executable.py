"""What ``daedal.compile`` gives: a module whose embedding operations run on a device."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from daedal.compiler.frontends.calls import BagCall, Call, find_calls
from daedal.compiler.frontends.emb_builder import Bag, Lookup
from daedal.compiler.frontends.inputs import Request, bag_request, lookup_request
from daedal.compiler.kernel import Kernel
from daedal.compiler.pipeline import compile_emb
from daedal.compiler.runtime import run_kernel
from daedal.driver.device import Device
from daedal.driver.record import Stats
from daedal.errors import DaedalError, IndexOutOfRange, UnsupportedOperation
from daedal.hw.isa.assembler import disassemble


class Executable:
    """A module for one device: call it with the module's inputs.

    Made by ``daedal.compile``. It serves every batch size, bag length and index; for other integer types than
    those of the example inputs it compiles other programs when it meets them. ``stats`` are the figures of
    the last call, summed over its launches.
    """

    def __init__(
        self, graph: fx.GraphModule, device: Device, retrace: Callable[[Sequence[Any]], fx.GraphModule] | None
    ) -> None:
        self._device, self._retrace = device, retrace
        self._kernels: dict[Bag | Lookup, Kernel] = {}
        self._current: dict[str, Kernel] = {}
        self.stats = Stats()
        self._set_graph(graph)

    def _set_graph(self, graph: fx.GraphModule) -> None:
        self._graph = graph
        self._calls, self._reasons = find_calls(graph.graph)
        if not self._calls:
            why = [f"{name}: {reason}" for name, reason in self._reasons.items()]
            raise UnsupportedOperation("; ".join(why) or _nothing(graph))

    # ------------------------------------------------------------------ running

    def __call__(self, *inputs: Any) -> Any:
        """The module's result for these inputs.

        Raises IndexOutOfRange, InvalidOffsets, UnsupportedOperation for inputs that the operations cannot
        take, and what the device raises.
        """
        _ = self._device.target
        self.stats = Stats()
        return self._evaluate(inputs, self._run)

    def prepare(self, inputs: Sequence[Any]) -> None:
        """Compile what a call with inputs like these needs, without running it on the device."""
        self._evaluate(inputs, self._dry_run)

    def _evaluate(self, inputs: Sequence[Any], run: Callable[[Call, Request], Tensor]) -> Any:
        self._current = {}
        with torch.no_grad():
            try:
                return _Interpreter(self._graph, self._calls, run).run(*inputs)
            except AssertionError as error:
                if self._retrace is None:
                    reason = str(error).strip().splitlines()
                    raise UnsupportedOperation(
                        f"the inputs must be as the program was exported for: "
                        f"{reason[0] if reason else error!r}; "
                        "export it with dynamic shapes"
                    ) from error
            self._set_graph(self._retrace(inputs))
            self._current = {}
            return _Interpreter(self._graph, self._calls, run).run(*inputs)

    def _kernel(self, call: Call, request: Request) -> Kernel:
        if request.operation not in self._kernels:
            try:
                kernel = compile_emb(request.operation.build(), self._device.config)
            except UnsupportedOperation as error:
                raise UnsupportedOperation(f"{call.name}: {error}") from error
            self._kernels[request.operation] = kernel
        self._current[call.name] = self._kernels[request.operation]
        return self._kernels[request.operation]

    def _dry_run(self, call: Call, request: Request) -> Tensor:
        self._kernel(call, request)
        return torch.zeros(request.shape)

    def _run(self, call: Call, request: Request) -> Tensor:
        kernel = self._kernel(call, request)
        name = call.table.target if isinstance(call.table, fx.Node) else call.name
        table = self._device.bind_table(str(name), request.table)
        buffers = {**request.buffers, "table": table, "out": (request.rows, table.dim)}
        try:
            result = run_kernel(self._device, kernel, buffers, request.values)
        except IndexOutOfRange as error:
            _name_table(error, call.name, table.rows)
            raise
        self.stats = self.stats + result.stats
        return torch.from_numpy(result.outputs["out"]).reshape(request.shape)

    # ------------------------------------------------------------------ looking at it

    @property
    def kernels(self) -> dict[str, Kernel]:
        """The kernel of each offloaded node, as used last."""
        return dict(self._current)

    @property
    def program(self) -> bytes:
        """The bytes that the machine executes; of several programs, one after the other."""
        return b"".join(self._programs())

    def _programs(self) -> list[bytes]:
        return list(dict.fromkeys(kernel.program for kernel in self._current.values()))

    def asm(self) -> str:
        """The program as text; ``daedal.assemble`` gives the bytes back."""
        return "".join(disassemble(program) for program in self._programs())

    def ir(self, level: str, node: str | None = None) -> str:
        """The IR of a level (``emb``, ``scf``, ``slc``, ``slcv``, ``dlc``) of an offloaded node, by default
        the first.

        DaedalError names the levels and nodes that there are.
        """
        node = next(iter(self._current)) if node is None else node
        if node not in self._current:
            raise DaedalError(f"node must be one of {', '.join(self._current)}, not {node!r}")
        return self._current[node].ir(level)

    def explain(self) -> str:
        """Which embedding operations run on the device, and why others do not; all else runs in PyTorch."""
        lines = [f"{call.name}: on the device" for call in self._calls.values()]
        lines += [f"{name}: in PyTorch, because {reason}" for name, reason in self._reasons.items()]
        return "\n".join(lines)


class _Interpreter(fx.Interpreter):
    """Runs a graph with some of its nodes replaced."""

    def __init__(
        self, graph: fx.GraphModule, calls: dict[fx.Node, Call], run: Callable[[Call, Request], Tensor]
    ) -> None:
        super().__init__(graph)
        self.extra_traceback = False
        self._calls, self._run_call = calls, run

    def run_node(self, n: fx.Node) -> Any:
        if n not in self._calls:
            return super().run_node(n)
        call = self._calls[n]
        table, indices = self._value(call.table), self._value(call.indices)
        if not isinstance(call, BagCall):
            return self._run_call(call, lookup_request(call, table, indices))
        request = bag_request(call, table, indices, self._value(call.offsets), self._value(call.weights))
        result = self._run_call(call, request)
        return (result, None, None, None) if call.gives_tuple else result

    def _value(self, argument: Any) -> Any:
        return self.env[argument] if isinstance(argument, fx.Node) else argument


def _nothing(graph: fx.GraphModule) -> str:
    nodes = [n.name for n in graph.graph.nodes if n.op.startswith("call_") and "guards" not in str(n.target)]
    shown = ", ".join(nodes[:5]) or "no operations at all"
    return f"the module must have an embedding operation to offload, but has only: {shown}"


def _name_table(error: IndexOutOfRange, node: str, rows: int) -> None:
    """Say in which operation it was, and how many rows the table has."""
    message = error.args[0] if error.args else ""
    error.args = (f"{node}: {message} (the table has {rows} rows)",)
