"""Best one-to-one matching: never greedy, so that the order in which things are listed changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def largest_matching(edges: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """A largest one-to-one assignment of left to right nodes.

    Args:
        edges: for each left node the right nodes that it may be given.

    Returns:
        Left node to right node. Left nodes listed earlier are never dropped for later ones.

    Source: augmenting paths (Kuhn 1955), searched breadth first, so that no depth of recursion is needed.

    >>> largest_matching({0: [10, 11], 1: [10]})
    {0: 11, 1: 10}
    """
    left_of: dict[int, int] = {}
    given: dict[int, int] = {}
    for root in edges:
        parent: dict[int, int] = {}
        queue = [root]
        free: int | None = None
        for left in queue:
            for right in edges[left]:
                if right in parent:
                    continue
                parent[right] = left
                if right not in left_of:
                    free = right
                    break
                queue.append(left_of[right])
            if free is not None:
                break
        while free is not None:  # flip the path that was found
            left, right = parent[free], free
            free = given.get(left)
            left_of[right], given[left] = left, right
    return given
