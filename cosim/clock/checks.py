"""What the predictions of the target ``model`` were compared with (``bench/results/model.json``)."""

from daedal.hw.config.core import Config

REVISION = "5165a4bf"
"""The commit whose RTL they were compared with."""

CHECKS: dict[tuple[int, str], str] = {
    (0xE0CD0B4C, "ideal"): (
        "118 launches compared with the RTL: error 0.3% in the median, 11% at most; "
        "115 within 5% (8% or 60 cycles below 10,000 cycles)"
    ),
    (0xE0CD0B4C, "litedram-ddr3-x16"): (
        "108 launches compared with the RTL: error 0.8% in the median, 6% at most; "
        "107 within 5% (8% or 60 cycles below 10,000 cycles)"
    ),
    (0x915B07AD, "litedram-ddr3-x64"): (
        "25 launches compared with the RTL: error 1.6% in the median, 13% at most; "
        "24 within 5% (8% or 60 cycles below 10,000 cycles)"
    ),
}
"""Hash of a configuration and a memory -> in words, how large the errors were; a test looks at the landed rows."""


def checked(config: Config, memory: str) -> str:
    """What predictions for this configuration and memory were compared with, with what error; empty if with nothing."""
    text = CHECKS.get((config.hash, memory))
    return "" if text is None else f"{text}, RTL of {REVISION}"
