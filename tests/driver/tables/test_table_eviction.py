"""Device memory that is full of tables: which go, which stay, and that results are right all the same."""

import gc

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import daedal
from daedal import f32, i64
from daedal.driver.tables.table_store import Use
from daedal.errors import OutOfDeviceMemory
from tests.compiler.layers.compiler_support import same_bits
from tests.compiler.torch.dynamo_support import Layer, fresh

__all__ = ["fresh"]

ROWS, WIDTH = 2048, 16
"""128 KiB a table: 1 MiB of device memory holds seven of them."""

B, D, N = daedal.dims("B D N")


@daedal.kernel
def chosen(out: f32[B, D], table: f32[N, D], idx: i64[B]):
    for b in range(B):
        for d in range(D):
            out[b, d] = table[idx[b], d]


@pytest.fixture
def small():
    with daedal.Device.open("emulator", memory_bytes=1 << 20) as opened:
        yield opened


def features(count: int) -> list[Tensor]:
    return [torch.randn(ROWS, WIDTH) for _ in range(count)]


EDGES = torch.randint(ROWS, (2, 50))


def messages(rows: Tensor) -> Tensor:
    return torch.zeros(40, WIDTH).index_add(0, EDGES[1] % 40, rows.index_select(0, EDGES[0]))


@pytest.mark.parametrize("way", ["call", "submit", "torch.compile", "kernel"])
def test_inputs_that_stay_alive(small: daedal.Device, way: str) -> None:
    held = features(20)
    idx = EDGES[0]
    out = torch.zeros(50, WIDTH)
    if way == "torch.compile":
        run = torch.compile(messages, backend="daedal", options={"device": small})
    elif way == "kernel":
        kernel = daedal.compile(chosen, (out, held[0], idx), device=small)
    else:
        run = daedal.compile(Layer(messages), (held[0],), device=small)
    with torch.no_grad():
        for rows in (*held, *held[::-1]):
            if way == "kernel":
                kernel(out, rows, idx)
                assert same_bits(out, rows[idx])
            else:
                got = run.submit(rows).result() if way == "submit" else run(rows)
                assert same_bits(got, messages(rows))


def test_many_that_are_submitted_before_one_is_waited_for(small: daedal.Device) -> None:
    """What launches in work read stays until they have ended."""
    held = features(20)
    executable = daedal.compile(Layer(messages), (held[0],), device=small)
    futures = [executable.submit(rows) for rows in held]
    assert all(same_bits(future.result(), messages(rows)) for future, rows in zip(futures, held, strict=True))


def test_results_of_launches_in_work_make_room(small: daedal.Device) -> None:
    table, indices = torch.randn(100, WIDTH), torch.randint(100, (3000,))
    executable = daedal.compile(Layer(lambda t, i: functional.embedding(i, t)), (table, indices), device=small)
    futures = [executable.submit(table, indices) for _ in range(12)]
    assert all(same_bits(future.result(), table[indices]) for future in futures)


