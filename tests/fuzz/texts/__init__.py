"""Damaged texts for whatever reads text, bytes or a file from a user: each ends in a result or in one line."""
