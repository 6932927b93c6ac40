"""Daedal's tests."""
