"""N-grams of onnxruntime; NGramRepeatBlock is among the other tests."""

import numpy as np
import pytest

import netloop
from tests.support.microsoft import MICROSOFT
from tests.support.onnx_models import check_node, of_node

SOURCE = np.array([1, 5, 3, 5, 4, 5, 3, 9])


@pytest.mark.parametrize(
    ("current", "start", "predicted"),
    [
        ([0, 4], 0, None),
        ([0, 5], 0, None),
        ([5, 3], 0, None),
        ([4, 5, 3], 0, None),
        ([0, 9], 0, None),
        ([7], 0, None),
        ([0], 4, [4, 5, 8, 8, 8]),
        ([0], 4, [4, 5, 3, 9, 8]),
        ([0], 5, [1, 1, 1, 1]),
    ],
)
def test_place_where_the_source_goes_on_is_that_of_onnxruntime(current, start, predicted):
    given = [SOURCE, np.array(current), np.array(start), None if predicted is None else np.array(predicted)]

    check_node("BifurcationDetector", *given, outputs=2, **MICROSOFT)


def test_longest_n_gram_is_bounded():
    made, _ = of_node(
        "BifurcationDetector", SOURCE, SOURCE, np.array(0), outputs=2, max_ngram_size=1 << 40, **MICROSOFT
    )

    with pytest.raises(netloop.ModelError, match="n-grams have 1 to 1099511627776 tokens, but may have 1 to 64"):
        netloop.onnx.load(made)
