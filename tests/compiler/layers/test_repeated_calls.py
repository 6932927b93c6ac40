"""Operations that are a launch of their own, called again and again: quick for the same sizes, and right for others."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import daedal
from daedal.hw.config.core import Config
from daedal.runtime.executable import Executable
from daedal.runtime.single_path import SinglePath
from tests.compiler.layers.compiler_support import ddr3, same_bits

__all__ = ["ddr3"]

ROWS = 30


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each time that the quick way was asked, whether it was taken."""
    taken: list[bool] = []
    start = SinglePath.start

    def seen(path: SinglePath, sources: Any) -> Any:
        found = start(path, sources)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(SinglePath, "start", seen)
    return taken


def indices(*shape: int) -> Tensor:
    return torch.randint(0, ROWS, shape)


def ragged(bags: int, kind: torch.dtype = torch.int64, *, closed: bool = False) -> tuple[Tensor, Tensor]:
    """So many bags of two rows each."""
    ends = torch.arange(0, 2 * bags + 1, 2, dtype=kind)
    return indices(2 * bags).to(kind), ends if closed else ends[:-1]


CASES: dict[str, tuple[nn.Module, Callable[[int], tuple[Any, ...]]]] = {
    "sum": (nn.EmbeddingBag(ROWS, 8, mode="sum"), ragged),
    "mean": (nn.EmbeddingBag(ROWS, 12, mode="mean"), ragged),
    "int32": (nn.EmbeddingBag(ROWS, 8, mode="max"), lambda bags: ragged(bags, torch.int32)),
    "closed": (
        nn.EmbeddingBag(ROWS, 8, mode="sum", include_last_offset=True),
        lambda bags: ragged(bags, closed=True),
    ),
    "padding": (nn.EmbeddingBag(ROWS, 8, mode="sum", padding_idx=3), ragged),
    "weights": (nn.EmbeddingBag(ROWS, 8, mode="sum"), lambda bags: (*ragged(bags), torch.randn(2 * bags))),
    "2-D": (nn.EmbeddingBag(ROWS, 8, mode="sum"), lambda bags: (indices(bags, 4),)),
    "2-D weights": (nn.EmbeddingBag(ROWS, 8, mode="sum"), lambda b: (indices(b, 4), None, torch.randn(b, 4))),
    "lookup": (nn.Embedding(ROWS, 8), lambda bags: (indices(bags, 2, 3),)),
    "odd rows": (
        nn.Embedding.from_pretrained(torch.randint(-9, 9, (ROWS, 3), dtype=torch.int8)),
        lambda bags: (indices(bags),),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_again_and_again(ddr3: daedal.Device, quick: list[bool], case: str) -> None:
    """New values in each call, other sizes and back, and what the module gives each time."""
    module, batch = CASES[case]
    with torch.no_grad():
        executable = daedal.compile(module, batch(3), device=ddr3)
        for bags in (3, 3, 3, 3, 5, 1, 3, 3, 3, 3):
            given = batch(bags)
            ours, theirs = executable(*given), module(*given)
            assert torch.equal(ours, theirs) and ours.dtype is theirs.dtype
        assert executable.stats.launches == 1
    assert sum(quick) == (0 if case == "odd rows" else 4), "the third time in a row, and so on"


def test_results_are_apart(ddr3: daedal.Device) -> None:
    """Of queued launches as well."""
    module = nn.EmbeddingBag(ROWS, 8, mode="sum")
    with torch.no_grad():
        executable = daedal.compile(module, ragged(3), device=ddr3)
        batches = [ragged(3) for _ in range(12)]
        wanted = [module(*each) for each in batches]
        assert all(map(same_bits, [executable(*each) for each in batches], wanted))
        futures = [executable.submit(*each) for each in batches]
        assert all(same_bits(future.result(), each) for future, each in zip(futures, wanted, strict=True))


def test_what_is_wrong_is_said_as_always(ddr3: daedal.Device, quick: list[bool]) -> None:
    """The first time and after quick calls: the same errors, in words of the inputs, and good calls go on."""
    module = nn.EmbeddingBag(ROWS, 8, mode="sum")
    values, offsets = ragged(3)
    bad: list[tuple[Tensor, Tensor]] = []
    for value in (ROWS, -1):
        bad.append((values.clone(), offsets))
        bad[-1][0][4] = value
    bad += [(values, offsets + 1), (values[:3], offsets), (values, torch.tensor([0, 4, 2])), (values, offsets.float())]

    def errors(executable: Executable, calls: int) -> Iterator[str]:
        for each in bad:
            for _ in range(calls):
                executable(values, offsets)
            with pytest.raises(daedal.DaedalError) as caught:
                executable(*each)
            yield f"{type(caught.value).__name__}: {caught.value}"

    with torch.no_grad():
        first = list(errors(daedal.compile(module, (values, offsets), device=ddr3), 0))
        assert not any(quick)
        free = ddr3.free_bytes
        executable = daedal.compile(module, (values, offsets), device=ddr3)
        assert list(errors(executable, 4)) == first
        assert any(quick) and ddr3.free_bytes == free
        assert "number 4 of the indices" in first[0] and "index 30" in first[0]
        assert same_bits(executable(values, offsets), module(values, offsets))


def test_tables_that_change(ddr3: daedal.Device, quick: list[bool]) -> None:
    """Its content, however; another parameter; another mode of PyTorch's."""
    module = nn.Embedding(ROWS, 8)

    def changes() -> Iterator[None]:
        with torch.no_grad():
            module.weight.mul_(2)
        yield
        module.weight.data[3] += 1
        yield
        module.weight.detach().numpy()[:] *= -1
        yield
        module.weight = nn.Parameter(torch.randn(ROWS, 8))
        yield
        module.weight.data = torch.randn(ROWS, 8)
        yield
        module.weight.requires_grad_(False)
        yield

    given = (torch.arange(ROWS),)
    executable = daedal.compile(module, given, device=ddr3)
    for _ in changes():
        with torch.no_grad():
            for _ in range(4):
                assert same_bits(executable(*given), module(*given))
    with torch.inference_mode():
        assert same_bits(executable(*given), module(*given))
    with torch.no_grad():
        assert same_bits(executable(*given), module(*given))
    assert sum(quick) >= 12


def test_warnings_go_on(ddr3: daedal.Device) -> None:
    module = nn.Embedding(ROWS, 8)
    executable = daedal.compile(module, (indices(4),), device=ddr3, bounds="warn")
    given = torch.tensor([1, 99, 2, 3])
    with torch.no_grad():
        for _ in range(5):
            with pytest.warns(daedal.BoundsWarning, match="99"):
                result = executable(given)
            assert same_bits(result, module(torch.tensor([1, 0, 2, 3])))


class Apart(nn.Module):
    """Lookups in a table that is made and in one of the module's own, with PyTorch between."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(ROWS, 8)

    def forward(self, given: Tensor, keys: Tensor) -> Tensor:
        rows = self.table(keys)
        return nn.functional.embedding(keys, given * 2) + torch.relu(rows)


def test_a_table_that_is_made(ddr3: daedal.Device) -> None:
    module = Apart()
    executable = daedal.compile(module, (torch.randn(ROWS, 8), indices(4)), device=ddr3)
    with torch.no_grad():
        for _ in range(5):
            given = torch.randn(ROWS, 8), indices(4)
            assert same_bits(executable(*given), module(*given))


def test_means_of_bags_that_become_long(quick: list[bool]) -> None:
    """Sizes stay as they are, but one of two bags has more rows than a bfloat16 can count."""
    config = replace(Config.preset("ddr3"), name="bfloat16", bfloat16=1)
    module = nn.EmbeddingBag(ROWS, 8, mode="mean").to(torch.bfloat16)
    for count, is_quick in ((200, True), (400, False)):
        values, quick[:] = indices(count), []
        with daedal.Device.open("emulator", config=config) as opened, torch.no_grad():
            executable = daedal.compile(module, (values, torch.tensor([0, 20])), device=opened)
            for second in (20, 150, 180, 40, 1, 199, 100):
                given = values, torch.tensor([0, second])
                try:
                    wanted = module(*given)
                    assert torch.equal(executable(*given), wanted)
                except daedal.UnsupportedOperation:
                    assert count - second > 256
        assert any(quick) is is_quick
