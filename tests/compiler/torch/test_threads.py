"""Threads that compile at the same time, and run modules while others compile."""

import sys
import threading
from collections.abc import Iterator

import pytest
import torch
from torch import nn

import daedal
from tests.compiler.layers.compiler_support import ddr3, same_bits

__all__ = ["ddr3"]


@pytest.fixture
def hurry() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_compile(ddr3: daedal.Device, hurry: None) -> None:
    """PyTorch's traces change ``nn.Module`` for all threads."""
    indices, offsets = torch.randint(0, 20, (12,)), torch.tensor([0, 4, 8])
    wrong: list[object] = []

    def work(number: int) -> None:
        try:
            for k in range(12):
                bags, rows = nn.EmbeddingBag(20, 8 + number, mode="sum"), nn.Sequential(nn.Embedding(20, 8 + number))
                module, inputs = (bags, (indices, offsets)) if k % 2 else (rows, (indices,))
                with torch.no_grad():
                    executable = daedal.compile(module, inputs, device=ddr3)
                    wrong.extend(number for _ in range(3) if not same_bits(executable(*inputs), module(*inputs)))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert same_bits(nn.Sequential(nn.Identity())(offsets), offsets)
