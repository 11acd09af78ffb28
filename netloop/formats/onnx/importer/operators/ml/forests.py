"""Trees of the operators TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier, as arrays.

A node of a ``Forest`` tests ``x <= split`` or, if it is marked, ``x == split``. Every other comparison is one of these
with another split or with its children exchanged, so that the loop over the levels compares once.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from netloop.formats.onnx.importer.call import NodeCall
from netloop.values.diagnostics import quoted, require
from netloop.values.string_arrays import type_name
from netloop.values.types import Array

LARGEST_TABLE = 1 << 29
"""The most weights of leaves, counting those that are 0."""

LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF = range(8)
MODES = {f"BRANCH_{name}": mode for mode, name in enumerate(("LEQ", "LT", "GTE", "GT", "EQ", "NEQ"))} | {"LEAF": LEAF}


@dataclass(frozen=True)
class Forest:
    """Trees whose nodes have consecutive numbers: the inner nodes first, then the leaves.

    Attributes:
        features: the feature that each inner node tests.
        splits: the number that it compares the feature with.
        equal: whether it tests ``x == split``, and not ``x <= split``.
        missing: whether NaN takes the branch of a true test.
        yes: the child where the test is true.
        no: the child where it is false.
        roots: the first node of each tree.
        weights: the contribution of each leaf to each target, NaN where it has none; [leaf, target].
    """

    features: Array
    splits: Array
    equal: Array
    missing: Array
    yes: Array
    no: Array
    roots: Array
    weights: Array

    @staticmethod
    def of(call: NodeCall, nodes: "Nodes", roots: Array, weights: Array, dtype: Any) -> "Forest":
        """Return the trees of nodes with comparisons of all modes, which compare numbers of type ``dtype``."""
        modes, splits, count = nodes.modes, nodes.splits.astype(dtype), len(call.attribute("nodes_featureids", []))
        swapped = np.isin(modes, (GTE, GT, NEQ))
        strict = np.isin(modes, (LT, GTE))
        tracks = np.array(call.attribute("nodes_missing_value_tracks_true", []), np.int64)
        require(
            len(tracks) in (0, count), f"nodes_missing_value_tracks_true has {len(tracks)} numbers for {count} nodes"
        )
        missing = tracks[nodes.inner] == 1 if len(tracks) else np.zeros(len(modes), bool)
        forest = Forest(
            features=nodes.features,
            splits=np.where(strict, _before(splits), splits),
            equal=np.isin(modes, (EQ, NEQ)),
            missing=np.where(swapped, ~missing & (modes != NEQ), missing),
            yes=np.where(swapped, nodes.no, nodes.yes),
            no=np.where(swapped, nodes.yes, nodes.no),
            roots=roots,
            weights=weights.astype(dtype),
        )
        forest.check()
        return forest

    def check(self) -> None:
        """Report children and roots that are no nodes.

        Raises:
            LayerError: if there are any.
        """
        count = len(self.features) + len(self.weights)
        for name, array in (("a child", np.concatenate([self.yes, self.no])), ("a root", self.roots)):
            wrong = array[(array < 0) | (array >= count)].tolist()
            require(not wrong, f"{name} is node {wrong and wrong[0]}, and there are {count} nodes and leaves")

    @cached_property
    def _levels(self) -> tuple[Array, Array, Array]:
        """The longest path from the root to a leaf, of each tree; and all leaves, with the tree of each."""
        inner, depth = len(self.features), 0
        depths: Array = np.zeros(len(self.roots), np.int64)
        leaves: list[Array] = [np.zeros((2, 0), np.int64)]
        place: Array = np.stack([self.roots, np.arange(len(self.roots))])
        while place.size:
            below = place[0] < inner
            leaves.append(place[:, ~below] - [[inner], [0]])
            node, tree = place[:, below]
            require(not tree.size or depth < inner, "the nodes of a tree lead back to themselves")
            depth += 1
            depths[tree] = depth
            # a node that several parents share is followed once; sorted like this ten times faster than by np.unique
            children = np.sort(np.concatenate([self.yes[node], self.no[node]]) * len(depths) + np.tile(tree, 2))
            place = np.stack(np.divmod(children[np.diff(children, prepend=-1) > 0], len(depths)))
        leaf, tree = np.concatenate(leaves, axis=1)
        return depths, leaf, tree

    @property
    def depths(self) -> Array:
        """The longest path from the root to a leaf, of each tree."""
        return self._levels[0]

    @cached_property
    def held(self) -> Array:
        """Whether a leaf contributes to a target; [leaf, target]."""
        return ~np.isnan(self.weights)

    @property
    def always_reached(self) -> bool:
        """Whether a sample reaches leaves that contribute to all targets, whatever its features are."""
        _, leaf, tree = self._levels
        without = np.zeros((len(self.roots), self.held.shape[1]), bool)
        np.logical_or.at(without, tree, ~self.held[leaf])
        return bool((~without).any(0).all())


def _before(splits: Array) -> Array:
    """The largest numbers below others, so that ``x < split`` becomes ``x <= before``.

    Compiled code takes subnormal numbers for 0, so that none may be the result.
    """
    tiny = np.finfo(splits.dtype).tiny
    below = np.nextafter(splits, -np.inf, dtype=splits.dtype)
    below = np.where(np.isneginf(splits), np.nan, below)
    return np.where((below < 0) & (below > -tiny), -tiny, below).astype(splits.dtype)


@dataclass(frozen=True)
class Nodes:
    """The inner nodes of trees, as a model has them.

    Attributes:
        inner: their places in the attributes of the model.
        features: the feature that each tests.
        splits: the number that it compares the feature with.
        modes: the comparison; a number from LEQ to NEQ.
        yes: the child where the test is true.
        no: the child where it is false.
    """

    inner: Array
    features: Array
    splits: Array
    modes: Array
    yes: Array
    no: Array


# ---------------------------------------------------------------------------- leaves apart from inner nodes


def forest_of_arrays(call: NodeCall, dtype: Any) -> Forest:
    """The trees of a TreeEnsemble, whose leaves are numbered apart from the inner nodes."""
    features, modes = (_column(call, name) for name in ("nodes_featureids", "nodes_modes"))
    count, targets = len(features), _column(call, "leaf_targetids")
    values, splits = _floats(call, "leaf_weights"), _floats(call, "nodes_splits")
    require(len(values) == len(targets), f"there are {len(targets)} leaf_targetids and {len(values)} leaf_weights")
    require(len(splits) == len(modes) == count, f"there are {count} nodes, {len(modes)} modes and {len(splits)} splits")
    sets = _sets(call, modes)
    extra = sum(max(len(set_) - 1, 0) for set_ in sets.values())
    yes, no = (
        _column(call, f"nodes_{way}nodeids", count) + (count + extra) * (_column(call, f"nodes_{way}leafs", count) != 0)
        for way in ("true", "false")
    )
    nodes = _without_sets(Nodes(np.arange(count), features, splits, modes, yes, no), sets)
    size = call.attribute("n_targets", int(targets.max(initial=-1)) + 1)
    weights = _weights("leaf_targetids", size, len(targets), np.arange(len(targets)), targets, values)
    return Forest.of(call, nodes, _column(call, "tree_roots"), weights, dtype)


def _sets(call: NodeCall, modes: Array) -> dict[int, Array]:
    """The sets of the MEMBER nodes."""
    members, nodes = call.attribute("membership_values"), np.flatnonzero(modes == MEMBER).tolist()
    if not nodes:
        return {}
    require(members is not None, "nodes test for members of a set, and there are no membership_values")
    members = _floats(call, "membership_values")
    ended = members if np.isnan(members[-1:]).any() else np.append(members, np.nan)
    ends = np.flatnonzero(np.isnan(ended)).tolist()
    require(len(ends) == len(nodes), f"{len(nodes)} nodes test for members of a set, and there are {len(ends)} sets")
    starts = [0, *(end + 1 for end in ends)]
    return {node: ended[start:end] for node, start, end in zip(nodes, starts, ends, strict=False)}


def _without_sets(nodes: Nodes, sets: dict[int, Array]) -> Nodes:
    """The nodes, with a chain of EQ nodes for each MEMBER node.

    The first of a chain has the number of its node; the others follow all nodes.
    """
    features, splits, modes, yes, no, inner = (
        [array]
        for array in (nodes.features, nodes.splits.copy(), nodes.modes.copy(), nodes.yes, nodes.no.copy(), nodes.inner)
    )
    end = len(nodes.features)
    for node, members in sets.items():
        more = max(len(members) - 1, 0)
        splits[0][node], modes[0][node] = members[0] if len(members) else np.nan, EQ
        chain = np.append(np.arange(end, end + more), nodes.no[node])
        no[0][node] = chain[0]
        for column, values in ((features, nodes.features[node]), (modes, EQ), (yes, nodes.yes[node]), (inner, node)):
            column.append(np.full(more, values))
        splits.append(members[1:])
        no.append(chain[1:])
        end += more
    joined = (np.concatenate(entry) for entry in (inner, features, splits, modes, yes, no))
    return Nodes(*joined)


# ---------------------------------------------------------------------------- inner nodes and leaves in one list


def forest_of_list(call: NodeCall, weighted: str, dtype: Any, size: int | None = None) -> Forest:
    """The trees of a node whose inner nodes and leaves are in one list.

    ``weighted`` begins the names of the attributes of the leaves: ``target`` or ``class``. There are ``size`` targets,
    or, if it is None, as many as the attribute ``n_targets`` says.
    """
    trees = _column(call, "nodes_treeids")
    count = len(trees)
    words, values = call.attribute("nodes_modes", []), numbers(call, "nodes_values")
    require(len(words) == len(values) == count, f"there are {count} nodes, {len(words)} modes and {len(values)} values")
    wrong = [word for word in words if word not in MODES]
    require(not wrong, f"no mode of a node is called {quoted(wrong and wrong[0])}")
    modes = np.array([MODES[word] for word in words], np.int64)
    inner, leaves = (np.flatnonzero(value) for value in (modes != LEAF, modes == LEAF))
    place = np.empty(count, np.int64)
    place[np.concatenate([inner, leaves])] = np.arange(count)
    index = _NodeIndex(trees, _column(call, "nodes_nodeids", count))
    ways = (_column(call, f"nodes_{way}nodeids", count)[inner] for way in ("true", "false"))
    yes, no = (place[index.find(trees[inner], way, "is a child")] for way in ways)
    features = _column(call, "nodes_featureids", count)[inner]
    nodes = Nodes(inner, features, values[inner], modes[inner], yes, no)
    weights = _leaf_weights(call, weighted, index, place - len(inner), len(leaves), size)
    first = np.sort(np.unique(trees, return_index=True)[1])
    return Forest.of(call, nodes, place[first], weights, dtype)


class _NodeIndex:
    """The places of nodes by tree and number."""

    def __init__(self, trees: Array, nodes: Array) -> None:
        self.trees, self.nodes = np.unique(trees), np.unique(nodes)
        keys = self._keys(trees, nodes)
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]
        require(bool((np.diff(self.keys) > 0).all()), "two nodes of a tree have one number")

    def _keys(self, trees: Array, nodes: Array) -> Array:
        """A number for each pair; -1 where there is no such tree or number."""
        if not len(self.trees):
            return np.full(len(trees), -1)
        tree = np.searchsorted(self.trees, trees).clip(max=len(self.trees) - 1)
        node = np.searchsorted(self.nodes, nodes).clip(max=len(self.nodes) - 1)
        exists = (self.trees[tree] == trees) & (self.nodes[node] == nodes)
        return np.where(exists, tree * len(self.nodes) + node, -1)

    def find(self, trees: Array, nodes: Array, role: str) -> Array:
        """The places of nodes.

        Raises:
            LayerError: there is none; ``role`` says why there must be one.
        """
        keys = self._keys(trees, nodes)
        array = np.searchsorted(self.keys, keys).clip(max=len(self.keys) - 1)
        exists = self.keys[array] == keys if len(self.keys) else np.zeros(len(keys), bool)
        wrong = [f"node {nodes[number]} of tree {trees[number]}" for number in np.flatnonzero(~exists)[:1].tolist()]
        require(not wrong, f"{wrong and wrong[0]} {role}, and there is no such node")
        return self.order[array]


def _leaf_weights(
    call: NodeCall, weighted: str, index: _NodeIndex, leaves: Array, count: int, size: int | None
) -> Array:
    """The contribution of each of ``count`` leaves to each target; ``leaves`` has the number of each node's leaf."""
    targets = _column(call, f"{weighted}_ids")
    trees, nodes = (_column(call, f"{weighted}_{name}", len(targets)) for name in ("treeids", "nodeids"))
    values = numbers(call, f"{weighted}_weights")
    require(
        len(values) == len(targets), f"there are {len(targets)} {weighted}_ids and {len(values)} {weighted}_weights"
    )
    leaf = leaves[index.find(trees, nodes, "has a weight")]
    own = leaf >= 0  # old versions of onnxmltools give weights to inner nodes too, which mean nothing
    if size is None:
        size = int(call.attribute("n_targets", targets.max(initial=-1) + 1))
    return _weights(f"{weighted}_ids", size, count, leaf[own], targets[own], values[own])


