"""Models of scikit-learn against onnxruntime, where scikit-learn and skl2onnx are installed."""

import numpy as np
import onnx
import pytest

import netloop
from tests.support.onnx_models import session_gives

skl2onnx = pytest.importorskip("skl2onnx")
ensemble = pytest.importorskip("sklearn.ensemble")
linear = pytest.importorskip("sklearn.linear_model")
neighbors = pytest.importorskip("sklearn.neighbors")
pipeline = pytest.importorskip("sklearn.pipeline")
preprocessing = pytest.importorskip("sklearn.preprocessing")
svm = pytest.importorskip("sklearn.svm")
SimpleImputer = pytest.importorskip("sklearn.impute").SimpleImputer
MLPClassifier = pytest.importorskip("sklearn.neural_network").MLPClassifier
GaussianNB = pytest.importorskip("sklearn.naive_bayes").GaussianNB

pytestmark = pytest.mark.filterwarnings("ignore:Attribute .* was deprecated:FutureWarning")  # skl2onnx reads it

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(120, 4)).astype(np.float32)
HOLES = np.where(DRAW.random(X.shape) < 0.1, np.float32(np.nan), X)
THREE = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int) + (X[:, 3] > 0.8)
TWO = (X[:, 0] + X[:, 1] > 0).astype(int)
WORDS = np.array(["ant", "bee", "cat"])[THREE]
NUMBER = (2 * X[:, 0] + np.sin(X[:, 1])).astype(np.float32)

CLASSIFIERS = {
    "logistic": lambda: linear.LogisticRegression(),
    "forest": lambda: ensemble.RandomForestClassifier(10, random_state=0),
    "boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=5),
    "svc linear": lambda: svm.SVC(kernel="linear"),
    "svc rbf": lambda: svm.SVC(),
    "svc poly": lambda: svm.SVC(kernel="poly"),
    "neighbors": lambda: neighbors.KNeighborsClassifier(),
    "perceptron": lambda: MLPClassifier((8,), max_iter=20, tol=1.0),
    "bayes": lambda: GaussianNB(),
    "pipeline": lambda: pipeline.make_pipeline(preprocessing.StandardScaler(), linear.LogisticRegression()),
}
REGRESSORS = {
    "linear": lambda: linear.LinearRegression(),
    "forest": lambda: ensemble.RandomForestRegressor(10, random_state=0),
    "boosting": lambda: ensemble.GradientBoostingRegressor(n_estimators=5),
    "svr": lambda: svm.SVR(),
    "neighbors": lambda: neighbors.KNeighborsRegressor(),
}


def saved(model, **options):
    """The model of an estimator, in which each domain is imported once: skl2onnx imports one twice."""
    made = skl2onnx.to_onnx(model, X[:1], target_opset={"": 18, "ai.onnx.ml": 3}, **options)
    opsets = {value.domain: value.version for value in made.opset_import}
    del made.opset_import[:]
    made.opset_import.extend(onnx.helper.make_opsetid(*entry) for entry in opsets.items())
    return made


def check_model(made, x):
    given = {made.graph.input[0].name: x[:20]}
    outputs = netloop.compile(netloop.onnx.load(made.SerializeToString()))(given)
    for name, expected in session_gives(made, given).items():
        found = outputs[name]
        if isinstance(expected, list):
            assert [[*value] for value in found] == [[*value] for value in expected]
            found, expected = ([[*element.values()] for element in value] for value in (found, expected))
        elif expected.dtype.kind in "OUi":
            assert found.tolist() == expected.tolist()
            continue
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("labels", [TWO, THREE, WORDS], ids=["two classes", "three classes", "strings"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_are_those_of_onnxruntime(name, labels):
    model = CLASSIFIERS[name]().fit(X, labels)

    check_model(saved(model, options={id(model): {"zipmap": False}}), X)


@pytest.mark.parametrize("labels", [TWO, WORDS], ids=["integers", "strings"])
def test_probabilities_may_be_maps(labels):
    check_model(saved(linear.LogisticRegression().fit(X, labels)), X)


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_are_those_of_onnxruntime(name):
    check_model(saved(REGRESSORS[name]().fit(X, NUMBER)), X)


def test_missing_numbers_are_imputed_before_a_model():
    steps = SimpleImputer(), preprocessing.StandardScaler(), linear.LogisticRegression()
    model = pipeline.make_pipeline(*steps).fit(HOLES, THREE)

    check_model(saved(model, options={id(model): {"zipmap": False}}), HOLES)


def test_outliers_are_those_of_onnxruntime():
    check_model(saved(svm.OneClassSVM().fit(X)), X)
    check_model(saved(ensemble.IsolationForest(n_estimators=3, random_state=0).fit(X)), X)
