"""Words of a program in ``mach``: every operation and every member, from the text that the dialect's own test has."""

from pathlib import Path

from xdsl.parser import Parser

from daedal.compiler.backend.program_builder import program_bytes
from daedal.compiler.context import make_context
from daedal.hw.isa.tools.assembler import disassemble

TEXT = Path(__file__).parents[2] / "ir" / "dialects" / "mach.mlir"

WORDS = """
config 0x00000007
length 0 elements = 0x14
length 1 bfloat16_away = 0x14
callback 0 start = 0
callback 1 start = 4
instruction 0 code op=mul_add a.kind=queue b.number=3 b.kind=queue c=7 mode=reduce
instruction 1 code op=multiply a.number=15 a.kind=scalar_register b.kind=scalar_register mode=scalar
instruction 2 code op=fma a.number=11 a.kind=queue b.kind=scalar_register length=1
instruction 3 code op=store clear=1 last=1 rotate=1 rotate_scalars=1
instruction 4 code op=move destination=4 a.kind=scalar mode=scalar
instruction 5 code last=1
level 1 lower = 0
level 1 upper = arg0
level 1 control enable=1 induction=r0 interleave=1
level 1 load0_base = arg1 + 0x4
level 1 load0 enable=1 size=3 is_signed=1 destination=r1
level 1 load0_limit = arg0
level 1 load2 enable=1 size=2 index=r1 base=r1 destination=r2
level 1 load2_limit = arg0
level 1 check_limit = arg0
level 1 check enable=1
level 1 alu0_b = 1
level 1 alu0 op=mul a=r2 destination=r3
level 1 count enable=1 predicate=r3 destination=r4
level 1 count enable=1
event 5 control count=1 predicate=r3
step 0 store_size = 0x10
step 0 store_base = arg1 + 0x4
step 0 store_pitch = 1
step 0 token = 0
step 0 fetch_size = 0x10
step 0 fetch_base = arg1 + 0x4
step 0 fetch_pitch = 1
step 0 control scalar_enable=1 store_enable=1 token_enable=1 fetch_enable=1 stream=1 scalar=r1 \
store_index=r0 fetch_index=r0
event 6 control first=1 count=2
step 1 token = 1
step 1 control token_enable=1
step 2 control token_enable=1 token=r3
control 0 run = 0
"""


def test_every_operation() -> None:
    text = TEXT.read_text().split("// CHECK")[0]
    for old, new in (
        ("scalar\n", "scalar<s4>\n"),
        ("stream\n", "stream<r4>\n"),
        ("<v0> length 0 ->", "<v0> length 1 ->"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    module = Parser(make_context(), text).parse_module()
    module.verify()
    assert disassemble(program_bytes(module)).splitlines() == WORDS.strip().splitlines()
