"""Scalar loads: sequential ones with lines fetched ahead of use, and random ones."""
