"""Files and frames into comparisons and embeddings."""
