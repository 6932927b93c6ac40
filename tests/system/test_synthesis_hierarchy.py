"""Where LUTs are: what modules take with all that is in them."""

from collections import Counter

from bench.synthesis.hierarchy import rows_of


def test_a_module_takes_what_is_in_it():
    """A part that is there twice counts twice; carries and distributed RAM are LUTs as well."""
    modules = {
        "unit": Counter({"part": 2, "$lut": 5, "TRELLIS_FF": 1}),
        "part": Counter({"inner": 1, "$lut": 10, "CCU2C": 3}),
        "inner": Counter({"TRELLIS_DPR16X4": 2, "TRELLIS_FF": 7, "DP16KD": 1}),
    }
    rows = {row["module"]: row for row in rows_of(modules)}
    assert list(rows) == ["unit", "  part", "    inner"]
    assert [row["lut"] for row in rows.values()] == [5 + 2 * (10 + 6 + 8), 10 + 6 + 8, 8]
    assert [row["own"] for row in rows.values()] == [5, 16, 8]
    assert [row["ff"] for row in rows.values()] == [15, 7, 7]
    assert rows["unit"]["bram"] == 2
