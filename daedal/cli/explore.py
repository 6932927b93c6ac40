"""``daedal explore``: what a model's embedding tables would do on many machines, and what limits them there."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from daedal.base.messages import shown
from daedal.cli._models import model_of, python_names
from daedal.cli._options import InputError, OutputFile, write_bytes, writing
from daedal.cli._progress import progress
from daedal.hw.config.core import PRESETS, Config
from daedal.hw.config.file import find_config

if TYPE_CHECKING:
    from daedal.bench.explore.subject import Subject

MOST_TILES = 64
"""Tiles of a machine of the sweep, at most."""

FILE_WIDTH = 170
"""Columns of the table where there is no terminal to fit."""


def _tiles(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    words = text.split(",")
    if not all(word.isdecimal() and len(word) <= 4 and 1 <= int(word) <= MOST_TILES for word in words):
        raise click.BadParameter(f"tiles must be numbers from 1 to {MOST_TILES}, as 1,4,16, not {shown(text)}")
    return tuple(dict.fromkeys(map(int, words)))


def _configs(context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> tuple[Config, ...]:
    for value in given:
        if value not in PRESETS and not Path(value).suffix:
            raise click.BadParameter(f"{shown(value)} is not one of {', '.join(PRESETS)}, nor a .toml or .json file")
    return tuple(find_config(value) for value in dict.fromkeys(given))


@click.command()
@click.argument("source", metavar="MODEL")
@click.option("-o", "--output", default="explore.html", show_default=True, type=OutputFile(), help="The page.")
@click.option(
    "--json",
    "json_path",
    type=OutputFile(),
    help="Write all figures to this file; - is standard output, the table goes to the standard error then.",
)
@click.option(
    "--memory",
    "memories",
    multiple=True,
    metavar="MEMORY",
    help="Memory model; repeatable. Left out: DDR3, DDR4, DDR5, LPDDR4X and HBM2E, if they are for the configuration.",
)
@click.option(
    "--config",
    "configs",
    multiple=True,
    callback=_configs,
    metavar=f"[{'|'.join(PRESETS)}|FILE]",
    help="Configuration; repeatable. Left out: the presets for each memory, or one that is made for it.",
)
@click.option("--tiles", callback=_tiles, metavar="N,…", help="Numbers of tiles.  [default: 1,4,16]")
@click.option(
    "--extra-bytes",
    default=0.1,
    show_default=True,
    type=click.FloatRange(0, 1024),
    help="Bytes for copies of tables, so that several tiles share their bags, as a share of all tables' bytes.",
)
@click.option(
    "--distribution",
    type=click.Choice(["uniform", "zipf", "fixed", "stride", "sorted"]),
    help="Of a workload's indices, if they are not its own; uniform if left out.",
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Start of a workload's random data.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    envvar="DAEDAL_DATA",
    help="Folder with real data for workloads (or the variable DAEDAL_DATA); without it, stand-ins.",
)
@click.pass_context
def command(
    context: click.Context,
    source: str,
    output: Path,
    json_path: Path | None,
    memories: Sequence[str],
    configs: tuple[Config, ...],
    tiles: tuple[int, ...],
    extra_bytes: float,
    distribution: str | None,
    seed: int,
    data: Path | None,
) -> None:
    """Predict what a model's embedding tables do on many machines: look-ups per second, share of the memory's limit,
    energy, size, and what limits them.

    \b
    MODEL  a Python file that has a PyTorch module `model` and
           a tuple of its `inputs`, as for `daedal compile`;
           or a workload: rm1, rm2, rm3, kaggle, wide1, text,
           reuse21, reuse22, gather, mixed100, skew

    A machine is a configuration, a memory, and a number of tiles, each a core with a channel of its own. All is
    predicted by the target model, in a few seconds for each machine; no RTL is simulated.

    Ends with status 1 if no machine gave a figure.
    """  # noqa: D301 (click keeps the lines below \b as they are)
    from daedal.bench.explore import page
    from daedal.bench.explore.machines import DEFAULT_TILES
    from daedal.bench.explore.sweep import Sweep
    from daedal.bench.report.table import show

    subject = _subject(source, distribution, seed, data)
    sweep = Sweep(subject, tuple(dict.fromkeys(memories)), configs, tiles or DEFAULT_TILES, extra_bytes)
    try:
        machines = sweep.machines()
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    settings = {text: memory.settings for _, memory, text in machines}
    with progress(f"{subject.name}: {len(machines) * len(sweep.tiles)} machines") as say:
        work = sweep.work()
        rows = list(sweep.run(say))
    if str(output) != "-":
        write_bytes(str(output), page.page(subject.name, work, rows, settings).encode())
    aside = str(json_path) == "-"
    if json_path is not None:
        document = page.document(subject.name, work, rows, settings)
        write_bytes(str(json_path), (json.dumps(document, indent=2) + "\n").encode())
    with writing():
        title = f"{subject.name}: {work.lookups:,} look-ups a call, predicted"
        show(title, page.COLUMNS, [page.shown(row) for row in rows], width=FILE_WIDTH, aside=aside)
    click.echo(page.verdict(rows), err=aside)
    if str(output) != "-":
        click.echo(f"page: {output}", err=aside)
    context.exit(1 if all(row["note"] for row in rows) else 0)


def _subject(source: str, distribution: str | None, seed: int, data: Path | None) -> "Subject":
    from daedal.bench.explore.subject import NAMES, of_module, of_workload

    if not source.endswith(".py"):
        if source not in NAMES:
            raise click.BadParameter(
                f"{shown(source)} must be a file ending in .py, or a workload: {', '.join(NAMES)}", param_hint="MODEL"
            )
        try:
            return of_workload(source, distribution, seed, data)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
    if distribution is not None:
        raise click.BadParameter("--distribution is for workloads: the inputs of a model have indices of their own")
    names = python_names(source, "<daedal explore>")
    for name in ("model", "inputs"):
        if name not in names:
            raise InputError(
                f"{source} must have a module `model` with a tuple of its `inputs`, but has no {name}: loops "
                "(daedal.kernel) cannot be explored"
            )
    return of_module(Path(source).name, *model_of(source, names))
