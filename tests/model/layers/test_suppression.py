import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netloop.model.layers.detection import INMSLayer
from netloop.model.layers.suppression import FEWEST, groups_of, rounded
from netloop.values.enums import BoundingBoxFormat
from tests.support.examples import examples

FORMATS = list(BoundingBoxFormat)


def boxes(chance, items, count, classes, differ, whole):
    """Boxes and scores; whole numbers overlap in equal shares, and have equal scores."""
    shape = (items, count, classes, 4) if differ else (items, count, 4)
    draw = (lambda *of: chance.integers(0, 9, of)) if whole else (lambda *of: chance.uniform(0, 9, of))
    return draw(*shape).astype(np.float32), (draw(items, count, classes) / 9).astype(np.float32)


@examples(60)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(0, 3 * FEWEST),
    classes=st.integers(1, 4),
    differ=st.booleans(),
    whole=st.booleans(),
    most=st.sampled_from([0, 1, 3, 1000]),
    overlap=st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]),
    layer=st.builds(INMSLayer, bounding_box_format=st.sampled_from(FORMATS), topk_box_limit=st.sampled_from([7, 5000])),
)
def test_compiled_selection_is_that_of_the_reference(seed, count, classes, differ, whole, most, overlap, layer):
    given = *boxes(np.random.default_rng(seed), 2, count, classes, differ, whole), np.int32(most), np.float32(overlap)

    for wanted, made in zip(layer.evaluate(*given), layer.host_value(*given), strict=True):
        np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_boxes_that_are_no_numbers(value):
    layer, corners = INMSLayer(), np.float32([[[0, 0, 2, 2], [0, 0, value, 2], [0, 1, 2, 3], [value] * 4]])
    given = corners, np.float32([[[0.9], [0.8], [0.7], [0.6]]]), np.int32(9), np.float32(0.3)

    np.testing.assert_array_equal(layer.host_value(*given)[0], layer.evaluate(*given)[0])


@examples(30, nightly=600)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 120),
    clusters=st.integers(1, 12),
    classes=st.integers(1, 3),
    most=st.sampled_from([1, 4, 1000]),
    overlap=st.sampled_from([-0.5, 0.0, 0.3, 1.0]),
)
def test_selection_among_boxes_that_are_apart_is_that_of_the_reference(seed, count, clusters, classes, most, overlap):
    chance, layer = np.random.default_rng(seed), INMSLayer()
    corners, scores = boxes(chance, 1, count, classes, False, True)
    # some clusters touch: 9 is the largest coordinate
    corners += 9 * chance.integers(0, clusters, (1, count, 1)).astype(np.float32) * np.float32([1, 0, 1, 0])
    given = corners, scores, np.int32(most), np.float32(overlap)

    np.testing.assert_array_equal(layer.host_value(*given)[0], layer.evaluate(*given)[0])


def test_boxes_that_are_apart_are_in_groups_of_their_own():
    rows, columns = np.divmod(np.arange(4 * FEWEST), 8)
    low = np.stack([columns % 4 * 10, rows % 2 * 10], -1).astype(np.float32)
    corners = np.stack([low, low + 10], 1)
    classes = np.repeat([0, 1], 2 * FEWEST)

    found = groups_of(corners, classes, 0.5)
    assert len(np.unique(found)) == len(np.unique(np.column_stack([classes, low[:, 0]]), axis=0))
    assert len(np.unique(groups_of(corners, classes, -1.0))) == 2


@pytest.mark.parametrize(("number", "wanted"), [(1, 1), (2, 2), (3, 3), (5, 6), (7, 8), (32, 32), (33, 48), (49, 64)])
def test_numbers_of_boxes_are_rounded_up(number, wanted):
    assert rounded(number, 1) == wanted
