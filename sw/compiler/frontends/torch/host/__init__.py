"""What of a graph PyTorch itself runs, and what running it changes in the process."""
