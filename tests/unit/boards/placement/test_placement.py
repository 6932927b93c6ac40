"""Placed designs: delays and formula of nextpnr's, times that stay right while cells move, what fits in a tile."""

import json
import random
from itertools import pairwise, permutations
from pathlib import Path

import pytest

from daedal.hw.boards.placement.delays import read_delays, step_delay, steps
from daedal.hw.boards.placement.estimates import Estimates
from daedal.hw.boards.placement.moves import shorten
from daedal.hw.boards.placement.netlist import Placed
from daedal.hw.boards.placement.tiles import Tiles
from daedal.hw.boards.placement.timing import Timing
from tests.unit.boards.placement.design import STEP, Design, longest_ps, problems, scattered

SEEDS = range(6)


def loaded(design: Design, folder: Path) -> tuple[Placed, Timing]:
    placed, delays = design.write(folder)
    found = Placed(placed)
    return found, Timing(found, read_delays(delays))


def test_delays_are_those_of_the_slowest_case(tmp_path: Path) -> None:
    path = tmp_path / "a.sdf"
    path.write_text(
        """(DELAYFILE
  (CELL
    (CELLTYPE "top")
    (INSTANCE )
        (INTERCONNECT a\\$1/F unit.b/D (640:640:640) (640:640:640))
  )
    (CELLTYPE "TRELLIS_FF")
    (INSTANCE unit.b\\$2)
        (IOPATH CLK Q (430:477:525) (430:477:525))
      (SETUPHOLD (posedge LSR) (posedge CLK) (271:347:424) (0:0:0))
      (SETUPHOLD (negedge LSR) (posedge CLK) (0:0:999) (0:0:0))
    (INSTANCE memory)
        (IOPATH CLKB DOA3 (5:5:5609) (5:5:5609))
        (IOPATH CLKA DOA3 (5:5:5000) (5:5:5000))
    (INSTANCE buffer)
        (IOPATH CLKI CLKO (0:0:0) (0:0:0))
"""
    )
    found = read_delays(path)
    assert found.wires == {("unit.b", "D"): pytest.approx(0.64)}
    assert found.starts == {("unit.b$2", "Q"): pytest.approx(0.525), ("memory", "DOA3"): pytest.approx(5.609)}
    assert found.ends == {("unit.b$2", "LSR"): pytest.approx(0.424)}
    assert dict(found.through) == {"buffer": [("CLKI", "CLKO", 0.0)]}


@pytest.mark.parametrize(
    ("port", "place", "to", "there", "length"),
    [
        ("Q", (77, 12, 1), "B", (77, 7, 5), 16), ("Q", (77, 12, 1), "D", (66, 21, 0), 36),
        ("Q", (68, 4, 2), "A", (68, 4, 6), 6), ("Q", (68, 4, 2), "A", (68, 4, 2), 0),
        ("F", (68, 4, 2), "C", (68, 4, 6), 0), ("F", (68, 4, 1), "C", (68, 4, 4), 6),
        ("F", (68, 4, 6), "C", (68, 4, 4), 6), ("F", (68, 4, 6), "DI", (68, 4, 6), 0),
        ("F", (68, 4, 2), "M", (68, 4, 2), 6), ("FCO", (68, 4, 7), "FCI", (69, 4, 0), 0),
        ("CLKO", (67, 0, -1), "CLK", (9, 9, 0), 0), ("F", (86, 15, 7), "WRE", (86, 15, 0), 6),
        ("O", (63, 0, -1), "C", (64, 2, 2), 12),
    ],
)  # fmt: skip
def test_lengths_are_those_that_nextpnr_wrote(port, place, to, there, length) -> None:
    """At grade 6 it wrote 0.08 ns for each step of these wires of the read fabric."""
    assert steps(port, place, to, there) == length


