"""Attention kernels for grouped-query models on MLX; knows nothing of chat."""
