"""Draws mutations of a language at random: the same ones for the same seed and sources."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cache
from itertools import chain, zip_longest
from pathlib import PurePath
from random import Random

from amaranth.back import rtlil

from daedal.hw.config.core import Config
from daedal.hw.core import Core
from daedal.hw.lib.reset import RegisteredReset
from tests.conftest import ROOT
from tests.fuzz.configs import SMALL
from tests.mutate.fault import Fault, SiteEdit
from tests.mutate.operators import netlist
from tests.mutate.operators.site import Site
from tests.mutate.plugin import MUTATION
from tests.mutate.suites import CONFIGS, suites_of_cell, suites_of_source

PYTHON = ("hw/isa", "hw/config", "cosim", "sw", "daedal")
"""Where the Python sources are that no RTL is made of."""

CPP = ("cosim",)

SPARE = 3
"""Times as many as are wanted come from Yosys, since some of its draws are equal."""


def draw(language: str, count: int, seed: int) -> Iterator[Fault]:
    """Mutations in the order in which they are drawn; of sources more than ``count``, since not all of C++ compile."""
    if language == "rtl":
        yield from _draw_cells(count, seed)
        return
    places = list(_places(language))
    Random(f"{seed} {language}").shuffle(places)
    for name, site in places:
        yield _site_fault(language, name, site)


LANGUAGES = ("rtl", "cpp", "python")


@cache
def _places(language: str) -> Sequence[tuple[str, Site]]:
    """All files and places at which an operator applies."""
    if language == "cpp":
        from tests.mutate.operators.cpp_sites import cpp_sites as sites

        folders, suffixes = CPP, (".cpp", ".h")
    else:
        from tests.mutate.operators.python_sites import python_sites as sites

        folders, suffixes = PYTHON, (".py",)
    command = ["git", "ls-files", "-z", *folders]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    names = sorted(name for name in listed if PurePath(name).suffix in suffixes)
    return [(name, site) for name in names for site in sites(_text(name))]


@cache
def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _site_fault(area: str, name: str, site: Site) -> Fault:
    raw = _text(name).encode()
    column = site.start - raw.rfind(b"\n", 0, site.start)
    about = f"{raw[site.start : site.end].decode()} → {site.new}"
    suites = suites_of_source(name)
    return Fault(
        f"{area}/{name}:{site.line}:{column}:{site.operator}", site.operator, about, (SiteEdit(name, site),), suites
    )


def _draw_cells(count: int, seed: int) -> Iterator[Fault]:
    """Those of each configuration in turn."""
    drawn = [netlist.draw(_design(name), name, SPARE * count // len(CONFIGS) + 1, seed) for name in CONFIGS]
    for mutation in chain.from_iterable(zip_longest(*drawn)):
        if mutation is not None:
            yield _cell_fault(mutation)


def _design(name: str) -> str:
    config = SMALL if name == SMALL.name else Config.preset(name)
    text: str = rtlil.convert(RegisteredReset(Core(config)), name="daedal_core")
    return text


def _cell_fault(mutation: netlist.Mutation) -> Fault:
    source, place = mutation.source or mutation.home, ".".join(mutation.place)
    bit = f"{mutation.port}[{mutation.bit}]" + (f" by [{mutation.control}]" if mutation.control >= 0 else "")
    cell = f"{mutation.type}{mutation.nth}.{bit}"
    return Fault(
        f"rtl/{mutation.config}:{place}:{source}:{cell}:{mutation.mode}",
        mutation.mode,
        f"{mutation.mode} of {bit} of {mutation.type} {mutation.nth} in {place}",
        (),
        suites_of_cell(mutation.config, mutation.place, source),
        {MUTATION: json.dumps(asdict(mutation))},
        ("-p", "tests.mutate.plugin"),
    )
