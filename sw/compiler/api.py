"""``daedal.compile``."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, overload

from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from daedal.base.messages import shown
from daedal.compiler.bounds import BOUNDS
from daedal.compiler.frontends.python.function import KernelFunction
from daedal.compiler.frontends.requests.checks import computed_types
from daedal.compiler.frontends.torch.device_suitability import why_no_type, why_not, why_not_here
from daedal.compiler.frontends.torch.placement import Placement
from daedal.compiler.frontends.torch.trace.keywords import Signature
from daedal.compiler.frontends.torch.trace.module_trace import trace
from daedal.compiler.frontends.torch.trace.quantised_modules import with_operators
from daedal.compiler.frontends.torch.traced_module import TracedModule
from daedal.compiler.operation_compiler import compiler_for
from daedal.compiler.opt_levels import BEST, check_exact, check_opt
from daedal.driver.device import Device
from daedal.errors import UnsupportedOperation
from daedal.runtime.executable import Executable
from daedal.runtime.loops.kernel_executable import KernelExecutable
from daedal.system.default_plan import default_plan
from daedal.system.executable import SystemExecutable
from daedal.system.plan import Plan
from daedal.system.shared_kernel import loops_on
from daedal.system.system import System


@overload
def compile(
    module: nn.Module | ExportedProgram,
    example_inputs: Sequence[Any] | Mapping[str, Any] | Tensor,
    *,
    example_kwargs: Mapping[str, Any] | None = ...,
    device: Device,
    bounds: str = ...,
    opt: int = ...,
    plan: None = ...,
    offload: Sequence[str] | None = ...,
    budget: int | None = ...,
    exact: bool = ...,
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
    exact: bool = ...,
) -> SystemExecutable: ...


@overload
def compile(
    module: KernelFunction,
    example_inputs: Sequence[Any] | Tensor,
    *,
    device: Device | System,
    bounds: str = ...,
    opt: int = ...,
    plan: None = ...,
) -> KernelExecutable: ...


def compile(
    module: nn.Module | ExportedProgram | KernelFunction,
    example_inputs: Sequence[Any] | Mapping[str, Any] | Tensor,
    *,
    example_kwargs: Mapping[str, Any] | None = None,
    device: Device | System,
    bounds: str = "fatal",
    opt: int = BEST,
    plan: Plan | None = None,
    offload: Sequence[str] | None = None,
    budget: int | None = None,
    exact: bool = True,
) -> Executable | KernelExecutable:
    """An executable whose embedding operations run on ``device``; all others run in PyTorch.

    Parameters
    ----------
    module
        A module or an exported program; or loops (``daedal.kernel``), which run on the device as a whole.
    example_inputs
        Inputs of the kind that it will be called with: their number and types count, sizes and values do not (for
        loops along rows, the width of the rows does). A dictionary has inputs by name, as ``example_kwargs``.
    example_kwargs
        Inputs that the module is given by name.
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
    offload
        Patterns, as of file names, of operations (``embedding_*``) or tables (``tables.user.*``): all others stay in
        PyTorch. Left out, all run on the device that can.
    budget
        Bytes of device memory for the module's tables. Those that do not fit any more, in the order in which they are
        used, stay in PyTorch, as does a table that is larger than the device's memory.
    exact
        Whether all results have PyTorch's bits. With False, sums and means of looked-up rows that PyTorch adds in an
        order of its own run on the device too, one row after the other.

    The executable works as the module does at the time of the call: what was changed in its parameters counts (as far
    as ``table_check`` of ``Device.open`` sees it), and so does another tensor in a parameter's place, another mode
    (``eval()``), part, hook or plain attribute, for which the module is traced again. What ``forward`` takes from
    elsewhere (globals, fields of other objects) is as it was in the trace: compile again. Of an ExportedProgram only
    the contents of its tensors change.

    Raises UnsupportedOperation, naming the node and the reason, if there is nothing to run on the device, and
    ValueError for another ``bounds``, ``opt``, ``offload`` or ``budget``, PlanMismatch for a plan of another model or
    system.
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
    check_exact(exact)
    _check_plan(plan, module, device)
    inputs, named = _examples(example_inputs, example_kwargs)
    if isinstance(device, System):
        device.check_open()
    placement = Placement.read(device, offload, budget)
    reason = why_not_here() or why_not(pytree.tree_leaves((inputs, named)))
    if reason is not None:
        raise UnsupportedOperation(f"example_inputs must be plain tensors, outside of transforms and modes: {reason}")
    if isinstance(module, KernelFunction):
        if offload is not None or budget is not None or not exact:
            raise UnsupportedOperation(
                "offload, budget and exact must be left out for a kernel, which runs on the device as it is written"
            )
        if named:
            raise UnsupportedOperation(f"arguments of a kernel must be given by position, not as {', '.join(named)}")
        loops = loops_on(module, device, why_not_plain, bounds, opt)
        loops.prepare(inputs)
        return loops
    for name, value in chain(module.named_parameters(), module.named_buffers()):
        reason = why_no_type([value])
        if reason is not None:
            raise UnsupportedOperation(
                f"{name} of the module must be a plain tensor, but {reason}: use torch.compile(module, "
                "backend='daedal'), where PyTorch computes with it"
            )
    if isinstance(module, nn.Module):
        module = with_operators(module, device.config)
    signature = Signature(module, inputs, named)
    inputs, module = signature.by_position(inputs, named), signature.module
    followed = None if isinstance(module, ExportedProgram) else module
    types = computed_types(device.config)
    program = TracedModule(trace(module, inputs), followed, signature, placement, types, exact, device)
    compile_operation = compiler_for(device.config, bounds, opt)
    if isinstance(device, System):
        executable: Executable = SystemExecutable(program, device, compile_operation, bounds, opt, default_plan, plan)
    else:
        executable = Executable(program, device, compile_operation, bounds, opt)
    executable.prepare(inputs)
    return executable


def _check_plan(plan: object, module: object, device: Device | System) -> None:
    """Raise UnsupportedOperation for what is no plan, or where there is none to be."""
    if isinstance(module, KernelFunction) and plan is not None:
        raise UnsupportedOperation("plan must be left out for a kernel: tiles share its rounds evenly")
    if plan is not None and not isinstance(plan, Plan):
        raise UnsupportedOperation(f"plan must be what daedal.plan gives, not {shown(plan)}")
    if plan is not None and isinstance(device, Device):
        raise UnsupportedOperation("plan must be left out for a Device, which does all: compile for a daedal.System")


def _examples(inputs: Any, named: Mapping[str, Any] | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Example inputs by position and by name."""
    if named is not None and not isinstance(named, Mapping):
        raise UnsupportedOperation(f"example_kwargs must be a dictionary of inputs by name, not {type(named).__name__}")
    if isinstance(inputs, Mapping):
        by_name = {**inputs, **(named or {})}
        if not all(isinstance(name, str) for name in by_name):
            raise UnsupportedOperation("example_inputs must be a tuple, or a dictionary by the names of the inputs")
        return (), by_name
    if not isinstance(inputs, Tensor | tuple | list):
        raise UnsupportedOperation(
            f"example_inputs must be a tensor, a tuple of inputs or a dictionary of inputs by name, not "
            f"{type(inputs).__name__}"
        )
    return (inputs,) if isinstance(inputs, Tensor) else tuple(inputs), dict(named or {})


def why_not_plain(value: Any) -> str | None:
    """Why a kernel cannot be given this array or tensor; None if it can."""
    return why_not_here() or why_not([value])
