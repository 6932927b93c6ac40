"""``daedal compile``: the levels of a kernel, from loops to the bytes that the machine executes."""

import json
import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import click

from daedal.cli._models import model_of, python_names
from daedal.cli._options import InputError, config_option, write_bytes
from daedal.cli._text import DEFAULT_BOUNDS, text_kernel
from daedal.errors import UnsupportedOperation
from daedal.hw.config.core import Config

if TYPE_CHECKING:
    from daedal.compiler.frontends.python.function import KernelFunction
    from daedal.runtime.kernel import Kernel

LEVELS = ("emb", "scf", "slc", "slcv", "dlc", "mach", "asm", "bin")
"""What can be written, in the order of compilation."""

SCHEMA = 1
"""Version of the JSON output."""


def _sizes(context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for text in given:
        match = re.fullmatch(r"(\w+)=([0-9]{1,10})", text)
        if match is None:
            raise click.BadParameter(f"{text[:80]!r} must be a size and its value, as D=64, of at most 10 digits")
        if match[1] in found:
            raise click.BadParameter(f"{match[1]} must be given once, not as {found[match[1]]} and as {match[2]}")
        found[match[1]] = int(match[2])
    return found


@click.command()
@click.argument("source", metavar="FILE")
@click.option(
    "--emit", "level", type=click.Choice(LEVELS), default="asm", show_default=True, help="The level to write."
)
@config_option("The machine to compile for.")
@click.option("--function", "name", metavar="NAME", help="The kernel in FILE, or the node of its model, if several.")
@click.option("--shape", "sizes", multiple=True, metavar="D=64", callback=_sizes, help="The width of rows; repeatable.")
@click.option(
    "--bounds",
    type=click.Choice(["fatal", "warn", "ignore", "none"]),
    show_default=DEFAULT_BOUNDS,
    help="What an index outside its array does.",
)
@click.option("-O", "--opt", type=click.IntRange(0, 3), default=3, show_default=True, help="The optimisation level.")
@click.option("-o", "--output", default="-", show_default=True, metavar="FILE", help="Where to; - is standard output.")
@click.option("--json", "as_json", is_flag=True, help="Write a JSON document with the level in it.")
def command(
    source: str,
    level: str,
    config: Config,
    name: str | None,
    sizes: dict[str, int],
    bounds: str | None,
    opt: int,
    output: str,
    as_json: bool,
) -> None:
    """Compile a kernel and write one level of it.

    \b
    FILE.py    Python with @daedal.kernel functions, or with a
               PyTorch module `model` and a tuple of its `inputs`
    FILE.mlir  text of scf, or of emb (- is standard input)

    Kernels begin at scf, which is also their emb. asm is what
    `daedal disasm` writes, bin the bytes of the program.
    """  # noqa: D301 (click keeps the lines below \b as they are)
    if source.endswith(".py"):
        bounds = bounds or DEFAULT_BOUNDS
        name, kernel, fixed = _python_kernel(source, name, sizes, config, bounds, opt)
    else:
        if name is not None or sizes:
            raise click.BadParameter("--function and --shape are for Python files: text says all of itself")
        name, kernel, bounds = text_kernel(source, config, bounds, opt)
        fixed = {}
    if kernel.lacking:
        click.echo(f"{name} is at {kernel.optimisation}", err=True)
    data = _level(kernel, level)
    if as_json:
        document = {
            "schema": SCHEMA,
            "function": name,
            "config": {"name": config.name, "hash": config.hash},
            "sizes": fixed,
            "bounds": bounds,
            "opt": kernel.opt,
            "arguments": [str(expression) for expression in kernel.arguments],
            "level": level,
            **({"hex": data.hex()} if level == "bin" else {"text": data.decode()}),
        }
        data = (json.dumps(document, indent=2) + "\n").encode()
    write_bytes(output, data)


def _python_kernel(
    source: str, name: str | None, sizes: dict[str, int], config: Config, bounds: str, opt: int
) -> "tuple[str, Kernel, dict[str, int]]":
    """What a Python file has, compiled: its name, and the sizes that it is for."""
    from daedal.compiler.frontends.python.function import KernelFunction

    names = python_names(source, "<daedal compile>")
    found = {each.name: each for each in names.values() if isinstance(each, KernelFunction)}
    if not found and "model" in names and "inputs" in names:
        if sizes:
            raise click.BadParameter("--shape is for kernels: the inputs of a model say all sizes")
        return (*_node(source, names, name, config, bounds, opt), {})
    function = _choice(source, found, name)
    fixed = _fixed(function, sizes)
    return function.name, function.build(fixed, config, bounds, opt)[1], fixed


def _node(
    source: str, names: dict[str, Any], name: str | None, config: Config, bounds: str, opt: int
) -> "tuple[str, Kernel]":
    """An embedding operation of the file's model."""
    import daedal
    from daedal.errors import DaedalError

    model, inputs = model_of(source, names)
    with daedal.Device.open("emulator", config=config) as device:
        try:
            with redirect_stdout(sys.stderr):
                executable = daedal.compile(model, inputs, device=device, bounds=bounds, opt=opt)
        except UnsupportedOperation as error:
            raise InputError(f"{source}: {error}") from error
        except DaedalError:
            raise
        except (Exception, SystemExit) as error:
            raise InputError(f"{source}: the model cannot be run: {type(error).__name__}: {error}") from error
    kernels = executable.kernels
    if not kernels:
        raise InputError(f"{source}: the model must have an operation that runs on the device. {executable.explain()}")
    node = next(iter(kernels)) if name is None else name
    if node not in kernels:
        raise click.BadParameter(f"the model of {source} has the operations {', '.join(kernels)}, but not {node}")
    return node, kernels[node]


def _choice(source: str, found: "dict[str, KernelFunction]", name: str | None) -> "KernelFunction":
    """The kernel that is meant."""
    if not found:
        raise UnsupportedOperation(
            f"{source} must have a function with @daedal.kernel, or a module `model` with its `inputs`, but has none"
        )
    if name is None and len(found) > 1:
        raise click.BadParameter(f"{source} has several kernels: choose one with --function {'|'.join(found)}")
    if name is not None and name not in found:
        raise click.BadParameter(f"{source} has the kernels {', '.join(found)}, but not {name}")
    return found[name] if name is not None else next(iter(found.values()))


def _fixed(function: "KernelFunction", sizes: dict[str, int]) -> dict[str, int]:
    """The sizes that the kernel must be compiled for."""
    wanted = sorted(function.shape.fixed)
    missing = [size for size in wanted if size not in sizes]
    if missing:
        given = " ".join(f"--shape {size}=64" for size in missing)
        raise click.BadParameter(f"{function.name} has loops along rows: give their width, as {given}")
    unknown = [size for size in sizes if size not in wanted]
    if unknown:
        raise click.BadParameter(
            f"{unknown[0]} is no width of rows of {function.name}; it has {', '.join(wanted) or 'none'}, "
            "all else is free"
        )
    return {size: sizes[size] for size in wanted}


def _level(kernel: "Kernel", level: str) -> bytes:
    from daedal.hw.isa.tools.assembler import disassemble

    if level == "bin":
        return kernel.program
    begin = "scf" if level == "emb" and "emb" not in kernel.levels else level
    text = disassemble(kernel.program) if level == "asm" else kernel.ir(begin)
    return (text.rstrip("\n") + "\n").encode()
