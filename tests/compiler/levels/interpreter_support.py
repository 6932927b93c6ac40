"""Runs modules with an interpreter of the IR in the device's place: what each launch would do, at any level."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx

from daedal.compiler.frontends.torch.fusion import Join
from daedal.compiler.frontends.torch.ops.operation import Operation
from daedal.compiler.interpreters import interpret
from daedal.driver.memory.layout import row_pitch
from daedal.hw.config.core import Config
from daedal.hw.isa.elements import BINARY32
from daedal.runtime.batch.members import Member
from daedal.runtime.batch.plan import Plan
from daedal.runtime.executable import Executable
from daedal.runtime.host_program import Work
from daedal.runtime.kernel import Kernel
from daedal.runtime.request import Request

Array = np.ndarray[Any, Any]


def interpreted(executable: Executable, level: str, inputs: Sequence[Any]) -> Any:
    """The result of a module whose launches are run by the interpreter, from the text of ``level``."""
    run = _Interpreted(executable, level)
    return executable._program.run(inputs, Work(run.call, run.group, lambda: None, executable._refuse))


class _Interpreted:
    """Does the operations of a run."""

    def __init__(self, executable: Executable, level: str) -> None:
        self._executable, self._level = executable, level

    def call(self, call: Operation, request: Request) -> Tensor:
        """One operation."""
        kernel = self._executable._kernel([call], request.operation, request.has_long_bags)
        width = request.table.shape[1]
        buffers = dict(request.buffers)
        buffers |= {"table": request.table.detach().numpy(), "out": np.zeros((request.rows, width), np.float32)}
        if self._level == "emb" and "length" in request.values:
            buffers["indices"] = buffers["indices"].reshape(-1, request.values["length"])
        result = torch.from_numpy(interpret(kernel.ir(self._level), buffers, request.values)["out"])
        if request.empty:
            result[torch.from_numpy(np.diff(request.buffers["offsets"]) == 0)] = request.empty
        return result.reshape(request.shape)

    def group(self, members: Sequence[Member], joins: Sequence[Join]) -> Mapping[fx.Node, Tensor]:
        """Operations that are one launch, or more if they are too many."""
        values: dict[fx.Node, Tensor] = {}
        for plan, kernel in self._executable._plans(members, joins):
            if kernel is None:
                values |= {member.node: self.call(member.call, member.request) for member in plan.members}
            else:
                values |= self._plan(plan, kernel)
        return values

    def _plan(self, plan: Plan, kernel: Kernel) -> dict[fx.Node, Tensor]:
        memory: Any = _Memory(self._executable.device.config)  # it binds tables, all that is asked of a device here
        entries = plan.entries(memory)
        places = [memory.reserve(plan.bags * result.width * BINARY32.bytes) for result in plan.results]
        bags = plan.bags
        numbers = [(e.rows, e.table, places[e.result] + e.place - e.apart * (bags + 1)) for e in entries]
        buffers: dict[str, Array] = {"list": np.array(numbers, np.int64).T}
        first: dict[Member, int] = {}
        for bits in {member.operation.index_bits for member in plan.members}:
            of_these = sorted(
                (m for m in plan.members if m.operation.index_bits == bits), key=lambda m: not m.operation.is_weighted
            )
            for member in of_these:
                first[member] = sum(len(m.entries("indices")) for m in first if m in of_these)
            buffers[f"indices{bits}"] = np.concatenate([m.entries("indices") for m in of_these])
            weights = [m.entries("weights") for m in of_these if m.operation.is_weighted]
            buffers[f"weights{bits}"] = np.concatenate([*weights, np.zeros(0, np.float32)])
        offsets = []
        for entry in entries:
            member = plan.members[entry.member]
            own = member.offsets + first[member]
            offsets.append(np.concatenate([own, np.full(bags + 1 - len(own), own[-1])]))
        buffers |= {"offsets": np.concatenate(offsets), "memory": memory.bytes}
        after = interpret(kernel.ir(self._level), buffers, {"bags": bags})["memory"].view(np.float32)
        found = {}
        for result, place in zip(plan.results, places, strict=True):
            rows, at = after[place // BINARY32.bytes :][: bags * result.width].reshape(bags, -1), 0
            found[result.node] = torch.from_numpy(rows[: result.shape[0]].copy())
            for part in result.parts if result.join else ():
                found[part.node] = found[result.node][:, at : at + part.operation.width]
                at += part.operation.width
        return found


class _Memory:
    """Bytes with tables in them, as a device would place them."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.bytes = np.zeros(64, np.uint8)

    def reserve(self, size: int) -> int:
        """The address of so many bytes."""
        at = len(self.bytes)
        self.bytes = np.concatenate([self.bytes, np.zeros(-(-size // 64) * 64 + 64, np.uint8)])
        return at

    def bind_table(self, name: str, table: Tensor, *, use: object = None, form: None = None) -> Any:
        """A table in memory, its rows a pitch apart."""
        rows, width = table.shape
        pitch = row_pitch(width * BINARY32.bytes, self._config)
        padded = np.zeros((rows, pitch // BINARY32.bytes), np.float32)
        padded[:, :width] = table.detach().numpy()
        at = self.reserve(padded.nbytes)
        self.bytes[at : at + padded.nbytes] = padded.reshape(-1).view(np.uint8)
        return SimpleNamespace(rows=rows, address=at)
