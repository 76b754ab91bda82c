"""Data that can be counted: comparisons, embeddings and candidate lists, with one rule for labels and for scores.

It is larger than its budget by checks of input, by the wording of messages and notes, and by the example files.
"""
