"""Several pooling operations of a module in one launch, on the golden model against PyTorch, bit for bit."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

import daedal
from daedal.hw.config.core import Config
from tests.compiler.layers.compiler_support import ddr3, device, random_bags, same_bits, wild_table

__all__ = ["ddr3", "device"]

INT32, INT64 = (torch.int32, torch.int32), (torch.int64, torch.int64)

ENDINGS: dict[str, Callable[[list[Tensor]], Any]] = {
    "concatenated": lambda rows: torch.cat(rows, dim=1),
    "concatenated from the end": lambda rows: torch.cat(rows[::-1], dim=-1),
    "list": lambda rows: rows,
    "tuple": tuple,
    "dict": lambda rows: {str(n): row for n, row in enumerate(rows)},
    "two concatenated": lambda rows: (torch.cat(rows[:2], 1), torch.cat(rows[2:], 1)),
    "some concatenated": lambda rows: (torch.cat(rows[1:4], 1), rows[0], rows[2] + 1),
    "concatenated twice": lambda rows: (torch.cat(rows[:3], 1), torch.cat(rows[1:3], 1)),
    "concatenated with others": lambda rows: torch.cat([torch.ones_like(rows[0]), *rows], 1),
    "one below the other": lambda rows: torch.cat([rows[0], rows[1]], 0),
}
"""What a module does with its pooled rows."""


class Collection(nn.Module):
    """Bags over several tables, each with inputs of its own."""

    def __init__(self, bags: Sequence[nn.Module], ending: str = "tuple") -> None:
        super().__init__()
        self.bags, self.ending = nn.ModuleList(bags), ending

    def forward(self, inputs: list[tuple[Tensor, ...]]) -> Any:
        return ENDINGS[self.ending]([bag(*each) for bag, each in zip(self.bags, inputs, strict=True)])


def bag(rows: int, width: int, rng: np.random.Generator, **options: Any) -> nn.EmbeddingBag:
    return nn.EmbeddingBag.from_pretrained(wild_table(rows, width, rng), **{"mode": "sum", **options})


def of_all_kinds(rng: np.random.Generator) -> list[nn.EmbeddingBag]:
    """Tables of different rows, widths, modes and padding; the sixth is used with weights."""
    return [
        bag(40, 16, rng),
        bag(7, 16, rng, padding_idx=2),
        bag(20, 33, rng, mode="mean"),
        bag(20, 16, rng, mode="max"),
        bag(9, 300, rng),
        bag(50, 16, rng),
        bag(30, 5, rng, mode="mean", padding_idx=2),
        bag(1, 1, rng, mode="max", padding_idx=0),
    ]


def inputs_for(
    module: Collection, batch: int, rng: np.random.Generator, types: Any = INT64, weighted: Sequence[int] = (5,)
) -> list[tuple[Tensor, ...]]:
    made = []
    for number, each in enumerate(module.bags):
        indices, offsets = random_bags(each.num_embeddings, batch, rng, types=types)
        weights = [wild_table(1, len(indices), rng)[0]] if number in weighted else []
        made.append((indices, offsets[:-1], *weights))
    return made


def check(executable: Any, module: nn.Module, inputs: Any, launches: int = 1) -> None:
    expected, result = module(inputs), executable(inputs)
    assert type(result) is type(expected)
    pairs = zip(tree_leaves(result), tree_leaves(expected), strict=True)
    assert all(same_bits(ours, theirs) for ours, theirs in pairs)
    assert executable.stats.launches == launches


@pytest.mark.parametrize("ending", [ending for ending in ENDINGS if "below" not in ending])
def test_tables_of_all_kinds_are_one_launch(device: daedal.Device, ending: str, rng: np.random.Generator) -> None:
    module = Collection(of_all_kinds(rng), ending)
    executable = daedal.compile(module, (inputs_for(module, 4, rng),), device=device)
    program, free = executable.program, device.free_bytes
    for batch in (4, 2, 13, 3):
        check(executable, module, inputs_for(module, batch, rng))
        assert executable.program == program
    check(executable, module, inputs_for(module, 3, rng))
    assert device.free_bytes <= free
    held = device.free_bytes
    check(executable, module, inputs_for(module, 5, rng))
    assert device.free_bytes == held


def test_the_program_depends_on_nothing_but_the_tables_kinds(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    def program(rows: int, batch: int, ending: str = "concatenated") -> bytes:
        module = Collection([bag(rows, 8, rng), bag(rows + 5, 8, rng), bag(3, 20, rng)], ending)
        executable = daedal.compile(module, (inputs_for(module, batch, rng, weighted=()),), device=ddr3)
        check(executable, module, inputs_for(module, batch + 1, rng, weighted=()))
        return executable.program

    assert program(10, 3) == program(70, 40)
    assert program(10, 3) != program(10, 3, "tuple")


def test_text_and_levels(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    module = Collection([bag(10, 8, rng), bag(12, 8, rng), bag(12, 8, rng, mode="mean")], "concatenated")
    executable = daedal.compile(module, (inputs_for(module, 3, rng, weighted=()),), device=ddr3)
    assert daedal.assemble(executable.asm()) == executable.program
    assert executable.asm().count("run = 0") == 2, "a nest for each kind"
    assert len(set(executable.kernels)) == 3
    assert "emb.bag_list" in executable.ir("emb")
    for level in ("scf", "slc", "slcv", "dlc"):
        assert "emb" not in executable.ir(level)
        assert executable.ir(level) == executable.ir(level, list(executable.kernels)[2])
    assert "place.memref %table_address" in executable.ir("scf")


def test_a_concatenation_is_written_in_place(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    """The bytes written are those of the result, and its parts are views of it."""
    module = Collection([bag(10, 8, rng), bag(12, 4, rng), bag(12, 12, rng)], "concatenated")
    inputs = inputs_for(module, 6, rng, weighted=())
    executable = daedal.compile(module, (inputs,), device=ddr3)
    check(executable, module, inputs)
    assert executable.stats.bytes_written == 6 * 24 * 4


def test_inputs_of_all_types_and_forms(device: daedal.Device, rng: np.random.Generator) -> None:
    bags = [
        bag(30, 8, rng),
        bag(30, 8, rng, include_last_offset=True),
        bag(30, 8, rng, padding_idx=3),
        bag(30, 8, rng),
    ]
    module = Collection(bags, "concatenated")

    def made(batch: int) -> list[tuple[Tensor | None, ...]]:
        first = random_bags(30, batch, rng, types=INT32)
        second = random_bags(30, batch, rng, types=INT64)
        unused = torch.cat([second[0], torch.tensor([99, -1])])
        return [
            (first[0], first[1][:-1], wild_table(1, len(first[0]), rng)[0]),
            (unused, second[1]),
            (torch.from_numpy(rng.integers(0, 30, (batch, 3))),),
            (torch.from_numpy(rng.integers(0, 30, (batch, 4))), None, wild_table(batch, 4, rng)),
        ]

    executable = daedal.compile(module, (made(5),), device=device)
    for batch in (5, 2, 9):
        check(executable, module, made(batch))


def test_numbers_of_bags_that_differ(device: daedal.Device, rng: np.random.Generator) -> None:
    module = Collection([bag(30, 8, rng), bag(20, 8, rng), bag(20, 5, rng)])
    batches = [inputs_for(module, batch, rng, weighted=()) for batch in (2, 7, 4)]
    executable = daedal.compile(module, (batches[0],), device=device)
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        check(executable, module, [batches[batch][number] for number, batch in enumerate(order)])


def test_bags_one_below_the_other_are_left_to_pytorch(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    module = Collection([bag(30, 8, rng), bag(20, 8, rng)], "one below the other")
    inputs = inputs_for(module, 4, rng, weighted=())
    check(daedal.compile(module, (inputs,), device=ddr3), module, inputs)


def test_no_bags(device: daedal.Device, rng: np.random.Generator) -> None:
    module = Collection([bag(30, 8, rng), bag(20, 5, rng, mode="mean")], "concatenated")
    executable = daedal.compile(module, (inputs_for(module, 3, rng, weighted=()),), device=device)
    empty = torch.zeros(0, dtype=torch.int64)
    check(executable, module, [(empty, empty)] * 2)
    check(executable, module, [(empty, torch.tensor([0, 0]))] * 2)


def test_more_widths_than_the_machine_keeps_are_several_launches(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    count = ddr3.config.lengths
    for tables, launches in ((count, 1), (count + 2, 2)):
        module = Collection([bag(9, 4 * n + 4, rng) for n in range(tables)], "concatenated")
        inputs = inputs_for(module, 3, rng, weighted=())
        check(daedal.compile(module, (inputs,), device=ddr3), module, inputs, launches)


def test_a_machine_that_cannot_walk_a_list_takes_the_tables_one_by_one(rng: np.random.Generator) -> None:
    small = dataclasses.replace(Config.preset("ddr3"), name="small", registers=5)
    module = Collection([bag(9, 8, rng) for _ in range(3)], "concatenated")
    inputs = inputs_for(module, 3, rng, weighted=())
    with daedal.Device.open("emulator", config=small) as device:
        check(daedal.compile(module, (inputs,), device=device), module, inputs, 3)


def test_many_tables_of_one_kind_are_one_nest(device: daedal.Device, rng: np.random.Generator) -> None:
    module = Collection([bag(5 + n, 12, rng) for n in range(40)], "concatenated")
    inputs = inputs_for(module, 3, rng, weighted=())
    executable = daedal.compile(module, (inputs,), device=device)
    check(executable, module, inputs)
    assert executable.asm().count("run = 0") == 1


def test_bags_of_short_rows_take_turns_over_all_tables_of_a_kind(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    for width, turns in ((4, 1), (16, 1), (64, 0)):
        module = Collection([bag(5 + n, width, rng, mode="mean", padding_idx=1) for n in range(4)], "concatenated")
        inputs = inputs_for(module, 11, rng, weighted=())
        executable = daedal.compile(module, (inputs,), device=ddr3)
        check(executable, module, inputs)
        assert executable.asm().count("deal=1") == turns


def test_operations_that_need_one_another_are_launches_of_their_own(
    ddr3: daedal.Device, rng: np.random.Generator
) -> None:
    class Chained(nn.Module):
        """The second operation's weights are made of the first one's result."""

        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = bag(9, 1, rng), bag(9, 8, rng), bag(9, 8, rng)

        def forward(self, inputs: tuple[Tensor, ...]) -> Tensor:
            indices, offsets, others = inputs
            scores = torch.tanh(self.a(indices, torch.arange(len(indices))))[:, 0]
            return torch.cat([self.b(indices, offsets, scores), self.c(others.flip(0), offsets)], 1)

    module = Chained()
    indices, offsets = random_bags(9, 5, rng, types=INT64)
    inputs = (indices, offsets[:-1], torch.randint(9, (len(indices),)))
    check(daedal.compile(module, (inputs,), device=ddr3), module, inputs, 2)


def test_a_table_that_is_changed_in_between(ddr3: daedal.Device, rng: np.random.Generator) -> None:
    class Changing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", wild_table(9, 8, rng))

        def forward(self, inputs: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            before = nn.functional.embedding_bag(*inputs[:1], self.table, inputs[1], mode="sum")
            self.table.mul_(0.5)
            return before, nn.functional.embedding_bag(inputs[0], self.table, inputs[1], mode="sum")

    indices, offsets = random_bags(9, 5, rng, types=INT64)
    inputs = (indices, offsets[:-1])
    module = Changing()
    start = module.table.clone()
    executable = daedal.compile(module, (inputs,), device=ddr3)
    module.table.copy_(start)
    expected = module(inputs)
    module.table.copy_(start)
    assert all(same_bits(*pair) for pair in zip(executable(inputs), expected, strict=True))


BAD: dict[str, tuple[int, tuple[Tensor, Tensor], type[Exception], str]] = {
    "index": (
        1,
        (torch.tensor([1, 2, 70, 3]), torch.tensor([0, 2])),
        daedal.IndexOutOfRange,
        "_1 of .*: index 70 .*20 rows",
    ),
    "negative index": (0, (torch.tensor([1, -4]), torch.tensor([0, 1])), daedal.IndexOutOfRange, "index -4 .*30 rows"),
    "huge index": (
        2,
        (torch.tensor([1, 1 << 40]), torch.tensor([0, 1])),
        daedal.IndexOutOfRange,
        f"_2 of .*weight: .*{1 << 40}",
    ),
    "decreasing": (
        1,
        (torch.tensor([1, 2, 3]), torch.tensor([0, 3, 1])),
        daedal.InvalidOffsets,
        "_1 of .*: .*but 1 is",
    ),
    "beyond": (
        0,
        (torch.tensor([1, 2, 3]), torch.tensor([0, 9, 3])),
        daedal.InvalidOffsets,
        "bag of .*: offset 9 points",
    ),
    "negative": (2, (torch.tensor([1, 2, 3]), torch.tensor([0, -2, 3])), daedal.InvalidOffsets, "_2 of .*: offset -2"),
    "first": (
        1,
        (torch.tensor([1, 2, 3]), torch.tensor([1, 2, 3])),
        daedal.InvalidOffsets,
        "_1 of .*: the first offset",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_inputs_name_the_operation_and_the_value(
    device: daedal.Device, case: str, rng: np.random.Generator
) -> None:
    module = Collection([bag(30, 8, rng), bag(20, 8, rng), bag(20, 5, rng)])
    good = inputs_for(module, 3, rng, weighted=())
    executable = daedal.compile(module, (good,), device=device)
    number, bad, kind, message = BAD[case]
    with pytest.raises(kind, match=message):
        executable([bad if n == number else each for n, each in enumerate(good)])
    check(executable, module, good)


def test_long_rows(device: daedal.Device, rng: np.random.Generator) -> None:
    """Rows that a vector register cannot hold are entries of the list of their own, a tile each."""
    module = Collection([bag(5, 1000, rng), bag(6, 77, rng, mode="mean"), bag(4, 520, rng, mode="max")], "concatenated")
    inputs = inputs_for(module, 3, rng, weighted=())
    check(daedal.compile(module, (inputs,), device=device), module, inputs)
