"""``daedal asm``: program text to the bytes that the machine executes."""

import click

from daedal.cli._options import check_configuration, config_option, read_text, source_name, write_bytes
from daedal.hw.config.core import Config


@click.command()
@click.argument("source", metavar="FILE")
@click.option("-o", "--output", required=True, metavar="FILE", help="The bytes; - is standard output.")
@config_option("The machine that the program must be for; texts without a `config` line are.", default=None)
def command(source: str, output: str, config: Config | None) -> None:
    """Assemble the program text in FILE (- is standard input).

    \b
    One word a line, as `daedal disasm` writes them and docs/isa lists them:
        config 0x81ca7515
        level 1 load0_base = arg4 + 8      ; a comment
        instruction 2 code op=add a.kind=queue last=1
    """  # noqa: D301 (click keeps the lines below \b as they are)
    from daedal.hw.isa.program import read_programs
    from daedal.hw.isa.tools.assembler import assemble

    name = source_name(source)
    raw = assemble(read_text(source), source=name, config_hash=None if config is None else config.hash)
    check_configuration(name, read_programs(raw), config)
    write_bytes(output, raw)
