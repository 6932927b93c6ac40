"""SavedModels without TensorFlow: their graphs and variables from files, and what of a graph NumPy computes."""
