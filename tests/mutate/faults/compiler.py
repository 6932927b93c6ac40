"""Faults of the compiler."""

from pathlib import Path

from tests.mutate.fault import Edit, Fault

HERE = "sw/compiler/"
T, C, F = HERE + "transforms/", HERE + "codegen/", HERE + "frontends/"

LAYERS = "tests/system/test_compiler_layers.py"
PLACEMENT = "tests/system/test_compiler_placement.py"
LOOPS = "tests/system/test_compiler_loops.py"
MAX = "tests/system/test_compiler_max.py"
LISTS = "tests/system/test_compiler_lists.py"
ERRORS = "tests/system/test_compiler_errors.py"
CORNERS = "tests/system/test_compiler_corners.py -k 'not 100000'"
TURNS = "tests/system/test_compiler_interleaving.py -k 'not rtl'"
CONFIGS = "tests/system/test_compiler_configs.py"
EXECUTABLE = "tests/system/test_compiler_executable.py"
GRAPHS = "tests/system/test_torch_graphs.py -k 'not rtl'"
ORDER = "tests/system/test_torch_order.py"
NUMBERS = "tests/system/test_kernel_numbers.py"
PREPARED = "tests/system/test_compiler_prepared.py"
BOUNDS = "tests/system/test_bounds.py -k 'not rtl'"
MEMORY = "tests/system/test_torch_memory.py"
MODULES = "tests/system/test_module_corners.py"
SUBMIT, OVERLAP = "tests/system/test_kernel_submit.py", "tests/system/test_overlap.py -k must_be_empty"

OWN_IR = (
    "clamp_counts", "convert_scf_to_slc", "convert_slc_to_slcv", "convert_slcv_to_dlc", "elide_initialization",
    "hoist_invariants", "lower_emb", "promote_rows", "tile_columns",
)  # fmt: skip
NEAR_IR = {
    **{name: name for name in OWN_IR}, "pooling": "lower_emb", "uniforms": "convert_slcv_to_dlc",
    "event_steps": "convert_slcv_to_dlc", "addresses": "convert_slcv_to_dlc", "aliases": "convert_slc_to_slcv",
}  # fmt: skip
"""The file of IR tests that is nearest to a transform."""


def plant(
    name: str, kind: str, file: str, old: str, new: str, about: str, *suites: str, nth: int | None = None
) -> Fault:
    """A fault; one in a transform has the tests of its IR in front."""
    near = NEAR_IR.get(Path(file).stem)
    own = (f"tests/ir -k {near}",) if near else ()
    return Fault(f"compiler/{name}", kind, about, (Edit(file, old, new, nth),), own + (suites or (LAYERS, LOOPS)))


