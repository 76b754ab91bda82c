"""Readers for the file layouts of other tools, one module per family; `matchbound.read` finds them by name."""
