"""Readers for the file layouts of other tools, one module a family; `matchbound.read` finds them by name."""