FAULTS = [
    plant("moves-random", "missing check", F + "groups.py", " or not _keep_their_order(drawing, wanted)", "",
          "random numbers are drawn in another order", ORDER),
    plant("joins-changed", "missing check", F + "groups.py",
          "if any(isinstance(part, fx.Node) and may_change([part], part, node) for part in tensors):", "if False:",
          "a part that was changed in place is joined as it was", ORDER),
    plant("named-in-place", "wrong condition", F + "effects.py",
          "return dict(zip(names, node.args, strict=False)) | node.kwargs", "return dict(node.kwargs)",
          "a change in place that is asked for by position is not seen", ORDER),
    plant("wraps-far", "wrong condition", F + "inputs.py", "(indices < 0) & (indices >= -rows)", "indices < 0",
          "an index far below zero is reported as another one", ORDER),
    plant("rehearses-in-earnest", "missing check", HERE + "rehearsal.py", "memory.copy_(content, non_blocking=False)",
          "pass", "compiling changes a module's buffers", EXECUTABLE),
    plant("negative-zero", "wrong condition", T + "elide_initialization.py", "and copysign(1.0, value.value.data) > 0",
          "", "an accumulator that starts at -0 is taken for one that starts at +0"),
    plant("elides-conditional", "wrong condition", T + "elide_initialization.py",
          "begin.condition is not None or end.condition is not None or ", "",
          "the initialisation is dropped although it is under a condition"),
    plant("elides-shared", "wrong condition", T + "elide_initialization.py",
          "len({id(_nest(op)) for op in accesses}) != 1", "False",
          "the initialisation of an accumulator of two nests is dropped", LOOPS),
    plant("no-clear", "lost strobe", T + "elide_initialization.py", "last.clear = UnitAttr()", "pass",
          "an accumulator is not cleared after its last read"),
    plant("hoists-what-changes", "wrong condition", T + "hoist_invariants.py", "return op.memref not in stored",
          "return True", "a load is moved out of a loop that writes what it reads"),
    plant("hoists-varying", "wrong condition", T + "hoist_invariants.py", "if not all(_is_outside(value, loop)",
          "if not any(_is_outside(value, loop)", "what depends on the column is moved out of its loop"),
    plant("clamps-nothing", "missing check", T + "clamp_counts.py", "not is_natural(count, division)", "False",
          "rows are divided by a negative count as by 16 million", NUMBERS),
    plant("every-loop-tells", "wrong condition", T + "clamp_counts.py", " and loop.parent in around", "",
          "a loop that is not run is taken to say that a count is not negative"),
    plant("negated-comparison", "wrong constant", T + "convert_scf_to_slc.py", "NEGATED = {3: 4, 5: 2}",
          "NEGATED = {3: 2, 5: 4}", "sle and sge are swapped"),
    plant("comparison-swap", "swapped operands", T + "convert_scf_to_slc.py", '4: ("less", True)', '4: ("less", False)',
          "sgt is slt"),
    plant("else-branch", "inverted", T + "convert_scf_to_slc.py", 'slc.AluOp("equal", condition, zero)',
          'slc.AluOp("not_equal", condition, zero)', "the else branch has the condition of the other"),
    plant("nested-condition", "lost condition", T + "convert_scf_to_slc.py",
          'both = level.insert(slc.AluOp("and", outer, inner))', 'both = level.insert(slc.AluOp("and", inner, inner))',
          "of nested conditions the outer is forgotten"),
    plant("end-is-iteration", "wrong event", T + "convert_scf_to_slc.py",
          'self._state(level.inner, "end", op, condition)', 'self._state(level.inner, "iteration", op, condition)',
          "work after an inner loop is done at each of its iterations"),
    plant("first-row-lost", "missing case", T + "promote_rows.py", "if not starts_with_store:", "if False:",
          "a row that is read before it is written is not copied in"),
    plant("row-bounds", "missing check", T + "promote_rows.py", "if access.bounds != accesses[0].bounds:", "if False:",
          "loops over parts of a row are taken for loops over all of it", LOOPS),
    plant("tile-offset", "off by one", T + "tile_columns.py",
          "_constant(tile * self._elements, self._nest) if tile else None",
          "_constant((tile - 1) * self._elements, self._nest) if tile else None",
          "all tiles start where the one before does"),
    plant("tail-dropped", "off by one", T + "tile_columns.py", "        if tail:\n", "        if tail > 1:\n",
          "a tail of one element is not computed", LAYERS, CORNERS, LOOPS),
    plant("sum-mul", "swapped operands", T + "convert_slcv_to_dlc.py", 'self._sum("mul", new,', 'self._sum("add", new,',
          "addresses add factors instead of multiplying"),
    plant("sums-shared", "wrong comparison", T + "convert_slcv_to_dlc.py", "        key = (a, b)\n",
          "        key = (a, a)\n", "sums with the same first operand are taken for equal"),
    plant("scale-of-columns", "wrong constant", T + "convert_slcv_to_dlc.py", "scale = 4 if _is_column(old) else 1",
          "scale = 1", "loops over tiles do not count bytes",
          LAYERS, CORNERS, LOOPS),
    plant("float-load-signed", "wrong sign extension", T + "convert_slcv_to_dlc.py", "signed=not is_float)",
          "signed=False)", "indices are not sign-extended",
          ERRORS, LAYERS),
    plant("uniform-zero", "wrong condition", T + "uniforms.py", "return b if a == 0 else a",
          "return a if a == 0 else b", "0 + x is 0"),
    plant("stores-in-order", "order", T + "event_steps.py", "for store in self._stores:",
          "for store in reversed(self._stores):", "addresses of stores are sent in the opposite order"),
    plant("aliases-allowed", "missing check", T + "aliases.py", "raise UnsupportedOperation(", "UnsupportedOperation(",
          "a launch may read what it stores", LOOPS, ERRORS, nth=0),
    plant("strides", "wrong constant", T + "addresses.py", "static * element_bytes(memref)", "static * 4",
          "indices of 8 bytes are read 4 apart"),
    plant("mean-divides-later", "wrong order", T + "pooling.py",
          'emit.insert(arith.MaxSIOp(over_entries.results[0], c.c1), "at_least_one")',
          'emit.insert(arith.AddiOp(over_entries.results[0], c.c1), "at_least_one")',
          "a mean divides by one too many"),
    plant("padding-counts", "lost condition", T + "pooling.py", 'arith.CmpiOp(index, self.padding, "ne")',
          'arith.CmpiOp(index, self.padding, "eq")', "only padding is pooled"),
    plant("fused-always", "wrong rounding", T + "pooling.py", "if weight is not None and self.is_fused:",
          "if weight is not None:", "weights are always fused",
          LAYERS),
    plant("register-too-soon", "wrong register", C + "registers.py", "line.last_read[holder[r]] < time]",
          "line.last_read[holder[r]] - 2 < time]", "a register is given away one step before it is read",
          LAYERS, LISTS),
    plant("read-late", "off by one", C + "registers.py", "            line.read(level.check.limit)", "            pass",
          "the limit of a check does not keep its register", LISTS, LAYERS),
    plant("overwrites-accumulator", "wrong register", C + "selection.py",
          "        for value in self._places.readers_of(accumulator):",
          "        for value in self._places.readers_of(accumulator)[:0]:",
          "what is still needed of an accumulator is overwritten", LOOPS),
    plant("keep-swapped", "wrong opcode", C + "selection.py",
          "VectorOp.MAX if isinstance(op, slcv.KeepGreaterOp) else VectorOp.MIN",
          "VectorOp.MIN if isinstance(op, slcv.KeepGreaterOp) else VectorOp.MAX",
          "maxima are minima", MAX),
    plant("pops-out-of-order", "order", C + "places.py", "return waiting[: waiting.index(root)]", "return []",
          "rows are popped in any order", LOOPS, LAYERS),
    plant("alu-operands", "swapped operands", C + "access.py", "            a, b = b, a\n", "            a, b = a, b\n",
          "a constant factor comes first, where MUL takes 32 bits", NUMBERS, LOOPS, LISTS, CORNERS),
    plant("load-size", "off by one", C + "access.py", "load.bytes.value.data.bit_length() - 1",
          "load.bytes.value.data.bit_length() - 2", "loads are half as wide",
          LAYERS),
    plant("count-predicate", "lost condition", C + "access.py", "predicate=self._predicate(level.count.condition)",
          "predicate=self._predicate(None)", "counts count all iterations",
          LAYERS, LOOPS),
    plant("steps-overflow", "missing check", C + "access.py", "if self._steps + len(steps) > self.config.steps:",
          "if False:", "too many steps are no error",
          LOOPS),
    plant("interleaves-tight", "wrong condition", C + "interleaving.py",
          "max(fetched + stored) <= config.context_beats and ", "",
          "rows that do not fit a context are interleaved", TURNS, LAYERS),
    plant("turns-always", "wrong condition", C + "interleaving.py", "return not bags or lookups > TURNS_FROM * bags",
          "return True", "bags of one row come in turn", TURNS),
    plant("turns-at-once", "off by one", C + "interleaving.py", "lookups > TURNS_FROM", "lookups >= TURNS_FROM",
          "bags of 1.5 rows on average come in turn", TURNS),
    plant("interleaves-outputs", "wrong condition", C + "interleaving.py", "constant_of(store.pitch) != 0", "True",
          "bags that store to one place are interleaved", TURNS, LOOPS),
    plant("sinks-too-far", "wrong condition", C + "levels.py", "return not any(user is op for op in (*here, *early))",
          "return not any(user is op for op in here)", "arithmetic is moved below a loop whose bounds need it",
          LISTS, LAYERS, LOOPS),
    plant("end-of-buffer", "off by one", C + "arguments.py",
          "self.address + (self.shape[0] * self.strides[0] if self.shape else 4)",
          "self.address + (self.shape[0] if self.shape else 4)",
          "arrays end where their first bytes do", LOOPS, "tests/system/test_rtl_configs.py", LAYERS),
    plant("mode-swapped", "wrong constant", F + "calls.py", 'MODES = {0: "sum", 1: "mean", 2: "max"}',
          'MODES = {0: "mean", 1: "sum", 2: "max"}', "the numbers of sum and mean are swapped",
          EXECUTABLE),
    plant("max-norm", "missing check", F + "calls.py", 'if values.get("max_norm") is not None:', "if False:",
          "max_norm is ignored", ERRORS, EXECUTABLE),
    plant("padding-negative", "missing case", F + "inputs.py", "return call.padding % rows", "return call.padding",
          "negative padding indices do not count from the end", LAYERS),
    plant("last-offset", "missing check", F + "inputs.py", "if last > indices.numel():", "if False:",
          "the last offset may lie beyond the indices", ERRORS),
    plant("fused-columns", "wrong condition", F + "inputs.py", "return table.stride(1) == 1 and weights",
          "return weights", "weights are fused although PyTorch does not",
          LAYERS),
    plant("join-rows", "wrong condition", F + "groups.py", "if dim not in (1, -1)", "if dim not in (0, 1, -1)",
          "a concatenation of rows is taken for one of columns", LISTS),
    plant("effects-unseen", "missing check", F + "effects.py", "return bool(schema.is_mutable)", "return False",
          "operations are moved over one that changes their tables", LISTS, EXECUTABLE),
    plant("other-shapes", "missing check", HERE + "runtime.py", "if not fits or dtype != spec.dtype:",
          "if dtype != spec.dtype:", "buffers of another shape are run",
          LOOPS, ERRORS),
    plant("pitch-of-bytes", "wrong constant", HERE + "runtime.py", "pitch // array.itemsize",
          "pitch // (2 * array.itemsize)", "padded rows are half as long",
          LOOPS),
    plant("warn-count", "off by one", HERE + "replaced.py", "if count == 1 else", "if count <= 2 else",
          "two bad lookups are told of as one", BOUNDS),
    plant("column-of-join", "off by one", HERE + "bag_lists.py", "return [sum(widths[:n]) for n in range(len(widths))]",
          "return [sum(widths[:n]) for n in range(1, len(widths) + 1)]",
          "parts of a concatenation are a part too far right", LISTS),
    plant("first-bad-index", "off by one", HERE + "list_faults.py", "(indices < 0) | (indices >= rows)",
          "(indices < 0) | (indices > rows)", "an index equal to the rows is not found",
          LISTS, PREPARED),
    plant("kept-kernels", "sticky bit", HERE + "executable.py", "if key not in self._kernels:",
          "if not self._kernels:", "the first kernel is used for everything",
          EXECUTABLE, LAYERS),
    plant("prepared-turns", "lost check", HERE + "prepared.py",
          "if take_turns(total, bags * len(lengths)) != self._takes_turns:", "if False:",
          "a launch made ready for long bags is used for bags of one row", TURNS),
    plant("csr-order", "missing case", F + "inputs.py", "if not csr_order.adds_in_order():", "if False:",
          "products that PyTorch adds in an order of its own are the device's", GRAPHS),
    plant("unsorted", "missing case", F + "inputs.py", "return offsets, torch.argsort(keys, stable=True)",
          "return offsets, None", "destinations are taken to be in order", GRAPHS),
    plant("sparse-fused", "wrong condition", F + "inputs.py", "is_fused=matrix.layout is torch.sparse_coo",
          "is_fused=matrix.layout is torch.sparse_csr",
          "products of sparse matrices round as those of the other layout", GRAPHS),
    plant("not-from-zeros", "missing check", F + "segments.py",
          "if not isinstance(base, fx.Node) or name_of(base) not in _ZEROS or writes_out(base):", "if False:",
          "what a sum by destination is added to is ignored", GRAPHS),
    plant("zeros-out", "missing check", F + "segments.py", " or writes_out(base):", ":",
          "sums into zeros that went into a buffer do not reach it", MEMORY),
    plant("one-key", "missing check", F + "segments.py", " and column.shape[0] == wide.shape[0]", "",
          "one destination, expanded to all rows, is that of the first row only", MEMORY),
    plant("sign-of-zero", "missing case", F + "guards.py", "math.copysign(1, value)", "1.0",
          "0.0 is taken for -0.0, which a trace knew", MODULES),
    plant("old-tables", "missing check", HERE + "prepared.py", 'attrgetter("_version", "shape")', 'attrgetter("shape")',
          "a changed table is not uploaded for a launch that was made ready", PREPARED),
    plant("inner-on-serial", "swapped operands", C + "levels.py",
          "[config.serial[level.number] for level in reversed(levels)]",
          "[not config.serial[level.number] for level in reversed(levels)]",
          "inner loops are put on serial levels", PLACEMENT),
    plant("promises-forgotten", "lost strobe", HERE + "promised.py", "        elif not launch.done():",
          "        elif False:", "who waits for one array forgets that launches will fill others", SUBMIT),
    plant("last-name-not-empty", "off by one", C + "overlap.py", "names = range(1, parts.distance + 1)\n        return",
          "names = range(1, parts.distance)\n        return",
          "another callback writes a register that must be empty when a loop begins", OVERLAP),
]  # fmt: skip
