"""Open, fetch and write files. Knows nothing of what is in them."""
