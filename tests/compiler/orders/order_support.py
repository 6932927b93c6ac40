"""Runs requests as the operations of a program without a framework, all of them as one group."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import daedal
from daedal.compiler.operation_compiler import compiler_for
from daedal.compiler.opt_levels import BEST
from daedal.errors import UnsupportedOperation
from daedal.runtime.batch.members import Member
from daedal.runtime.executable import Executable
from daedal.runtime.host_program import Work
from daedal.runtime.request import Request

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Call:
    """An operation by its name."""

    name: str
    table: object = None
    is_direct: bool = False
    is_pooling: bool = False
    include_last_offset: bool = False

    @property
    def label(self) -> str:
        return self.name

    @property
    def table_name(self) -> str:
        return f"{self.name}.table"

    def in_torch(self, *sources: Any) -> Any:
        raise AssertionError("nothing is left to a framework")


class Program:
    """Hands requests over as they are given."""

    calls: Sequence[Call] = ()
    fewest_launches = 1
    reasons: dict[str, str] = {}
    remarks: dict[str, str] = {}
    eager: dict[str, str] = {}
    code = ""

    def by_position(self, inputs: Sequence[Any], named: Any) -> Sequence[Any]:
        return inputs

    def run(self, inputs: Sequence[Request], work: Work) -> list[Array]:
        members = [Member(Call(f"op{n}"), Call(f"op{n}"), request, ()) for n, request in enumerate(inputs)]
        values = work.group(members, [])
        work.settle()
        return [values[member.node] for member in members]

    def can_leave(self, call: Call, error: UnsupportedOperation) -> bool:
        return False


def executable(device: daedal.Device, bounds: str = "fatal", opt: int = BEST) -> Executable:
    """What runs requests on a device."""
    return Executable(Program(), device, compiler_for(device.config, bounds, opt), bounds, opt)


def run(device: daedal.Device, *requests: Request, opt: int = BEST) -> list[Array]:
    """The results of requests, together."""
    return list(executable(device, opt=opt)(*requests))


def numbers(rng: np.random.Generator, rows: int, width: int) -> Array:
    """Normal numbers whose sums depend on the order, and some -0.0."""
    values = rng.standard_normal((rows, width)) * np.exp2(rng.integers(-12, 12, (rows, width)))
    values[rng.random((rows, width)) < 0.03] = -0.0
    return values.astype(np.float32)


def lengths(rng: np.random.Generator, count: int, longest: int) -> Array:
    """Lengths of bags: some of each up to 35, a third short or empty, one of ``longest``."""
    found = np.concatenate([np.arange(36), rng.integers(0, 9, count), rng.integers(0, longest + 1, count)])
    found = np.concatenate([rng.permutation(found)[: count - 1], [longest]])
    return rng.permutation(found)
