"""The pages: what can be checked of them mechanically, and their examples."""
