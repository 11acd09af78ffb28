"""Linear models (ai.onnx.ml)."""

import numpy as np

from netloop.formats.onnx.importer.operators.ml import NodeCall, classical
from netloop.formats.onnx.importer.operators.ml.scores import (
    F32,
    best_class,
    labels_of,
    rows_of,
    scores_of_two,
    transformed_targets,
)
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import require


@classical("LinearRegressor")
def regress(call: NodeCall, x: ITensor) -> ITensor:
    """Linear model: weighted sums of features."""
    scores = _linear_scores(call, x, call.attribute("targets"))
    return transformed_targets(call.make, scores, call.attribute("post_transform"))


@classical("LinearClassifier")
def classify(call: NodeCall, x: ITensor) -> list[ITensor]:
    """Linear classifier: the label with the highest score, and all scores.

    One intercept makes one score; if it is positive, it speaks for the second of two labels.
    """
    make, labels, kind = call.make, labels_of(call, "classlabels_ints"), call.attribute("post_transform")
    count = len(call.attribute("intercepts", [])) or labels.count
    fits = count == labels.count or (count, labels.count) == (1, 2)
    require(fits, f"there are {labels.count} labels and {count} intercepts")
    scores = _linear_scores(call, x, count)
    if count == labels.count:
        return [labels.at(make, best_class(make, scores)), transformed_targets(make, scores, kind)]
    index = make.cast(make.squeeze(make.greater(scores, 0.0), [1]), np.int64)
    return [labels.at(make, index), scores_of_two(make, scores, kind, whole=True)]


def _linear_scores(call: NodeCall, x: ITensor, count: int) -> ITensor:
    make = call.make
    weights = np.array(call.attribute("coefficients", []), F32)
    require(count > 0 and weights.size % count == 0, f"{weights.size} coefficients do not divide into {count} sums")
    rows = make.cast(rows_of(make, x), F32)
    sums = make.matmul(rows, make.constant(np.ascontiguousarray(weights.reshape(count, -1).T)))
    bias = call.attribute("intercepts")
    return make.add(sums, make.constant(bias, F32)) if bias else sums
