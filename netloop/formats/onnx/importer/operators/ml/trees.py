"""Tree ensembles.

One loop goes over the trees, and one inside it over the levels: in each iteration all samples go one node down in one
tree. Measured on one thread with 500 trees and 10,000 samples, next to onnxruntime 1.32 (milliseconds of CPU time):

    trees                            onnxruntime   tree by tree   all trees at once
    depth 6                                  130             68                 142
    31 leaves, depth up to 17                106            112                 312
    2,600 leaves, depth up to 27            1280            240                1705
"""

from dataclasses import dataclass

import numpy as np

from netloop.formats.onnx.importer.operators.ml import Maybe, NodeCall, classical
from netloop.formats.onnx.importer.operators.ml.forests import Forest, forest_of_arrays, forest_of_list, numbers
from netloop.formats.onnx.importer.operators.ml.scores import (
    F32,
    Labels,
    best_class,
    labels_of,
    post_transformed,
    rows_of,
    scores_of_two,
    transformed_targets,
)
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import ElementWiseOperation, ReduceOperation, TripLimit, UnaryOperation
from netloop.values.types import UNKNOWN, Array

AGGREGATES = {
    "AVERAGE": ReduceOperation.AVG,
    "SUM": ReduceOperation.SUM,
    "MIN": ReduceOperation.MIN,
    "MAX": ReduceOperation.MAX,
}
COMBINE = {
    ReduceOperation.MIN: (ElementWiseOperation.MIN, np.inf),
    ReduceOperation.MAX: (ElementWiseOperation.MAX, -np.inf),
}
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def aggregated(call: NodeCall, forest: Forest, x: ITensor, aggregate: ReduceOperation) -> tuple[ITensor, Maybe]:
    """The aggregated weights of the leaves that each sample reaches, 0 where it reaches none; [sample, target].

    The second result says where it reaches any; None if it does everywhere.
    """
    make = call.make
    loop = make.network.add_loop()
    loop.name = call.node.name
    loop.add_trip_limit(make.constant(len(forest.roots)), TripLimit.COUNT)
    root, depth = (
        loop.add_iterator(make.constant(array)).outputs[0] for array in (_short(forest.roots), forest.depths)
    )
    leaf = make.sub(_leaf(call, forest, x, root, depth), np.int32(len(forest.features)))

    def combined(table: Array, start: Array, by: ElementWiseOperation) -> ITensor:
        shape = make.list_tensor([make.length(x, 0), table.shape[1]])
        total = loop.add_recurrence(make.broadcast_to(make.constant(start), shape))
        total.set_input(1, make.elementwise(by, total.outputs[0], make.gather(make.constant(table), leaf)))
        return make.last(loop, total)

    by, nothing = COMBINE.get(aggregate, (ElementWiseOperation.SUM, 0.0))
    start = np.full((1, 1), nothing, forest.weights.dtype)
    scores = combined(np.where(forest.held, forest.weights, start), start, by)
    if aggregate is ReduceOperation.AVG:
        scores = make.div(scores, float(len(forest.roots)))
    if forest.always_reached:
        return scores, None
    reached = combined(forest.held, np.zeros((1, 1), bool), ElementWiseOperation.OR)
    return make.where(reached, scores, np.zeros((), forest.weights.dtype)), reached


def _short(nodes: Array) -> Array:
    """Numbers of nodes as int32, which gathers read faster."""
    return nodes.astype(np.int32)


def _leaf(call: NodeCall, forest: Forest, x: ITensor, root: ITensor, depth: ITensor) -> ITensor:
    """The number of the leaf that each sample reaches in a tree; 1-D."""
    make, count = call.make, len(forest.weights)
    features, yes, no = (
        make.constant(_short(np.append(array, ends)))
        for array, ends in (
            (forest.features, np.zeros(count)),
            *((array, len(forest.features) + np.arange(count)) for array in (forest.yes, forest.no)),
        )
    )
    loop = make.network.add_loop()
    loop.name = f"{call.node.name} levels"
    loop.add_trip_limit(depth, TripLimit.COUNT)
    place = loop.add_recurrence(make.broadcast_to(root, make.list_tensor([make.length(x, 0)])))
    node = place.outputs[0]
    value = make.gather_elements(x, make.expand_dims(make.gather(features, node), [1]), 1)
    test = _test(make, forest, make.squeeze(value, [1]), node)
    place.set_input(1, make.where(test, make.gather(yes, node), make.gather(no, node)))
    return make.last(loop, place)


