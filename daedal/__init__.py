"""Daedal: a decoupled access-execute accelerator for embedding operations, from PyTorch to RTL and back.

The public interface, imported on first use so that ``import daedal`` stays cheap (it loads neither PyTorch
nor the hardware description nor the compiler)::

    with daedal.Device.open("verilator", config="ddr3", memory="ideal") as dev:
        exe = daedal.compile(module, example_inputs, device=dev)
        out = exe(*inputs)

``Device``
    A machine to run on, simulated or emulated; owns the memory and the tables in it.
``System``, ``plan``, ``Plan``, ``fleet``
    Several machines that share nothing, who of them does what, and what many devices with links would give.
``compile``
    Turns an ``nn.Module`` or an ``ExportedProgram`` into an executable for one device.
``kernel``, ``dims``, ``f32``, ``i32``, ``i64``, ``zeros``, ``distinct``, ``dot``, ``exp``, ``sqrt``, ``sigmoid``
    New operations as plain Python loops; ``compile`` takes a function with ``@daedal.kernel`` too.
``load``
    An executable from a file that its ``save`` wrote, without PyTorch and the compiler.
``graphs``
    What ``torch.compile(model, backend="daedal")`` has made: which nodes run on the device, and what a batch costs.
``hot_rows``
    Tables renumbered so that the rows that a sample reads most are first, and batches that read no others.
``optim``
    Optimizers whose tables, and what they keep of them, are the device's: ``SGD``, ``RowWiseAdagrad``.
``quantized``
    Tables of rows of 8, 4 and 2-bit integers, as PyTorch and FBGEMM lay them out, looked up from NumPy.
``tensorflow``
    Keras models and functions of TensorFlow, as ``compile`` has PyTorch's modules.
``assemble``, ``disassemble``
    Program text to program bytes and back.
``DaedalError`` and its subclasses
    What goes wrong, by name; see :mod:`daedal.errors`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from daedal.errors import (
    BoundsWarning,
    BuildFailed,
    ClockTooSlow,
    ConfigMismatch,
    CountMismatch,
    DaedalError,
    DesignTooLarge,
    DeviceClosed,
    DeviceForked,
    DeviceHang,
    FileError,
    IndexOutOfRange,
    InvalidConfig,
    InvalidOffsets,
    InvalidSystem,
    LaunchCancelled,
    LevellingFailed,
    LinkLost,
    MemoryFault,
    OutOfDeviceMemory,
    PlanMismatch,
    ProgramError,
    ReadAfterStore,
    StaleParameter,
    ToolchainNotFound,
    UnknownBoard,
    UnsupportedOperation,
)
from daedal.version import __version__

if TYPE_CHECKING:
    from daedal.compiler.api import compile
    from daedal.compiler.frontends import row_tables as quantized
    from daedal.compiler.frontends.python.function import kernel
    from daedal.compiler.frontends.python.names import (
        bf16,
        dims,
        distinct,
        dot,
        exp,
        f16,
        f32,
        fma,
        i8,
        i32,
        i64,
        sigmoid,
        sqrt,
        u8,
        zeros,
    )
    from daedal.compiler.frontends.saved.load import load
    from daedal.compiler.frontends.tensorflow import api as tensorflow
    from daedal.compiler.frontends.torch.dynamo import graphs
    from daedal.compiler.frontends.torch.hot.rows import hot_rows
    from daedal.compiler.frontends.torch.training import optimizers as optim
    from daedal.compiler.planning import fleet, plan
    from daedal.driver.device import Device
    from daedal.hw.isa.tools.assembler import assemble, disassemble
    from daedal.system.plan import Plan
    from daedal.system.system import System

__all__ = [
    "BoundsWarning",
    "BuildFailed",
    "ClockTooSlow",
    "ConfigMismatch",
    "CountMismatch",
    "DaedalError",
    "DesignTooLarge",
    "Device",
    "DeviceClosed",
    "DeviceForked",
    "DeviceHang",
    "FileError",
    "IndexOutOfRange",
    "InvalidConfig",
    "InvalidOffsets",
    "InvalidSystem",
    "LaunchCancelled",
    "LevellingFailed",
    "LinkLost",
    "MemoryFault",
    "OutOfDeviceMemory",
    "Plan",
    "PlanMismatch",
    "ProgramError",
    "ReadAfterStore",
    "StaleParameter",
    "System",
    "ToolchainNotFound",
    "UnknownBoard",
    "UnsupportedOperation",
    "__version__",
    "assemble",
    "bf16",
    "compile",
    "dims",
    "disassemble",
    "distinct",
    "dot",
    "exp",
    "f16",
    "f32",
    "fleet",
    "fma",
    "graphs",
    "hot_rows",
    "i8",
    "i32",
    "i64",
    "kernel",
    "load",
    "optim",
    "plan",
    "quantized",
    "sigmoid",
    "sqrt",
    "tensorflow",
    "u8",
    "zeros",
]

_LAZY = {
    "Device": "daedal.driver.device",
    "Plan": "daedal.system.plan",
    "System": "daedal.system.system",
    "assemble": "daedal.hw.isa.tools.assembler",
    "bf16": "daedal.compiler.frontends.python.names",
    "compile": "daedal.compiler.api",
    "dims": "daedal.compiler.frontends.python.names",
    "disassemble": "daedal.hw.isa.tools.assembler",
    "distinct": "daedal.compiler.frontends.python.names",
    "dot": "daedal.compiler.frontends.python.names",
    "exp": "daedal.compiler.frontends.python.names",
    "f16": "daedal.compiler.frontends.python.names",
    "f32": "daedal.compiler.frontends.python.names",
    "fleet": "daedal.compiler.planning",
    "fma": "daedal.compiler.frontends.python.names",
    "i8": "daedal.compiler.frontends.python.names",
    "i32": "daedal.compiler.frontends.python.names",
    "i64": "daedal.compiler.frontends.python.names",
    "kernel": "daedal.compiler.frontends.python.function",
    "load": "daedal.compiler.frontends.saved.load",
    "plan": "daedal.compiler.planning",
    "sigmoid": "daedal.compiler.frontends.python.names",
    "sqrt": "daedal.compiler.frontends.python.names",
    "u8": "daedal.compiler.frontends.python.names",
    "zeros": "daedal.compiler.frontends.python.names",
    "graphs": "daedal.compiler.frontends.torch.dynamo",
    "hot_rows": "daedal.compiler.frontends.torch.hot.rows",
}
"""Public name -> the module that defines it, imported when the name is first used."""

_MODULES = {
    "optim": "daedal.compiler.frontends.torch.training.optimizers",
    "quantized": "daedal.compiler.frontends.row_tables",
    "tensorflow": "daedal.compiler.frontends.tensorflow.api",
}
"""Public name -> the module that it is, imported when the name is first used."""


def __getattr__(name: str) -> object:
    """Import the public name ``name`` from where it is defined, and keep it."""
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, also those not imported yet."""
    return sorted({*globals(), *__all__})
