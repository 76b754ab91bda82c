"""What is compared: comparisons, embeddings, and the labels of identities."""
