"""What the predictions of the target ``model`` were compared with (``bench/results/model.json``)."""

from daedal.hw.config.core import Config

REVISION = "71da5c7f"
"""The commit whose RTL they were compared with."""

CHECKS: dict[tuple[int, str], str] = {
    (0xE0CD0B4C, "ideal"): (
        "178 launches compared with the RTL: error 0.3% in the median, 7% at most; "
        "177 within 5% (8% or 60 cycles below 10,000 cycles)"
    ),
    (0xE0CD0B4C, "litedram-ddr3-x16"): (
        "168 launches compared with the RTL: error 0.6% in the median, 14% at most; "
        "163 within 5% (8% or 60 cycles below 10,000 cycles)"
    ),
    (0x716EA9E9, "litedram-ddr3-x64"): (
        "65 launches compared with the RTL: error 1.0% in the median, 13% at most; "
        "63 within 5% (8% or 60 cycles below 10,000 cycles)"
    ),
}
"""Hash of a configuration and a memory -> in words, how large the errors were; a test looks at the landed rows."""


def checked(config: Config, memory: str) -> str:
    """What predictions for this configuration and memory were compared with, with what error; empty if with nothing."""
    text = CHECKS.get((config.hash, memory))
    return "" if text is None else f"{text}, RTL of {REVISION}"
