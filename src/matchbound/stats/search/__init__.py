"""Statistics of searches in a gallery (1:N): variances, intervals, other gallery sizes."""
