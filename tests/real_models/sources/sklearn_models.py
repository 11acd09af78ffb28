"""scikit-learn's estimators and pipelines, by skl2onnx."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn import (
    calibration,
    cluster,
    compose,
    cross_decomposition,
    decomposition,
    discriminant_analysis,
    ensemble,
    feature_extraction,
    feature_selection,
    gaussian_process,
    impute,
    linear_model,
    mixture,
    multiclass,
    multioutput,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    random_projection,
    svm,
    tree,
)
from sklearn.base import BaseEstimator, is_classifier

from tests.real_models.recipe import Recipes, Sizes

RECIPES = Recipes()

CHANCE = np.random.default_rng(0)
X = CHANCE.normal(size=(80, 5)).astype(np.float32)
LABELS = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(np.int64) + (X[:, 2] > 1)
VALUES = (X @ [1.0, -2.0, 0.5, 0.0, 3.0] + np.sin(X[:, 0])).astype(np.float32)
WORDS = np.array(["red", "green", "blue"])[LABELS]
OPSETS = {"": 18, "ai.onnx.ml": 3}
TEXTS = np.array([f"{WORDS[i]} cat {WORDS[-i]} dog {WORDS[i // 2]}" for i in range(80)])


def no_map(model: BaseEstimator) -> dict[str, Any] | None:
    """The options by which a classifier returns probabilities as one tensor."""
    makes_map = is_classifier(model) and not isinstance(model, svm.LinearSVC)
    return {"zipmap": False} if makes_map else None


def write(path: Path, model: BaseEstimator, options: dict[str, Any] | None, double: bool) -> Sizes:
    """Convert a fitted estimator; without options, the probabilities of classifiers are one tensor."""
    kind = np.float64 if double else np.float32
    made = to_onnx(model, X[:1].astype(kind), options=options or no_map(model), target_opset=OPSETS)
    path.write_bytes(made.SerializeToString())
    return [{"X": X[:7].astype(kind)}, {"X": X[20:33].astype(kind)}]


def add(
    name: str, model: BaseEstimator, y: Any = LABELS, options: dict[str, Any] | None = None, double: bool = False
) -> None:
    """Add the recipe of an estimator."""
    RECIPES.add(f"sk_{name}", "skl2onnx", lambda path: write(path, model.fit(X, y), options, double))


def add_texts(name: str, model: BaseEstimator) -> None:
    """Add the recipe of a model of texts."""
    RECIPES.add(f"sk_{name}", "skl2onnx", lambda path: write_texts(path, model))


def write_texts(path: Path, model: pipeline.Pipeline) -> Sizes:
    """Convert a model of one column of texts, with a locale that each system has."""
    model.fit(TEXTS, LABELS)
    types = [("text", StringTensorType([None, 1]))]
    options = {id(model[0]): {"locale": "C"}, id(model[-1]): {"zipmap": False}}
    made = to_onnx(model, initial_types=types, options=options, target_opset=OPSETS)
    path.write_bytes(made.SerializeToString())
    return [{"text": TEXTS[:n].reshape(-1, 1)} for n in (4, 9)]


def write_columns(path: Path) -> Sizes:
    """Convert a pipeline over columns of words and of numbers."""
    columns = [
        ("words", preprocessing.OneHotEncoder(handle_unknown="ignore"), [0]),
        ("numbers", preprocessing.StandardScaler(), [1, 2]),
    ]
    table = np.empty((80, 3), object)
    table[:, 0], table[:, 1:] = WORDS, X[:, 2:4]
    model = pipeline.make_pipeline(compose.ColumnTransformer(columns), linear_model.LogisticRegression())
    model.fit(table, LABELS)
    types = [
        ("word", StringTensorType([None, 1])),
        ("a", FloatTensorType([None, 1])),
        ("b", FloatTensorType([None, 1])),
    ]
    made = to_onnx(model, initial_types=types, options=no_map(model), target_opset=OPSETS)
    path.write_bytes(made.SerializeToString())
    return [{"word": WORDS[:n, None], "a": X[:n, 2:3], "b": X[:n, 3:4]} for n in (4, 9)]


def named(make: Callable[..., BaseEstimator], *arguments: Any, **options: Any) -> tuple[str, BaseEstimator]:
    """An estimator with the name of its class in small letters."""
    model = make(*arguments, **options)
    return type(model).__name__.lower(), model


REGRESSORS = (
    named(linear_model.LinearRegression),
    named(linear_model.ElasticNet, alpha=0.1),
    named(linear_model.BayesianRidge),
    named(linear_model.HuberRegressor),
    named(linear_model.TweedieRegressor, power=0),
    named(svm.SVR),
    named(svm.NuSVR),
    named(tree.DecisionTreeRegressor, max_depth=5),
    named(ensemble.RandomForestRegressor, n_estimators=6, max_depth=4),
    named(ensemble.ExtraTreesRegressor, n_estimators=6, max_depth=4),
    named(ensemble.GradientBoostingRegressor, n_estimators=6),
    named(ensemble.AdaBoostRegressor, n_estimators=4),
    named(ensemble.BaggingRegressor, n_estimators=4),
    named(neighbors.KNeighborsRegressor, 3),
    named(neural_network.MLPRegressor, hidden_layer_sizes=(8,), max_iter=50),
    named(cross_decomposition.PLSRegression, 2),
    named(gaussian_process.GaussianProcessRegressor, alpha=0.1),
)
CLASSIFIERS = (
    named(linear_model.LogisticRegression),
    named(linear_model.SGDClassifier, loss="log_loss"),
    named(linear_model.RidgeClassifier),
    named(linear_model.Perceptron),
    named(svm.LinearSVC),
    named(svm.SVC, probability=True),
    named(svm.NuSVC, nu=0.1),
    named(naive_bayes.GaussianNB),
    named(naive_bayes.BernoulliNB),
    named(tree.DecisionTreeClassifier, max_depth=5),
    named(ensemble.RandomForestClassifier, n_estimators=6, max_depth=4),
    named(ensemble.GradientBoostingClassifier, n_estimators=4),
    named(ensemble.AdaBoostClassifier, n_estimators=4),
    named(
        ensemble.VotingClassifier,
        [("nb", naive_bayes.GaussianNB()), ("lr", linear_model.LogisticRegression())],
        flatten_transform=False,
    ),
    named(ensemble.StackingClassifier, [("nb", naive_bayes.GaussianNB()), ("t", tree.DecisionTreeClassifier())]),
    named(discriminant_analysis.LinearDiscriminantAnalysis),
    named(discriminant_analysis.QuadraticDiscriminantAnalysis),
    named(neighbors.KNeighborsClassifier, 3),
    named(calibration.CalibratedClassifierCV, naive_bayes.GaussianNB(), cv=2),
    named(multiclass.OneVsRestClassifier, linear_model.LogisticRegression()),
    named(neural_network.MLPClassifier, hidden_layer_sizes=(8,), max_iter=50),
    named(multioutput.MultiOutputClassifier, linear_model.LogisticRegression()),
)
OTHERS = (
    named(cluster.KMeans, 3, n_init=1),
    named(mixture.GaussianMixture, 2),
    named(ensemble.IsolationForest, n_estimators=5, max_samples=16),
    named(neighbors.LocalOutlierFactor, novelty=True),
    named(svm.OneClassSVM),
    named(decomposition.PCA, 2),
    named(decomposition.KernelPCA, 2, kernel="rbf"),
    named(decomposition.TruncatedSVD, 2),
    named(preprocessing.PolynomialFeatures, 3),
    named(preprocessing.QuantileTransformer, n_quantiles=10),
    named(preprocessing.PowerTransformer),
    named(preprocessing.KBinsDiscretizer, 3, encode="onehot-dense", quantile_method="averaged_inverted_cdf"),
    named(preprocessing.RobustScaler),
    named(preprocessing.Normalizer),
    named(random_projection.GaussianRandomProjection, 3),
    named(feature_selection.SelectKBest, k=2),
    named(impute.KNNImputer, n_neighbors=2),
)

BINS = preprocessing.KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf")
MORE_REGRESSORS = (
    named(linear_model.GammaRegressor),
    named(linear_model.QuantileRegressor, alpha=0.01),
    named(linear_model.TheilSenRegressor, random_state=0, max_subpopulation=100),
    named(linear_model.RANSACRegressor, random_state=0),
    named(linear_model.Lars),
    named(linear_model.OrthogonalMatchingPursuit),
    named(linear_model.ARDRegression),
    named(linear_model.PoissonRegressor),
    named(linear_model.SGDRegressor),
    named(svm.LinearSVR),
    named(ensemble.HistGradientBoostingRegressor, max_iter=6),
    named(ensemble.StackingRegressor, [("a", linear_model.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=3))]),
    named(ensemble.VotingRegressor, [("a", linear_model.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=3))]),
    named(neighbors.RadiusNeighborsRegressor, 20.0),
)
MORE_CLASSIFIERS = (
    named(linear_model.PassiveAggressiveClassifier),
    named(svm.SVC, kernel="sigmoid"),
    named(ensemble.ExtraTreesClassifier, n_estimators=6, max_depth=4),
    named(ensemble.HistGradientBoostingClassifier, max_iter=4),
    named(ensemble.BaggingClassifier, n_estimators=4),
    named(multiclass.OneVsOneClassifier, linear_model.LogisticRegression()),
    named(multiclass.OutputCodeClassifier, linear_model.LogisticRegression(), random_state=0),
    named(multioutput.ClassifierChain, linear_model.LogisticRegression()),
)
MORE = (
    named(mixture.BayesianGaussianMixture, n_components=2),
    named(cluster.MiniBatchKMeans, 3, n_init=1),
    named(decomposition.IncrementalPCA, 2),
    named(decomposition.FastICA, 2, random_state=0),
    named(linear_model.SGDOneClassSVM),
    named(preprocessing.MaxAbsScaler),
    named(preprocessing.MinMaxScaler),
    named(preprocessing.Binarizer),
    named(preprocessing.SplineTransformer),
    named(random_projection.SparseRandomProjection, 3),
    named(feature_selection.VarianceThreshold),
    named(feature_selection.RFE, linear_model.LogisticRegression(), n_features_to_select=2),
    named(impute.SimpleImputer, add_indicator=True),
)

for name, estimator in MORE_REGRESSORS:
    add(f"{name}_more" if f"sk_{name}" in RECIPES else name, estimator, np.abs(VALUES) + 1)
for name, estimator in MORE_CLASSIFIERS:
    chained = name == "classifierchain"
    both = np.stack([LABELS > 0, LABELS > 1], 1).astype(np.int64)
    add(f"{name}_more" if name == "svc" else name, estimator, both if chained else LABELS)
for name, estimator in MORE:
    add(name, estimator)
for name, model in (
    ("categoricalnb", pipeline.make_pipeline(BINS, naive_bayes.CategoricalNB())),
    ("complementnb", pipeline.make_pipeline(preprocessing.MinMaxScaler(), naive_bayes.ComplementNB())),
    ("multinomialnb", pipeline.make_pipeline(preprocessing.MinMaxScaler(), naive_bayes.MultinomialNB())),
    ("knn_cosine", neighbors.KNeighborsClassifier(3, metric="cosine")),
    ("svc_poly_proba", svm.SVC(kernel="poly", probability=True)),
    ("targetencoder", pipeline.make_pipeline(BINS, preprocessing.TargetEncoder(target_type="multiclass", cv=2))),
    ("ordinalencoder", pipeline.make_pipeline(BINS, preprocessing.OrdinalEncoder())),
):
    add(name, model)
add("gpr_std", gaussian_process.GaussianProcessRegressor(alpha=0.1), VALUES, {"return_std": True})
add("isolation_scores", ensemble.IsolationForest(n_estimators=5, max_samples=16), options={"score_samples": True})

for name, estimator in REGRESSORS:
    add(name, estimator, VALUES)
for name, estimator in CLASSIFIERS:
    chained = name == "multioutputclassifier"
    add(name, estimator, np.stack([LABELS > 0, LABELS > 1], 1).astype(np.int64) if chained else LABELS)
for name, estimator in OTHERS:
    add(name, estimator)
add("logisticregression_zipmap", linear_model.LogisticRegression(), options={"zipmap": True})
add("logisticregression_words", linear_model.LogisticRegression(), WORDS)
add("randomforest_words_zipmap", ensemble.RandomForestClassifier(4, max_depth=3), WORDS, {"zipmap": True})
add("logisticregression_double", linear_model.LogisticRegression(), double=True)
add("gaussianprocess_double", gaussian_process.GaussianProcessRegressor(alpha=0.1), VALUES, double=True)
scaled = (preprocessing.StandardScaler(), decomposition.PCA(3), linear_model.LogisticRegression())
add("pipeline", pipeline.make_pipeline(impute.SimpleImputer(), *scaled))
both = pipeline.make_union(preprocessing.MinMaxScaler(), decomposition.PCA(2))
add("union", pipeline.make_pipeline(both, svm.SVC(kernel="poly")))
tfidf = feature_extraction.text.TfidfVectorizer
add_texts("tfidf", pipeline.make_pipeline(tfidf(), linear_model.LogisticRegression()))
counts = feature_extraction.text.CountVectorizer(ngram_range=(1, 2))
add_texts("counts", pipeline.make_pipeline(counts, naive_bayes.MultinomialNB()))
RECIPES.add("sk_columns", "skl2onnx", write_columns)
