"""Before the data: which comparisons to score, and how many people to recruit."""
