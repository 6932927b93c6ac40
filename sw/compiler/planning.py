"""``daedal.plan``: who does what in a system, for a model and a sample of its inputs."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from daedal.base.messages import shown
from daedal.compiler.frontends.requests.checks import computed_types
from daedal.compiler.frontends.torch.device_suitability import why_not, why_not_here
from daedal.compiler.frontends.torch.trace.keywords import Signature
from daedal.compiler.frontends.torch.trace.meta_tensors import with_memory
from daedal.compiler.frontends.torch.trace.module_trace import trace
from daedal.compiler.frontends.torch.trace.quantised_modules import with_operators
from daedal.compiler.frontends.torch.traced_module import TracedModule
from daedal.compiler.operation_compiler import compiler_for
from daedal.compiler.opt_levels import BEST
from daedal.errors import InvalidSystem, UnsupportedOperation
from daedal.system.default_plan import EXTRA_BYTES, default_plan, system_plan
from daedal.system.demand import Demands
from daedal.system.executable import SystemExecutable
from daedal.system.fleet import FleetEstimate, estimate
from daedal.system.plan import Plan
from daedal.system.system import System


def plan(
    model: nn.Module | ExportedProgram,
    system: System,
    *,
    sample: Sequence[Any] | Mapping[str, Any] | Tensor,
    extra_bytes: float = EXTRA_BYTES,
) -> Plan:
    """Who does what in ``system``, so that its tiles have about equal loads.

    A table stays whole where that will do. Others are cut by columns, into slices of 64 bytes or more, or by bags, with
    a copy on each tile that has some of them. No sum is cut, so results are the same bits for every plan.

    Parameters
    ----------
    model
        A module or an exported program. A module may be on device ``meta``: only shapes count.
    system
        The system to plan for: its configuration, memory, number of tiles and their bytes count.
    sample
        Inputs of the model, a dictionary if by name, whose numbers of bags and look-ups are typical; a call may have
        others, of which each tile gets the same share. Of what is in the tables nothing counts, nor which rows are
        looked up.
    extra_bytes
        Bytes for copies of tables, as a share of the tables' bytes.

    The same arguments give the same plan. Raises UnsupportedOperation for a sample that is not the model's input, or a
    model without operations for a device, OutOfDeviceMemory for a table that fits no tile, InvalidSystem for another
    ``extra_bytes``.
    """
    check_extra(extra_bytes)
    return system_plan(demands_of(model, system, sample).all, system, extra_bytes)


def fleet(
    model: nn.Module | ExportedProgram,
    system: System,
    *,
    sample: Sequence[Any] | Mapping[str, Any] | Tensor,
    link: float,
    devices: Sequence[int] = (8, 64, 1000),
    extra_bytes: float = EXTRA_BYTES,
) -> tuple[FleetEstimate, ...]:
    """What so many devices would give, each like a tile of ``system`` and with a link to all others; predicted.

    Tables are shared out as by :func:`plan`. Devices are taken to want an equal share of all bags each, so all other
    results go over the links, while the next batch is worked at.

    Parameters
    ----------
    model, system, sample, extra_bytes
        As of :func:`plan`; how many tiles ``system`` has does not count.
    link
        Bytes per cycle that a device can send: 125 for 100 Gbit/s at 100 MHz.
    devices
        Numbers of devices to try.

    Raises what :func:`plan` does, and InvalidSystem for a number of devices or a link that there is not.
    """
    check_extra(extra_bytes)
    if not isinstance(devices, Sequence):
        raise InvalidSystem(f"devices must be numbers of devices, as (8, 64), not {shown(devices)}")
    demands = demands_of(model, system, sample).all
    memory_bytes = min(tile.target.memory_bytes for tile in system.tiles)
    return tuple(
        estimate(demands, system.config, system.memory, memory_bytes, devices=count, link=link, extra_bytes=extra_bytes)
        for count in devices
    )


def demands_of(model: object, system: object, sample: object) -> Demands:
    """What a sample of the model's inputs asks for, whether it fits the system or not; raises what :func:`plan` does of
    a model or a sample.
    """
    if not isinstance(model, nn.Module | ExportedProgram):
        raise UnsupportedOperation(
            f"model must be a torch.nn.Module or an ExportedProgram, not {type(model).__name__}: tiles share "
            "the rounds of a daedal.kernel evenly, without a plan"
        )
    if not isinstance(system, System):
        raise UnsupportedOperation(f"system must be what daedal.System.open gives, not {shown(system)}")
    inputs, named = _inputs_of(sample)
    system.check_open()
    reason = why_not_here() or why_not(pytree.tree_leaves((inputs, named)))
    if reason is not None:
        raise UnsupportedOperation(f"sample must be plain tensors, outside of transforms and modes: {reason}")
    try:
        if isinstance(model, nn.Module):
            model = with_operators(with_memory(model), system.config)
        signature = Signature(model, inputs, named)
        inputs, model = signature.by_position(inputs, named), signature.module
        followed = None if isinstance(model, ExportedProgram) else model
        program = TracedModule(trace(model, inputs), followed, signature, None, computed_types(system.config))
    except UnsupportedOperation as error:
        raise UnsupportedOperation(f"sample must be inputs of the model, of which it can be traced: {error}") from error
    compile_operation = compiler_for(system.config, "fatal", BEST)
    executable = SystemExecutable(program, system, compile_operation, "fatal", BEST, default_plan)
    return executable.demands(inputs)


def _inputs_of(sample: object) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The inputs of a sample by position, and by name."""
    if isinstance(sample, Mapping) and all(isinstance(name, str) for name in sample):
        return (), dict(sample)
    if not isinstance(sample, Tensor | tuple | list):
        raise UnsupportedOperation(
            f"sample must be a tensor, a tuple of inputs or a dictionary of inputs by name, not {shown(sample)}"
        )
    return (sample,) if isinstance(sample, Tensor) else tuple(sample), {}


def check_extra(extra_bytes: object) -> None:
    """InvalidSystem unless this is a share of bytes."""
    if isinstance(extra_bytes, bool) or not isinstance(extra_bytes, int | float) or not 0 <= extra_bytes <= 1024:
        raise InvalidSystem(f"extra_bytes must be a share of the tables' bytes from 0 on, not {shown(extra_bytes)}")
