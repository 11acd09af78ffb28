"""Ancestors in forests."""

import random

import pytest

from netloop.model.nest.ancestry import Ancestry


@pytest.fixture(params=[0.2, 0.9, 1.0], ids=["bushy", "deep", "chain"])
def parents(request):
    """The parent of each of 300 nodes; in a deep forest it is often the node before."""
    draw = random.Random(7)
    found = {}
    for node in range(300):
        before = node - 1 if draw.random() < request.param else draw.randrange(-1, node)
        found[node] = before if before >= 0 else None
    return found


@pytest.fixture
def forest(parents):
    made = Ancestry()
    for node, parent in parents.items():
        made.add(node, parent)
    return made


def path(parents, node):
    """A node and all of its ancestors, from the root, which is None."""
    found = []
    while node is not None:
        found.append(node)
        node = parents[node]
    return [None, *reversed(found)]


def test_ancestors_are_the_nodes_on_the_path_from_the_root(parents, forest):
    for node in parents:
        wanted = path(parents, node)

        assert [forest.ancestor(node, depth) for depth in range(forest.depth(node) + 1)] == wanted


def test_common_ancestor_is_the_last_node_that_two_paths_share(parents, forest):
    draw = random.Random(8)
    for _ in range(500):
        one, other = draw.randrange(300), draw.randrange(300)
        shared = [a for a, b in zip(path(parents, one), path(parents, other), strict=False) if a == b]

        assert forest.common(one, other) == shared[-1]


def test_ancestor_of_a_deep_node_takes_few_steps():
    forest = Ancestry()
    for node in range(100_000):
        forest.add(node, node - 1 if node else None)

    assert forest.ancestor(99_999, 12_345) == 12_344
    assert forest.common(99_999, 55_555) == 55_555


def test_root_is_above_every_node(forest):
    assert forest.common(0, None) is None
    assert forest.parent(0) is None
    assert forest.depth(None) == 0
