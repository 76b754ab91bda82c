"""What is counted: the nouns that statistics start from."""
