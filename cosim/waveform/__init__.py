"""What makes a waveform readable: names for numbers, and a selection of signals, for GTKWave and Surfer.

A VCD file has no names for the values of a signal. Amaranth writes them into the Verilog as attributes; they are
read from there and written, beside the waveform, in the forms that the two viewers load.
``docs/measuring/waveforms.md`` shows how to look at them.
"""

from pathlib import Path

from daedal.cosim.waveform import gtkwave, surfer
from daedal.cosim.waveform.signals import read_signals
from daedal.cosim.waveform.view import select


def write_views(wave: Path, verilog: str) -> list[Path]:
    """Write the viewers' files beside ``wave``, for the traced model made from ``verilog``; what was written.

    Raises OSError if a file cannot be written.
    """
    signals = read_signals(verilog)
    groups = select(signals)
    return [*gtkwave.write(wave, signals, groups), *surfer.write(wave, signals, groups)]
