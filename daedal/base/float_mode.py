"""The processor's floating-point mode while we compute with floats that a machine is to have: that of IEEE 754.

A thread's mode is its caller's affair: ``torch.set_flush_denormal(True)`` makes subnormal numbers 0 in all that the
thread computes and converts from then on, in NumPy and in Python's ``struct`` as well. Machines know no such mode.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_ENVIRONMENT_BYTES = 256
"""More than any C library's ``fenv_t`` has."""

_DEFAULT = ctypes.c_void_p(-1)
"""``FE_DFL_ENV`` of C libraries on Linux."""


@contextmanager
def default_float_mode() -> Iterator[None]:
    """Compute to nearest, with subnormal numbers and without traps; then as before. Also as a decorator."""
    library, before = _library(), ctypes.create_string_buffer(_ENVIRONMENT_BYTES)
    library.fegetenv(before)
    try:
        library.fesetenv(_DEFAULT)
        yield
    finally:
        library.fesetenv(before)


@cache
def _library() -> ctypes.CDLL:
    """The C library's mathematics, whose names are all in a running Python."""
    library = ctypes.CDLL(None)
    library.fegetenv.argtypes = library.fesetenv.argtypes = (ctypes.c_void_p,)
    return library
