"""``daedal inspect``: what is in a file that ``save`` wrote, or in a program."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from daedal.runtime.saved.contents import SavedFunction, SavedGraph, SavedModel
    from daedal.runtime.saved.files import SavedFile


@click.command()
@click.argument("source", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Write JSON instead of tables.")
@click.option("--asm", "as_asm", is_flag=True, help="Write the programs as text instead.")
def command(source: Path, as_json: bool, as_asm: bool) -> None:
    """Show what is in FILE, which an executable's save() or daedal asm wrote.

    That is the configuration that it is for, the tables that daedal.load is to be given, launches and programs, with
    their sizes. The file is checked as a whole.
    """
    from daedal.base.files import read_whole
    from daedal.hw.isa.tools.assembler import disassemble
    from daedal.runtime.saved.container import is_container
    from daedal.runtime.saved.files import MOST_BYTES, SavedFile
    from daedal.runtime.saved.validity import check_contents

    raw = read_whole(source, str(source), MOST_BYTES)
    if not is_container(raw):
        click.echo(disassemble(raw) if as_asm else _shown(_of_program(source, raw), as_json), nl=False)
        return
    file = SavedFile(source)
    check_contents(file)
    if as_asm:
        click.echo("".join(disassemble(kernel.program) for kernel in file.kernels), nl=False)
    else:
        click.echo(_shown(_of_executable(file, len(raw)), as_json), nl=False)


def _of_program(source: Path, raw: bytes) -> dict[str, Any]:
    from daedal.errors import ProgramError
    from daedal.hw.isa.program import read_programs

    try:
        programs = read_programs(raw)
    except ProgramError as error:
        raise ProgramError(f"{source}: {error}") from error
    described = [{"bytes": 8 * (len(each.body) + 3), "opt": None} for each in programs]
    return {
        "schema": 1, "kind": "program", "bytes": len(raw), "config": _config(programs[0].config_hash, ""),
        "programs": described,
    }  # fmt: skip


def _of_executable(file: "SavedFile", size: int) -> dict[str, Any]:
    from daedal.runtime.saved.container import VERSION
    from daedal.runtime.saved.contents import SavedModel

    saved = file.saved
    head = {
        "schema": 1, "kind": "module" if isinstance(saved.content, SavedModel) else "kernel", "bytes": size,
        "version": VERSION, "daedal": saved.daedal, "config": _config(saved.config_hash, saved.config_name),
        "bounds": saved.bounds, "opt": saved.opt,
    }  # fmt: skip
    programs = [{"bytes": len(each.program), "opt": each.opt} for each in file.kernels]
    if isinstance(saved.content, SavedModel):
        return head | _of_plan(file.name, saved.content) | _of_model(saved.content) | {"programs": programs}
    return head | _of_function(saved.content) | {"programs": programs}


def _of_model(model: "SavedModel") -> dict[str, Any]:
    tables = [{"name": each.name, "dtype": each.dtype, "shape": list(each.shape)} for each in model.tables]
    return {"tables": tables, "traces": list(map(_of_graph, model.graphs))}


def _of_plan(name: str, model: "SavedModel") -> dict[str, Any]:
    """The plan of what was compiled for a system."""
    from daedal.system.plan import plan_in_text

    return {} if model.plan is None else {"plan": plan_in_text(model.plan.text, name).document()}


def _of_graph(graph: "SavedGraph") -> dict[str, Any]:
    from daedal.runtime.saved.contents import LaunchStep

    inputs = []
    for each in graph.inputs:
        what = f"{each.dtype}, {each.dims}-D" if each.kind == "array" else each.kind
        inputs.append({"name": each.name, "what": f"{each.constant!r} only" if each.kind == "constant" else what})
    launches = [[call.label for call in step.calls] for step in graph.steps if isinstance(step, LaunchStep)]
    return {
        "inputs": inputs, "launches": launches, "host_steps": len(graph.steps) - len(launches),
        "constant_bytes": sum(each.size for each in graph.constants),
    }  # fmt: skip


def _of_function(function: "SavedFunction") -> dict[str, Any]:
    arguments = [{"name": each.name, "what": each.text} for each in function.signature.arguments.values()]
    sizes = [dict(each.fixed) for each in function.loops]
    return {"name": function.name, "source": f"{function.file}:{function.first_line}", "arguments": arguments,
            "sizes": sizes, "writes": list(function.written)}  # fmt: skip


def _config(number: int, name: str) -> dict[str, Any]:
    from daedal.hw.config.core import PRESETS

    known = next((each.name for each in PRESETS.values() if each.hash == number), None)
    return {"name": name or known, "hash": f"{number:#010x}"}


def _shown(described: dict[str, Any], as_json: bool) -> str:
    if as_json:
        return json.dumps(described, indent=2) + "\n"
    config = described["config"]
    lines = [f"{described['kind']}, {described['bytes']:,} bytes, for {config['name'] or '?'} ({config['hash']})"]
    if "version" in described:
        options = f"bounds {described['bounds']}, O{described['opt']}"
        lines[0] += f", {options}; format {described['version']}, written by Daedal {described['daedal']}"
    if "plan" in described:
        plan = described["plan"]
        lines.append(f"plan {plan['hash']}: for a System with tiles={plan['tiles']}, memory={plan['memory']!r}")
    if "source" in described:
        lines.append(f"{described['name']} of {described['source']}, writes {', '.join(described['writes'])}")
        lines += _table("argument", [(each["name"], each["what"]) for each in described["arguments"]])
        lines += [f"sizes: {', '.join(f'{name} = {value}' for name, value in each.items())}"
                  for each in described["sizes"]]  # fmt: skip
    if "tables" in described:
        rows = [(each["name"], f"{each['dtype']} {tuple(each['shape'])}") for each in described["tables"]]
        lines += _table("table", rows) if rows else ["no tables"]
    for number, trace in enumerate(described.get("traces", ())):
        lines += _table(f"input of trace {number}", [(each["name"], each["what"]) for each in trace["inputs"]])
        lines += [f"launch: {', '.join(labels)}" for labels in trace["launches"]]
        lines.append(f"host: {trace['host_steps']} steps, {trace['constant_bytes']} bytes of constants")
    programs = [(f"{each['bytes']} bytes", each["opt"]) for each in described["programs"]]
    rows = [(str(number), size if opt is None else f"{size}, O{opt}") for number, (size, opt) in enumerate(programs)]
    lines += _table("program", rows)
    return "\n".join(lines) + "\n"


def _table(head: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max(map(len, [head, *(name for name, _ in rows)]))
    return [f"{head:<{width}}", *(f"  {name:<{width}}  {what}" for name, what in rows)]
