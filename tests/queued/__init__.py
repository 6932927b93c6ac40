"""Launches queued behind each other on simulated machines, with register accesses while they run."""
