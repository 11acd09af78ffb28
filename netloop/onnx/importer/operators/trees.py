"""Tree ensembles.

A loop evaluates them: in each iteration all samples go one node down in all trees.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from netloop.diagnostics import quoted, require
from netloop.enums import ReduceOperation, TripLimit, UnaryOperation
from netloop.formulas import FormulaBuilder
from netloop.graph.tensor import ITensor
from netloop.onnx.importer.call import Call
from netloop.onnx.importer.operator_table import operator
from netloop.onnx.importer.operators.classical_ml import post_transformed
from netloop.types import UNKNOWN, Array

LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(7)
BRANCHES = {f"BRANCH_{name}": mode for mode, name in enumerate(("LEQ", "LT", "GTE", "GT", "EQ", "NEQ"))}
AGGREGATES = {
    "AVERAGE": ReduceOperation.AVG,
    "SUM": ReduceOperation.SUM,
    "MIN": ReduceOperation.MIN,
    "MAX": ReduceOperation.MAX,
}
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@dataclass(frozen=True)
class Forest:
    """Trees whose nodes have consecutive numbers, the leaves last.

    Attributes:
        features: the feature that each inner node tests.
        splits: the number that it compares the feature with.
        modes: the comparison; a number from LEQ to MEMBER.
        missing: whether NaN takes the branch of a true test.
        yes: the child where the test is true.
        no: the child where it is false.
        roots: the first node of each tree.
        members: for each node the set of a MEMBER node, padded with NaN.
        weights: the contribution of each leaf to each target, NaN where it has none; [leaf, target].
    """

    features: Array
    splits: Array
    modes: Array
    missing: Array
    yes: Array
    no: Array
    roots: Array
    members: Array
    weights: Array

    @property
    def depth(self) -> int:
        """The longest path from a root to a leaf."""
        reached, steps, inner = self.roots, 0, len(self.features)
        while (reached := reached[reached < inner]).size:
            require(steps < inner, "the nodes of a tree lead back to themselves")
            reached, steps = np.unique([self.yes[reached], self.no[reached]]), steps + 1
        return steps

    def check(self, x: ITensor) -> None:
        """Report children and roots that are no nodes, and features that samples do not have.

        Raises:
            LayerError: if there are any.
        """
        require(x.type.rank == 2, f"the input is {x.type}, but must be [samples, features]")
        features, own = [*self.features], x.type.shape[1]
        wrong = [each for each in features if each < 0 or (own != UNKNOWN and each >= own)]
        require(not wrong, f"a node tests feature {wrong and wrong[0]}, and samples have {own}")
        count = len(self.features) + len(self.weights)
        for name, each in (("a child", [*self.yes, *self.no]), ("a root", self.roots)):
            wrong = [number for number in each if not 0 <= number < count]
            require(not wrong, f"{name} is node {wrong and wrong[0]}, and there are {count} nodes and leaves")


def aggregated(call: Call, forest: Forest, x: ITensor, aggregate: ReduceOperation) -> ITensor:
    """The aggregated weights of the leaves that each sample reaches; [sample, target]."""
    make = call.make
    forest.check(x)
    x = x if x.type.is_float else make.cast(x, np.float32)
    leaves = make.sub(_leaves(call, forest, x), len(forest.features))
    if aggregate in (ReduceOperation.AVG, ReduceOperation.SUM):
        found = make.sum(make.gather(make.constant(np.nan_to_num(forest.weights)), leaves), [1])
        return make.div(found, float(len(forest.roots))) if aggregate is ReduceOperation.AVG else found
    nothing = np.inf if aggregate is ReduceOperation.MIN else -np.inf
    weights = np.where(np.isnan(forest.weights), np.array(nothing, forest.weights.dtype), forest.weights)
    best = make.reduce(aggregate, make.gather(make.constant(weights), leaves), [1])
    return make.where(make.equal(best, nothing), np.zeros((), forest.weights.dtype), best)


def _leaves(call: Call, forest: Forest, x: ITensor) -> ITensor:
    """The number of the leaf that each sample reaches in each tree; [sample, tree]."""
    make, inner = call.make, len(forest.features)
    start = make.broadcast_to(make.constant(forest.roots[None], np.int64), make.list_tensor([make.length(x, 0), 1]))
    if not inner:
        return start
    loop = make.network.add_loop()
    loop.name = call.node.name
    loop.add_trip_limit(make.constant(forest.depth), TripLimit.COUNT)
    place = loop.add_recurrence(start)
    node = make.minimum(place.outputs[0], inner - 1)
    ways = [make.gather(make.constant(each, np.int64), node) for each in (forest.yes, forest.no)]
    step = make.where(_test(make, forest, x, node), *ways)
    place.set_input(1, make.where(make.less(place.outputs[0], inner), step, place.outputs[0]))
    return make.last(loop, place)


def _test(make: FormulaBuilder, forest: Forest, x: ITensor, node: ITensor) -> ITensor:
    """Whether the test of a node is true for its sample; [sample, tree]."""
    dtype = x.type.dtype
    value = make.gather_elements(x, make.gather(make.constant(forest.features, np.int64), node), 1)
    split = make.gather(make.constant(forest.splits.astype(dtype)), node)
    modes = forest.modes
    # fmt: off
    tests = [
        (np.isin(modes, (LEQ, LT, NEQ)),    lambda: make.less(value, split)),
        (np.isin(modes, (LEQ, GTE, EQ)),    lambda: make.equal(value, split)),
        (np.isin(modes, (GTE, GT, NEQ)),    lambda: make.greater(value, split)),
        (modes == MEMBER,                   lambda: _is_member(make, forest, value, node)),
        (forest.missing | (modes == NEQ),   lambda: make.unary(UnaryOperation.ISNAN, value)),
    ]
    # fmt: on
    found = [
        test() if asked.all() else make.logical_and(make.gather(make.constant(asked), node), test())
        for asked, test in tests
        if asked.any()
    ]
    return reduce(make.logical_or, found)


def _is_member(make: FormulaBuilder, forest: Forest, value: ITensor, node: ITensor) -> ITensor:
    among = make.gather(make.constant(forest.members.astype(value.type.dtype)), node)
    same = make.cast(make.equal(make.expand_dims(value, [2]), among), np.int64)
    return make.greater(make.sum(same, [2]), 0)


# ---------------------------------------------------------------------------- operators


@operator("TreeEnsemble", domain="ai.onnx.ml", since=5)
def tree_ensemble(call: Call, x: ITensor) -> ITensor:
    """The sum, mean, minimum or maximum of the leaves that each sample reaches."""
    number, kind = call.attribute("aggregate_function"), call.attribute("post_transform")
    require(0 <= number < len(AGGREGATES), f"aggregate_function is {number}, but must be from 0 to 3")
    require(0 <= kind < len(TRANSFORMS), f"post_transform is {kind}, but must be from 0 to 4")
    scores = aggregated(call, _forest(call), x, [*AGGREGATES.values()][number])
    return post_transformed(call.make, scores, TRANSFORMS[kind])


def _forest(call: Call) -> Forest:
    """The trees of a node whose leaves are numbered apart from the inner nodes."""
    features, modes = (_column(call, name) for name in ("nodes_featureids", "nodes_modes"))
    count, targets = len(features), _column(call, "leaf_targetids")
    yes, no = (
        _column(call, f"nodes_{way}nodeids", count) + count * _column(call, f"nodes_{way}leafs", count)
        for way in ("true", "false")
    )
    values, splits = call.attribute("leaf_weights"), call.attribute("nodes_splits")
    require(len(values) == len(targets), f"there are {len(targets)} leaf_targetids and {len(values)} leaf_weights")
    require(len(splits) == len(modes) == count, f"there are {count} nodes, {len(modes)} modes and {len(splits)} splits")
    size = call.attribute("n_targets", max(targets, default=-1) + 1)
    require(((targets >= 0) & (targets < size)).all(), f"leaf_targetids are not from 0 to {size - 1}")
    weights = np.full((len(targets), size), np.nan, values.dtype)
    weights[np.arange(len(targets)), targets] = values
    missing = _column(call, "nodes_missing_value_tracks_true", count, 0).astype(bool)
    return Forest(
        features, splits, modes, missing, yes, no, _column(call, "tree_roots"), _members(call, modes), weights
    )


def _column(call: Call, name: str, count: int | None = None, default: int | None = None) -> Array:
    """A list of integers; if ``count`` is given, one for each node, with a possible default."""
    given = call.attribute(name)
    if not len(given if given is not None else ()) and default is not None and count is not None:
        return np.full(count, default)
    require(given is not None, f"there is no {name}")
    column = np.array(given, np.int64).reshape(-1)
    require(count in (None, len(column)), f"{name} has {len(column)} numbers, and there are {count} nodes")
    return column


def _members(call: Call, modes: Array) -> Array:
    """The sets of the MEMBER nodes in rows, padded with NaN."""
    numbers, nodes = call.attribute("membership_values"), np.flatnonzero(modes == MEMBER)
    if not nodes.size:
        return np.zeros((len(modes), 0))
    require(numbers is not None, "nodes test for members of a set, and there are no membership_values")
    ends = np.flatnonzero(np.isnan(numbers))
    require(len(ends) == len(nodes), f"{len(nodes)} nodes test for members of a set, and there are {len(ends)} sets")
    sets = np.split(numbers, ends + 1)[: len(ends)]
    rows = np.full((len(modes), max(map(len, sets))), np.nan)
    for node, each in zip(nodes, sets, strict=True):
        rows[node, : len(each)] = each
    return rows


@operator("TreeEnsembleRegressor", domain="ai.onnx.ml", since=(1, 3))
def tree_regressor(call: Call, x: ITensor) -> ITensor:
    """The sum, mean, minimum or maximum of the leaves that each sample reaches; float32."""
    make, word = call.make, call.attribute("aggregate_function")
    require(word in AGGREGATES, f"aggregate_function is {quoted(word)}, but must be one of {', '.join(AGGREGATES)}")
    scores = aggregated(call, _forest_of_list(call), x, AGGREGATES[word])
    base = _numbers(call, "base_values")
    if base.size:
        scores = make.add(scores, make.constant(base.astype(scores.type.dtype)))
    return post_transformed(make, make.cast(scores, np.float32), call.attribute("post_transform"))


def _numbers(call: Call, name: str) -> Array:
    """Floating-point numbers, from a list or a tensor."""
    exact = call.attribute(f"{name}_as_tensor")
    return np.array(call.attribute(name, []), np.float32) if exact is None else exact


def _forest_of_list(call: Call) -> Forest:
    """The trees of a node whose inner nodes and leaves are in one list."""
    trees = _column(call, "nodes_treeids")
    count = len(trees)
    keys = [*zip(trees.tolist(), _column(call, "nodes_nodeids", count).tolist(), strict=True)]
    words, values = call.attribute("nodes_modes", []), _numbers(call, "nodes_values")
    require(len(words) == len(values) == count, f"there are {count} nodes, {len(words)} modes and {len(values)} values")
    wrong = [each for each in words if each != "LEAF" and each not in BRANCHES]
    require(not wrong, f"no mode of a node is called {quoted(wrong and wrong[0])}")
    inner = np.array([each != "LEAF" for each in words], bool)
    order = np.concatenate([np.flatnonzero(inner), np.flatnonzero(~inner)])
    place = {keys[number]: index for index, number in enumerate(order)}
    require(len(place) == count, "two nodes of a tree have one number")
    yes, no = (_children(call, way, keys, place)[inner] for way in ("true", "false"))
    roots = np.array(sorted({*range(count)} - {*yes.tolist(), *no.tolist()}), np.int64)
    require(len(roots) == len({*trees.tolist()}), f"there are {len({*trees.tolist()})} trees, and {len(roots)} roots")
    modes = np.array([BRANCHES[each] for each in words if each in BRANCHES], np.int64)
    missing = _column(call, "nodes_missing_value_tracks_true", count, 0).astype(bool)[inner]
    features = _column(call, "nodes_featureids", count)[inner]
    leaves = _leaf_weights(call, {key: number - int(inner.sum()) for key, number in place.items()}, values.dtype)
    return Forest(features, values[inner], modes, missing, yes, no, roots, np.zeros((len(modes), 0)), leaves)


def _children(call: Call, way: str, keys: list[tuple[int, int]], place: dict[tuple[int, int], int]) -> Array:
    """The index of the child of each node; -1 where there is none."""
    numbers = _column(call, f"nodes_{way}nodeids", len(keys)).tolist()
    return np.array([place.get((tree, child), -1) for (tree, _), child in zip(keys, numbers, strict=True)], np.int64)


def _leaf_weights(call: Call, leaves: dict[tuple[int, int], int], dtype: np.dtype[Any]) -> Array:
    """The contribution of each leaf to each target."""
    targets = _column(call, "target_ids")
    trees, nodes = (_column(call, name, len(targets)).tolist() for name in ("target_treeids", "target_nodeids"))
    values, size = _numbers(call, "target_weights"), call.attribute("n_targets", max(targets, default=-1) + 1)
    require(len(values) == len(targets), f"there are {len(targets)} target_ids and {len(values)} target_weights")
    require(((targets >= 0) & (targets < size)).all(), f"target_ids are not from 0 to {size - 1}")
    weights = np.full((sum(number >= 0 for number in leaves.values()), size), np.nan, dtype)
    for tree, node, target, value in zip(trees, nodes, targets, values, strict=True):
        leaf = leaves.get((tree, node), -1)
        require(leaf >= 0, f"node {node} of tree {tree} has a weight, and is not a leaf")
        weights[leaf, target] = value + np.nan_to_num(weights[leaf, target])
    return weights