def test_wires_out_of_proportion_are_refused() -> None:
    assert step_delay(iter([(0, 0.0), (6, 0.48), (36, 2.88)])) == pytest.approx(0.08)
    with pytest.raises(ValueError, match=r"a wire of 36 steps takes 2\.800 ns where others need 0\.080"):
        step_delay(iter([(6, 0.48), (36, 2.8)]))
    with pytest.raises(ValueError, match="no wires"):
        step_delay(iter([(0, 0.0)]))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_longest_way_is_that_of_all_ways(tmp_path: Path, seed: int) -> None:
    design = scattered(seed)
    _, timing = loaded(design, tmp_path)
    assert timing.longest() * 1000 == pytest.approx(longest_ps(design.cells))
    assert timing.step * 1000 == pytest.approx(STEP)


@pytest.mark.parametrize("seed", SEEDS)
def test_times_stay_right_while_cells_move(tmp_path: Path, seed: int) -> None:
    placed, timing = loaded(scattered(seed), tmp_path)
    tiles, rng = Tiles(placed), random.Random(seed)
    movable = sorted({group for name in placed.cells if (group := tiles.group(name))})
    assert movable
    for _ in range(40):
        group = rng.choice(movable)
        place = tiles.find(group, *rng.choice(sorted(tiles.columns_and_rows)))
        if place is not None:
            placed.move(group, place)
            before = {net: (timing.ready[net], timing.rest[net]) for net in timing.order}
            changed = timing.moved(group)
            assert changed == {net for net in before if (timing.ready[net], timing.rest[net]) != before[net]}
        one, other = rng.sample([name for name in placed.cells if name.startswith("memory")], 2)
        placed.swap(one, other)
        timing.moved((one, other))
        assert timing.longest() * 1000 == pytest.approx(longest_ps(placed.cells))
        assert not problems(placed.cells)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_way_adds_up(tmp_path: Path, seed: int) -> None:
    placed, timing = loaded(scattered(seed), tmp_path)
    slowest = max(timing.order, key=timing.through)
    way = timing.way(slowest)
    nets = [placed.ports[name][port] for name, port in way]
    assert slowest in nets
    assert timing.start(placed.driver[nets[0]]) is not None
    assert timing.ready[nets[-1]] + timing.wire(way[-1]) + timing.ends[way[-1]] == pytest.approx(timing.longest())
    for (name, _), (reader, port) in pairwise(way):
        assert placed.driver[placed.ports[reader][port]][0] == name


@pytest.mark.parametrize("seed", SEEDS)
def test_the_slowest_ways_get_shorter_and_only_places_change(tmp_path: Path, seed: int) -> None:
    design = scattered(seed)
    placed, delays = design.write(tmp_path)
    outcome = shorten(placed, delays, tmp_path / "moved.json")
    cells = json.loads((tmp_path / "moved.json").read_text())["modules"]["top"]["cells"]
    assert outcome.before * 1000 == pytest.approx(longest_ps(design.cells))
    assert outcome.after * 1000 == pytest.approx(longest_ps(cells))
    assert outcome.after < outcome.before - 1, "cells at random places are far from the best"
    assert outcome.moves
    assert not problems(cells)
    for name, cell in design.cells.items():
        assert {**cells[name], "attributes": {}} == {**cell, "attributes": {}}
    again = shorten(placed, delays, tmp_path / "again.json")
    assert again == outcome
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "moved.json").read_bytes()


def line(*places: str) -> Design:
    """A flip-flop, LUTs one behind the other, and a flip-flop that takes the last one's output."""
    design = Design()
    design.flip_flop("first", places[0], "first")
    known = "first"
    for number, place in enumerate(places[1:-1]):
        design.lut(f"lut{number}", place, known)
        known = f"lut{number}"
    design.flip_flop("last", places[-1], known)
    return design


def test_a_lut_far_from_both_ends_comes_back(tmp_path: Path) -> None:
    design = line("X10/Y10/SLICEA.FF0", "X90/Y80/SLICEA.K0", "X14/Y10/SLICEA.FF0")
    placed, delays = design.write(tmp_path)
    outcome = shorten(placed, delays, tmp_path / "moved.json")
    assert outcome.before > 25
    assert outcome.after < 2.5
    x, y, _ = Placed(tmp_path / "moved.json").place["lut0"]
    assert (x, y) in ((10, 10), (14, 10)), "there is no other tile with logic near"


