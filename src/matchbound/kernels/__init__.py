"""Compiled numerics on plain arrays that are known to be good. They validate nothing and know no other layer."""
