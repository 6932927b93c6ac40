"""Tests of the access unit and of the reference interpreter it is compared with."""
