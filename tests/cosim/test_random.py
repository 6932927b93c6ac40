"""The generator that decides on stalls is the one that it says it is: a memory's seed means the same for everybody."""

import ctypes
from itertools import islice

import pytest

from daedal.cosim.builder.library import build_library, load_library, read_sources
from tests.conftest import ROOT

CALLED = '#include "random.h"\nextern "C" void numbers(unsigned seed, unsigned* out, int n) {\n' + (
    "  daedal::Random random(seed);\n  for (int k = 0; k < n; ++k) out[k] = random.next();\n}\n"
)
MASK = (1 << 64) - 1


def xorshift64_star(state: int):
    """Source: S. Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled" (2016)."""
    while True:
        state ^= state >> 12
        state ^= state << 25 & MASK
        state ^= state >> 27
        yield (state * 2685821657736338717 & MASK) >> 32


@pytest.mark.parametrize("seed", [0, 1, 0xFFFFFFFF])
def test_numbers_are_those_of_xorshift64_star(seed: int) -> None:
    files = {"random.cpp": CALLED, **read_sources(ROOT / "cosim" / "harness" / "memory", "random.h")}
    library, found = load_library(build_library("random", files)), (ctypes.c_uint * 200)()
    library.numbers(ctypes.c_uint(seed), found, len(found))
    assert list(found) == list(islice(xorshift64_star(0x9E3779B97F4A7C15 ^ seed << 16), len(found)))
