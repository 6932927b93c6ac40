"""Mutations that a program makes: by operators over a syntax tree, and by Yosys."""
