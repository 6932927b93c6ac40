"""Hot rows: tables renumbered by how often their rows are read, and batches that read hot rows only."""
