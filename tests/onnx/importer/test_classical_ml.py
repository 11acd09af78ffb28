"""Operators of ai.onnx.ml and n-grams against onnxruntime."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import netloop
from tests.support.onnx_models import check_node, of_node

X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
WORDS = np.array([[1, 2, 3, 1, 2], [3, 3, 1, 2, 3]])


def check_learned(op, *arrays, opset=3, **options):
    check_node(op, *arrays, domain="ai.onnx.ml", opset=opset, **options)


def refused(op, *arrays, opset=3, **attributes):
    made, _ = of_node(op, *arrays, domain="ai.onnx.ml", opset=opset, **attributes)
    with pytest.raises(netloop.ModelError) as caught:
        netloop.onnx.load(made)
    return caught.value.findings[0].what


# ---------------------------------------------------------------------------- features and categories


@pytest.mark.parametrize("x", [X, X[0]], ids=["rows", "row"])
def test_features_are_those_of_onnxruntime(x):
    check_learned("ArrayFeatureExtractor", x, np.array([2, 0]))


@pytest.mark.parametrize("norm", ["L1", "L2"])
def test_normalized_rows_are_those_of_onnxruntime(norm):
    check_learned("Normalizer", np.concatenate([X, np.zeros((1, 3), np.float32)]), norm=norm)


def test_rows_over_their_maximum_are_those_of_onnxruntime():
    check_learned("Normalizer", np.concatenate([abs(X), np.zeros((1, 3), np.float32)]), norm="MAX")


@pytest.mark.parametrize("x", [X, (9 * X).astype(np.int64)], ids=["floats", "integers"])
def test_scaled_features_are_those_of_onnxruntime(x):
    check_learned("Scaler", x, offset=[1.0, 2.0, -3.0], scale=[0.5, 2.0, 1.0])


def test_missing_numbers_are_imputed():
    x = X.copy()
    x[1, 2] = x[3, 0] = np.nan

    check_learned("Imputer", x, imputed_value_floats=[7.0, 8.0, 9.0], replaced_value_float=float("nan"))


def test_integers_are_imputed():
    check_learned("Imputer", WORDS, imputed_value_int64s=[-1], replaced_value_int64=3)


def test_features_of_several_inputs_are_joined():
    check_learned("FeatureVectorizer", X, X[:, :2].copy(), inputdimensions=[3, 2])


def test_categories_become_ones():
    check_learned("OneHotEncoder", WORDS, cats_int64s=[3, 1, 7], zeros=1)


@pytest.mark.parametrize(
    ("x", "attributes"),
    [
        (WORDS, {"keys_int64s": [1, 3], "values_floats": [0.5, 0.25], "default_float": 9.0}),
        (WORDS, {"keys_int64s": [3, 2], "values_int64s": [-5, 5], "default_int64": 0}),
        (np.float32([1, 2, np.nan]), {"keys_floats": [float("nan"), 1.0], "values_int64s": [4, 6], "opset": 4}),
    ],
    ids=["to floats", "to integers", "of NaN"],
)
def test_labels_are_encoded(x, attributes):
    check_learned("LabelEncoder", x, **attributes)


def test_last_of_equal_keys_counts():
    tables = {
        "keys_tensor": numpy_helper.from_array(np.array([1, 2, 1])),
        "values_tensor": numpy_helper.from_array(np.array([10, 20, 30], np.int16)),
        "default_tensor": numpy_helper.from_array(np.array([-1], np.int16)),
    }
    made, given = of_node("LabelEncoder", WORDS, domain="ai.onnx.ml", opset=4, **tables)

    found = netloop.compile(netloop.onnx.load(made))(given)["y0"]

    assert np.array_equal(found, np.array([[30, 20, -1, 30, 20], [-1, -1, 30, 20, -1]], np.int16))


def test_strings_are_refused():
    assert refused("LabelEncoder", WORDS, keys_strings=["a"], values_int64s=[1]) == "the keys are strings"
    assert refused("OneHotEncoder", WORDS, cats_strings=["a"]) == "the categories are strings"


# ---------------------------------------------------------------------------- linear models


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_linear_models_are_those_of_onnxruntime(transform):
    weights = [0.5, -1.0, 2.0, 1.0, 0.25, -0.5]
    check_learned(
        "LinearRegressor", X, coefficients=weights, intercepts=[0.1, -0.2], targets=2, post_transform=transform
    )
    check_learned(
        "LinearClassifier", X, coefficients=[*weights, 0.0, 1.0, 1.0], intercepts=[0.1, -0.2, 0.3], outputs=2,
        classlabels_ints=[7, -3, 5], multi_class=1, post_transform=transform,
    )  # fmt: skip


def test_transform_that_is_none_is_refused():
    assert "post_transform is 'CUBE'" in refused("LinearRegressor", X, coefficients=[1.0] * 3, post_transform="CUBE")


# ---------------------------------------------------------------------------- n-grams


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("x", [WORDS, WORDS[0]], ids=["batch", "sequence"])
def test_grams_are_counted_as_by_onnxruntime(x, mode):
    check_node(
        "TfIdfVectorizer", x, mode=mode, min_gram_length=1, max_gram_length=2, max_skip_count=1, ngram_counts=[0, 2],
        ngram_indexes=[2, 0, 1, 3], pool_int64s=[1, 3, 1, 2, 3, 1], weights=[1.0, 2.0, 3.0, 4.0],
    )  # fmt: skip


def test_grams_of_strings_are_refused():
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], mode="TF", min_gram_length=1, max_gram_length=1,
                            max_skip_count=0, ngram_counts=[0], ngram_indexes=[0], pool_strings=["a"])  # fmt: skip
    graph = helper.make_graph([node], "grams", [helper.make_tensor_value_info("x", TensorProto.INT64, [3])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])  # fmt: skip

    with pytest.raises(netloop.ModelError, match="the n-grams are strings"):
        netloop.onnx.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]))
