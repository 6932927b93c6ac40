"""Small programs whose outcome is written down by hand, for the reference interpreter and for the RTL.

All fit two levels with two sequential loads and one random load outside, one sequential load inside, one ALU operation
each, and three registers.
"""

from dataclasses import dataclass

from daedal.hw.config.core import Config
from daedal.hw.isa.launch import Cause, Queue
from daedal.hw.isa.program import Program
from daedal.hw.isa.spec.access import Fault, Fetch, Push, Scalar, StoreAddress, Token
from daedal.hw.isa.tools.assembler import assemble
from daedal.hw.isa.words import FetchQueue

OFFSETS, INDICES = 0x400, 0x800


@dataclass(frozen=True)
class Directed:
    """A nest, the arrays it reads (int32 each), and what it does; scalars and registers as signed numbers."""

    text: str
    pushes: tuple[Push, ...]
    offsets: tuple[int, ...] = ()
    indices: tuple[int, ...] = ()
    wide: int | None = None
    fault: Fault | None = None
    replaced: int = 0
    warned: int | None = None

    def program(self, config: Config) -> Program:
        """The program for ``config``."""
        return Program.from_bytes(assemble(f"config {config.hash:#x}\n{self.text}\ncontrol 0 run = 0\n"))

    def image(self) -> bytearray:
        """The memory; ``wide``: the 64 bits of index 0."""
        image = bytearray(1 << 14)
        for base, values in ((OFFSETS, self.offsets), (INDICES, self.indices)):
            for n, value in enumerate(values):
                image[base + 4 * n : base + 4 * n + 4] = (value % (1 << 32)).to_bytes(4, "little")
        if self.wide is not None:
            image[INDICES : INDICES + 8] = (self.wide % (1 << 64)).to_bytes(8, "little")
        return image


TOKENS = "\n".join(
    f"step {n} control token_enable=1 scalar_enable=1 scalar={scalar}\nstep {n} token = {n}\nstep {n} scalar = 7"
    for n, scalar in enumerate(("r0", "r1", "r2"))
)
"""Steps 0, 1, 2: token n and register n."""

BAGS = f"""
level 0 control enable=1
level 0 lower = 0
level 0 upper = 3
level 0 step = 1
level 0 load0 enable=1 size=2 destination=r0
level 0 load0_base = {OFFSETS}
level 0 load0_limit = {OFFSETS + 16}
level 0 load1 enable=1 size=2 destination=r1
level 0 load1_base = {OFFSETS + 4}
level 0 load1_limit = {OFFSETS + 16}
level 1 control enable=1 lower=r0 upper=r1
level 1 step = 1
level 1 load0 enable=1 size=2 is_signed=1 destination=r2
level 1 load0_base = {INDICES}
level 1 load0_limit = {INDICES + 32}
level 1 check enable=1 load=0 kind=index
level 1 check_limit = 10
event 4 control first=0 count=1
event 5 control first=2 count=1
event 6 control first=1 count=1
{TOKENS}
"""

WARNING = BAGS.replace("kind=index", "kind=index mode=warn")


def calls(*pairs: tuple[int, int]) -> tuple[Push, ...]:
    """Token and scalar pairs, as pushes."""
    return tuple(push for token, scalar in pairs for push in (Scalar(scalar), Token(token)))


def rows(size: int, base: int, *, store: int = 64) -> str:
    """A nest of one iteration with two steps: a row fetch and a store address, then a token."""
    return f"""
level 0 control enable=1
level 0 lower = 0
level 0 upper = 1
level 0 step = 1
event 1 control first=0 count=2
step 0 control fetch_enable=1 queue=vector1 store_enable=1 stream=1 token_enable=1
step 0 token = 0
step 0 fetch_base = {base}
step 0 fetch_index = 0
step 0 fetch_pitch = 0
step 0 store_index = 0
step 0 store_pitch = 0
step 0 fetch_size = {size}
step 0 store_base = {store}
step 0 store_size = {size}
step 1 control token_enable=1
step 1 token = 5
"""


