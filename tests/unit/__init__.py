"""Tests of single units of the machine."""
