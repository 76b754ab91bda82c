"""How numbers, tables and pictures look."""
