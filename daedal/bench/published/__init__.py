"""Models that other people publish, as their packages have them."""