DIRECTED = {
    "no level": Directed(f"event 1 control first=0 count=1\n{TOKENS}", ()),
    "zero iterations": Directed(
        f"""
level 0 control enable=1 induction=r0
level 0 lower = 5
level 0 upper = 5
level 0 step = 1
level 0 count enable=1 destination=r1
event 0 control first=0 count=1
event 1 control first=2 count=1
event 2 control first=1 count=1
{TOKENS}""",
        calls((0, 0), (1, 0)),
    ),
    "bags, one of them empty": Directed(
        BAGS, calls((0, 0), (2, 4), (2, 5), (1, 2), (0, 2), (1, 2), (0, 2), (2, 9), (1, 3)), (0, 2, 2, 3), (4, 5, 9)
    ),
    "both levels end in one bundle, the inner one first": Directed(
        f"{BAGS}event 2 control first=0 count=1\n",
        calls((0, 0), (2, 4), (2, 5), (1, 2), (0, 2), (1, 2), (0, 2), (2, 9), (1, 3), (0, 2)), (0, 2, 2, 3), (4, 5, 9),
    ),
    "an index equal to the limit": Directed(
        BAGS, calls((0, 0), (2, 4)), (0, 3, 3, 3), (4, 10, 5),
        fault=Fault(Cause.INDEX, 1, 10, registers=(0, 3, 10)),
    ),
    "a negative index": Directed(
        BAGS, (), (0, 3, 3, 3), (-1, 10, 5), fault=Fault(Cause.INDEX, 1, (1 << 64) - 1, registers=(0, 3, -1))
    ),
    "an index whose low 40 bits are fine": Directed(
        BAGS.replace("size=2 is_signed=1", "size=3 is_signed=1"), (), (0, 1, 1, 1), wide=(3 << 40) + 5,
        fault=Fault(Cause.INDEX, 1, (3 << 40) + 5, registers=(0, 1, 5)),
    ),
    "warnings: row 0 for each index outside": Directed(
        WARNING, calls((0, 0), (2, 4), (2, 0), (1, 2), (0, 2), (1, 2), (0, 2), (2, 0), (1, 3)),
        (0, 2, 2, 3), (4, -7, 10), replaced=2, warned=(1 << 64) - 7,
    ),
    "warnings behind many rows": Directed(
        BAGS.replace(f"load0_limit = {INDICES + 32}", f"load0_limit = {INDICES + 128}")
        + "level 0 check enable=1 load=0 kind=offset mode=warn\nlevel 0 check_limit = 2",
        tuple(
            push for count in (24, 25, 26)
            for push in calls((0, 0), *[(2, n % 10) for n in range(count)], (1, count))
        ),
        (0, 24, 25, 26), tuple(n % 10 for n in range(26)), replaced=2, warned=24,
    ),
    "a base that the iteration writes over": Directed(
        f"""
level 0 control enable=1
level 0 lower = 0
level 0 upper = 3
level 0 step = 1
level 0 load0 enable=1 size=2 destination=r2
level 0 load0_base = {OFFSETS}
level 0 load0_limit = {OFFSETS + 16}
level 1 control enable=1 induction=r2
level 1 lower = 0
level 1 upper = 2
level 1 step = 1
level 1 load0 enable=1 size=2 is_signed=1 base=r2 destination=r2
level 1 load0_limit = {INDICES + 32}
event 5 control first=2 count=1
{TOKENS}
""",
        calls((2, 7), (2, 8), (2, 8), (2, 9), (2, 2), (2, 3)), (INDICES, INDICES + 4, INDICES + 16), (7, 8, 9, 1, 2, 3),
    ),
    "a warning of 64 bits": Directed(
        WARNING.replace("size=2 is_signed=1", "size=3 is_signed=1"),
        calls((0, 0), (2, 0), (1, 1), *[(0, 1), (1, 1)] * 2), (0, 1, 1, 1), wide=-(1 << 63) + (5 << 40) + 3,
        replaced=1, warned=(1 << 63) + (5 << 40) + 3,
    ),
    "no warning": Directed(
        WARNING, calls((0, 0), (2, 4), (1, 1), *[(0, 1), (1, 1)] * 2), (0, 1, 1, 1), (4, -1)
    ),
    "an index is replaced in silence": Directed(
        WARNING.replace("mode=warn", "mode=ignore"), calls((0, 0), (2, 0), (1, 1), *[(0, 1), (1, 1)] * 2),
        (0, 1, 1, 1), (11,), replaced=1,
    ),
    **{
        f"nothing is inside of a limit of {limit}": Directed(
            WARNING.replace("check_limit = 10", f"check_limit = {limit % (1 << 40)}"),
            calls((0, 0), (2, 0), (2, 0), (1, 2), *[(0, 2), (1, 2)] * 2), (0, 2, 2, 2), (0, 4), replaced=2, warned=0,
        )
        for limit in (0, -1)
    },
    "two levels warn of one bundle": Directed(
        WARNING + "level 0 check enable=1 load=0 kind=offset mode=warn\nlevel 0 check_limit = 2",
        calls((0, 0), (2, 4), (2, 0), (1, 2), (0, 0), (2, 4), (2, 0), (2, 2), (1, 3), (0, 0), (2, 4), (1, 1)),
        (0, 2, 3, 1), (4, -5, 2), replaced=4, warned=(1 << 64) - 5,
    ),
    "the outer level's warning comes first": Directed(
        WARNING + "level 0 check enable=1 load=0 kind=offset mode=warn\nlevel 0 check_limit = 2",
        calls((0, 0), (2, 0), (1, 1), *[(0, 1), (1, 1)] * 2), (7, 1, 1, 1), (-5,), replaced=2, warned=7,
    ),
    "a later load may take the register of a replaced value": Directed(
        WARNING + "level 0 check enable=1 load=0 kind=offset mode=warn\nlevel 0 check_limit = 1"
        "\nlevel 0 load1 enable=1 size=2 destination=r0\nlevel 1 control enable=1 lower=r1 upper=r0",
        calls((0, 2), (2, 4), (2, 5), (1, 0), (0, 2), (2, 4), (2, 5), (1, 0), (0, 3), (2, 4), (2, 5), (2, 0), (1, 0)),
        (0, 2, 2, 3), (4, 5, 99), replaced=3, warned=2,
    ),
    "a fault after a warning": Directed(
        WARNING + "level 0 check enable=1 load=1 kind=offset\nlevel 0 check_limit = 4",
        calls((0, 0), (2, 0), (1, 1)), (0, 1, 4, 4), (10, 5, 6),
        fault=Fault(Cause.OFFSET, 0, 4, registers=(1, 4, 0)), replaced=1, warned=10,
    ),
    "offsets that decrease": Directed(
        BAGS, calls((0, 0), (2, 4), (1, 1)), (0, 1, 0, 0), (4,),
        fault=Fault(Cause.BOUNDS_ORDER, 1, 0, registers=(1, 0, 0)),
    ),
    **{
        f"offsets that decrease twice{how}": Directed(
            BAGS.replace("level 1 control enable=1", f"level 1 control enable=1{word}"), calls((0, 2), (2, 5), (1, 3)),
            (2, 3, 1, 0), (9, 9, 5), fault=Fault(Cause.BOUNDS_ORDER, 1, 1, registers=(3, 1, 0)),
        )
        for how, word in (("", ""), (", activations in turn", " interleave=1"), (", dealt", " deal=1"))
    },
    "an offset past the indices": Directed(
        BAGS + "level 0 check enable=1 load=1 kind=offset\nlevel 0 check_limit = 4",
        calls((0, 0), (2, 4), (1, 1)), (0, 1, 4, 4), (4, 5, 6),
        fault=Fault(Cause.OFFSET, 0, 4, registers=(1, 4, 0)),
    ),
    "two places of one array, many lines apart": Directed(
        f"""
level 0 control enable=1
level 0 lower = 0
level 0 upper = 3
level 0 load0 enable=1 size=2 destination=r0
level 0 load0_base = {OFFSETS}
level 0 load0_limit = {OFFSETS + 4 * 100}
level 0 load1 enable=1 size=2 destination=r1
level 0 load1_base = {OFFSETS + 4 * 80}
level 0 load1_limit = {OFFSETS + 4 * 100}
event 1 control first=0 count=2
{TOKENS}""",
        calls((0, 10), (1, 20), (0, 11), (1, 21), (0, 12), (1, 22)), (10, 11, 12, *[0] * 77, 20, 21, 22),
    ),
    "neighbours in one array beyond its limit": Directed(
        f"""
level 0 control enable=1
level 0 lower = 0
level 0 upper = 18
level 0 step = 1
level 0 load0 enable=1 size=2 destination=r0
level 0 load0_base = {OFFSETS}
level 0 load0_limit = {OFFSETS + 64}
level 0 load1 enable=1 size=2 destination=r1
level 0 load1_base = {OFFSETS + 4}
level 0 load1_limit = {OFFSETS + 64}
event 1 control first=0 count=2
{TOKENS}""",
        calls(*((slot, 10 + n + slot) for n in range(18) for slot in (0, 1))), tuple(range(10, 29)),
    ),
    "padding is a predicate": Directed(
        f"""
level 0 control enable=1 induction=r0
level 0 lower = 0
level 0 upper = 4
level 0 step = 1
level 0 load0 enable=1 size=2 destination=r1
level 0 load0_base = {INDICES}
level 0 load0_limit = {INDICES}
level 0 alu0 op=not_equal a=r1 destination=r1
level 0 alu0_b = 9
level 0 count enable=1 predicate=r1 destination=r2
event 1 control first=0 count=1 predicate=r1
event 2 control first=2 count=1
event 0 control first=1 count=1 predicate=r1 sense=zero
{TOKENS}""",
        calls((1, 0), (0, 1), (0, 3), (2, 2)), indices=(9, 3, 9, 0),
    ),
    "steps of more than one": Directed(
        f"""
level 0 control enable=1 induction=r0
level 0 lower = 0xfffffffffd
level 0 upper = 5
level 0 step = 3
event 1 control first=0 count=1
event 2 control first=0 count=1
{TOKENS}""",
        calls((0, -3), (0, 0), (0, 3), (0, 3)),
    ),
    "products of which both factors are long": Directed(
        f"""
level 0 control enable=1 induction=r0
level 0 lower = 0xabfffe
level 0 upper = 0xac0001
level 0 step = 1
level 0 alu0 op=mul a=r0 destination=r1
level 0 alu0_b = 0x35
level 1 control enable=1
level 1 lower = 0
level 1 upper = 1
level 1 step = 1
level 1 alu0 op=mul b=r0 destination=r2
level 1 alu0_a = 0x159
event 5 control first=1 count=2
{TOKENS}""",
        calls(*((token, number * factor) for number in (0xABFFFE, 0xABFFFF, 0xAC0000)
                for token, factor in ((1, 0x35), (2, 0x159)))),
    ),
    "a row of many chunks": Directed(
        rows(2000, 0x1000 - 64),
        (StoreAddress(64, 2000, True), Token(0), Fetch(FetchQueue.VECTOR1, 0x1000 - 64, 2000), Token(5)),
    ),
    "rows that begin inside of a line": Directed(
        rows(36, 0x1004),
        (StoreAddress(64, 36, True), Token(0), Fetch(FetchQueue.VECTOR1, 0x1004, 36), Token(5)),
    ),
    "a row of many chunks that begins inside of a line": Directed(
        rows(2004, 0x1000 - 60),
        (StoreAddress(64, 2004, True), Token(0), Fetch(FetchQueue.VECTOR1, 0x1000 - 60, 2004), Token(5)),
    ),
    "a row across two lines": Directed(
        rows(64, 0x1004), (StoreAddress(64, 64, True), Token(0)),
        fault=Fault(Cause.ALIGNMENT, 0, 64, 0x1004, Queue.VECTOR1, (0, 0, 0)),
    ),
    "a store that is not whole steps": Directed(
        rows(8, 0x1000, store=65), (),
        fault=Fault(Cause.ALIGNMENT, 0, 8, 65, Queue.STORE_ADDRESS, (0, 0, 0)),
    ),
}  # fmt: skip
"""By what happens."""
