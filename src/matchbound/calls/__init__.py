"""The public calls: check the arguments, count, hand out a result."""
