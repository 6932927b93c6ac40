"""A plugin of pytest that puts a mutation of RTL into every design that a test makes and that has the cell."""

import json
import os

import pytest
from amaranth.back import rtlil

from tests.mutate.operators.netlist import Mutation, mutated, without_sources

MUTATION = "DAEDAL_MUTATION"
"""The environment variable that has the mutation, as JSON."""


def pytest_configure(config: pytest.Config) -> None:
    """Have Amaranth, when it writes a design for Verilog or for a proof, write the mutated one."""
    fields = json.loads(os.environ[MUTATION])
    mutation = Mutation(**{**fields, "place": tuple(fields["place"])})
    original = rtlil.convert_fragment

    def convert_fragment(*arguments: object, emit_src: bool = True, **options: object) -> tuple[str, object]:
        text, names = original(*arguments, emit_src=True, **options)
        text = mutated(text, mutation) or text
        return text if emit_src else without_sources(text), names

    rtlil.convert_fragment = convert_fragment
