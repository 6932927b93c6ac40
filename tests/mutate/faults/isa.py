"""Faults of the encodings, the contract and the assembler."""

from tests.mutate.fault import area

CONTRACT, WORDS = "hw/isa/spec/access.py", "hw/isa/spec/access_words.py"
INTEGER = "hw/isa/spec/integer.py"
PROGRAM, ASSEMBLER, HEADER = "hw/isa/program.py", "hw/isa/tools/assembler.py", "hw/isa/tools/c_header.py"

ISA = "tests/unit/isa"
JUDGE = "tests/unit/access_unit/test_contract.py"
EMULATOR = "tests/unit/emulator/test_contract.py"

MAPPING = "tests/unit/isa/test_mapping.py -k 'by_hand or said'"
plant = area("isa", JUDGE, EMULATOR)

FAULTS = [
    plant("order-inclusive", "off by one", CONTRACT, "        if upper < lower:", "        if upper <= lower:",
          "an activation without iterations is a fault"),
    plant("limit-inclusive", "off by one", CONTRACT, "        if value < limit:", "        if value <= limit:",
          "an index equal to the limit passes"),
    plant("empty-loses-flags", "wrong event", CONTRACT, "live=False, begin=parent.begin | own, end=parent.end | own",
          "live=False, begin=parent.begin, end=parent.end | own", "no begin of an activation without iterations"),
    plant("shift-modulo", "wrong constant", INTEGER, "AluOp.SHIFT_RIGHT: lambda a, b, bits: a >> b % (1 << SHIFT_BITS)",
          "AluOp.SHIFT_RIGHT: lambda a, b, bits: a >> b % 32", "shifts are by b modulo 32"),
    plant("less-unsigned", "wrong sign extension", INTEGER, "signed(a, bits) < signed(b, bits)", "a < b",
          "LESS compares unsigned"),
    plant("ends-inward", "wrong event", CONTRACT, "for level in sorted(bundle.end, reverse=True)]",
          "for level in sorted(bundle.end)]", "ends happen from the outside in"),
    plant("contexts-in-order", "order", CONTRACT, "yield replace(following, context=place)",
          "yield replace(following, context=self.contexts - 1 - place)", "contexts are numbered backwards"),
    plant("events-stay", "sticky bit", WORDS, "return unit is Unit.EVENT or is_level", "return is_level",
          "events of a nest stay for the next one"),
    plant("checksum-unread", "missing check", PROGRAM, "if checksum(_words(raw)):", "if 0:",
          "a wrong checksum is not noticed", ISA),
    plant("checksum-order", "missing term", "hw/isa/checksum.py", "(so_far << 1 & _MASK) ^ carried", "0",
          "words in another order have the same checksum", ISA),
    plant("length-unread", "missing check", PROGRAM, "if length.value != len(listed):",
          "if length.value > len(listed):", "bytes after a program are not noticed",
          ISA),
    plant("argument-zero", "missing case", PROGRAM, "self.argument is not None", "bool(self.argument)",
          "argument 0 is taken for none", ISA),
    plant("members-wrap", "missing check", PROGRAM, "if not 0 <= number < 1 << width:", "if number < 0:",
          "a member that does not fit spills into the next", ISA),
    plant("assembler-members", "missing case", ASSEMBLER, "if pack(struct, _nested(members)) == word.value:",
          "if True:", "bits outside of all members are lost in the text",
          ISA),
    plant("assembler-sign", "wrong sign extension", ASSEMBLER, "value % (1 << VALUE_BITS)", "abs(value)",
          "negative values are assembled as positive ones", ISA),
    plant("header-offsets", "off by one", HEADER, "field.offset, field.width", "offset, field.width",
          "the emulator's header forgets where members are", ISA),
    plant("another-bijection", "wrong operand", "hw/isa/address_mapping.py", "if (k - page) % banks == bit)",
          "if (k - granule) % banks == bit)", "digits of the bank are counted from the granule, not from the page",
          MAPPING),
    plant("upper-bits-reversed", "wrong direction", "hw/isa/address_mapping.py",
          "for bit in range(granule, page)]", "for bit in reversed(range(granule, page))]",
          "granules lie in a bank's page in another order", MAPPING),
]  # fmt: skip
