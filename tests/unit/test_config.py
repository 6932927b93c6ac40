"""Configurations made in Python: a wrong value is a ValueError that names the field; equal ones have one hash."""

import re
from typing import Any

import numpy as np
import pytest

from daedal.hw.config.core import Config


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"levels": "4"}, "levels must be from 1 to 6, not '4'"),
        ({"levels": None}, "levels must be from 1 to 6, not None"),
        ({"levels": 2.0}, "levels must be from 1 to 6, not 2.0"),
        ({"levels": 10**10}, "levels must be from 1 to 6, not 10000000000"),
        ({"ports": 16**5000}, "ports must be from 1 to 16, not 0x10000"),
        ({"scalars": False}, "scalars must be from 0 to 16, not False"),
        ({"alus": 2}, "alus must have 4 entries (one per level), not 2"),
        ({"alus": {1, 2}}, "alus must have 4 entries (one per level), not {1, 2}"),
        ({"alus": range(4)}, "alus must have 4 entries (one per level), not range(0, 4)"),
        ({"alus": (2, 2, 1, True)}, "alus of a level must be from 0 to 4, not True"),
        ({"shifters": None}, "shifters must have 4 entries (one per level), not None"),
        ({"shifters": (1, 0, 0, 2)}, "shifters of a level must be from 0 to 1, not 2"),
        ({"contexts": 7}, "contexts must have 4 entries (one per level), not 7"),
        ({"contexts": ""}, "contexts must have 4 entries (one per level), not ''"),
        ({"name": {}}, "name must be up to 64 letters, digits, '.', '-' and '_', not {}"),
        ({"name": "a/b"}, "name must be up to 64 letters, digits, '.', '-' and '_', not 'a/b'"),
        ({"sequential_loads": (3, 2, 2, 1), "random_loads": (2, 1, 0, 0)}, "loads of level 0 must be at most 4 in all"),
        ({"vector_beats": 16}, "vector_beats must be at least 32, not 16"),
        ({"instructions": 3}, "instructions must be at least 4 where instructions are not 0, not 3"),
        ({"callbacks": 1}, "callbacks must be at least 2 where instructions are not 0, not 1"),
        ({"lengths": 0}, "lengths must be at least 1 where instructions are not 0, not 0"),
        ({"instructions": 0}, "callbacks must be 0 without an execute unit (instructions is 0), not 16"),
        (
            {"instructions": 0, "callbacks": 0, "lengths": 0, "kept_beats": 9},
            "kept_beats must be 0 without an execute unit (instructions is 0), not 9",
        ),
        ({"lanes": 32}, "lanes must be from 1 to 16, not 32"),
        ({"lookahead_lines": 16}, "lookahead_lines must be at least 2 * lookahead_burst, 32, not 16"),
    ],
)
def test_what_cannot_be(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        Config(**values)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    "values",
    [{"shifters": (1, 0, 0, 0)}, {"sequential_loads": [2, 2, 2, 1]}, {"ports": np.int64(8)}, {"contexts": []}],
)
def test_equal_machines_have_equal_hashes(values: dict[str, Any]) -> None:
    assert Config(**values) == Config() and Config(**values).hash == Config().hash
    assert repr(Config(**values)) == repr(Config())
