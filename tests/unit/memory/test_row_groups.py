# amaranth: UnusedElaboratable=no
"""The queue that puts requests to a DRAM row together."""

import pytest

from daedal.hw.memory.fabric.row_groups import RowGroups
from tests.unit.harness import run_cocotb
from tests.unit.memory.bench_row_groups import LAYOUT
from tests.unit.memory.grouped_payloads import GroupedPayloads


@pytest.mark.rtl
@pytest.mark.parametrize(("depth", "keys"), [(2, 2), pytest.param(3, 4, marks=pytest.mark.full), (13, 8), (64, 64)])
def test_row_groups(depth, keys):
    dut = GroupedPayloads(LAYOUT, key="key", depth=depth, keys=keys)
    run_cocotb(dut, f"row_groups_{depth}", "tests.unit.memory.bench_row_groups",
               parameters={"depth": depth, "keys": keys})  # fmt: skip


@pytest.mark.parametrize("depth", [1, 0, "8"])
def test_refuses_a_depth_it_cannot_have(depth):
    with pytest.raises(ValueError, match=f"depth must be an integer of at least 2, not {depth!r}"):
        RowGroups(depth=depth, keys=2)


@pytest.mark.parametrize("keys", [1, 0, 3, "2"])
def test_refuses_keys_it_cannot_have(keys):
    with pytest.raises(ValueError, match=f"keys must be a power of two of at least 2, not {keys!r}"):
        RowGroups(depth=4, keys=keys)