@pytest.mark.parametrize("chosen", [True, False])
def test_block_rams_change_places_if_the_placer_chose_those(tmp_path: Path, chosen: bool) -> None:
    design = Design()
    for number, (x, far) in enumerate([(10, 90), (90, 10)]):
        design.flip_flop(f"source{number}", f"X{x}/Y60/SLICEA.FF0", f"memory{number}")
        design.memory(f"memory{number}", f"X{far}/Y58/EBR0", f"source{number}")
    for name in design.cells if not chosen else ():
        design.cells[name]["attributes"]["BEL_STRENGTH"] = "101"
    placed, delays = design.write(tmp_path)
    outcome = shorten(placed, delays, tmp_path / "moved.json")
    moved = Placed(tmp_path / "moved.json")
    assert bool(outcome.moves) == chosen
    for number in (0, 1) if chosen else ():
        assert abs(moved.place[f"memory{number}"][0] - moved.place[f"source{number}"][0]) < 40
    assert {moved.cells[f"memory{number}"]["attributes"]["NEXTPNR_BEL"] for number in (0, 1)} == {
        "X10/Y58/EBR0",
        "X90/Y58/EBR0",
    }


FULL = "X30/Y30"
"""The tile of these cells, full of LUTs but for what the case leaves free."""


def tile(
    *, lut: str = "", flip_flop: dict[str, str] | None = None, writer: bool = False, memory: bool = False
) -> Design:
    """A tile with a flip-flop and LUTs in all places but ``lut``; elsewhere ``lut0`` and ``last``."""
    design = line("X10/Y10/SLICEA.FF0", "X10/Y10/SLICEA.K0", "X10/Y12/SLICEA.FF0")
    design.cells["last"]["connections"] |= {"CE": [design.net("lut0")], "LSR": [design.net("first")]}
    design.cells["last"]["port_directions"] |= {"CE": "input", "LSR": "input"}
    design.cells["last"]["parameters"] |= {"CEMUX": "CE"}
    design.flip_flop("resident", f"{FULL}/SLICEA.FF0", "first", **(flip_flop or {}))
    for number in range(8):
        place = f"SLICE{'ABCD'[number // 2]}.K{number % 2}"
        if place != lut:
            mode = "DPRAM" if memory else "LOGIC"
            design.lut(f"there{number}", f"{FULL}/{place}", "first", MODE=mode)
    if writer:
        design.add("writer", "TRELLIS_RAMW", f"{FULL}/SLICEC.RAMW", {"A0": "first"}, {})
    return design


def test_a_lut_fits_where_its_place_is_free_and_not_a_memorys(tmp_path: Path) -> None:
    for design, place in (
        (tile(), None), (tile(lut="SLICEC.K1"), (30, 30, 5)), (tile(lut="SLICEC.K1", writer=True), None),
        (tile(lut="SLICEB.K1", writer=True), (30, 30, 3)),
    ):  # fmt: skip
        placed, _ = loaded(design, tmp_path)
        assert Tiles(placed).find(("lut0",), 30, 30) == place


def test_a_lut_is_not_put_beside_carries(tmp_path: Path) -> None:
    design = tile(lut="SLICEC.K1")
    design.cells["there4"]["parameters"]["MODE"] = "CCU2"
    placed, _ = loaded(design, tmp_path)
    assert Tiles(placed).find(("lut0",), 30, 30) is None


SAME = {"enable": "lut0", "reset": "first"}


@pytest.mark.parametrize(
    ("resident", "place"),
    [
        (SAME, (30, 30, 1)), ({**SAME, "enable": "first"}, (30, 30, 2)), ({**SAME, "enable": ""}, (30, 30, 2)),
        ({**SAME, "CEMUX": "INV"}, (30, 30, 2)), ({**SAME, "GSR": "ENABLED"}, (30, 30, 2)),
        ({**SAME, "SRMODE": "LSR_OVER_CE"}, (30, 30, 1)), ({**SAME, "reset": ""}, None),
        ({**SAME, "reset": "lut0"}, None), ({**SAME, "clock": "lut0"}, None), ({**SAME, "CLKMUX": "INV"}, None),
        ({**SAME, "LSRMUX": "INV"}, None), ({**SAME, "SRMODE": "ASYNC"}, None),
    ],
)  # fmt: skip
def test_a_flip_flop_fits_beside_others_with_its_clock_reset_and_enable(tmp_path: Path, resident, place) -> None:
    placed = Placed(tile(flip_flop=resident).write(tmp_path)[0])
    assert Tiles(placed).find(("last",), 30, 30) == place


