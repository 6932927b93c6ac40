"""``daedal bench``: measure workloads on simulated hardware against the limit of the memory behind it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from daedal.base.messages import shown
from daedal.cli._options import config_option, writing
from daedal.cli._progress import progress
from daedal.hw.config.core import Config

if TYPE_CHECKING:
    from daedal.bench.suite import Order, Row

FILE_WIDTH = 170
"""Columns of a table where there is no terminal to fit."""


class _Names(click.ParamType[str]):
    """Names of a table that is looked up only when one is given, for that takes a second."""

    name = "name"
    table = "SUITES"

    def convert(self, value: str, parameter: click.Parameter | None, context: click.Context | None) -> str:
        from daedal.bench import registry

        names = list(getattr(registry, self.table))
        if value not in names:
            self.fail(f"{shown(value)} is not one of {', '.join(names)}", parameter, context)
        return value


class Workloads(_Names):
    """A workload's name."""

    table = "WORKLOADS"


def check_memory(context: click.Context, parameter: click.Parameter, memory: str) -> str:
    """That there is such a memory model, for some target."""
    from daedal.cosim.memory_spec import MemorySpec

    try:
        MemorySpec.parse(memory, predicted=True)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return memory


def _memories(context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> Sequence[str]:
    return [check_memory(context, parameter, memory) for memory in given]


@click.command()
@click.argument("suites", nargs=-1, type=_Names(), metavar="[SUITE]...")
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the rows to this file."
)
@click.option("--memory", "memories", multiple=True, default=["ideal"], show_default=True, callback=_memories,
              help="Memory model and options; repeatable. Of types alone: also litedram-ddr3-x16.")  # fmt: skip
@config_option("The machine; left out, the preset whose bus is as wide as the memory's.", default=None)
@click.option("--target", type=click.Choice(["verilator", "model"]), default="verilator", show_default=True,
              help="What workloads, shapes, types, layers, handwritten, levels run on; model predicts.")  # fmt: skip
@click.option("--placements", default=1, show_default=True, type=click.IntRange(1, 64),
              help="Placements of tables (and of hot rows in them), each a row.")  # fmt: skip
@click.option("--distribution", "distributions", multiple=True, metavar="NAME",
              type=click.Choice(["uniform", "zipf", "fixed", "stride", "sorted"]),
              help="uniform, zipf, fixed, stride or sorted; repeatable. Left out: uniform and zipf.")  # fmt: skip
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Start of all random data.")
@click.option("--data", type=click.Path(path_type=Path, exists=True, file_okay=False), envvar="DAEDAL_DATA",
              help="Folder with real data (or the variable DAEDAL_DATA); without it, stand-ins.")  # fmt: skip
@click.option("--pictures", type=click.Path(path_type=Path, file_okay=False), help="Write pictures to this folder.")
@click.option("--no-host", is_flag=True, help="Do not measure PyTorch beside it.")
@click.option("--report", "reports", multiple=True, type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="A report.json of `daedal bitstream`, for the suite prediction; repeatable.")  # fmt: skip
@click.option("--only", "patterns", multiple=True, metavar="PATTERN",
              help="Shapes (with * and ?) or groups; operations of types, fleets of system and plans, "
              "workloads of against.")  # fmt: skip
@click.option("--random", "drawn", default=0, metavar="N", type=click.IntRange(0, 10_000),
              help="For the suite shapes: N shapes drawn at random by the seed, instead of its own.")  # fmt: skip
