"""Which instances stand for two identities when they are compared again: the least visited pair not compared yet.

The paper's Algorithm 1 applied to instances within identities. It walks through comparisons one by one, so it is used
where that is cheap; `protocol` has a formula for the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchbound.kernels.compiling import compiled


@compiled()
def take_turns(which: Any, a: Any, b: Any, size: Any, start: Any, first: Any, second: Any, done: int) -> None:
    """Fill `first` and `second` from place `done` on, in place.

    `which`, shape (B,), numbers the identity pair of each comparison; the first `done` are the pairs 0, 1, … once each.
    `a` and `b`, shape (P,), are the identities of each pair, whose instances among all n are `size` many from `start`
    on, shape (G,). `first` and `second`, shape (B,), are instances (0..n−1).
    """
    pairs = a.shape[0]
    offset = np.zeros(pairs + 1, dtype=np.int64)
    for p in range(pairs):
        offset[p + 1] = offset[p] + size[a[p]] * size[b[p]]
    used = np.zeros(offset[pairs], dtype=np.uint8)
    visits = np.zeros(start[-1] + size[-1], dtype=np.int64)
    for c in range(which.shape[0]):
        p = which[c]
        i, j = a[p], b[p]
        wide = size[j]
        if c >= done:
            best, best_x, best_y = np.int64(-1), 0, 0
            for x in range(size[i]):
                visits_x = visits[start[i] + x]
                if best >= 0 and visits_x > best:
                    continue
                for y in range(wide):
                    if used[offset[p] + x * wide + y]:
                        continue
                    cost = visits_x + visits[start[j] + y]
                    if best < 0 or cost < best:
                        best, best_x, best_y = cost, x, y
            first[c], second[c] = start[i] + best_x, start[j] + best_y
        x, y = first[c] - start[i], second[c] - start[j]
        used[offset[p] + x * wide + y] = 1
        visits[first[c]] += 1
        visits[second[c]] += 1
