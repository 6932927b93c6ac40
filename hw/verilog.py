"""The core's Verilog, generated once per configuration and version of the hardware sources."""

import gc
import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from textwrap import wrap

from daedal.base import coverage
from daedal.base.cache import cache_directory, keep_text
from daedal.hw.config.core import Config
from daedal.version import __version__

TOP = "daedal_core"
"""Name of the top module."""

_LINT = """\
// Generated text: operands have the widths of Amaranth's expressions, cases that cannot happen are left out, an output
// is called interrupt, parts of one bus depend on each other without a loop, and a signal can have no bits.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off WIDTHTRUNC */
/* verilator lint_off CASEINCOMPLETE */
/* verilator lint_off UNSIGNED */
/* verilator lint_off SYMRSVDWORD */
/* verilator lint_off UNOPTFLAT */
/* verilator lint_off ASCRANGE */
"""


_IMPORTED = time.time_ns()
"""When this process took the sources as they were."""


def core_verilog(config: Config) -> str:
    """The Verilog text of ``Tile(config)``; kept in the cache, since generating it takes several seconds.

    It is not kept, nor taken from there, if sources changed since this process imported them: it is made from what was
    imported, and would be taken for what the changed sources make.
    """
    if any(source.stat().st_mtime_ns > _IMPORTED for source in _sources()):
        return generate_verilog(config)
    return keep_text(cache_directory() / f"core-{_key(config)}.v", lambda: generate_verilog(config))


def generate_verilog(config: Config) -> str:
    """The Verilog text of ``Tile(config)``, with a registered reset, made anew."""
    from amaranth.back import verilog

    from daedal.hw.lib.reset import RegisteredReset
    from daedal.hw.tile import Tile

    with _no_collection():
        text: str = verilog.convert(RegisteredReset(Tile(config)), name=TOP, emit_src=coverage.is_wanted())
    return text


@contextmanager
def _no_collection() -> Iterator[None]:
    """Do not look for cycles of garbage meanwhile: designs are many objects, and it takes half of the time.

    The core of ``ddr3`` needs 160 MB more.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def system_verilog(config: Config, tiles: int | None, axi: str) -> tuple[str, str]:
    """Several tiles, or one with its memory ports joined: the name of the top module, and the text of all.

    See :func:`daedal.hw.system.modules_of`. ``TOP`` alone for a tile with ports of its own. ValueError for what there
    is not.
    """
    from amaranth.back import verilog

    from daedal.hw.system import modules_of

    top, texts = TOP, []
    for top, module in modules_of(config, tiles, axi).items():
        texts.append(verilog.convert(module, name=top, emit_src=coverage.is_wanted()))
    return top, "\n".join([core_verilog(config), *texts])


def documented_verilog(config: Config, tiles: int | None = None, axi: str = "ports") -> str:
    """The Verilog text for other designs: as :func:`system_verilog`, with a comment on configuration and ports."""
    from daedal.hw.core_ports import ports_comment, top_ports

    top, text = system_verilog(config, tiles, axi)
    fields = ", ".join(f"{name} {value}" for name, value in asdict(config).items() if name != "name")
    head = [
        f"Daedal {__version__}, configuration {config.name}, hash {config.hash:#010x}",
        "",
        *wrap(fields, 110),
        "",
        f"Top module: {top}. Written by `daedal verilog`; not to be edited.",
        "",
    ]
    comment = "".join(f"// {line}".rstrip() + "\n" for line in head)
    return comment + ports_comment(top_ports(config, tiles, axi)) + "\n" + _LINT + text


def _sources() -> list[Path]:
    """The files that make the Verilog."""
    return sorted(Path(__file__).resolve().parent.rglob("*.py"))


def _key(config: Config) -> str:
    """Of all that a core's Verilog depends on; what the configuration is called is no part of it."""
    digest = hashlib.sha256(f"{replace(config, name=TOP)!r} amaranth {metadata.version('amaranth')}".encode())
    digest.update(bytes([coverage.is_wanted()]))
    for source in _sources():
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:20]