@click.option("--quick", is_flag=True, help="Small workloads, only to see that they run.")
@click.pass_context
def command(
    context: click.Context,
    suites: Sequence[str],
    json_file: Path | None,
    memories: Sequence[str],
    target: str,
    config: Config | None,
    placements: int,
    distributions: Sequence[str],
    seed: int,
    data: Path | None,
    pictures: Path | None,
    no_host: bool,
    reports: Sequence[Path],
    patterns: Sequence[str],
    drawn: int,
    quick: bool,
) -> None:
    """Measure SUITEs on the simulated RTL, or on the model of it.

    \b
    rm1 rm2 rm3      recommenders: 8, 4, 2 tables (rm3 weighted)
    kaggle           one row of each of 26 tables
    wide1            26 tables of one column
    text             words of Python's help topics
    reuse21 reuse22  indices reused as in production-like data
    gather           rows of one table, unchanged
    spmm- mp-        with cora, astro or power behind it: sparse × dense and message passing over this graph
    gcn-cora         a graph convolution by index_add
    kg-codex-        with transe or distmult behind it: scores of triples
    attn             key and value blocks of sparse attention
    sweep            widths of rows, gathered and summed
    shapes           means, short bags, tiny tables, odd widths, small batches; or random ones
    types            rows of fp32, bf16, fp16, fp8, int8, int4 and int2, with converters
    model            what the target model predicts, beside the RTL
    oracle           the limit itself, on traffic whose best figure is known
    layers           cycles and traffic of single layers
    handwritten      programs written by hand, and what the compiler makes
    levels           what each optimisation level gains
    launches         launches behind one another
    linearity        a launch's cost by its length
    speed            simulators and host by the wall clock
    overhead         an import, a compilation, a launch
    system           many tiles, of which two run on the RTL
    plans            plans beside round robin, and the planner on many tables
    hot              batches that read only the rows that are read most
    against          PyTorch and FBGEMM here, predictions by memory, GPUs' figures
    training         gradients of a table and steps of optimizers
    models           models of other people: what of them runs on the device
    prediction       what boards would do, by their reports

    Left out: those down to gather. "of limit" is the least cycles in which the memory can move the same lines if no
    request depends on another, divided by the cycles taken, and "of lanes" the same for what the lanes must compute;
    "pins" is the share of what the memory's pins can move, all lines counted, and "rows only" the same for the bytes
    of looked-up rows. "PyTorch" and "FBGEMM" are the shares of this computer's memory bandwidth (a triad's, in the same
    run) that the same operation reaches here.

    Ends with status 1 if a result is not PyTorch's or something else is broken.
    """  # noqa: D301 (click keeps the lines below \b as they are)
    from daedal.bench import registry
    from daedal.bench.suite import Order, is_broken
    from daedal.bench.suites import element_types, model_check

    is_of_types = set(suites) == {element_types.NAME}
    if is_of_types and _is_left_out(context, "memories"):
        memories = element_types.MEMORIES
    try:
        machines = registry.machines(config, memories, target)
        if is_of_types:
            machines = tuple((element_types.with_types(machine), memory) for machine, memory in machines)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if bool(reports) != ("prediction" in suites):
        raise click.UsageError("--report is for the suite prediction, which needs one: give both")
    order = Order(
        machines, tuple(distributions), placements, seed, data, quick, not no_host, target, tuple(reports),
        only=tuple(patterns), drawn=drawn,
    )  # fmt: skip
    _check_shapes(suites, order)
    results = _run(list(suites) or list(registry.DEFAULT), order, json_file)
    with writing():
        _show(results, order)
    rows = [row for found in results.values() for row in found]
    if model_check.NAME in results:
        click.echo(model_check.summary(results[model_check.NAME]))
    if pictures is not None:
        from daedal.bench.report.pictures import write_pictures

        with writing(str(pictures)):
            paths = write_pictures(pictures, [row for row in rows if "placement" in row])
        with writing():
            click.echo("".join(f"picture: {path}\n" for path in paths), nl=False)
    wrong = [row for row in rows if is_broken(row)]
    for row in wrong:
        click.echo(f"{row['workload']} on {row['memory']}: {row['verdict']}", err=True)
    context.exit(1 if wrong else 0)


def _is_left_out(context: click.Context, option: str) -> bool:
    return context.get_parameter_source(option) is ParameterSource.DEFAULT


def _check_shapes(suites: Sequence[str], order: "Order") -> None:
    """That what is said of shapes, operations, fleets or workloads is said to their suite, and fits some."""
    from daedal.bench.suites import against, element_types, model_check, plans, shapes, systems

    named: dict[str, Callable[[Sequence[str]], object]] = {
        systems.NAME: systems.fleets_of, plans.NAME: systems.fleets_of, against.NAME: against.names_of,
        element_types.NAME: element_types.operations,
    }  # fmt: skip
    of_names = [check for suite, check in named.items() if suite in suites]
    of_shapes = bool({shapes.NAME, model_check.NAME} & set(suites))
    if not of_shapes and (order.drawn or (order.only and not of_names)):
        raise click.UsageError("--only and --random are for the suites shapes and model: name one")
    try:
        for check in of_names:
            check(order.only)
        if not of_names:
            shapes.chosen(order)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--only") from None


def _run(suites: Sequence[str], order: "Order", json_file: Path | None) -> "dict[str, list[Row]]":
    """The rows of each suite, with progress on the standard error; the file is written after each row."""
    from daedal.bench.registry import run
    from daedal.bench.report.document import facts, save

    about = facts(order.machines, seed=order.seed, placements=order.placements, quick=order.quick)
    results: dict[str, list[Row]] = {suite: [] for suite in suites}
    with progress("starting") as say:
        for suite in results:
            for row in run(suite, order, say):
                results[suite].append(row)
                if json_file is not None:
                    with writing(str(json_file)):
                        save(json_file, about, results)
    return results


def _show(results: "dict[str, list[Row]]", order: "Order") -> None:
    """A table for the suites of each title, and the settings of the memories."""
    from daedal.bench.registry import SUITES
    from daedal.bench.report.table import show, with_means
    from daedal.bench.suites import calibration
    from daedal.cosim.memory_spec import MemorySpec

    named = ", ".join(dict.fromkeys(f"{config.name} {config.hash:#010x}" for config, _ in order.machines))
    tables = {SUITES[suite].title: SUITES[suite].columns for suite in results}
    for title, columns in tables.items():
        rows = [row for suite, found in results.items() if SUITES[suite].title == title for row in found]
        if rows:
            show(f"{title} ({named}, seed {order.seed})", columns, with_means(rows), width=FILE_WIDTH)
    found = [row["settings"] for row in results.get(calibration.NAME, []) if "settings" in row]
    if set(results) != {calibration.NAME}:
        found += [MemorySpec.parse(memory, predicted=True).settings(config.ports) for config, memory in order.machines]
    for settings in dict.fromkeys(found):
        click.echo(f"memory: {settings}")
