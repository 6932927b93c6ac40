"""Random programs, legal and illegal, and what is in memory when they start."""