def test_an_inverted_flip_flop_is_not_put_to_a_distributed_memory(tmp_path: Path) -> None:
    inverted = {**SAME, "LSRMUX": "INV"}
    for memory, place in ((False, (30, 30, 1)), (True, None)):
        design = tile(flip_flop=inverted, memory=memory)
        design.cells["last"]["parameters"]["LSRMUX"] = "INV"
        placed = Placed(design.write(tmp_path)[0])
        assert Tiles(placed).find(("last",), 30, 30) == place


def test_what_moves_together(tmp_path: Path) -> None:
    design = line("X10/Y10/SLICEA.FF0", "X10/Y12/SLICEB.K1", "X10/Y12/SLICEB.FF1")
    last = design.cells["last"]
    last["connections"]["DI"], last["port_directions"]["DI"] = last["connections"].pop("M"), "input"
    design.lut("carry", "X20/Y20/SLICEA.K0", "first", MODE="CCU2")
    design.lut("constrained", "X20/Y20/SLICEB.K0", "first")
    design.cells["constrained"]["attributes"]["BEL_STRENGTH"] = "101"
    placed, _ = loaded(design, tmp_path)
    tiles = Tiles(placed)
    assert tiles.group("lut0") == tiles.group("last") == ("lut0", "last")
    assert tiles.group("first") == ("first",)
    assert tiles.group("carry") == tiles.group("constrained") == ()
    assert tiles.find(("first",), 50, 50) is None, "tiles without logic are left alone"


def test_wide_multiplexers_are_refused(tmp_path: Path) -> None:
    design = line("X10/Y10/SLICEA.FF0", "X10/Y12/SLICEB.K1", "X10/Y12/SLICEA.FF1")
    lut = design.cells["lut0"]
    lut["connections"]["F1"], lut["port_directions"]["F1"] = [design.net("first")], "input"
    with pytest.raises(ValueError, match="lut0 is part of a wide multiplexer: synthesise with -nowidelut"):
        Tiles(Placed(design.write(tmp_path)[0]))


def test_delays_of_another_design_are_refused(tmp_path: Path) -> None:
    design = line("X10/Y10/SLICEA.FF0", "X10/Y12/SLICEB.K1", "X10/Y12/SLICEA.FF1")
    placed, delays = design.write(tmp_path)
    delays.write_text(delays.read_text().replace("lut0", "other"))
    with pytest.raises(ValueError, match="of another design: this one has no cell other"):
        shorten(placed, delays, tmp_path / "moved.json")
    delays.write_text(delays.read_text().replace("other/A", "lut0/B").replace("other", "lut0"))
    with pytest.raises(ValueError, match="of another design: this one has no wire to lut0/B"):
        shorten(placed, delays, tmp_path / "moved.json")


def test_delays_that_end_in_the_middle_of_a_line_are_refused(tmp_path: Path) -> None:
    _, delays = line("X10/Y10/SLICEA.FF0", "X10/Y12/SLICEB.K1", "X10/Y12/SLICEA.FF1").write(tmp_path)
    text = delays.read_text()
    for end in (text.index("(IOPATH") + 10, text.index("(INTERCONNECT") + 15):
        delays.write_text(text[:end])
        with pytest.raises(ValueError, match=r"placed\.sdf must be a file of delays"):
            read_delays(delays)


def test_the_falling_edge_is_refused(tmp_path: Path) -> None:
    design = line("X10/Y10/SLICEA.FF0", "X10/Y12/SLICEB.K1", "X10/Y12/SLICEA.FF1")
    design.cells["last"]["parameters"]["CLKMUX"] = "INV"
    with pytest.raises(ValueError, match="rising edge: last does not"):
        loaded(design, tmp_path)


