"""Slow, literal twins of what the readers compute."""

from __future__ import annotations


def components_by_search(n: int, edges: list[tuple[int, int]]) -> list[int]:
    """The smallest node that can be reached from each node, by walking the graph."""
    neighbours: dict[int, set[int]] = {node: set() for node in range(n)}
    for a, b in edges:
        neighbours[a].add(b)
        neighbours[b].add(a)
    found = []
    for node in range(n):
        seen, todo = {node}, [node]
        while todo:
            for other in neighbours[todo.pop()] - seen:
                seen.add(other)
                todo.append(other)
        found.append(min(seen))
    return found
