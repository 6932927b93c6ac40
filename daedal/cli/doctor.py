"""``daedal doctor``: which of the tools and packages that Daedal needs are installed."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from daedal.cli._options import write_bytes, writing

if TYPE_CHECKING:
    from daedal.requirements import Finding

SCHEMA = 1
"""Version of the JSON output."""


@click.command()
@click.option(
    "--json", "json_path", is_flag=False, flag_value="-", metavar="[FILE]", help="Write JSON instead of a table."
)
@click.pass_context
def command(context: click.Context, json_path: str | None) -> None:
    """Look for the tools and packages that Daedal needs; say what is missing and how to get it.

    The status is 0 if `make sim` has all it needs, else 1.
    """
    from daedal.requirements import examine

    findings = examine()
    if json_path is None:
        with writing():
            _print_table(findings)
    else:
        document = {
            "schema": SCHEMA,
            "ok": not any(finding.blocks for finding in findings),
            "findings": [asdict(finding) for finding in findings],
        }
        write_bytes(json_path, (json.dumps(document, indent=2) + "\n").encode())
    context.exit(1 if any(finding.blocks for finding in findings) else 0)


def _print_table(findings: "Sequence[Finding]") -> None:
    width = max(len(finding.name) for finding in findings)
    found = max(len(finding.version) for finding in findings)
    for finding in findings:
        mark = click.style("ok     ", fg="green") if finding.ok else click.style("missing", fg="red")
        if not finding.ok and finding.version:
            mark = click.style("wrong  ", fg="red")
        line = f"{mark}  {finding.name:{width}}  {finding.version:{found}}  {finding.where or '-'}"
        click.echo(line if finding.ok else f"{line}\n           for {finding.needed_for}: {finding.remedy}")
    blocking = [finding.name for finding in findings if finding.blocks]
    click.echo(f"`make sim` lacks: {', '.join(blocking)}" if blocking else "`make sim` has all it needs")