@pytest.mark.parametrize("port", ["CLK", "CLKA"])
def test_a_design_with_two_clocks_is_refused(tmp_path: Path, port: str) -> None:
    design = line("X10/Y10/SLICEA.FF0", "X10/Y10/SLICEA.K0", "X10/Y12/SLICEA.FF0")
    design.memory("memory", "X40/Y58/EBR0", "first")
    cell = next(cell for cell in design.cells.values() if port in cell["connections"])
    cell["connections"][port] = [design.net("other")]
    with pytest.raises(ValueError, match="must have one clock, not 2"):
        loaded(design, tmp_path)


def test_a_loop_of_logic_is_left_out(tmp_path: Path) -> None:
    design = line("X10/Y10/SLICEA.FF0", "X10/Y10/SLICEA.K0", "X10/Y12/SLICEA.FF0")
    design.lut("one", "X20/Y20/SLICEA.K0", "other", "first")
    design.lut("other", "X20/Y20/SLICEB.K0", "one")
    _, timing = loaded(design, tmp_path)
    assert not timing.timed(design.net("one"))
    assert timing.timed(design.net("lut0"))
    assert timing.longest() < 10


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"modules": {"top": {"attributes": {"top": "1"}, "cells": {"a": {}}}}}']
)
def test_a_file_that_is_no_placement_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"bad\.json must be a placed netlist as nextpnr writes them with --write"):
        Placed(path)
    with pytest.raises(ValueError, match=r"bad\.json must be a file of delays as nextpnr writes them with --sdf"):
        read_delays(path)


@pytest.mark.parametrize("seed", SEEDS)
def test_estimates_are_what_a_move_gives(tmp_path: Path, seed: int) -> None:
    """In a tile without logic, where no wire is a direct one."""
    placed, timing = loaded(networked(seed), tmp_path)
    tiles, estimates, rng = Tiles(placed), Estimates(placed, timing), random.Random(seed)
    groups = sorted({group for name in placed.cells if (group := tiles.group(name))})
    assert {len(group) for group in groups} == {1, 2}
    equal = 0
    for group in groups:
        place = (rng.randrange(1, 100), 1 + 2 * rng.randrange(40), rng.randrange(8))
        assert place[:2] not in tiles.columns_and_rows
        estimate, old, around = (
            estimates.of_group(group)[place[:2]],
            placed.place[group[0]],
            outside(placed, timing, group),
        )
        placed.move(group, place)
        timing.moved(group)
        if outside(placed, timing, group) == around:  # else it is also its neighbours' neighbour
            equal += 1
            assert max(estimate, 0) == pytest.approx(max(longest_through(placed, timing, group), 0))
        placed.move(group, old)
        timing.moved(group)
    assert equal > len(groups) / 2
    for name, other in permutations(("memory0", "memory1", "memory2"), 2):
        estimate = estimates.of_memory(name, [placed.place[other], placed.place[name]])
        assert estimate[1] == pytest.approx(longest_through(placed, timing, (name,)))
        if other not in neighbours(placed, name):
            placed.swap(name, other)
            timing.moved((name, other))
            assert estimate[0] == pytest.approx(longest_through(placed, timing, (name,)))
            placed.swap(name, other)
            timing.moved((name, other))


def outside(placed: Placed, timing: Timing, group: tuple[str, ...]) -> list[float]:
    """What a group's estimate takes from other cells: when its inputs are ready, what is behind its readers."""
    nets = [
        (net, placed.driver[net][0] in group)
        for name in group
        for net in placed.ports[name].values()
        if timing.timed(net)
    ]
    ready = [timing.ready[net] for net, own in nets if not own]
    return ready + [
        timing.behind(pin) for net, own in nets if own for pin in placed.readers[net] if pin[0] not in group
    ]


def neighbours(placed: Placed, name: str) -> set[str]:
    nets = placed.ports[name].values()
    return {cell for net in nets for cell, _ in [placed.driver.get(net, ("", "")), *placed.readers[net]]}


