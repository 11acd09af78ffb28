"""Operators of ai.onnx.ml and n-grams against onnxruntime."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import netloop
from tests.support.onnx_models import check_node, of_node, runs, session_gives

X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
WORDS = np.array([[1, 2, 3, 1, 2], [3, 3, 1, 2, 3]])


def check_learned(op, *arrays, opset=3, **options):
    check_node(op, *arrays, domain="ai.onnx.ml", opset=opset, **options)


def check_texts(op, x, opset=3, **attributes):
    """Check a node that may take or give strings."""
    made, given = of_node(op, x, domain="ai.onnx.ml", opset=opset, **attributes)
    [found], [expected] = runs(made, given), session_gives(made, given).values()
    assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())


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


@pytest.mark.parametrize("x", [X, X.astype(np.float64), np.round(3 * X).astype(np.int64), X[0]], ids=str)
def test_features_of_all_types_are_those_of_onnxruntime(x):
    for norm in ("MAX", "L1", "L2"):
        check_learned("Normalizer", x, norm=norm)
    check_learned("Scaler", x, offset=[0.5], scale=[1.5])
    check_learned("FeatureVectorizer", x, x, inputdimensions=[2, 4])


def test_threshold_between_integers_is_not_rounded_to_zero():
    made, given = of_node("Binarizer", np.array([-1, 0, 1]), domain="ai.onnx.ml", opset=1, threshold=-0.5)

    assert runs(made, given)[0].tolist() == [0, 1, 1]


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


WORDS_OF_TEXT = np.array([["a", "b"], ["c", "a"]], object)
TABLES = {
    "strings": (WORDS_OF_TEXT, ["a", "b", "a"]),
    "int64s": (WORDS, [1, 3, 1]),
    "floats": (WORDS.astype(np.float32), [1.0, 3.0, 1.0]),
}
RESULTS = {"strings": ["x", "y", "z"], "int64s": [7, 8, 9], "floats": [0.5, 0.25, -1.0]}


@pytest.mark.parametrize("opset", [2, 4])
@pytest.mark.parametrize("values", RESULTS)
@pytest.mark.parametrize("keys", TABLES)
def test_tables_of_labels_are_those_of_onnxruntime(keys, values, opset):
    x, given = TABLES[keys]

    check_texts("LabelEncoder", x, opset=opset, **{f"keys_{keys}": given, f"values_{values}": RESULTS[values]})


@pytest.mark.parametrize("opset", [2, 4])
def test_nan_is_a_label_from_version_4_on(opset):
    x = np.float32([1, np.nan])

    check_learned("LabelEncoder", x, opset=opset, keys_floats=[float("nan"), 1.0], values_int64s=[4, 6])


@pytest.mark.parametrize(
    ("x", "keys", "values", "default"),
    [
        (np.array([1.5, 2.0]), np.array([1.5, 3.0]), np.array([7, 8]), np.array([0])),
        (np.array([1.5, 2.0]), np.array([1.5, 3.0]), np.array([7.0, 8.0]), np.array([0.5])),
        (WORDS_OF_TEXT, np.array(["a", "b"], object), np.array([7, 8], np.int16), np.array([-1], np.int16)),
        (WORDS, np.array([1, 1]), np.array([7, 8]), np.array([-1])),
    ],
    ids=["to integers", "to doubles", "of strings", "equal keys"],
)
def test_tables_of_tensors_are_those_of_onnxruntime(x, keys, values, default):
    tables = {"keys": keys, "values": values, "default": default}

    check_texts(
        "LabelEncoder",
        x,
        opset=4,
        **{f"{name}_tensor": numpy_helper.from_array(table) for name, table in tables.items()},
    )


@pytest.mark.parametrize("x", [WORDS_OF_TEXT, WORDS - 1], ids=["strings", "integers"])
def test_labels_by_place_are_those_of_onnxruntime(x):
    check_texts("LabelEncoder", x, opset=1, classes_strings=["b", "a", "a"], default_string="none", default_int64=-7)


@pytest.mark.parametrize("x", [WORDS_OF_TEXT, WORDS], ids=["strings", "integers"])
def test_categories_are_mapped_as_by_onnxruntime(x):
    check_texts("CategoryMapper", x, cats_strings=["c", "a", "a"], cats_int64s=[2, 3, 2], default_string="?")


@pytest.mark.parametrize(
    ("x", "attributes"),
    [
        (WORDS_OF_TEXT, {"cats_strings": ["c", "a", "z"]}),
        (WORDS, {"cats_int64s": [1, 3, 1]}),
        (1.4 * WORDS, {"cats_int64s": [1, 3]}),
        (WORDS_OF_TEXT, {"cats_strings": ["c", "a", "b"], "zeros": 0}),
    ],
    ids=["strings", "equal categories", "doubles", "all known"],
)
def test_ones_of_categories_are_those_of_onnxruntime(x, attributes):
    check_texts("OneHotEncoder", x, **attributes)


@pytest.mark.parametrize("x", [WORDS_OF_TEXT, WORDS], ids=["strings", "integers"])
def test_element_of_no_category_may_be_an_error(x):
    categories = {"cats_strings": ["a"]} if x is WORDS_OF_TEXT else {"cats_int64s": [1]}
    made, given = of_node("OneHotEncoder", x, domain="ai.onnx.ml", opset=1, zeros=0, **categories)
    engine = netloop.compile(netloop.onnx.load(made))

    with pytest.raises(netloop.NetloopError, match="every element is one of the categories"):
        engine(given)


def test_keys_of_another_type_are_refused():
    assert refused("LabelEncoder", WORDS, keys_strings=["a"], values_int64s=[1]).startswith("the keys are strings")
    assert refused("OneHotEncoder", WORDS, cats_strings=["a"]).startswith("the categories are strings")


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


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_one_score_is_transformed_as_by_onnxruntime(transform):
    """A single score is not transformed, unless it speaks for two classes and the transformation is LOGISTIC."""
    check_learned("LinearRegressor", X, coefficients=[0.5, -1.0, 2.0], intercepts=[0.1], post_transform=transform)
    check_learned(
        "LinearClassifier", X, coefficients=[0.5, -1.0, 2.0], intercepts=[0.1], outputs=2, classlabels_ints=[7, -3],
        post_transform=transform,
    )  # fmt: skip


def test_transforms_of_probabilities_are_those_of_onnxruntime():
    for transform in ("PROBIT", "SOFTMAX_ZERO"):
        check_learned(
            "LinearRegressor", np.float32([[0.25, 0.9], [0.0, 0.4]]), coefficients=[1.0, 0.0, 0.0, 1.0], targets=2,
            post_transform=transform, rtol=1e-4,
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
