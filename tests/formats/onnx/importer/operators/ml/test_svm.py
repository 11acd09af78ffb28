"""Support vector machines against onnxruntime."""

import numpy as np
import pytest

import netloop
from tests.support.onnx_models import check_node, of_node, runs, session_gives

KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]
DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(6, 3)).astype(np.float32)


def numbers(*shape):
    return [float(other) for other in np.float32(np.random.default_rng(len(shape)).normal(size=shape)).ravel()]


def check_labels(x, opset=1, atol=1e-4, **attributes):
    """Check a classifier, whose labels may be strings."""
    made, given = of_node("SVMClassifier", x, outputs=2, domain="ai.onnx.ml", opset=opset, **attributes)
    (labels, scores), (own_labels, own_scores) = session_gives(made, given).values(), runs(made, given)
    assert (own_labels.tolist(), own_scores.dtype) == (labels.tolist(), scores.dtype)
    np.testing.assert_allclose(own_scores, scores, rtol=1e-3, atol=atol)


def classifier(classes, kernel, **attributes):
    """A classifier with up to three support vectors for each class."""
    sizes = [1 + index % 3 for index in range(classes)]
    return {
        "kernel_type": kernel, "kernel_params": [0.5, 0.25, 3.0], "vectors_per_class": sizes,
        "support_vectors": numbers(sum(sizes), 3), "coefficients": numbers(classes - 1, sum(sizes)),
        "rho": numbers(classes * (classes - 1) // 2), "classlabels_ints": [5, 9, -3, 4][:classes], **attributes,
    }  # fmt: skip


@pytest.mark.parametrize("one_class", [0, 1])
@pytest.mark.parametrize("kernel", KERNELS)
def test_regressors_are_those_of_onnxruntime(kernel, one_class):
    check_node(
        "SVMRegressor", X, domain="ai.onnx.ml", opset=1, kernel_type=kernel, kernel_params=[0.5, 0.25, 2.0],
        n_supports=4, support_vectors=numbers(4, 3), coefficients=numbers(4), rho=[0.3], one_class=one_class,
        rtol=1e-4, atol=1e-5,
    )  # fmt: skip


def test_regressor_without_support_vectors_is_linear():
    check_node("SVMRegressor", X, domain="ai.onnx.ml", opset=1, coefficients=[1.0, -2.0, 0.5], rho=[0.3],
               kernel_params=[0.5, 0.25, 2.0], atol=1e-5)  # fmt: skip


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_classifiers_are_those_of_onnxruntime(kernel, classes):
    check_labels(X, **classifier(classes, kernel))


@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_are_those_of_onnxruntime(classes):
    pairs = classes * (classes - 1) // 2

    check_labels(X, prob_a=[-abs(number) for number in numbers(pairs, 1)], prob_b=numbers(1, pairs),
                 **classifier(classes, "RBF"))  # fmt: skip


@pytest.mark.parametrize("transform", ["LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("classes", [2, 3])
def test_scores_are_transformed_as_by_onnxruntime(classes, transform):
    check_labels(X, **classifier(classes, "LINEAR", post_transform=transform))


@pytest.mark.parametrize("x", [X.astype(np.float64), np.round(X).astype(np.int64), np.round(X).astype(np.int32)])
def test_samples_of_all_types_are_classified(x):
    check_labels(x, **classifier(3, "POLY"))


def test_labels_may_be_strings():
    machine = classifier(3, "RBF")
    del machine["classlabels_ints"]

    check_labels(X, classlabels_strings=["a", "b", "c"], **machine)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("sign", [1, -1])
def test_classifiers_without_support_vectors_are_linear(sign, classes):
    weights = [sign * abs(number) for number in numbers(classes, 3)]

    check_labels(X, coefficients=weights, rho=[0.1], classlabels_ints=[5, 9, -3][:classes], kernel_params=[1.0] * 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vectors_per_class": [1, 2]}, "vectors_per_class is [1 2], for 3 classes"),
        ({"rho": [1.0]}, "rho has 1 numbers, but must have 3"),
        ({"kernel_params": [1.0]}, "kernel_params has 1 numbers"),
        ({"support_vectors": [1.0] * 12}, "support_vectors has 2 features, and samples have 3"),
        ({"kernel_type": "CUBE"}, "kernel_type"),
    ],
)
def test_machines_that_mean_nothing_are_refused(changes, message):
    made, _ = of_node(
        "SVMClassifier", X, outputs=2, domain="ai.onnx.ml", opset=1, **{**classifier(3, "RBF"), **changes}
    )

    with pytest.raises(netloop.ModelError) as caught:
        netloop.onnx.load(made)

    assert message in caught.value.findings[0].what