def longest_through(placed: Placed, timing: Timing, cells: tuple[str, ...]) -> float:
    times = []
    for name in cells:
        for port, net in placed.ports[name].items():
            if placed.driver.get(net) == (name, port):
                times.append(timing.through(net))
            elif timing.timed(net):
                times.append(timing.ready[net] + timing.wire((name, port)) + timing.behind((name, port)))
    return max(times)


def test_a_swap_that_is_worse_for_the_other_is_not_made(tmp_path: Path) -> None:
    """``slow`` would be better where ``tied`` is, but that would be farther from its ends than ``slow`` is from its."""
    design = Design()
    design.flip_flop("far", "X90/Y60/SLICEA.FF0", "slow")
    design.flip_flop("near", "X110/Y60/SLICEA.FF0", "tied")
    for name in ("far", "near"):
        design.cells[name]["attributes"]["BEL_STRENGTH"] = "101"
    design.memory("slow", "X40/Y58/EBR0", "far")
    design.memory("tied", "X100/Y58/EBR1", "near")
    placed, delays = design.write(tmp_path)
    outcome = shorten(placed, delays, tmp_path / "moved.json")
    assert (outcome.moves, outcome.after) == (0, outcome.before)


def test_a_lut_and_its_flip_flop_move_together(tmp_path: Path) -> None:
    """The way ends in the flip-flop of the pair, by the wire between the two."""
    design = line("X10/Y10/SLICEA.FF0", "X90/Y80/SLICEB.K1", "X90/Y80/SLICEB.FF1")
    last = design.cells["last"]
    last["connections"]["DI"], last["port_directions"]["DI"] = last["connections"].pop("M"), "input"
    for name in ("first", "last"):
        design.cells[name]["connections"].pop("OPEN")
    design.cells["first"]["attributes"]["BEL_STRENGTH"] = "101"
    placed, delays = design.write(tmp_path)
    outcome = shorten(placed, delays, tmp_path / "moved.json")
    assert outcome.before > 10
    assert outcome.after < 1.5
    moved = Placed(tmp_path / "moved.json")
    assert moved.place["lut0"] == moved.place["last"]
    assert moved.place["lut0"][:2] == (10, 10)


def networked(seed: int) -> Design:
    """A scattered design whose clock and reset come from the part's network for clocks."""
    design = scattered(seed)
    design.add("buffer", "DCCA", "X67/Y0/TDCC0", {}, {"CLKO": "clk"})
    design.add("resets", "DCCA", "X67/Y0/TDCC1", {"CLKI": "unbuffered"}, {"CLKO": "lut2$"})
    design.cells["lut2$"]["connections"]["F"] = [design.net("unbuffered")]
    return design


@pytest.mark.parametrize("seed", SEEDS)
def test_cells_on_the_clocks_network_move_as_others(tmp_path: Path, seed: int) -> None:
    """Its wires are of any length and take nothing."""
    placed, timing = loaded(networked(seed), tmp_path)
    tiles, rng = Tiles(placed), random.Random(seed)
    for group in sorted({group for name in placed.cells if (group := tiles.group(name))}):
        if place := tiles.find(group, *rng.choice(sorted(tiles.columns_and_rows))):
            placed.move(group, place)
            timing.moved(group)
            assert timing.longest() * 1000 == pytest.approx(longest_ps(placed.cells))


def test_a_place_that_was_left_is_free(tmp_path: Path) -> None:
    placed, _ = loaded(line("X10/Y10/SLICEA.FF0", "X10/Y10/SLICEA.K0", "X10/Y12/SLICEA.FF0"), tmp_path)
    placed.move(("lut0",), (10, 12, 3))
    assert placed.at[10, 12, "K", 3] == "lut0"
    assert (10, 10, "K", 0) not in placed.at
    assert placed.cells["lut0"]["attributes"]["NEXTPNR_BEL"] == "X10/Y12/SLICEB.K1"
    assert Tiles(placed).find(("lut0",), 10, 10) == (10, 10, 0)