def _test(make: FormulaBuilder, forest: Forest, value: ITensor, node: ITensor) -> ITensor:
    """Whether the test of each sample's node is true; any truth at leaves, which are their own children."""

    def of_node(column: Array) -> ITensor:
        return make.gather(make.constant(np.append(column, np.zeros(len(forest.weights), column.dtype))), node)

    split = of_node(forest.splits)
    test = make.less_equal(value, split)
    if forest.equal.any():
        test = make.where(of_node(forest.equal), make.equal(value, split), test)
    if forest.missing.any():
        nan = make.unary(UnaryOperation.ISNAN, value)
        test = make.logical_or(test, make.logical_and(nan, of_node(forest.missing)))
    return test


# ---------------------------------------------------------------------------- operators


def _samples(call: NodeCall, x: ITensor) -> ITensor:
    """The input as [samples, features], of the type in which it is compared: float32 for integers."""
    rows = rows_of(call.make, x)
    return rows if rows.type.is_float else call.make.cast(rows, F32)


def _checked(forest: Forest, x: ITensor) -> Forest:
    """The trees, which test no feature that the samples do not have."""
    features, own = forest.features, x.type.shape[1]
    wrong = features[(features < 0) | (own != UNKNOWN) & (features >= own)].tolist()
    require(not wrong, f"a node tests feature {wrong and wrong[0]}, and samples have {own}")
    return forest


@classical("TreeEnsemble", since=5)
def tree_ensemble(call: NodeCall, x: ITensor) -> ITensor:
    """The sum, mean, minimum or maximum of the leaves that each sample reaches."""
    number, kind = call.attribute("aggregate_function"), call.attribute("post_transform")
    require(0 <= number < len(AGGREGATES), f"aggregate_function is {number}, but must be from 0 to 3")
    require(0 <= kind < len(TRANSFORMS), f"post_transform is {kind}, but must be from 0 to 4")
    x = _samples(call, x)
    forest = _checked(forest_of_arrays(call, x.type.dtype), x)
    scores, _ = aggregated(call, forest, x, [*AGGREGATES.values()][number])
    return transformed_targets(call.make, scores, TRANSFORMS[kind])


@classical("TreeEnsembleRegressor", since=(1, 3))
def tree_regressor(call: NodeCall, x: ITensor) -> ITensor:
    """The sum, mean, minimum or maximum of the leaves that each sample reaches; float32."""
    make, aggregate = call.make, call.choice("aggregate_function", AGGREGATES)
    x = _samples(call, x)
    forest = _checked(forest_of_list(call, "target", x.type.dtype), x)
    scores, reached = aggregated(call, forest, x, aggregate)
    base, targets = numbers(call, "base_values"), forest.weights.shape[1]
    require(base.size in (0, targets), f"there are {base.size} base_values, and {targets} targets")
    if base.size:
        scores = _added(make, scores, base, reached)
    return transformed_targets(make, make.cast(scores, F32), call.attribute("post_transform"))


# ---------------------------------------------------------------------------- classifiers


@classical("TreeEnsembleClassifier", since=(1, 3))
def tree_classifier(call: NodeCall, x: ITensor) -> list[ITensor]:
    """The class with the highest sum of the leaves that each sample reaches, and the scores of all classes; float32.

    The results for one and two classes, where the standard is silent, are those of onnxruntime.
    """
    labels = labels_of(call, "classlabels_int64s")
    x = _samples(call, x)
    forest = _checked(forest_of_list(call, "class", x.type.dtype, labels.count), x)
    scores, reached = aggregated(call, forest, x, ReduceOperation.SUM)
    base = numbers(call, "base_values").astype(x.type.dtype)
    fits = base.size in (0, labels.count) or (base.size, labels.count) == (1, 2)
    require(fits, f"there are {base.size} base_values, and {labels.count} classes")
    if labels.count > 2:
        return _of_many(call, labels, scores, reached, base)
    own = np.flatnonzero(forest.held.any(0))
    return TwoClasses(call, labels, labels.count == 2 and len(own) == 1, not (forest.weights < 0).any()).results(
        scores, reached, base
    )


