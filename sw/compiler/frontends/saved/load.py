"""``daedal.load``: an executable from a file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from daedal.base.messages import shown
from daedal.compiler.frontends.saved.program import SavedProgram
from daedal.driver.device import Device
from daedal.driver.tables.table_sources import STAND_INS, array_type, is_tensor, stand_in
from daedal.errors import PlanMismatch, UnsupportedOperation
from daedal.runtime.executable import Executable
from daedal.runtime.loops.kernel_executable import KernelExecutable
from daedal.runtime.loops.saved_function import SavedLoopFunction
from daedal.runtime.operations import Operation
from daedal.runtime.saved.contents import SavedFunction, SavedPlan, SavedTable
from daedal.runtime.saved.files import SavedFile
from daedal.runtime.saved.validity import check_contents
from daedal.runtime.tensors import array_of
from daedal.system.default_plan import plan_of_whole_rows
from daedal.system.executable import SystemExecutable
from daedal.system.plan import Plan, plan_in_text
from daedal.system.shared_kernel import loops_on
from daedal.system.system import System, check_device

Tables = Sequence[Any] | Mapping[str, Any]


def load(path: Path | str, *, device: Device | System, tables: Tables | None = None) -> Executable | KernelExecutable:
    """The executable that ``save`` wrote to ``path``, on ``device``; neither PyTorch nor the compiler is imported.

    Parameters
    ----------
    path
        The file.
    device
        A device of the configuration that it was compiled for. An executable of a ``System`` goes on a system with as
        many tiles, of the same configuration and memory, and follows its plan. One of a device goes on a system too:
        the first inputs make a plan, of whole tables and of bags.
    tables
        The module's tensors that it reads (``daedal inspect`` lists them): in their order, or by their names in
        ``state_dict``, of which there may be others; arrays or tensors, of the types and shapes that were saved. They
        are read where they are, as ``table_check`` of ``Device.open`` says. A kernel has none.

    It is called as the module was, with arrays or tensors; it gives arrays if there are no tensors among the inputs.
    What it was not saved for (other kinds of inputs) is an UnsupportedOperation.

    Raises FileError for a file that is none, of another version, damaged or not whole; ConfigMismatch for a device of
    another configuration; PlanMismatch for what was compiled for a system and another one, or a device;
    UnsupportedOperation for tables that are missing or of another type or shape, and a kernel on a system.
    """
    if isinstance(device, System):
        device.check_open()
    else:
        check_device(device)
    file = SavedFile(path)
    check_contents(file)
    file.check_config(device.config)
    saved = file.saved
    if isinstance(saved.content, SavedFunction):
        if tables:
            raise UnsupportedOperation("tables must be left out for a kernel, which is called with all of its arrays")
        function = SavedLoopFunction(saved.content, file.kernels)
        loops = loops_on(function, device, _why_not, saved.bounds, saved.opt)
        for sizes in function.sizes:
            loops.prepare_sizes(sizes)
        return loops
    model = saved.content
    given = _tables(model.tables, tables)
    constants = [[file.array(each, STAND_INS) for each in graph.constants] for graph in model.graphs]
    program = SavedProgram(model, given, constants)
    plan = _plan(file.name, model.plan, device)
    if isinstance(device, System):
        options: dict[str, Any] = {"is_given": model.plan is not None and model.plan.is_given}
        executable: Executable = SystemExecutable(
            program, device, _no_part, saved.bounds, saved.opt, plan_of_whole_rows, plan, **options
        )
    else:
        executable = Executable(program, device, _no_program, saved.bounds, saved.opt)
    executable.take_kernels({(each.operation, each.has_long_bags): file.kernels[each.kernel]
                             for each in model.operations})  # fmt: skip
    return executable


def _why_not(value: Any) -> str | None:
    """Kernels take what they say."""
    return None


def _no_program(operation: Operation, has_long_bags: bool) -> NoReturn:
    """There is no compiler."""
    raise UnsupportedOperation(
        "the file has no program for such inputs: call the executable with inputs like these before it is saved"
    )


def _no_part(operation: Operation, has_long_bags: bool) -> NoReturn:
    """The same, on a system."""
    raise UnsupportedOperation(
        "the file has no program for this part of the model: call the executable with inputs like these before it is "
        "saved, and compile and save for a System"
    )


def _plan(name: str, saved: SavedPlan | None, device: Device | System) -> Plan | None:
    """The plan of a file; PlanMismatch unless it is for this device."""
    if saved is None:
        return None
    plan = plan_in_text(saved.text, name)
    wanted, given = _system(plan.tiles, plan.memory), "a Device"
    if isinstance(device, System):
        given = _system(len(device.tiles), device.memory)
    if given != wanted:
        raise PlanMismatch(
            f"{name} must be loaded on {wanted}, for which it was compiled, not on {given}: open such a system, or "
            "compile and save for this one"
        )
    return plan


def _system(tiles: int, memory: str) -> str:
    return f"a System with tiles={tiles}, memory={memory!r}"


def _tables(wanted: Sequence[SavedTable], given: Tables | None) -> list[NDArray[Any]]:
    names = ", ".join(each.name for each in wanted[:8]) + ("" if len(wanted) <= 8 else ", …")
    if given is None and wanted:
        raise UnsupportedOperation(f"tables must be given: {len(wanted)} ({names}), as a list or by name")
    if isinstance(given, Mapping):
        missing = [each.name for each in wanted if each.name not in given]
        if missing:
            raise UnsupportedOperation(
                f"tables must have {missing[0]!r}, which is not among the {len(given)} given: they are {names}"
            )
        listed = [given[each.name] for each in wanted]
    elif isinstance(given, Sequence) and not isinstance(given, str | bytes):
        if len(given) != len(wanted):
            raise UnsupportedOperation(f"tables must be {len(wanted)} ({names}), not {len(given)}")
        listed = list(given)
    elif given is None:
        listed = []
    else:
        raise UnsupportedOperation(f"tables must be a list or a dictionary by name, not {shown(given)}")
    return [_table(each, value) for each, value in zip(wanted, listed, strict=True)]


def _table(wanted: SavedTable, value: Any) -> NDArray[Any]:
    if not isinstance(value, np.ndarray) and not is_tensor(value):
        raise UnsupportedOperation(f"table {wanted.name!r} must be an array or a tensor, not {shown(value)}")
    dtype, shape = str(value.dtype).removeprefix("torch."), tuple(value.shape)
    is_type = dtype == wanted.dtype or (isinstance(value, np.ndarray) and value.dtype == array_type(wanted.dtype))
    if not is_type or shape != wanted.shape:
        raise UnsupportedOperation(
            f"table {wanted.name!r} must be of {wanted.dtype} with shape {wanted.shape}, as it was saved, not of "
            f"{dtype} with {shape}"
        )
    try:
        return stand_in(array_of(value), wanted.dtype)
    except (RuntimeError, TypeError) as error:
        raise UnsupportedOperation(f"table {wanted.name!r} must be dense and on the CPU: {error}") from error
