"""The columns of the tables of ``docs/results.md``."""

from daedal.bench.report.table import column
from daedal.bench.suites.levels import STEPS
from daedal.compiler.opt_levels import OPT_LEVELS

LAYERS = (
    column("layer", "workload"),
    column("cycles", "cycles", ",d"),
    column("lines read", "lines_read", ",d"),
    column("written", "lines_written", ",d"),
    column("share", "line_share", ".3f"),
    column("useful", "useful_share", ".3f"),
    column("steady", "steady_share", ".3f"),
    column("of allowed", "allowed_share", ".3f"),
    column("main stall", "main_stall"),
    column("goal", "outcome"),
)
HANDWRITTEN = (
    column("operation", "workload"),
    column("lines", "lines", ",.0f"),
    column("cycles by hand", "handwritten_cycles", ",d"),
    column("compiled", "compiled_cycles", ",d"),
    column("compiled ÷ by hand", "ratio", ".3f"),
    column("share, compiled", "compiled_share", ".3f"),
    column("bound", "bound"),
)
LEVELS = (
    column("layer", "workload"),
    *(column(f"O{opt}", f"o{opt}", ",d") for opt in OPT_LEVELS),
    *(column(f"{name} (published: {published})", name, ".2f") for name, published in STEPS.items()),
)
LAUNCHES = (
    column("layer", "workload"),
    column("D", "dim", "d"),
    column("bags", "bags", "d"),
    column("pooling", "pooling", "d"),
    column("cycles alone", "cycles_alone", ",d"),
    column("cycles each", "cycles_each", ",.0f"),
    column("idle", "idle", ",d"),
    column("goal", "outcome"),
)
HOST = (
    column("what", "workload"),
    column("median", "value", ">"),
    column("least", "least", ">"),
    column("most", "most", ">"),
    column("unit", "unit"),
    column("goal", "outcome"),
)
BOARDS = (
    column("board", "board"),
    column("LiteDRAM's patches", "patches"),
    column("sources", "revision"),
    column("LUT", "lut", ",d"),
    column("FF", "ff", ",d"),
    column("BRAM", "bram", "d"),
    column("DSP", "dsp", "d"),
    column("MHz", "fmax_mhz", ".1f"),
    column("clock", "clock"),
    column("MHz wanted", "clock_mhz", "g"),
    column("note", "note"),
)
PREDICTION = (
    column("board, core", "what"),
    column("workload", "workload"),
    column("look-ups", "lookups", ",d"),
    column("launches", "launches", "d"),
    column("cycles", "cycles", ",d"),
    column("MHz", "fmax", ".1f"),
    column("clock", "clock"),
    column("M look-ups/s", "rate", ".2f"),
    column("nJ/look-up", "nj", ".1f"),
)
