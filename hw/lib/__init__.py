"""Small helpers that any unit may use: registers for many readers, names and styles for the tools, resets."""
