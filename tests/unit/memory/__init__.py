"""Tests of the memory paths."""
