"""Operators of onnxruntime that select, generate or move numbers."""

import numpy as np
import pytest

from tests.support.microsoft import MICROSOFT, bytes_of, floats
from tests.support.onnx_models import check_node

X = floats(2, 3)
IMAGE, GRID = floats(1, 2, 6, 6), floats(1, 3, 2, 2)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Range", (np.int64(1), np.int64(7)), {}),
        ("Range", (np.float32(1), np.float32(3), np.float32(0.5)), {}),
        ("ExpandDims", (X, np.int32(-1)), {}),
        ("ExpandDims", (X, np.int32(1)), {}),
        ("Pad", (X, np.array([0, 1, 0, 1]), np.float32([5])), {}),
        ("Pad", (X, np.array([[0, 1, 0, 1]])), {"mode": "reflect"}),
        ("Trilu", (floats(3, 3),), {}),
        ("Trilu", (floats(3, 3), np.int64(1)), {"upper": 0}),
        ("GatherND", (X, np.array([[0, 1], [1, 2]])), {}),
        ("GridSample", (IMAGE, GRID), {}),
        ("GridSample", (IMAGE, GRID), {"mode": "nearest", "padding_mode": "border", "align_corners": 1}),
        ("UnfoldTensor", (floats(2, 7, 3),), {"dim": 1, "size": 3, "step": 2}),
        ("UnfoldTensor", (floats(2, 7),), {"size": 2}),
        ("NGramRepeatBlock", (np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4]]), floats(2, 6)), {"ngram_size": 3}),
        ("NGramRepeatBlock", (np.array([[1, 2, 3]]), floats(1, 6)), {"ngram_size": 2}),
    ],
    ids=str,
)
def test_operator_is_that_of_onnxruntime(op, inputs, attributes):
    check_node(op, *inputs, **attributes, **MICROSOFT)


@pytest.mark.parametrize("op", ["UnfoldTensor", "NGramRepeatBlock"])
def test_lengths_may_be_open(op):
    inputs = (floats(2, 7),) if op == "UnfoldTensor" else (bytes_of(2, 9, most=3).astype(np.int64), floats(2, 6))
    check_node(
        op, *inputs, open_lengths=True, **({"size": 3} if op == "UnfoldTensor" else {"ngram_size": 2}), **MICROSOFT
    )


def test_unique_elements_are_in_order_of_appearance():
    check_node("Unique", np.float32([3, 1, 3, 2, 1]), outputs=3, **MICROSOFT)
