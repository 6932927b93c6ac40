# amaranth: UnusedElaboratable=no
"""The queue that puts requests to a DRAM row together."""

import pytest
from amaranth import Module
from amaranth.hdl import Elaboratable
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from daedal.hw.memory.row_groups import RowGroups
from tests.unit.harness import run_cocotb
from tests.unit.memory.bench_row_groups import LAYOUT


class Keyed(wiring.Component):
    """``RowGroups`` of payloads that have their key inside."""

    def __init__(self, *, depth: int, keys: int) -> None:
        super().__init__({"i": In(stream.Signature(LAYOUT)), "o": Out(stream.Signature(LAYOUT))})
        self._depth, self._keys = depth, keys

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.submodules.groups = groups = RowGroups(LAYOUT, depth=self._depth, keys=self._keys)
        connect(m, flipped(self.i), groups.i)
        connect(m, groups.o, flipped(self.o))
        m.d.comb += groups.key.eq(self.i.payload.key)
        return m


@pytest.mark.rtl
@pytest.mark.parametrize(("depth", "keys"), [(2, 2), (3, 4), (13, 8), (64, 64)])
def test_row_groups(depth, keys):
    run_cocotb(Keyed(depth=depth, keys=keys), f"row_groups_{depth}", "tests.unit.memory.bench_row_groups",
               parameters={"depth": depth, "keys": keys})  # fmt: skip


@pytest.mark.parametrize("depth", [1, 0, "8"])
def test_refuses_a_depth_it_cannot_have(depth):
    with pytest.raises(ValueError, match=f"depth must be an integer of at least 2, not {depth!r}"):
        RowGroups(8, depth=depth, keys=2)


@pytest.mark.parametrize("keys", [1, 0, 3, "2"])
def test_refuses_keys_it_cannot_have(keys):
    with pytest.raises(ValueError, match=f"keys must be a power of two of at least 2, not {keys!r}"):
        RowGroups(8, depth=4, keys=keys)
