"""The shared library of a verilated DRAM, for every C++ harness that wants one."""

from collections.abc import Mapping
from pathlib import Path

from daedal.cosim.builder.library import read_sources
from daedal.cosim.builder.rtl_library import build_verilated
from daedal.cosim.litedram.memories import Dram
from daedal.cosim.litedram.text import Description, generate

HERE = Path(__file__).parent

INTERFACE = read_sources(HERE, "dram.h")
"""The header that a harness needs to use the library, as name -> text."""


def build_dram(
    dram: Dram, ports: int, *, checks: bool = False, wrong: Mapping[str, int] | None = None
) -> tuple[Path, Description]:
    """The library of ``dram`` with so many user ports, with its description; parameters as of :func:`generate`.

    Its function ``daedal_create_dram`` makes a ``Dram``, see ``dram.h``. Building takes some 20 seconds once.
    """
    generated = generate(dram, ports, checks=checks, wrong=wrong)
    files = {**INTERFACE, **read_sources(HERE, "model.cpp"), "dram_ports.h": ports_header(generated.description)}
    library = build_verilated(
        f"{dram.name}-{ports}", generated.verilog, files, top=generated.description.top, ours=False
    )
    return library, generated.description


def ports_header(description: Description) -> str:
    """The C++ header that tells the model the number of ports and the split of addresses."""
    ports = " ".join(f"X({port})" for port in range(description.ports))
    return (
        f"#pragma once\n#define DRAM_PORTS(X) {ports}\n"
        f"constexpr unsigned COLUMN_BITS = {description.column_bits}, BANK_BITS = {description.bank_bits}, "
        f"WORD_BYTES = {description.word_bytes};\n"
    )
