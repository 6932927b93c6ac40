"""The compiler: from PyTorch, or from plain loops, to the bytes that the machine executes.

Levels: ``emb`` → ``scf`` → ``slc`` → ``slcv`` → ``dlc`` → machine words; see docs/compiler.md.
"""
