"""Tree ensembles against onnxruntime and numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import netloop
from tests.support.examples import mostly_slow
from tests.support.onnx_models import check_node, of_node, runs, session_gives

X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]


def check_learned(op, *arrays, opset=3, **options):
    check_node(op, *arrays, domain="ai.onnx.ml", opset=opset, **options)


def refused(op, *arrays, opset=3, **attributes):
    made, _ = of_node(op, *arrays, domain="ai.onnx.ml", opset=opset, **attributes)
    with pytest.raises(netloop.ModelError) as caught:
        netloop.onnx.load(made)
    return caught.value.findings[0].what


def forest(count, seed=0, modes=("BRANCH_LEQ",), depth=3):
    """Random trees, as attributes of TreeEnsembleRegressor."""
    draw = np.random.default_rng(seed)
    inner = 2**depth - 1
    made = {name: [] for name in ("treeids", "nodeids", "featureids", "modes", "truenodeids", "falsenodeids",
                                  "missing_value_tracks_true")}  # fmt: skip
    values, targets = [], {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(count):
        for node in range(2 * inner + 1):
            leaf = node >= inner
            made["treeids"].append(tree)
            made["nodeids"].append(node)
            made["featureids"].append(int(draw.integers(3)))
            made["modes"].append("LEAF" if leaf else str(draw.choice(modes)))
            made["truenodeids"].append(0 if leaf else 2 * node + 1)
            made["falsenodeids"].append(0 if leaf else 2 * node + 2)
            made["missing_value_tracks_true"].append(int(draw.integers(2)))
            values.append(float(np.float32(draw.normal())))
            if leaf:
                targets["treeids"].append(tree)
                targets["nodeids"].append(node)
                targets["ids"].append(int(draw.integers(2)))
                targets["weights"].append(float(np.float32(draw.normal())))
    nodes = {f"nodes_{name}": entry for name, entry in made.items()}
    return {
        **nodes,
        "nodes_values": values,
        **{f"target_{name}": target for name, target in targets.items()},
        "n_targets": 2,
    }


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_trees_are_those_of_onnxruntime(aggregate):
    check_learned("TreeEnsembleRegressor", X, aggregate_function=aggregate, base_values=[0.5, -1.0], **forest(4))


@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"])
def test_questions_of_nodes_are_those_of_onnxruntime(mode):
    trees = forest(2, seed=1, modes=(mode,))
    trees["nodes_values"] = [float(value) for value in np.round(trees["nodes_values"])]
    x = np.concatenate([np.round(X), [[np.nan, 0, 1]]]).astype(np.float32)

    check_learned("TreeEnsembleRegressor", x, **trees)


def test_nodes_of_several_kinds_are_those_of_onnxruntime():
    check_learned("TreeEnsembleRegressor", X, **forest(3, seed=2, modes=("BRANCH_LEQ", "BRANCH_GT")))


def test_integers_are_samples_too():
    whole = np.round(2 * X)
    models = [
        of_node("TreeEnsembleRegressor", array, domain="ai.onnx.ml", opset=3, **forest(2))
        for array in (whole, whole.astype(np.int64))
    ]

    assert np.array_equal(*(runs(*model)[0] for model in models))


def test_tree_that_is_a_leaf_gives_its_weight():
    trees = forest(1, depth=0)

    check_learned("TreeEnsembleRegressor", X, **trees)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes_truenodeids": [99]}, "node 99 of tree 0 is a child, and there is no such node"),
        ({"nodes_modes": ["BRANCH_ODD"]}, "no mode of a node is called 'BRANCH_ODD'"),
        ({"nodes_featureids": [3]}, "a node tests feature 3, and samples have 3"),
        ({"target_ids": [7]}, "target_ids are not from 0 to 1"),
        ({"target_nodeids": [77]}, "node 77 of tree 0 has a weight, and there is no such node"),
        ({"aggregate_function": "MODE"}, "aggregate_function is 'MODE'"),
        ({"n_targets": 1 << 40}, "there are 1099511627776 targets"),
        ({"base_values": [1.0] * 3}, "there are 3 base_values, and 2 targets"),
    ],
)
def test_trees_that_mean_nothing_are_refused(changes, message):
    trees = forest(1)
    for name, value in changes.items():
        trees[name] = [*value, *trees.get(name, [])[1:]] if isinstance(value, list) else value

    assert message in refused("TreeEnsembleRegressor", X, **trees)


def test_tree_in_a_circle_is_refused():
    trees = forest(1, depth=2)
    trees["nodes_truenodeids"][1] = 1

    assert refused("TreeEnsembleRegressor", X, **trees)


def test_weights_of_inner_nodes_mean_nothing():
    """Old versions of onnxmltools write them."""
    trees = forest(1)
    for name, value in (("treeids", 0), ("nodeids", 0), ("ids", 1), ("weights", 9.0)):
        trees[f"target_{name}"].append(value)

    check_learned("TreeEnsembleRegressor", X, **trees)


# ---------------------------------------------------------------------------- random ensembles


@st.composite
def ensembles(draw, role):
    """Random trees with leaves that contribute to all, one or some of up to four targets, and samples."""
    chosen = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    count = draw(st.integers(1, 4))
    made = forest(
        draw(st.integers(1, 4)), int(chosen.integers(1 << 30)), draw(st.lists(st.sampled_from(MODES), min_size=1)),
        draw(st.integers(0, 3)),
    )  # fmt: skip
    made["nodes_values"] = [float(round(value)) for value in made["nodes_values"]]
    if draw(st.booleans()):
        del made["nodes_missing_value_tracks_true"]
    leaves = [*zip(made.pop("target_treeids"), made.pop("target_nodeids"), strict=True)]
    for name in ("target_ids", "target_weights", "n_targets"):
        del made[name]
    own, small = draw(st.sampled_from(["all", "one", "some"])), draw(st.booleans())
    rows = []
    for leaf in leaves:
        some = {"all": range(count), "one": [count - 1], "some": chosen.permutation(count)[: chosen.integers(1, 5)]}
        rows += [(*leaf, int(target), chosen.normal()) for target in some[own]]
    weights = np.float32([row[3] for row in rows])
    made[f"{role}_weights"] = [float(weight) for weight in (np.abs(weights) / 8 if small else weights)]
    for place, name in enumerate(("treeids", "nodeids", "ids")):
        made[f"{role}_{name}"] = [row[place] for row in rows]
    x = np.round(chosen.normal(size=(7, 3)) * 1.5)
    dtype = draw(st.sampled_from([np.float32, np.float64, np.int64, np.int32]))
    if dtype in (np.float32, np.float64):
        x[chosen.random(x.shape) < 0.2] = np.nan
    bases = draw(st.sampled_from([0, 1, count] if role == "class" and count == 2 else [0, count]))
    if bases:
        made["base_values"] = [float(value) for value in np.float32(chosen.random(bases) / 4)]
    made["post_transform"] = draw(st.sampled_from(TRANSFORMS))
    return x.astype(dtype), count, made


@pytest.mark.slow
@settings(max_examples=12)
@given(ensembles("target"), st.sampled_from(["SUM", "AVERAGE", "MIN", "MAX"]))
def test_random_regressors_are_those_of_onnxruntime(ensemble, aggregate):
    x, count, made = ensemble
    x = x.astype(np.float64 if x.dtype == np.float64 else np.float32)  # it has no others

    check_learned(
        "TreeEnsembleRegressor", x, n_targets=count, aggregate_function=aggregate, rtol=5e-4, atol=2e-4, **made
    )


@pytest.mark.slow
@settings(max_examples=20)
@given(ensembles("class"))
def test_random_classifiers_are_those_of_onnxruntime(ensemble):
    x, count, made = ensemble
    made["classlabels_int64s"] = [5, 9, -3, 4][:count]
    model, feeds = of_node("TreeEnsembleClassifier", x, outputs=2, domain="ai.onnx.ml", opset=3, **made)

    (labels, scores), (own_labels, own_scores) = session_gives(model, feeds).values(), runs(model, feeds)

    assert (own_scores.dtype, own_scores.shape) == (scores.dtype, scores.shape)
    assert np.array_equal(own_labels, labels)
    if count == 2 and (made["post_transform"] == "PROBIT" or len(made.get("base_values", [])) == 1):
        scores, own_scores = scores[:, 0], own_scores[:, 0]  # onnxruntime may leave the others open
    np.testing.assert_allclose(own_scores, scores, rtol=5e-4, atol=2e-4)


def stump(left, right, **attributes):
    """A tree of one test, whose leaves have the weights of two classes: by class, where there is one."""
    rows = [(0, node, *value) for node, leaf in ((1, left), (2, right)) for value in leaf.items()]
    names = ("class_treeids", "class_nodeids", "class_ids", "class_weights")
    return {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.0, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "classlabels_int64s": [5, 9],
        **{name: [row[place] for row in rows] for place, name in enumerate(names)}, **attributes,
    }  # fmt: skip


@pytest.mark.parametrize("base", mostly_slow(1, [[0.25, 0.5], None, [0.3]]), ids=str)
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({0: 0.9}, {0: 0.2}),
        ({1: 0.9}, {1: 0.2}),
        ({0: -0.9}, {0: 0.2}),
        ({1: -0.9}, {1: 0.2}),
        ({0: -0.9, 1: 0.3}, {0: 0.2, 1: -0.4}),
        ({0: 0.9}, {1: 0.8}),
    ],
    ids=str,
)
def test_labels_of_two_classes_are_those_of_onnxruntime(left, right, base):
    """Their limit is 0.5 where all weights are of one class, and none is negative, else 0."""
    attributes = {} if base is None else {"base_values": base}
    x = np.float32([[-1], [1]])
    model, feeds = of_node(
        "TreeEnsembleClassifier", x, outputs=2, domain="ai.onnx.ml", opset=3, **stump(left, right, **attributes)
    )

    assert runs(model, feeds)[0].tolist() == session_gives(model, feeds)["y0"].tolist()


def test_labels_may_be_strings():
    trees = {name.replace("target", "class"): number for name, number in forest(3).items() if name != "n_targets"}
    made, feeds = of_node(
        "TreeEnsembleClassifier", X, outputs=2, domain="ai.onnx.ml", opset=3, classlabels_strings=["no", "yes"], **trees
    )

    assert np.array_equal(runs(made, feeds)[0], session_gives(made, feeds)["y0"])


def test_splits_at_zero_are_exact():
    """In compiled code, subnormal numbers are 0: the number before a split of 0 must not be one."""
    trees = forest(1, modes=("BRANCH_LT", "BRANCH_GTE"), depth=1)
    trees["nodes_values"] = [0.0] * 3
    x = np.float32([[0.0] * 3, [-0.0] * 3, [-1e-30] * 3, [1e-30] * 3])

    check_learned("TreeEnsembleRegressor", x, **trees)


# ---------------------------------------------------------------------------- leaves apart from inner nodes


def arrays(dtype, modes, members=(), seed=0, **attributes):
    """A perfect tree of depth 2 and one of depth 1, as attributes of TreeEnsemble; 2 targets."""
    draw = np.random.default_rng(seed)
    tensors = {
        "nodes_splits": np.round(draw.normal(size=4)).astype(dtype),
        "nodes_modes": np.array(modes, np.uint8),
        "leaf_weights": draw.normal(size=6).astype(dtype),
        **({"membership_values": np.array(members, dtype)} if members else {}),
    }
    return {
        "tree_roots": [0, 3], "n_targets": 2, "nodes_featureids": [0, 1, 2, 1], "nodes_truenodeids": [1, 0, 2, 4],
        "nodes_trueleafs": [0, 1, 1, 1], "nodes_falsenodeids": [2, 1, 3, 5], "nodes_falseleafs": [0, 1, 1, 1],
        "leaf_targetids": [0, 1, 1, 0, 1, 0], "nodes_missing_value_tracks_true": [1, 0, 0, 1],
        **{name: numpy_helper.from_array(array) for name, array in tensors.items()}, **attributes,
    }  # fmt: skip


WHOLE = np.array([[a, b, c] for a in (-1, 0, 1) for b in (0, 2, np.nan) for c in (1, 3)])


def leaves(dtype, modes, aggregate):
    """One way to add leaves up with every mode and type, and the others with one of them; the rest is slow."""
    is_fast = aggregate == 0 or (dtype is np.float32 and modes[0] == 0)
    return pytest.param(dtype, modes, aggregate, marks=() if is_fast else pytest.mark.slow)


@pytest.mark.parametrize(
    ("dtype", "modes", "aggregate"),
    [
        leaves(dtype, modes, aggregate)
        for dtype in (np.float32, np.float64)
        for modes in ([0, 1, 2, 3], [4, 5, 0, 3], [6, 4, 0, 6])
        for aggregate in range(4)
    ],
)
def test_trees_with_separate_leaves_are_those_of_onnxruntime(dtype, modes, aggregate):
    members = [0, 1, np.nan, 2, np.nan] if 6 in modes else ()

    check_learned(
        "TreeEnsemble", WHOLE.astype(dtype), opset=5, aggregate_function=aggregate, **arrays(dtype, modes, members)
    )


@pytest.mark.parametrize(("number", "peer"), mostly_slow(2, [(0, 0), (1, 2), (2, 1), (3, 3), (4, 4)]))
def test_scores_of_separate_leaves_are_transformed(number, peer):
    """onnxruntime has exchanged SOFTMAX, which the standard gives number 1, and LOGISTIC, number 2."""
    trees = arrays(np.float32, [0, 0, 0, 0])
    trees["leaf_weights"] = numpy_helper.from_array(np.float32([0.1, 0.2, 0.3, 0.4, 0.25, 0.35]))
    models = [
        of_node("TreeEnsemble", WHOLE.astype(np.float32), domain="ai.onnx.ml", opset=5, post_transform=value, **trees)
        for value in (number, peer)
    ]

    found, expected = runs(*models[0])[0], session_gives(*models[1])["y0"]

    np.testing.assert_allclose(found, expected, rtol=5e-4, atol=2e-4)
    if number == 0:  # it ignores the others
        np.testing.assert_allclose(found, ReferenceEvaluator(models[0][0]).run(None, models[0][1])[0], rtol=1e-5)


@pytest.mark.parametrize("changes", [{"tree_roots": [99]}, {"nodes_falsenodeids": [1, 1, 3, 9]}, {"n_targets": 1}])
def test_arrays_that_mean_nothing_are_refused(changes):
    assert refused("TreeEnsemble", X, opset=5, **{**arrays(np.float32, [0, 0, 0, 0]), **changes})


def test_sets_that_are_missing_are_refused():
    assert "no membership_values" in refused("TreeEnsemble", X, opset=5, **arrays(np.float32, [6, 0, 0, 0]))
    assert "there are 1 sets" in refused("TreeEnsemble", X, opset=5, **arrays(np.float32, [6, 6, 0, 0], [1.0, np.nan]))


def test_numbers_of_trees_are_floating_point():
    trees = {**arrays(np.float32, [0, 0, 0, 0]), "leaf_weights": numpy_helper.from_array(np.arange(6))}

    assert (
        refused("TreeEnsemble", X, opset=5, **trees) == "leaf_weights is int64, but must be of floating-point numbers"
    )


# ---------------------------------------------------------------------------- size


def test_hundreds_of_trees_are_one_compiled_program():
    made, feeds = of_node("TreeEnsembleRegressor", X, domain="ai.onnx.ml", opset=3, **forest(300, depth=5))

    engine = netloop.compile(netloop.onnx.load(made))

    assert engine.num_layers < 60
    np.testing.assert_allclose(engine(feeds)["y0"], session_gives(made, feeds)["y0"], rtol=1e-4, atol=1e-5)
