"""Many differences at once: one critical value for all of them."""
