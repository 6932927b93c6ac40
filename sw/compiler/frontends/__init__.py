"""Front ends: what turns a PyTorch module or exported program into operations of ``emb``."""
