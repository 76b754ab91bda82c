"""Data into counts: in blocks, on threads or a cluster, with checkpoints."""