def _added(make: FormulaBuilder, scores: ITensor, base: Array, reached: Maybe) -> ITensor:
    """Scores with base values added where any leaf contributes."""
    total = make.add(scores, make.constant(base.astype(scores.type.dtype)))
    return total if reached is None else make.where(reached, total, np.zeros((), scores.type.dtype))


def _of_many(call: NodeCall, labels: Labels, scores: ITensor, reached: Maybe, base: Array) -> list[ITensor]:
    """The best of three or more classes; those that neither a leaf nor a base value contributes to do not count."""
    make = call.make
    if base.size:
        scores = make.add(scores, make.constant(base))
    counted = scores
    if reached is not None and not base.size:
        counted = make.where(reached, scores, np.array(-np.inf, scores.type.dtype))
    tensor = post_transformed(make, make.cast(scores, F32), call.attribute("post_transform"))
    return [labels.at(make, best_class(make, counted)), tensor]


@dataclass(frozen=True)
class TwoClasses:
    """A classifier with one or two classes.

    Attributes:
        call: the node.
        labels: the classes.
        binary: whether all weights belong to one of two classes.
        positive: whether no weight is negative.
    """

    call: NodeCall
    labels: Labels
    binary: bool
    positive: bool

    def results(self, scores: ITensor, reached: Maybe, base: Array) -> list[ITensor]:
        """The labels and the transformed scores of the classes."""
        make = self.call.make
        first = self._column(scores, 0)
        if self.labels.count == 1:
            single = make.add(first, make.constant(base)) if base.size else first
            return [self._label(single), self._transformed(single)]
        has = None if reached is None else (self._column(reached, 0), self._column(reached, 1))
        both, score = self._of_both(first, self._column(scores, 1), base, None if has is None else has[0])
        if has is None:
            return [self._label(score), both]
        single = make.add(first, make.constant(base[:1])) if base.size else first
        alone = self._alone(single, base.size)
        return [self._label(make.where(has[1], score, single)), make.where(has[1], both, alone)]

    def _column(self, x: ITensor, index: int) -> ITensor:
        return self.call.make.gather(x, self.call.make.constant([index]), 1)

    def _transformed(self, *scores: ITensor) -> ITensor:
        make, kind = self.call.make, self.call.attribute("post_transform")
        return transformed_targets(make, make.cast(make.concat([*scores], 1), F32), kind)

    def _label(self, score: ITensor) -> ITensor:
        """The label by the score of the second class."""
        make = self.call.make
        limit = 0.5 if self.binary and self.positive else 0.0
        index = make.cast(make.squeeze(make.greater(score, limit), [1]), np.int64)
        # onnxruntime gives the numbers 0 and 1 here, whatever the labels are
        return self.labels.at(make, index) if self.binary or self.labels.are_strings else index

    def _of_both(self, first: ITensor, second: ITensor, base: Array, has_first: Maybe) -> tuple[ITensor, ITensor]:
        """The results for samples whose leaves contribute to the second class, and its score.

        Two base values make onnxruntime ignore the score of the second class.
        """
        make = self.call.make
        if base.size == 2:
            second = make.add(first, make.constant(base[1:]))
            first = make.unary(UnaryOperation.NEG, second)
        elif base.size:
            first = make.add(first, make.constant(base))
        if has_first is not None and base.size:
            first = make.where(has_first, first, np.zeros((), first.type.dtype))
        return self._transformed(first, second), second

    def _alone(self, score: ITensor, bases: int) -> ITensor:
        """The results for samples whose leaves contribute to the first class only, by its score."""
        make, kind = self.call.make, self.call.attribute("post_transform")
        zero = make.sub(score, score)
        if bases == 2:
            return self._transformed(score, zero)
        if kind == "PROBIT":  # onnxruntime leaves the second score open, here and in the next case
            return make.concat([self._transformed(score), make.cast(zero, F32)], 1)
        if bases and not self.binary:
            return make.cast(make.concat([score, zero], 1), F32)
        return scores_of_two(make, make.cast(score, F32), kind, whole=self.binary and self.positive)
