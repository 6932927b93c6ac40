"""Counts of models come together by the source they are of."""

from pathlib import Path

import pytest

from tests.cover.rtl import Counts, read_modules, read_points

VERILOG = """\
(* src = "{root}/hw/{file}:10" *)
module {name}(clk, rst, a, o);
  (* src = "{root}/hw/{file}:{line}" *)
  reg [{width}:0] o = {width}'h0;
  reg [{width}:0] \\$1 ;
  (* src = "{root}/hw/{file}:{line}" *)
  always @(posedge clk)
    o <= \\$1 ;
  always @* begin
    if (\\$auto$verilog_backend.cc:2355:dump_module$1 ) begin end
    \\$1  = o;
    if (a) begin
      \\$1  = b ? (* src = "{root}/hw/{file}:13" *) {width}'h1 : o;
    end
  end
endmodule
"""


def text(root: Path, name: str, *, width: int = 8, file: str = "unit.py") -> str:
    return VERILOG.format(root=root, name=name, width=width, file=file, line=12)


def point(line: int, column: int, kind: str, count: int, instance: str = "x") -> str:
    page = "v_line" if kind in ("block", "case") else "v_branch"
    return f"C '\1f\2m.v\1l\2{line}\1n\2{column}\1t\2x\1page\2{page}/{instance}\1o\2{kind}\1h\2{instance}' {count}"


def points(taken: int, not_taken: int) -> list[str]:
    """The counts of the module's two processes and its conditions, the first of which is never true."""
    kinds = [
        (7, "block", 9),
        (9, "block", 9),
        (10, "if", 0),
        (10, "else", 9),
        (12, "if", taken),
        (12, "else", not_taken),
    ]
    return [point(line, n, kind, count) for n, (line, kind, count) in enumerate(kinds)]


def counted(folder: Path, **models: tuple[str, list[str]]) -> Counts:
    for name, (verilog, lines) in models.items():
        (folder / f"{name}.v").write_text(verilog)
        (folder / f"{name}-1-0.dat").write_text("\n".join(["# SystemC::Coverage-3", *lines]))
    counts = Counts(folder)
    counts.add_folder(folder)
    return counts


def test_instances_of_a_point_are_added_up() -> None:
    lines = ["# SystemC::Coverage-3", point(3, 1, "if", 2, "one"), point(3, 1, "if", 5, "two")]
    assert list(read_points(lines)) == [(3, 1, "if", 7)]


def test_modules_and_where_they_come_from(tmp_path: Path) -> None:
    other = text(Path("/elsewhere"), "b")
    first, second = read_modules(text(tmp_path, "a") + other, tmp_path)
    assert (first.source, first.first, len(first.lines)) == ("hw/unit.py", 2, 15)
    assert (second.source, second.first) == ("", 18)


def test_numbers_and_nameless_signals_do_not_tell_statements_apart(tmp_path: Path) -> None:
    narrow, wide = read_modules(text(tmp_path, "a") + text(tmp_path, "a", width=16), tmp_path)
    (other,) = read_modules(text(tmp_path, "a").replace("if (a)", "if (~a)").replace("clk", "core_clk"), tmp_path)
    for line in range(len(narrow.lines)):
        assert narrow.statement(line) == wide.statement(line)
        if "if (a)" not in narrow.lines[line] and "module" not in narrow.lines[line]:
            assert narrow.statement(line) == other.statement(line)
    assert narrow.statement(10) == ("o", "if(a)begin") != other.statement(10)


def test_statements_that_are_alike_are_counted_one_by_one(tmp_path: Path) -> None:
    twice = text(tmp_path, "a").replace("      \\$1  = b ?", "      if (a) begin end\n      \\$1  = b ?")
    lines = [point(12, 1, "if", 1), point(13, 1, "if", 0)]
    found = counted(tmp_path, one=(twice, lines))
    assert found.share("hw/unit.py", branches=True) == (1, 2)


@pytest.mark.parametrize(("line", "what"), [(9, "line 12: \\$1  = o;"), (11, "line 13: \\$1  = b ? 8'h1 : o;")])
def test_a_line_is_described_by_its_source(tmp_path: Path, line: int, what: str) -> None:
    (module,) = read_modules(text(tmp_path, "a"), tmp_path)
    assert module.describe(line) == what


def test_what_one_model_does_not_reach_another_may(tmp_path: Path) -> None:
    one, two = (text(tmp_path, "a"), points(4, 0)), (text(tmp_path, "a", width=16), points(0, 3))
    alone = counted(tmp_path, one=one)
    assert alone.share(branches=True) == (1, 2)
    assert alone.share("hw/unit.py", branches=False) == (3, 3)
    assert alone.missing("hw/unit.py") == ["else: line 12: if (a) begin"]
    assert counted(tmp_path, one=one, two=two).share(branches=True) == (2, 2)


def test_conditions_that_are_never_true_do_not_count(tmp_path: Path) -> None:
    counts = counted(tmp_path, one=(text(tmp_path, "a"), points(1, 1)))
    assert sorted(place.kind for place in counts.reached) == ["block", "block", "else", "if"]
    assert counts.sources() == ["hw/unit.py"]
