"""Support vector machines (ai.onnx.ml)."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from netloop.formats.onnx.importer.operators.ml import Maybe, NodeCall, classical
from netloop.formats.onnx.importer.operators.ml.forests import LARGEST_TABLE
from netloop.formats.onnx.importer.operators.ml.scores import (
    F32,
    Labels,
    best_class,
    labels_of,
    post_transformed,
    rows_of,
    scores_of_two,
)
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require
from netloop.values.enums import ActivationType, ReduceOperation, TripLimit, UnaryOperation
from netloop.values.types import Array

KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


def kernels(call: NodeCall, x: ITensor, vectors: Array) -> ITensor:
    """The kernel function of each sample and each vector; [sample, vector].

    LINEAR is the product x v, POLY (gamma x v + coef0) ** degree, SIGMOID tanh(gamma x v + coef0), and RBF
    exp(-gamma |x - v|**2).
    """
    make, kind = call.make, call.choice("kernel_type", {kernel: kernel for kernel in KERNELS})
    params = call.attribute("kernel_params", [])
    require(len(params) in (0, 3), f"kernel_params has {len(params)} numbers, but must be gamma, coef0 and degree")
    gamma, coef0, degree = np.array(params or [0, 0, 0], F32)
    if kind == "RBF":
        # the difference of each pair, because |x|**2 - 2 x v + |v|**2 loses digits
        apart = make.sub(make.expand_dims(x, [1]), make.constant(vectors[None]))
        return make.unary(UnaryOperation.EXP, make.mul(make.sum(make.mul(apart, apart), [2]), -gamma))
    product = make.matmul(x, make.constant(np.ascontiguousarray(vectors.T)))
    if kind == "LINEAR":
        return product
    inner = make.add(make.mul(product, gamma), coef0)
    return make.activation(ActivationType.TANH, inner) if kind == "SIGMOID" else make.power(inner, degree)


def _matrix(call: NodeCall, name: str, rows: int, x: Maybe = None) -> Array:
    """A list of numbers as a matrix; if samples are given, with their number of features."""
    values = np.array(call.attribute(name, []), F32)
    require(
        rows > 0 and values.size > 0 and values.size % rows == 0, f"{name} has {values.size} numbers for {rows} rows"
    )
    matrix = values.reshape(rows, -1)
    if x is not None:
        width = x.type.shape[1]
        require(width in (-1, matrix.shape[1]), f"{name} has {matrix.shape[1]} features, and samples have {width}")
    return matrix


def _numbers(call: NodeCall, name: str, count: int) -> Array:
    values = np.array(call.attribute(name, []), F32)
    require(len(values) >= count, f"{name} has {len(values)} numbers, but must have {count}")
    return values[:count]


@classical("SVMRegressor")
def svm_regressor(call: NodeCall, x: ITensor) -> ITensor:
    """The weighted sum of the kernels of the support vectors, or the side of it for novelty detection; [sample, 1]."""
    make, count = call.make, call.attribute("n_supports")
    x = make.cast(rows_of(make, x), F32)
    if count > 0:
        tensor = kernels(call, x, _matrix(call, "support_vectors", count, x))
        weights = _matrix(call, "coefficients", count)[:, :1]
    else:
        tensor, weights = x, _matrix(call, "coefficients", 1, x).T
    score = make.add(make.matmul(tensor, make.constant(np.ascontiguousarray(weights))), _numbers(call, "rho", 1))
    if call.attribute("one_class"):
        return make.where(make.greater(score, 0.0), np.float32(1), np.float32(-1))
    return score


@classical("SVMClassifier")
def svm_classifier(call: NodeCall, x: ITensor) -> list[ITensor]:
    """The class that wins the most comparisons of two classes, and the scores of these, or probabilities."""
    make, labels = call.make, labels_of(call, "classlabels_ints")
    x = make.cast(rows_of(make, x), F32)
    sizes = np.array(call.attribute("vectors_per_class", []), np.int64)
    if not sizes.sum() > 0:
        return _linear(call, labels, x)
    require(labels.count > 1, f"there is {labels.count} class, and support vectors separate classes")
    require(
        len(sizes) == labels.count and bool((sizes >= 0).all()),
        f"vectors_per_class is {sizes}, for {labels.count} classes",
    )
    pairs = Pairs(make, labels.count)
    vectors, thresholds = int(sizes.sum()), _numbers(call, "rho", pairs.count)
    what = f"there are {vectors} support vectors for {pairs.count} pairs of classes, which are too many"
    require(vectors * pairs.count <= LARGEST_TABLE, what)
    tensor = kernels(call, x, _matrix(call, "support_vectors", vectors, x))
    weights = pairs.weights(sizes, _matrix(call, "coefficients", labels.count - 1))
    scores = make.add(make.matmul(tensor, make.constant(weights)), thresholds)
    chosen = labels.at(make, pairs.winner(scores))
    kind = call.attribute("post_transform")
    if call.attribute("prob_a", []):
        lines = (_numbers(call, name, pairs.count) for name in ("prob_a", "prob_b"))
        return [chosen, post_transformed(make, pairs.probabilities(scores, *lines), kind)]
    if pairs.count > 1:
        return [chosen, post_transformed(make, scores, kind)]
    if kind == "PROBIT":  # onnxruntime leaves the second score open
        return [chosen, make.concat([post_transformed(make, scores, kind), make.sub(scores, scores)], 1)]
    return [chosen, scores_of_two(make, scores, kind, whole=kind != "NONE")]


def _linear(call: NodeCall, labels: Labels, x: ITensor) -> list[ITensor]:
    """A linear classifier without support vectors."""
    make, weights = call.make, _matrix(call, "coefficients", labels.count, x)
    scores = make.add(make.matmul(x, make.constant(np.ascontiguousarray(weights.T))), _numbers(call, "rho", 1))
    best = best_class(make, scores)
    if labels.count == 2 and not call.attribute("prob_a", []):
        highest = make.reduce(ReduceOperation.MAX, scores, [1])
        positive = (weights >= 0).all()
        wins = make.greater_equal(highest, 0.5) if positive else make.greater(highest, 0.0)
        best = make.where(wins, np.int64(1), best)
    return [labels.at(make, best), post_transformed(make, scores, call.attribute("post_transform"))]


@dataclass(frozen=True)
class Pairs:
    """The comparisons of two classes each: (0, 1), (0, 2), ..., (1, 2), ...

    Attributes:
        make: the formula builder.
        classes: the number of classes.
    """

    make: FormulaBuilder
    classes: int

    @property
    def all(self) -> list[tuple[int, int]]:
        """The pairs of classes."""
        return [*combinations(range(self.classes), 2)]

    @property
    def count(self) -> int:
        """The number of pairs."""
        return self.classes * (self.classes - 1) // 2

    def weights(self, sizes: Array, coefficients: Array) -> Array:
        """The weight of each support vector in each pair; [vector, pair].

        The coefficients of a vector of class i are those against all other classes, in order; [class - 1, vector].
        """
        own = np.repeat(np.arange(self.classes), sizes)
        result = np.zeros((len(own), self.count), F32)
        for pair, (a, b) in enumerate(self.all):
            result[own == a, pair] = coefficients[b - 1, own == a]
            result[own == b, pair] = coefficients[a, own == b]
        return result

    def winner(self, scores: ITensor) -> ITensor:
        """The class that wins the most pairs, the first of equal ones; 1-D."""
        make = self.make
        first, second = np.zeros((2, self.count, self.classes), F32)
        for pair, (a, b) in enumerate(self.all):
            first[pair, a] = second[pair, b] = 1
        wins = make.cast(make.greater(scores, 0.0), F32)
        losses = make.sub(np.float32(1), wins)
        votes = (make.matmul(tensor, make.constant(table)) for tensor, table in ((wins, first), (losses, second)))
        return best_class(make, make.add(*votes))

    def probabilities(self, scores: ITensor, slope: Array, shift: Array) -> ITensor:
        """The probability of each class; [sample, class].

        Source: T.-F. Wu, C.-J. Lin and R. C. Weng, Probability estimates for multi-class classification by pairwise
        coupling, 2004, algorithm 2 with its limit of 100 iterations and its tolerance in libsvm and onnxruntime.
        """
        make, n = self.make, self.classes
        line = make.add(make.mul(scores, make.constant(slope)), make.constant(shift))
        first = make.clip(make.activation(ActivationType.SIGMOID, make.unary(UnaryOperation.NEG, line)), 1e-7, 1 - 1e-7)
        both = make.concat([first, make.sub(np.float32(1), first)], 1)
        place = np.zeros((n, n), np.int64)
        for pair, (a, b) in enumerate(self.all):
            place[a, b], place[b, a] = pair, pair + self.count
        other = make.constant(1 - np.eye(n, dtype=F32))
        against = make.mul(make.gather(both, make.constant(place.T), 1), other)  # [.., i, j]: j wins against i
        product = make.mul(make.unary(UnaryOperation.NEG, against), make.transpose(against, [0, 2, 1]))
        squares = make.sum(make.mul(against, against), [2], True)
        table = make.add(product, make.mul(squares, make.constant(np.eye(n, dtype=F32))))
        return self._coupled(table)

    def _coupled(self, table: ITensor) -> ITensor:
        """The distribution p with the smallest p Q p for each matrix Q; [sample, class]."""
        make, n = self.make, self.classes
        loop = make.network.add_loop()
        loop.add_trip_limit(make.constant(100), TripLimit.COUNT)
        p = loop.add_recurrence(make.full([make.length(table, 0), n], 1 / n, F32))
        own = p.outputs[0]
        slopes = make.squeeze(make.matmul(table, make.expand_dims(own, [2])), [2])
        value = make.sum(make.mul(own, slopes), [1], True)
        error = make.reduce(ReduceOperation.MAX, make.unary(UnaryOperation.ABS, make.sub(slopes, value)), [1], True)
        near = make.less(error, 0.005 / n)
        p.set_input(1, make.where(near, own, self._improved(table, own, slopes, value)))
        return make.last(loop, p)

    def _improved(self, table: ITensor, p: ITensor, slopes: ITensor, value: ITensor) -> ITensor:
        """The distribution after one step along each class, in order."""
        make = self.make
        loop = make.network.add_loop()
        loop.add_trip_limit(make.constant(self.classes), TripLimit.COUNT)
        row = loop.add_iterator(table, 1).outputs[0]
        unit = make.expand_dims(loop.add_iterator(make.constant(np.eye(self.classes, dtype=F32))).outputs[0], [0])
        states = [loop.add_recurrence(tensor) for tensor in (p, slopes, value)]
        p, slopes, value = (state.outputs[0] for state in states)
        diagonal, slope = (make.sum(make.mul(tensor, unit), [1], True) for tensor in (row, slopes))
        step = make.div(make.sub(value, slope), diagonal)
        total = make.add(step, 1.0)
        more = make.mul(step, make.add(make.mul(step, diagonal), make.mul(slope, 2.0)))
        news = (
            make.div(make.add(p, make.mul(step, unit)), total),
            make.div(make.add(slopes, make.mul(step, row)), total),
            make.div(make.add(value, more), make.mul(total, total)),
        )
        for state, new in zip(states, news, strict=True):
            state.set_input(1, new)
        return make.last(loop, states[0])