def _weights(name: str, size: int, count: int, leaves: Array, targets: Array, values: Array) -> Array:
    """The sum of the weights of each leaf for each target, NaN where it has none."""
    require(0 < size <= LARGEST_TABLE // max(count, 1), f"there are {size} targets for {count} leaves")
    require(bool(((targets >= 0) & (targets < size)).all()), f"{name} are not from 0 to {size - 1}")
    weights = np.zeros((count, size), values.dtype)
    np.add.at(weights, (leaves, targets), values)
    held = np.zeros((count, size), bool)
    held[leaves, targets] = True
    return np.where(held, weights, np.array(np.nan, values.dtype))


# ---------------------------------------------------------------------------- attributes


def numbers(call: NodeCall, name: str) -> Array:
    """Floating-point numbers, from a list or a tensor."""
    exact = call.attribute(f"{name}_as_tensor")
    return np.array(call.attribute(name, []), np.float32) if exact is None else _floats(call, f"{name}_as_tensor")


def _floats(call: NodeCall, name: str) -> Array:
    """A tensor of floating-point numbers, 1-D."""
    array = call.attribute(name)
    require(array.dtype.kind == "f", f"{name} is {type_name(array.dtype)}, but must be of floating-point numbers")
    return array.reshape(-1)


def _column(call: NodeCall, name: str, count: int | None = None) -> Array:
    """A list of integers; if ``count`` is given, one for each node."""
    values = call.attribute(name)
    require(values is not None, f"there is no {name}")
    whole = not isinstance(values, np.ndarray) or values.dtype.kind in "iu"
    require(whole, f"{name} must be of integers")
    column = np.array(values, np.int64).reshape(-1)
    require(count in (None, len(column)), f"{name} has {len(column)} numbers, and there are {count} nodes")
    return column
