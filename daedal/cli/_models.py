"""What Python files that a user names define: modules with inputs."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daedal.cli._options import InputError
from daedal.errors import DaedalError, FileError

if TYPE_CHECKING:
    from torch import nn
    from torch.export import ExportedProgram


def python_names(source: str, run_name: str) -> dict[str, Any]:
    """What a Python file defines, which is run under this name."""
    from runpy import run_path

    if not Path(source).is_file():
        raise FileError(f"{source} cannot be read: there is no such file")
    try:
        with redirect_stdout(sys.stderr):
            return run_path(source, run_name=run_name)
    except DaedalError:
        raise
    except (Exception, SystemExit) as error:
        raise FileError(f"{source} cannot be run: {type(error).__name__}: {error}") from error


def model_of(source: str, names: dict[str, Any]) -> "tuple[nn.Module | ExportedProgram, tuple[Any, ...]]":
    """The file's ``model`` and what to call it with, its ``inputs``; a single tensor is its only input."""
    from torch import Tensor, nn
    from torch.export import ExportedProgram

    model, inputs = names["model"], names["inputs"]
    if not isinstance(model, nn.Module | ExportedProgram):
        raise InputError(f"{source}: model must be a torch.nn.Module or an ExportedProgram, not {_kind(model)}")
    if not isinstance(inputs, Tensor | tuple | list):
        raise InputError(f"{source}: inputs must be a tensor, or a tuple of what the model takes, not {_kind(inputs)}")
    return model, (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)


def _kind(value: object) -> str:
    """What a value is, for messages."""
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
