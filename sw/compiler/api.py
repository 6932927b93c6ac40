"""``daedal.compile``."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, overload

from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from daedal.base.messages import shown
from daedal.compiler.frontends.python.function import KernelFunction
from daedal.compiler.frontends.requests.checks import computed_types
from daedal.compiler.frontends.torch.device_suitability import why_no_type, why_not, why_not_here
from daedal.compiler.frontends.torch.trace.module_trace import trace
from daedal.compiler.frontends.torch.traced_module import TracedModule
from daedal.compiler.operation_compiler import compiler_for
from daedal.compiler.opt_levels import BEST, check_opt
from daedal.compiler.planning import default_plan
from daedal.compiler.transforms.builders.emitter import BOUNDS
from daedal.driver.device import Device
from daedal.errors import UnsupportedOperation
from daedal.runtime.executable import Executable
from daedal.runtime.loops.kernel_executable import KernelExecutable
from daedal.system.executable import SystemExecutable
from daedal.system.plan import Plan
from daedal.system.system import System


@overload
def compile(
    module: nn.Module | ExportedProgram,
    example_inputs: Sequence[Any] | Tensor,
    *,
    device: Device,
    bounds: str = ...,
    opt: int = ...,
    plan: None = ...,
) -> Executable: ...


@overload
def compile(
    module: nn.Module | ExportedProgram,
    example_inputs: Sequence[Any] | Tensor,
    *,
    device: System,
    bounds: str = ...,
    opt: int = ...,
    plan: Plan | None = ...,
) -> SystemExecutable: ...


@overload
def compile(
    module: KernelFunction,
    example_inputs: Sequence[Any] | Tensor,
    *,
    device: Device,
    bounds: str = ...,
    opt: int = ...,
    plan: None = ...,
) -> KernelExecutable: ...


def compile(
    module: nn.Module | ExportedProgram | KernelFunction,
    example_inputs: Sequence[Any] | Tensor,
    *,
    device: Device | System,
    bounds: str = "fatal",
    opt: int = BEST,
    plan: Plan | None = None,
) -> Executable | KernelExecutable:
    """An executable whose embedding operations run on ``device``; all others run in PyTorch.

    Parameters
    ----------
    module
        A module or an exported program; or loops (``daedal.kernel``), which run on the device as a whole.
    example_inputs
        Inputs of the kind that it will be called with: their number and types count, sizes and values do not (for
        loops along rows, the width of the rows does).
    device
        The device to compile for and to run on, or a system of several (``daedal.System.open``).
    bounds
        What an index outside its table does. ``fatal``: the call raises IndexOutOfRange. ``warn``: row 0 is taken
        instead, and the call issues a BoundsWarning. ``ignore``: row 0 is taken instead, and only
        ``stats.bounds_warnings`` tells. ``none``: the machine checks neither indices nor whether offsets lie within
        them; it reads what is there, and raises MemoryFault if that is outside of its memory.
    opt
        The optimisation level. 0: a callback for each element. 1: for as many as the machine has lanes. 2: for a whole
        row. 3: and all else that the compiler can do. Results are the same bits at every level; what cannot be done at
        a low one is done at the next that can, and ``explain()`` says why.
    plan
        Who does what in a system (``daedal.plan``); left out, one is made from ``example_inputs``.

    The executable works as the module does at the time of the call: what was changed in its parameters counts (as far
    as ``table_check`` of ``Device.open`` sees it), and so does another tensor in a parameter's place, another mode
    (``eval()``), part, hook or plain attribute, for which the module is traced again. What ``forward`` takes from
    elsewhere (globals, fields of other objects) is as it was in the trace: compile again. Of an ExportedProgram only
    the contents of its tensors change.

    Raises UnsupportedOperation, naming the node and the reason, if there is nothing to run on the device, and
    ValueError for another ``bounds`` or ``opt``, PlanMismatch for a plan of another model or system.
    """
    check_opt(opt)
    if bounds not in BOUNDS:
        raise ValueError(f"bounds must be one of {', '.join(BOUNDS)}, not {bounds!r}")
    if not isinstance(module, nn.Module | ExportedProgram | KernelFunction):
        raise UnsupportedOperation(
            f"module must be a torch.nn.Module, an ExportedProgram or a daedal.kernel, not {type(module).__name__}"
        )
    if not isinstance(device, Device | System):
        raise UnsupportedOperation(f"device must be what daedal.Device.open or System.open gives, not {device!r}")
    _check_plan(plan, module, device)
    if not isinstance(example_inputs, Tensor | tuple | list):
        raise UnsupportedOperation(
            f"example_inputs must be a tensor or a tuple of inputs, not {type(example_inputs).__name__}"
        )
    inputs = (example_inputs,) if isinstance(example_inputs, Tensor) else tuple(example_inputs)
    if isinstance(device, System):
        device.check()
    else:
        _ = device.target
    reason = why_not_here() or why_not(pytree.tree_leaves(inputs))
    if reason is not None:
        raise UnsupportedOperation(f"example_inputs must be plain tensors, outside of transforms and modes: {reason}")
    if isinstance(module, KernelFunction):
        assert isinstance(device, Device)
        loops = KernelExecutable(module, device, why_not_plain, bounds, opt)
        loops.prepare(inputs)
        return loops
    for name, value in chain(module.named_parameters(), module.named_buffers()):
        reason = why_no_type([value])
        if reason is not None:
            raise UnsupportedOperation(
                f"{name} of the module must be a plain tensor, but {reason}: use torch.compile(module, "
                "backend='daedal'), where PyTorch computes with it"
            )
    followed = None if isinstance(module, ExportedProgram) else module
    program = TracedModule(trace(module, inputs), followed, computed_types(device.config))
    compile_operation = compiler_for(device.config, bounds, opt)
    if isinstance(device, System):
        executable: Executable = SystemExecutable(program, device, compile_operation, bounds, opt, default_plan, plan)
    else:
        executable = Executable(program, device, compile_operation, bounds, opt)
    executable.prepare(inputs)
    return executable


def _check_plan(plan: object, module: object, device: Device | System) -> None:
    """Raise UnsupportedOperation for what is no plan, or where there is none to be."""
    if isinstance(module, KernelFunction) and isinstance(device, System):
        raise UnsupportedOperation(
            "loops (daedal.kernel) must run on one device, as they may use what others of their rounds write: compile "
            "them for device=system.tiles[0]"
        )
    if plan is not None and not isinstance(plan, Plan):
        raise UnsupportedOperation(f"plan must be what daedal.plan gives, not {shown(plan)}")
    if plan is not None and isinstance(device, Device):
        raise UnsupportedOperation("plan must be left out for a Device, which does all: compile for a daedal.System")


def why_not_plain(value: Any) -> str | None:
    """Why a kernel cannot be given this array or tensor; None if it can."""
    return why_not_here() or why_not([value])
