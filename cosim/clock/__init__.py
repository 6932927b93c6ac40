"""The target ``model``: the emulator with a clock, which predicts the cycles that the RTL takes.

The emulator tells the clock what it does, in order (``trace.h``). The clock gives times to all of it, one step for each
burst, step of the access unit and instruction (docs/measuring/model.md).
"""

import ctypes
from dataclasses import astuple
from functools import cache
from pathlib import Path

from daedal.cosim.builder.library import build_library, load_library, read_sources
from daedal.cosim.clock.checks import checked
from daedal.cosim.clock.parameters import memory_of
from daedal.cosim.emulator import FLAGS, EmulatorTarget, declare, sources
from daedal.hw.config.core import Config

FOLDER = Path(__file__).parent

ACROSS = ("-flto", "-fno-semantic-interposition")
"""Options of the compiler: calls from one file to another are inlined, with which a launch takes a fifth less time."""

_SOURCES = (
    "clock.h", "trace.h", "parameters.h", "queues_time.h", "memory_time.h", "front_time.h", "lanes_time.h",
    "memory_time.cpp", "load_time.cpp", "loader_time.cpp", "front_time.cpp", "lanes_time.cpp", "store_time.cpp",
    "clock.cpp", "clock_api.cpp",
)  # fmt: skip


class ModelTarget(EmulatorTarget):
    """The five primitives on the emulator, whose completion records have predicted cycles, stalls and marks.

    Parameters
    ----------
    config
        The core's configuration.
    memory
        Memory model and options, as for the target ``verilator`` but for what is random; or one of
        :data:`daedal.cosim.dram_times.DRAMS`.
    memory_bytes
        Size of device memory.
    sparse
        Whether it may be larger than the host's, as little of it is written.

    Raises
    ------
    ValueError
        There is no such memory, or it is not for this core.
    """

    def __init__(
        self, config: Config, *, memory: str = "ideal", memory_bytes: int = 256 << 20, sparse: bool = False
    ) -> None:
        found = memory_of(config, memory)
        super().__init__(config, memory_bytes, sparse=sparse, library=_library())
        self.mixed = found.mixed
        self.memory_settings = found.settings
        """The memory with all that shapes its time, to be given with figures."""
        self.checked = checked(config, found.name)
        """What the predictions were compared with, see :class:`daedal.driver.targets.target.Predicting`."""
        self.memory = found
        """The memory as the model has it."""
        numbers = astuple(found.parameters)
        self._library.clock_set(self._machine, (ctypes.c_int64 * len(numbers))(*numbers))

    def lines_by_port(self) -> tuple[int, ...]:
        """Lines that each memory port was asked for so far."""
        with self._owned.lock:
            return tuple(int(self._library.clock_lines(self._handle(), port)) for port in range(self.config.ports))

    @property
    def activations(self) -> int:
        """Rows of the DRAM's banks that were opened so far."""
        with self._owned.lock:
            return int(self._library.clock_activations(self._handle()))


@cache
def _library() -> ctypes.CDLL:
    files = sources() | read_sources(FOLDER, *_SOURCES)
    library = load_library(build_library("model", files, flags=(*FLAGS, *ACROSS)))
    declare(library)
    library.clock_set.argtypes, library.clock_set.restype = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64)], None
    library.clock_lines.argtypes, library.clock_lines.restype = [ctypes.c_void_p, ctypes.c_uint], ctypes.c_uint64
    library.clock_activations.argtypes, library.clock_activations.restype = [ctypes.c_void_p], ctypes.c_uint64
    return library