class Recommender(nn.Module):
    """Tables of its own, and one that is an input."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(ROWS, WIDTH, mode="sum") for _ in range(count))

    def forward(self, indices: Tensor, rows: Tensor) -> Tensor:
        bags = [table(indices) for table in self.tables]
        return torch.cat([*bags, functional.embedding_bag(indices, rows, mode="sum")], 1)


@pytest.mark.parametrize("backend", ["daedal.compile", "torch.compile"])
def test_parameters_go_last(small: daedal.Device, backend: str) -> None:
    module, held, indices = Recommender(3), features(8), torch.randint(ROWS, (4, 5))
    with torch.no_grad():
        if backend == "torch.compile":
            run = torch.compile(module, backend="daedal", options={"device": small})
        else:
            run = daedal.compile(module, (indices, held[0]), device=small)
        for number, rows in enumerate((*held, *held)):
            uploads = small.table_uploads
            assert same_bits(run(indices, rows), module(indices, rows))
            assert small.table_uploads == uploads + 1 or not number, "parameters are not uploaded again"


def test_parameters_go_and_come_back(small: daedal.Device) -> None:
    modules, indices = [Recommender(4) for _ in range(3)], torch.randint(ROWS, (4, 5))
    rows = features(1)[0]
    executables = [daedal.compile(module, (indices, rows), device=small) for module in modules]
    for _ in range(3):
        for module, executable in zip(modules, executables, strict=True):
            assert same_bits(executable(indices, rows), module(indices, rows).detach())
            with torch.no_grad():
                module.get_parameter("tables.2.weight").mul_(2)
            assert same_bits(executable.submit(indices, rows).result(), module(indices, rows).detach())


def test_what_was_used_longest_ago_goes_first(small: daedal.Device) -> None:
    held = [(f"t{number}", rows) for number, rows in enumerate(features(6))]
    for name, rows in held:
        small.bind_table(name, rows, use=Use.INPUT)
    small.bind_table("t0", held[0][1], use=Use.PARAMETER)
    assert small.find_tables([held[1][1]]) == [small.tables["t1"]]
    others = features(4)
    for number, rows in enumerate(others):
        small.bind_table(f"u{number}", rows, use=Use.INPUT)
    assert set(small.tables) == {"t0", "t1", "t5", "u0", "u1", "u2", "u3"}
    assert small.find_tables([held[2][1]]) == [None]


def test_only_what_one_launch_needs_must_fit(small: daedal.Device) -> None:
    held, idx = features(2), EDGES[0]
    kernel = daedal.compile(chosen, (torch.zeros(50, WIDTH), held[0], idx), device=small)
    module = Recommender(8)
    executable = daedal.compile(module, (EDGES, held[0]), device=small)
    for _ in range(2):
        assert same_bits(executable(EDGES, held[0]), module(EDGES, held[0]))
        assert executable.stats.launches > 1, "all at once do not fit"
        for rows in held:
            out = torch.zeros(50, WIDTH)
            kernel(out, rows, idx)
            assert same_bits(out, rows[idx])


def test_tables_of_which_somebody_has_the_address_stay(small: daedal.Device) -> None:
    kept = features(5)
    held = [small.bind_table(f"held{number}", rows) for number, rows in enumerate(kept)]
    executable = daedal.compile(Layer(messages), (kept[0],), device=small)
    for rows in features(6):
        assert same_bits(executable(rows), messages(rows))
    assert [small.tables[f"held{number}"] for number in range(5)] == held
    more = features(5)
    with pytest.raises(OutOfDeviceMemory):
        [small.bind_table(f"more{number}", rows) for number, rows in enumerate(more)]
    del kept, more
    gc.collect()
    assert small.bind_table("all", np.zeros((6 * ROWS, WIDTH), np.float32)).rows == 6 * ROWS


def test_room_for_one_large_table_is_made_of_many_small_ones() -> None:
    """More of them than Python has frames."""
    with daedal.Device.open("emulator", memory_bytes=20 << 20) as device:
        held = [np.zeros((1, 1), np.float32) for _ in range(1150)]
        for number, rows in enumerate(held):
            device.bind_table(f"t{number}", rows, use=Use.INPUT)
        assert device.bind_table("large", np.zeros((1 << 17, 28), np.float32)).dim == 28


def test_tables_whose_sources_hang_in_cycles_make_room(small: daedal.Device) -> None:
    gc.disable()
    try:
        for number in range(12):
            cycle: list[object] = [rows := torch.randn(ROWS, WIDTH)]
            cycle.append(cycle)
            small.bind_table(f"t{number}", rows)
    finally:
        gc.enable()


def test_a_table_that_was_dropped_by_half_is_made_again(small: daedal.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt from the keyboard may come between any two steps."""

    class Interrupted(dict[object, str]):
        def __delitem__(self, key: object) -> None:
            raise KeyboardInterrupt

        def pop(self, key: object, *default: object) -> str:
            raise KeyboardInterrupt

    rows = np.ones((4, 4), np.float32)
    small.bind_table("t", rows)
    with monkeypatch.context() as interrupted:
        interrupted.setattr(small._tables, "_names", Interrupted(small._tables._names))
        with pytest.raises(KeyboardInterrupt):
            small.drop_table("t")
    assert small.bind_table("t", rows) in small.tables.values()
    small.drop_table("t")
    assert not small.tables
