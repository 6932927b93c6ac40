"""Tests of the queues."""
