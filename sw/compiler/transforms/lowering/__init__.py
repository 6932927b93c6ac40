"""Passes from one level to the next."""
