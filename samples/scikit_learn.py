"""A scikit-learn pipeline with columns of text, as one network: encoders, imputer, scaler and forest.

skl2onnx saves the pipeline as an ONNX model, which netloop loads with one line. Its inputs are strings and numbers, its
outputs labels and, for each row, a dict with the probability of each label. It needs the packages scikit-learn and
skl2onnx.

    python samples/scikit_learn.py

It prints labels and probabilities for three flats, one of them in a city that the training did not have, and without a
size:

    oslo, old, 80 m2: cheap {'cheap': 0.8, 'dear': 0.2}
    rome, new, 95 m2: dear {'cheap': 0.1, 'dear': 0.9}
    bern, new, nan m2: dear {'cheap': 0.3, 'dear': 0.7}
"""

import numpy as np
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import netloop
import netloop.onnx


def trained() -> Pipeline:
    """Return a classifier of flats by city, age, size and floor, trained on random ones."""
    draw = np.random.default_rng(0)
    rows = np.empty((400, 4), object)
    rows[:, 0], rows[:, 1] = draw.choice(["lima", "oslo", "rome"], 400), draw.choice(["new", "old"], 400)
    rows[:, 2], rows[:, 3] = draw.normal(80, 20, 400), draw.integers(0, 9, 400)
    price = rows[:, 2].astype(float) + 30 * (rows[:, 0] == "rome") - 30 * (rows[:, 1] == "old")
    rows[::7, 2] = np.nan
    columns = ColumnTransformer(
        [
            ("texts", OneHotEncoder(handle_unknown="ignore"), [0, 1]),
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), [2, 3]),
        ]
    )
    pipeline = Pipeline([("columns", columns), ("forest", RandomForestClassifier(50, max_depth=3, random_state=0))])
    return pipeline.fit(rows, np.where(price > 75, "dear", "cheap"))


def main() -> None:
    """Train, save, load, and classify three flats."""
    inputs = [("texts", StringTensorType([None, 2])), ("numbers", FloatTensorType([None, 2]))]
    network = netloop.onnx.load(to_onnx(trained(), initial_types=inputs).SerializeToString())
    engine = netloop.compile(network)

    texts = [["oslo", "old"], ["rome", "new"], ["bern", "new"]]
    numbers = np.array([[80, 2], [95, 5], [np.nan, 1]], np.float32)
    outputs = engine({"texts": texts, "numbers": numbers})
    for (city, age), (size, _), label, share in zip(texts, numbers, *outputs.values(), strict=True):
        rounded = {name: round(value, 1) for name, value in share.items()}
        print(f"{city}, {age}, {size:.0f} m2: {label} {rounded}")


if __name__ == "__main__":
    main()
