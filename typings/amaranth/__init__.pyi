"""Types of amaranth 0.5.10, which publishes none: only what mypy needs to read this project.

What comes from ``_untyped``, a module that does not exist, is ``Any`` and usable as a type, as a base class
and as a value; so is every module of amaranth without a file here.
"""

from amaranth._untyped import (
    Array as Array,
)
from amaranth._untyped import (
    Assert as Assert,
)
from amaranth._untyped import (
    C as C,
)
from amaranth._untyped import (
    Cat as Cat,
)
from amaranth._untyped import (
    ClockDomain as ClockDomain,
)
from amaranth._untyped import (
    ClockSignal as ClockSignal,
)
from amaranth._untyped import (
    Const as Const,
)
from amaranth._untyped import (
    DomainRenamer as DomainRenamer,
)
from amaranth._untyped import (
    EnableInserter as EnableInserter,
)
from amaranth._untyped import (
    Format as Format,
)
from amaranth._untyped import (
    Fragment as Fragment,
)
from amaranth._untyped import (
    Instance as Instance,
)
from amaranth._untyped import (
    Module as Module,
)
from amaranth._untyped import (
    Mux as Mux,
)
from amaranth._untyped import (
    Print as Print,
)
from amaranth._untyped import (
    ResetInserter as ResetInserter,
)
from amaranth._untyped import (
    ResetSignal as ResetSignal,
)
from amaranth._untyped import (
    Shape as Shape,
)
from amaranth._untyped import (
    Signal as Signal,
)
from amaranth._untyped import (
    Value as Value,
)
from amaranth._untyped import (
    signed as signed,
)
from amaranth._untyped import (
    unsigned as unsigned,
)
