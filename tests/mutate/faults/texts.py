"""Faults of what reads text, bytes and files from a user."""

from tests.mutate.fault import area

FILES, BOUNDARY, MESSAGES = "daedal/base/files.py", "daedal/base/boundary.py", "daedal/base/messages.py"
TEXT, ASSEMBLER, PROGRAM = "sw/compiler/text.py", "hw/isa/tools/assembler.py", "hw/isa/program.py"
FORM, DESCRIPTION = "daedal/bench/report/form.py", "sw/driver/description.py"

HERE = "tests/base/test_boundary.py"
VALUES, OPT = (f"tests/cli/test_{name}.py" for name in ("hostile_files", "daedal_opt"))
ISA, FUZZ = "tests/unit/isa/test_assembler.py", "tests/fuzz/texts/test_texts.py"

plant = area("texts", HERE, VALUES)

FAULTS = [
    plant("spare-lost", "missing case", PROGRAM, "self.spare if self.argument is None else self.argument",
          "self.argument or 0", "bits of a word that machines do not look at are lost", ISA),
    plant("head-lost", "missing case", PROGRAM, "listed[2:-1], (replace(config, value=0), replace(length, value=0)))",
          "listed[2:-1])", "what CONFIG and LENGTH have beside their values is lost", ISA),
    plant("length-index", "wrong constant", ASSEMBLER, 'zip(program.head, ("", "length."), strict=True)',
          'zip(program.head, ("", ""), strict=True)', "what LENGTH has is written as CONFIG's", ISA),
    plant("parts-of-names", "missing check", ASSEMBLER,
          "if not (isinstance(struct, type) and issubclass(struct, data.Struct)):", "if False:",
          "a part of a member without parts is a TypeError of Python's", ISA),
    plant("digits", "missing check", ASSEMBLER, "if len(text) > MOST_DIGITS:", "if False:",
          "a number of any length is read", ISA),
    plant("long-lines", "missing check", ASSEMBLER, "if len(code) > MOST_CHARACTERS:", "if False:",
          "a line of any length is matched, in the square of its time", ISA),
    plant("open-strings", "missing check", TEXT, "    _check_strings(source)\n", "",
          "an open string takes time without end", OPT),
    plant("splats", "wrong constant", TEXT, "MOST_ELEMENTS = 1 << 24", "MOST_ELEMENTS = 1 << 44",
          "a constant of many equal elements fills memory", OPT),
    plant("wide-integers", "wrong constant", TEXT, "MOST_BITS = (1 << 24) - 1", "MOST_BITS = 1 << 60",
          "a wide integer type fills memory", OPT),
    plant("parser-errors", "missing case", TEXT, "except Exception as error:  # xDSL's parser",
          "except RecursionError as error:  # xDSL's parser", "what xDSL's parser raises has no place", OPT),
    plant("pass-errors", "missing case", "sw/compiler/opt_main.py", "except Exception as error:  # a pass",
          "except RecursionError as error:  # a pass", "a pass that fails is called a defect", OPT),
    plant("pipeline-errors", "missing case", "sw/compiler/opt_main.py", "except ArgSpecParseError as error:",
          "except MemoryError as error:", "a wrong list of passes ends in a traceback", OPT),
    plant("no-size", "missing check", FILES, "stream.read(most + 1)", "stream.read(most)",
          "what is too large is cut and read"),
    plant("twice", "missing check", FILES, "if len(table) < len(pairs):", "if False:", "the last equal key holds"),
    plant("not-finite", "missing check", FILES, "if not math.isfinite(value):", "if False:", "NaN is a number of JSON"),
    plant("many-digits", "missing check", FILES, "if len(digits) > MOST_DIGITS:", "if False:",
          "a number of any length is read from JSON"),
    plant("lines-stay", "missing case", MESSAGES, '" ".join(message.split())', "message", "messages have lines"),
    plant("controls-stay", "missing case", MESSAGES, "each if each.isprintable() else", "each if True else",
          "messages move the terminal's cursor"),
    plant("status-of-defects", "wrong constant", BOUNDARY, "else DEFECT", "else 1", "a defect has an error's status"),
    plant("tracebacks-hidden", "missing case", BOUNDARY, "if traceback or os.environ.get(VARIABLE",
          "if os.environ.get(VARIABLE", "--traceback shows none"),
    plant("dotted-keys", "missing check", "hw/config/file.py", 'if text.count(".") > MOST_DOTS:', "if False:",
          "a key of many parts takes a second, or all memory"),
    plant("stalls-without-cycles", "missing check", FORM, 'if row.get("stalls") and row["cycles"] == 0:', "if False:",
          "shares of no cycles are computed"),
    plant("true-is-one", "missing check", FORM,
          "return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST",
          "return isinstance(value, int) and 0 <= value <= MOST", "true is a count"),
    plant("description-unread", "missing check", DESCRIPTION, "    if wrong:\n", "    if False:\n",
          "a description is used as it is"),
    plant("fuzz-lenient", "missing check", "tests/fuzz/texts/readers.py",
          'and " must " not in str(error):', 'and False:', "a ValueError of Python's is taken for a message", FUZZ),
]  # fmt: skip
