"""What the predictions of the target ``model`` were compared with (``bench/results/model.json``)."""

from daedal.hw.config.core import Config

REVISION = "71da5c7f"
"""The commit whose RTL they were compared with."""

CHECKS: dict[tuple[int, str], str] = {
    (0xE0CD0B4C, "ideal"): (
        "218 launches compared with the RTL: error 0.2% in the median, 5% at most; "
        "218 within 5% (8% or 60 cycles below 10,000 cycles)"
    ),
    (0xE0CD0B4C, "litedram-ddr3-x16"): (
        "208 launches compared with the RTL: error 0.6% in the median, 5% at most; "
        "208 within 5% (8% or 60 cycles below 10,000 cycles)"
    ),
    (0x716EA9E9, "litedram-ddr3-x64"): (
        "85 launches compared with the RTL: error 0.8% in the median, 6% at most; "
        "85 within 5% (8% or 60 cycles below 10,000 cycles)"
    ),
}
"""Hash of a configuration and a memory -> in words, how large the errors were; a test looks at the landed rows."""


def checked(config: Config, memory: str) -> str:
    """What predictions for this configuration and memory were compared with, with what error; empty if with nothing."""
    text = CHECKS.get((config.hash, memory))
    return "" if text is None else f"{text}, RTL of {REVISION}"
