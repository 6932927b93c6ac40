"""The workloads' data, and the comparison with PyTorch."""

import math
import re

import pytest
import torch
from torch.utils._pytree import tree_leaves

from daedal.bench.workloads import WORKLOADS, cases
from daedal.bench.workloads.runner import first_difference
from daedal.bench.workloads.text import numbered


@pytest.mark.parametrize("workload", WORKLOADS)
def test_cases_run_in_pytorch_and_are_the_same_each_time(workload):
    for one, two in zip(cases(workload), cases(workload), strict=True):
        assert one.workload == workload
        tensors = (tree_leaves(case.inputs) for case in (one, two))
        assert all(torch.equal(a, b) for a, b in zip(*tensors, strict=True))
        assert not first_difference(one.module(*one.inputs), two.module(*two.inputs))


def test_words_are_numbered_by_frequency():
    indices, offsets, words = numbered([["b", "a"], [], ["b", "c", "b"]])
    assert indices.tolist() == [0, 1, 0, 2, 0]
    assert offsets.tolist() == [0, 2, 2]
    assert words == 3


def test_unknown_workload():
    with pytest.raises(ValueError, match="workload must be one of text, dlrm, gather, not 'chess'"):
        cases("chess")


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ([[1.0, 2.0]], ""),
        (
            [[1.0, 3.0]],
            r"element \[0, 1\] must be 0x1.0000000000000p\+1 \(2\), not 0x1.8000000000000p\+1 \(3\)",
        ),
        ([[1.0, math.nan]], "element .* not nan"),
        ([[1.0], [2.0]], r"shape must be \(1, 2\) of torch.float32, not \(2, 1\) of torch.float32"),
    ],
)
def test_difference(output, text):
    found = first_difference(torch.tensor(output), torch.tensor([[1.0, 2.0]]))
    assert re.match(text, found) if text else not found


def test_nan_equals_nan_but_zero_has_a_sign():
    assert not first_difference(torch.tensor([math.nan]), -torch.tensor([math.nan]))
    assert first_difference(torch.tensor([0.0]), torch.tensor([-0.0]))


def test_difference_in_a_tuple():
    one, two = torch.zeros(2), torch.ones(2)
    assert first_difference((one, two), (one, one)).startswith("output 1: element [0]")
    assert first_difference((one,), (one, one)) == "there must be 2 outputs"
