"""The command line of the bench."""

import sys
from pathlib import Path

import click

from bench import host, launches, levels, linearity, machine, speed
from bench.handwritten import suite as handwritten
from bench.options import Options
from bench.report import Row, Suite, save, show
from bench.synthesis import suite as synthesis
from bench.synthesis.units import UNITS
from daedal.cosim.memory_spec import MemorySpec
from daedal.hw.config import PRESETS, Config

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        machine.SUITE,
        handwritten.SUITE,
        levels.SUITE,
        linearity.SUITE,
        launches.SUITE,
        speed.SUITE,
        host.SUITE,
        synthesis.SUITE,
    )
}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("suites", nargs=-1, type=click.Choice(list(SUITES)), metavar="[SUITE]…")
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Result file.")
@click.option("--config", type=click.Choice(list(PRESETS)), default="ddr3", show_default=True)
@click.option("--target", type=click.Choice(["verilator", "emulator"]), default="verilator",
              show_default=True, help="Target of machine and levels; the emulator has no cycles.")  # fmt: skip
@click.option("--memory", default="ideal", show_default=True, help="Memory model and its options, see docs/memory.md.")
@click.option("--seed", default=1, show_default=True, help="Start of all random data.")
@click.option("--unit", "units", multiple=True, type=click.Choice([unit.name for unit in UNITS]),
              help="Synthesise this unit only; may be given several times.")  # fmt: skip
@click.option("--place-seeds", default=1, show_default=True, type=click.IntRange(0),
              help="Placements of each unit, of which the median clock counts; 0 for none.")  # fmt: skip
@click.option(
    "--route-large", is_flag=True, help="Route the large units too; else their clock is that of the placement."
)
@click.option("--quick", is_flag=True, help="Small workloads, only to see that they run.")
def main(suites: tuple[str, ...], json_file: Path | None, config: str, target: str, memory: str, seed: int,
         units: tuple[str, ...], place_seeds: int, route_large: bool, quick: bool) -> None:  # fmt: skip
    """Measure the SUITEs: machine (throughput), levels (of optimisation), linearity (of a launch's cost), launches (one
    behind the other), speed (of simulators), host (import, compilation, a launch), synthesis (size, clock); default:
    all.

    Ends with status 1 if something is broken or not equal to PyTorch. A goal that is missed is no error.
    """
    try:
        MemorySpec.parse(memory)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--memory") from None
    options = Options(
        config=Config.preset(config), target=target, memory=memory, seed=seed, quick=quick, units=units,
        place_seeds=place_seeds, route_large=route_large,
    )  # fmt: skip
    results: dict[str, list[Row]] = {}
    broken = False
    for name in suites or SUITES:
        suite = SUITES[name]
        results[name] = suite.run(options)
        show(suite, results[name], options)
        broken |= any(suite.is_broken(row) for row in results[name])
        if json_file is not None:  # after each suite: what was measured is not lost if the next one fails
            save(json_file, options, results)
    sys.exit(broken)


if __name__ == "__main__":
    main(prog_name="python -m bench")
