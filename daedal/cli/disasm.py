"""``daedal disasm``: the bytes of a program as text."""

import json
from typing import Any

import click

from daedal.cli._options import check_configuration, config_option, read_bytes, source_name, write_bytes
from daedal.errors import ProgramError
from daedal.hw.config.core import PRESETS, Config


@click.command()
@click.argument("source", metavar="FILE")
@click.option("-o", "--output", default="-", show_default=True, metavar="FILE", help="The text; - is standard output.")
@config_option("The machine that the program must be for.", default=None)
@click.option("--json", "as_json", is_flag=True, help="Write the words as JSON instead of text.")
def command(source: str, output: str, config: Config | None, as_json: bool) -> None:
    """Write the program in FILE (- is standard input) as text; `daedal asm` gives the same bytes back.

    The bytes are checked: whole words, the length and the checksum that they give, and, with --config, the machine they
    are for.
    """
    from daedal.hw.isa.program import read_programs
    from daedal.hw.isa.tools.assembler import disassemble

    name, raw = source_name(source), read_bytes(source)
    try:
        programs = read_programs(raw)
    except ProgramError as error:
        raise ProgramError(f"{name}: {error}") from error
    check_configuration(name, programs, config)
    if as_json:
        text = json.dumps({"schema": 1, "programs": [_described(program) for program in programs]}, indent=2) + "\n"
    else:
        text = _with_names(disassemble(raw), config)
    write_bytes(output, text.encode())


def _with_names(text: str, config: Config | None) -> str:
    """``text`` with the name of the configuration, where it is known, as a comment."""
    known = {f"config {each.hash:#010x}": each.name for each in (*PRESETS.values(), *([config] if config else []))}
    lines = [f"{line}  ; {known[line]}" if line in known else line for line in text.splitlines()]
    return "\n".join(lines) + "\n"


def _described(program: Any) -> dict[str, Any]:
    words = []
    for word in program.body:
        words.append(
            {
                "unit": word.unit.name.lower(),
                "index": word.index,
                "field": word.field.name.lower(),
                "value": word.value,
                "argument": word.argument,
            }
        )
    return {"config_hash": program.config_hash, "words": words}
