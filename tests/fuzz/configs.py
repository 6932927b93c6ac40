"""The configurations that random programs are made for."""

from dataclasses import replace

import numpy as np

from daedal.hw.config.core import LEAST_AFFINE_LANES, Config

SMALL = Config(
    name="small", bus_bytes=8, lanes=1, ports=1, levels=2, registers=4, sequential_loads=(2, 1), random_loads=(1, 1),
    alus=(2, 1), shifters=(False, True), contexts=(0, 2), dealt_bundles=128, arguments=16, steps=9,
    callbacks=5, instructions=24, lengths=3,
    vector_registers=3, register_beats=128, vector_beats=32, reorder_beats=40, token_depth=3, scalar_depth=5,
    store_address_depth=2, store_beats=260, lookahead_lines=8, lookahead_burst=2, random_outstanding=3, scalars=3,
    kept_beats=5, port_requests=5, row_groups=2, context_ahead=4, port_outstanding=3, banks=4, page_bytes=128,
    write_burst=3, write_batch=5, address_bits=32,
)  # fmt: skip
"""Little of everything, half a line of lanes; rows can be longer than the vector queues. Layers run on it as well,
which takes four registers.
"""

GATHERER = Config(
    name="gatherer", bus_bytes=16, lanes=4, ports=2, levels=1, registers=3, sequential_loads=(2,), random_loads=(1,),
    alus=(1,), shifters=(True,), serial=(True,), arguments=16, steps=7, callbacks=0, instructions=0, lengths=0,
    vector_registers=2, register_beats=4, vector_beats=32, reorder_beats=40, token_depth=3, scalar_depth=2,
    store_address_depth=3, store_beats=8, lookahead_lines=8, lookahead_burst=2, random_outstanding=3, port_requests=3,
    port_outstanding=3, banks=4, page_bytes=128, write_burst=3, write_batch=5, address_bits=36,
)  # fmt: skip
"""One level and no execute unit: rows are only copied."""

RTL = {config.name: config for config in (Config.preset("ddr3"), Config.preset("edge"), SMALL, GATHERER)}
"""Configurations by name whose RTL is simulated; the presets are built for other tests as well."""

WIDE = Config(
    name="fuzz-wide", bus_bytes=64, lanes=16, levels=6, registers=7, sequential_loads=(4, 0, 1, 2, 2, 0),
    random_loads=(0, 4, 2, 1, 2, 0), alus=(4, 0, 1, 2, 4, 3), shifters=(False, True, True, False, True, True),
    contexts=(0, 0, 0, 4, 0, 0), dealt_bundles=256, steps=32, callbacks=64, arguments=16, vector_registers=16,
    scalars=16, kept_beats=64,
)  # fmt: skip

LEAST = Config(
    name="fuzz-least", bus_bytes=8, lanes=2, ports=1, levels=2, registers=3, sequential_loads=(0, 1),
    random_loads=(0, 0), alus=(0, 0), shifters=(False, False), contexts=(0, 0), arguments=16, steps=2, callbacks=2,
    instructions=4,
    lengths=1, vector_registers=2, register_beats=4, vector_beats=32, reorder_beats=32, token_depth=2, scalar_depth=2,
    store_address_depth=2, store_beats=8, lookahead_lines=2, lookahead_burst=1, random_outstanding=2, port_requests=2,
    port_outstanding=2, banks=1, page_bytes=64, write_burst=1, write_batch=1,
    address_bits=35,
)  # fmt: skip

HALVES = replace(Config.preset("edge"), name="halves", binary16=1, bfloat16=1)
"""All types of elements."""

TYPES = replace(
    SMALL,
    name="types",
    bus_bytes=16,
    lanes=4,
    register_beats=32,
    vector_registers=5,
    binary16=1,
    bfloat16=1,
    quantised=1,
)
"""Rows of all types, with heads."""

NARROW = replace(TYPES, name="narrow", bus_bytes=8, register_beats=16, lanes=8)
"""The same with beats of four lines."""

AFFINE = replace(TYPES, name="affine", preadder=1)
"""The same with pre-adders."""

TWO_PASS = replace(TYPES, name="two-pass", two_pass=1)
"""The same without, which takes rows with their heads twice."""

WIDE_TYPES = replace(Config.preset("wide"), name="wide-types", binary16=1, bfloat16=1, quantised=1)
"""The preset ``wide`` with rows of all types: a line is a beat of 16 lanes, and holds most rows of narrow elements."""

BUILT = RTL | {
    "wide": Config.preset("wide"),
    "narrow16": Config.preset("narrow16"),
    "halves": HALVES,
    "types": TYPES,
    "narrow": NARROW,
    "affine": AFFINE,
    "two-pass": TWO_PASS,
    "wide-types": WIDE_TYPES,
}
"""Configurations whose RTL is simulated when it is asked for."""

KNOWN = BUILT | {config.name: config for config in (WIDE, LEAST)}
"""Every configuration with a name here, which kept programs may use."""


def random_config(rng: np.random.Generator) -> Config:
    """A configuration of which what programs can see is at random; it is not meant to be built."""

    def below(low: int, high: int) -> int:
        return int(rng.integers(low, high + 1))

    levels = below(2, 6)
    sequential = tuple(below(0, 4) for _ in range(levels))
    lanes = 1 << below(0, 4)
    register_beats = 1 << below(3, 5)
    able = [level for level, slots in enumerate(sequential) if slots]
    interleaves = int(rng.choice(able)) if able else None
    contexts = 1 << below(1, 3)
    dealt = 0 if interleaves is None else int(rng.choice([0, 128, 256]))
    shared = register_beats * lanes // (1 if interleaves is None else contexts)
    made = Config(
        name="random", bus_bytes=8 << below(0, 3), lanes=lanes, levels=levels,
        registers=below(3, 7), address_bits=below(32, 40),
        sequential_loads=sequential, random_loads=tuple(below(0, 4 - n) for n in sequential),
        alus=tuple(below(0, 4) for _ in range(levels)), shifters=tuple(bool(below(0, 1)) for _ in range(levels)),
        contexts=tuple(contexts if level == interleaves else 0 for level in range(levels)), dealt_bundles=dealt,
        arguments=below(16, 32),
        serial=tuple(level != interleaves and bool(below(0, 1)) for level in range(levels)),
        steps=below(2, 32), callbacks=below(2, 64), instructions=below(4, 64),
        lengths=below(1, 4), vector_registers=below(2, 16), register_beats=register_beats,
        store_beats=4 * register_beats, vector_beats=1 << below(5, 8), reorder_beats=below(32, 256),
        token_depth=below(2, 64), scalar_depth=below(2, 64), store_address_depth=below(2, 64),
        ports=1, banks=1 << below(0, 3), page_bytes=1 << below(6, 11),
        scalars=below(0, 16) if shared > 1 else 0, kept_beats=int(rng.choice([0, below(2, 8), below(2, 128)])),
        binary16=below(0, 1) if lanes > 1 else 0, bfloat16=below(0, 1) if lanes > 1 else 0,
    )  # fmt: skip
    made = replace(made, quantised=below(0, 1)) if made.scalars else made
    if not made.quantised or lanes < LEAST_AFFINE_LANES:
        return made
    return replace(made, **[{}, {"preadder": 1}, {"two_pass": 1}][below(0, 2)])
