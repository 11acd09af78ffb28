"""Gradient boosting of LightGBM and XGBoost, by onnxmltools, and of CatBoost, by itself."""

from pathlib import Path
from typing import Any

import catboost
import lightgbm
import numpy as np
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


def write_catboost(path: Path, model: Any, y: Any) -> Sizes:
    """Save a model of CatBoost as ONNX."""
    model.fit(X, y).save_model(str(path), format="onnx")
    return [{"features": X[:7]}, {"features": X[20:33]}]


def save(path: Path, model: Any) -> Sizes:
    path.write_bytes(model.SerializeToString())
    return [{"X": X[:7]}, {"X": X[20:33]}]


def add_lightgbm(name: str, model: Any, y: Any, **options: Any) -> None:
    RECIPES.add(f"lgbm_{name}", "onnxmltools", lambda path: write_lightgbm(path, model, y, **options))


def add_xgboost(name: str, model: Any, y: Any) -> None:
    RECIPES.add(f"xgb_{name}", "onnxmltools", lambda path: write_xgboost(path, model, y))


def add_catboost(name: str, model: Any, y: Any) -> None:
    RECIPES.add(f"cb_{name}", "catboost", lambda path: write_catboost(path, model, y))


def write_gaps(path: Path) -> Sizes:
    """A model of XGBoost, with inputs of which some numbers are missing."""
    write_xgboost(path, xgboost.XGBRegressor(**XGB), VALUES)
    rows = X[:20].copy()
    rows[::3, 1] = np.nan
    return [{"X": rows[:7]}, {"X": rows[7:]}]


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
add_lightgbm("multiova", lightgbm.LGBMClassifier(objective="multiclassova", **LIGHT), LABELS, zipmap=False)
add_lightgbm("linear_l1", lightgbm.LGBMRegressor(objective="regression_l1", **LIGHT), VALUES)
add_lightgbm("tweedie", lightgbm.LGBMRegressor(objective="tweedie", **LIGHT), abs(VALUES))
add_lightgbm("dart", lightgbm.LGBMRegressor(boosting_type="dart", **LIGHT), VALUES)
add_lightgbm("split", lightgbm.LGBMRegressor(**{**LIGHT, "n_estimators": 30}), VALUES, split=10)
add_xgboost("rf_classifier", xgboost.XGBRFClassifier(**XGB), LABELS)
add_xgboost("tweedie", xgboost.XGBRegressor(objective="reg:tweedie", **XGB), abs(VALUES))
add_xgboost("linear", xgboost.XGBRegressor(booster="dart", **XGB), VALUES)
CAT = {"iterations": 12, "depth": 3, "verbose": False, "thread_count": 1, "allow_writing_files": False}
add_catboost("regressor", catboost.CatBoostRegressor(**CAT), VALUES)
add_catboost("quantile", catboost.CatBoostRegressor(loss_function="Quantile:alpha=0.7", **CAT), VALUES)
add_catboost("binary", catboost.CatBoostClassifier(**CAT), LABELS % 2)
add_catboost("multi", catboost.CatBoostClassifier(loss_function="MultiClass", **CAT), LABELS)
RECIPES.add("xgb_nan", "onnxmltools", write_gaps)
