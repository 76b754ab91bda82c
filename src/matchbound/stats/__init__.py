"""Statistics: pure functions of counts and arrays."""
