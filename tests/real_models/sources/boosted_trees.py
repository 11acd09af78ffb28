"""Gradient boosting of LightGBM and XGBoost, by onnxmltools."""

from pathlib import Path
from typing import Any

import lightgbm
import onnxmltools
import xgboost
from onnxmltools.convert.common.data_types import FloatTensorType

from tests.real_models.recipe import Recipes, Sizes
from tests.real_models.sources.sklearn_models import LABELS, VALUES, X

RECIPES = Recipes()


def write_lightgbm(path: Path, model: Any, y: Any, **options: Any) -> Sizes:
    """Convert a model of LightGBM."""
    made = onnxmltools.convert_lightgbm(
        model.fit(X, y), initial_types=[("X", FloatTensorType([None, 5]))], target_opset=15, **options
    )
    return save(path, made)


def write_xgboost(path: Path, model: Any, y: Any) -> Sizes:
    """Convert a model of XGBoost."""
    types = [("X", FloatTensorType([None, 5]))]
    return save(path, onnxmltools.convert_xgboost(model.fit(X, y), initial_types=types, target_opset=15))


def save(path: Path, model: Any) -> Sizes:
    path.write_bytes(model.SerializeToString())
    return [{"X": X[:7]}, {"X": X[20:33]}]


def add_lightgbm(name: str, model: Any, y: Any, **options: Any) -> None:
    RECIPES.add(f"lgbm_{name}", "onnxmltools", lambda path: write_lightgbm(path, model, y, **options))


def add_xgboost(name: str, model: Any, y: Any) -> None:
    RECIPES.add(f"xgb_{name}", "onnxmltools", lambda path: write_xgboost(path, model, y))


FEW = {"n_estimators": 6, "n_jobs": 1}
LIGHT: dict[str, Any] = {**FEW, "num_leaves": 7, "min_child_samples": 3, "verbose": -1}
add_lightgbm("regressor", lightgbm.LGBMRegressor(**LIGHT), VALUES)
add_lightgbm("poisson", lightgbm.LGBMRegressor(objective="poisson", **LIGHT), abs(VALUES))
add_lightgbm("classifier", lightgbm.LGBMClassifier(**LIGHT), LABELS, zipmap=False)
add_lightgbm("classifier_zipmap", lightgbm.LGBMClassifier(**LIGHT), LABELS)
add_lightgbm("binary", lightgbm.LGBMClassifier(**LIGHT), LABELS % 2, zipmap=False)
add_lightgbm(
    "forest", lightgbm.LGBMRegressor(boosting_type="rf", bagging_freq=1, bagging_fraction=0.6, **LIGHT), VALUES
)
XGB = {**FEW, "max_depth": 3, "base_score": 0.5}
add_xgboost("regressor", xgboost.XGBRegressor(**XGB), VALUES)
add_xgboost("poisson", xgboost.XGBRegressor(objective="count:poisson", **XGB), abs(VALUES))
add_xgboost("classifier", xgboost.XGBClassifier(**XGB), LABELS)
add_xgboost("binary", xgboost.XGBClassifier(**XGB), LABELS % 2)
add_xgboost("forest", xgboost.XGBRFRegressor(**XGB), VALUES)
