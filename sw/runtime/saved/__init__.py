"""Executables as files: what is in one, and how that is written and read; docs/files.md describes the format."""
