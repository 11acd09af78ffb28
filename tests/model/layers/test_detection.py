import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import netloop
from netloop.model.layers.detection import INMSLayer, INonZeroLayer, IUniqueLayer
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import NetworkError
from netloop.values.enums import BoundingBoxFormat, DataType, UnaryOperation
from netloop.values.types import TensorType
from tests.support.examples import examples
from tests.support.laws import refuses

FLOAT, INT32, INT64 = DataType.FLOAT, DataType.INT32, DataType.INT64


def f32(*shape):
    return TensorType(np.dtype(np.float32), shape)


def i32(*shape):
    return TensorType(np.dtype(np.int32), shape)


def i64(*shape):
    return TensorType(np.dtype(np.int64), shape)


def evaluate(layer, *arrays):
    """Return the outputs of the reference, after comparing their types with the type rule."""
    arrays = [None if array is None else np.asarray(array) for array in arrays]
    made = layer.evaluate(*arrays)
    results = made if isinstance(made, tuple) else (made,)
    foretold = layer.infer(*(None if array is None else TensorType.of(array) for array in arrays))
    for type, result in zip(foretold if isinstance(foretold, tuple) else (foretold,), results, strict=True):
        assert type.dtype == result.dtype
        assert len(type.shape) == result.ndim
        assert all(a in (-1, b) for a, b in zip(type.shape, result.shape, strict=True))
    return made


# ---------------------------------------------------------------------------- non-zero


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (np.float32([[0, 1, 0], [-2, 0, np.nan]]), [[0, 1, 1], [1, 0, 2]]),  # as ONNX Runtime has it
        (np.array([True, False, True]), [[0, 2]]),
        (np.int32([[0, 0], [0, 0]]), [[], []]),
        (np.int64([[[3]], [[0]]]), [[0], [0], [0]]),
        (np.zeros((2, 0), np.float16), [[], []]),
        (np.array([-0.0, 1e-30], jnp.bfloat16), [[1]]),
    ],
)
def test_non_zero_gives_the_places_in_row_major_order(x, expected):
    assert evaluate(INonZeroLayer(), x).tolist() == expected


@pytest.mark.parametrize(("x", "shape"), [(np.float32(5), (0, 1)), (np.float32(0), (0, 0))])
def test_non_zero_scalar_has_a_place_without_indices(x, shape):
    assert evaluate(INonZeroLayer(), x).shape == shape


@pytest.mark.parametrize(("kind", "dtype"), [(INT32, np.int32), (INT64, np.int64)])
def test_places_are_of_the_type_asked_for(kind, dtype):
    assert evaluate(INonZeroLayer(indices_type=kind), np.float32([1])).dtype == dtype


@given(st.lists(st.lists(st.integers(-1, 1), min_size=3, max_size=3), max_size=4))
@examples(30)
def test_non_zero_agrees_with_numpy(rows):
    x = np.array(rows, np.int32).reshape(-1, 3)

    np.testing.assert_array_equal(evaluate(INonZeroLayer(), x), np.array(np.nonzero(x)))


def test_number_of_non_zero_elements_is_unknown():
    assert INonZeroLayer().infer(f32(2, -1)) == i32(2, -1)
    assert INonZeroLayer(indices_type=INT64).infer(f32()) == i64(0, -1)


def test_non_zero_refuses_what_is_no_number():
    refuses(INonZeroLayer(), TensorType(np.dtype(jnp.int4), (2,)), match="bool or numbers, not int4[2]")


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint64])
def test_non_zero_of_other_integers(dtype):
    assert INonZeroLayer().evaluate(np.array([0, 1, 0, 2], dtype)).tolist() == [[1, 3]]


def test_indices_are_whole_numbers():
    refuses(INonZeroLayer(indices_type=FLOAT), f32(2), match="indices_type is FLOAT, but must be INT32 or INT64")
    refuses(INMSLayer(indices_type=FLOAT), f32(1, 2, 4), f32(1, 2, 1), i32(), match="indices_type is FLOAT")


# ---------------------------------------------------------------------------- non-maximum suppression

# The expected rows are what ONNX Runtime selects, put in TensorRT's order.
BOXES = np.float32(
    [[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]]
)
CENTERS = np.float32(
    [[[0.5, 0.5, 1, 1], [0.5, 0.6, 1, 1], [0.5, 0.4, 1, 1], [0.5, 10.5, 1, 1], [0.5, 10.6, 1, 1], [0.5, 100.5, 1, 1]]]
)
SCORES = np.float32([[[0.9, 0.1], [0.75, 0.2], [0.6, 0.85], [0.95, 0.05], [0.5, 0.7], [0.3, 0.31]]])
HALF_OVERLAP = [[0, 0, 3], [0, 0, 0], [0, 1, 2], [0, 1, 4], [0, 1, 5], [0, 0, 5]]


def select(boxes=BOXES, scores=SCORES, most=3, overlap=0.5, least=None, **named):
    inputs = (
        boxes,
        scores,
        np.int32(most),
        *(None if number is None else np.float32(number) for number in (overlap, least)),
    )
    rows, count = evaluate(INMSLayer(**named), *inputs)
    assert count == len(rows)
    return rows.tolist()


@pytest.mark.parametrize(
    ("most", "overlap", "least", "expected"),
    [
        (3, 0.5, None, HALF_OVERLAP),
        (3, 0.5, 0.4, HALF_OVERLAP[:4]),
        (2, None, None, HALF_OVERLAP[:4]),
        (1, 0.9, None, [[0, 0, 3], [0, 1, 2]]),
        (
            6,
            0.9,
            0.25,
            [[0, 0, 3], [0, 0, 0], [0, 1, 2], [0, 0, 1], [0, 1, 4], [0, 0, 2], [0, 0, 4], [0, 1, 5], [0, 0, 5]],
        ),
        (0, 0.5, None, []),
        (3, 0.5, 1, []),
    ],
)
def test_boxes_with_high_scores_and_little_overlap_are_selected(most, overlap, least, expected):
    assert select(most=most, overlap=overlap, least=least) == expected


def test_boxes_may_be_given_by_centers():
    assert select(CENTERS, bounding_box_format=BoundingBoxFormat.CENTER_SIZES) == HALF_OVERLAP


def test_corners_come_in_any_order():
    assert select(BOXES[..., [2, 1, 0, 3]]) == HALF_OVERLAP


def test_batch_items_come_one_after_the_other():
    boxes = np.float32(
        [
            [
                [0.3, 0.9, 3.2, 2.3],
                [0.4, 1.7, 1.9, 0.6],
                [2.9, 0.5, 1.6, 2.1],
                [1.7, 2.3, 3, 3.8],
                [1.1, 2.6, 2.8, 1.2],
            ],
            [[0, 3.9, 1.2, 1.3], [3.6, 2.3, 1.9, 3.1], [0.1, 2.8, 1.5, 0.4], [2.6, 3.7, 0.8, 2.5], [1.2, 3, 2.9, 0.9]],
        ]
    )
    scores = np.float32(
        [
            [[0.83, 0.66, 0.68, 0.82, 0.43], [0.76, 0.88, 0.1, 0.85, 0.39]],
            [[0.48, 0.15, 0.7, 0.29, 0.87], [0.28, 0.56, 0.4, 0.61, 0.2]],
        ]
    ).swapaxes(1, 2)

    first = [[0, 1, 1], [0, 1, 3], [0, 0, 0], [0, 0, 3], [0, 1, 4]]
    second = [[1, 0, 4], [1, 0, 2], [1, 1, 3], [1, 1, 1], [1, 1, 2], [1, 0, 3], [1, 1, 4], [1, 0, 1]]
    assert select(boxes, scores, most=4, overlap=0.2, least=0.1) == first + second


def test_each_class_may_have_boxes_of_its_own():
    boxes = np.float32([[[[0, 0, 1, 1], [0, 0, 1, 1]], [[0, 0, 1, 1], [5, 5, 6, 6]]]])
    scores = np.float32([[[0.9, 0.8], [0.7, 0.6]]])

    assert select(boxes, scores) == [[0, 0, 0], [0, 1, 0], [0, 1, 1]]


def test_only_the_pairs_with_the_highest_scores_are_looked_at():
    assert select(topk_box_limit=3) == [[0, 0, 3], [0, 0, 0], [0, 1, 2]]


def test_of_equal_scores_the_smaller_class_and_box_comes_first():
    boxes, scores = np.float32([[[0, 0, 1, 1], [5, 5, 6, 6]]]), np.full((1, 2, 2), 0.5, np.float32)

    assert select(boxes, scores) == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1]]


def test_boxes_without_area_overlap_nothing():
    boxes, scores = np.zeros((1, 2, 4), np.float32), np.float32([[[0.9], [0.8]]])

    assert select(boxes, scores, overlap=0) == [[0, 0, 0], [0, 0, 1]]


def test_overlap_at_the_threshold_is_allowed():
    boxes, scores = np.float32([[[0, 0, 1, 1], [0, 0, 1, 2]]]), np.float32([[[0.9], [0.8]]])

    assert select(boxes, scores, overlap=0.5) == [[0, 0, 0], [0, 0, 1]]
    assert select(boxes, scores, overlap=0.49) == [[0, 0, 0]]


def test_half_boxes_are_selected_too():
    assert select(BOXES.astype(np.float16), SCORES.astype(np.float16)) == HALF_OVERLAP


def test_no_boxes_make_no_rows():
    assert select(BOXES[:, :0], SCORES[:, :0]) == []


@pytest.mark.parametrize(
    ("inputs", "match"),
    [
        ([f32(1, 2, 3), f32(1, 2, 1), i32()], "the boxes are float32[1,2,3]"),
        ([f32(2, 4), f32(1, 2, 1), i32()], "the boxes are float32[2,4]"),
        ([i32(1, 2, 4), f32(1, 2, 1), i32()], "the boxes are int32[1,2,4]"),
        ([f32(1, 2, 4), f32(1, 2), i32()], "the scores are float32[1,2], but must have 3 axes"),
        ([f32(1, 2, 4), f32(1, 3, 1), i32()], "the scores float32[1,3,1] do not fit the boxes float32[1,2,4]"),
        ([f32(1, 2, 3, 4), f32(1, 2, 1), i32()], "the scores float32[1,2,1] do not fit the boxes float32[1,2,3,4]"),
        ([f32(1, 2, 4), TensorType(np.dtype(np.float16), (1, 2, 1)), i32()], "the scores are float16, but the boxes"),
        (
            [f32(1, 2, 4), f32(1, 2, 1), f32()],
            "max_output_boxes_per_class must be an int32 or int64 scalar, not float32[]",
        ),
        (
            [f32(1, 2, 4), f32(1, 2, 1), i32(1)],
            "max_output_boxes_per_class must be an int32 or int64 scalar, not int32[1]",
        ),
        ([f32(1, 2, 4), f32(1, 2, 1), i32(), i32()], "the IoU threshold must be a floating-point scalar, not int32[]"),
        ([f32(1, 2, 4), f32(1, 2, 1), i32(), None, f32(1)], "the score threshold must be a floating-point scalar"),
    ],
)
def test_what_are_no_boxes_is_refused(inputs, match):
    refuses(INMSLayer(), *inputs, match=match)


def test_limit_of_pairs_is_positive():
    refuses(INMSLayer(topk_box_limit=0), f32(1, 2, 4), f32(1, 2, 1), i32(), match="topk_box_limit is 0")


def test_number_of_selected_boxes_is_unknown():
    assert INMSLayer().infer(f32(-1, -1, 4), f32(2, -1, 3), i64()) == (i32(-1, 3), i32())
    assert INMSLayer(indices_type=INT64).infer(f32(1, 2, -1, 4), f32(1, -1, 3), i32())[0] == i64(-1, 3)


# ---------------------------------------------------------------------------- networks


def non_zero_network():
    network = INetworkDefinition()
    x = network.add_input("x", FLOAT, (2, 3))
    network.add_non_zero(x).get_output(0).name = "y"
    network.mark_output(network.get_layer(0).get_output(0))
    return network


def nms_network():
    network = INetworkDefinition()
    boxes, scores = network.add_input("boxes", FLOAT, (1, 6, 4)), network.add_input("scores", FLOAT, (1, 6, 2))
    most = network.add_constant((), np.array(3, np.int32)).get_output(0)
    layer = network.add_nms(boxes, scores, most, INT64)
    layer.set_input(3, network.add_constant((), np.array(0.5, np.float32)).get_output(0))
    for tensor, name in zip(layer.outputs, ("rows", "count"), strict=True):
        tensor.name = name
        network.mark_output(tensor)
    return network


FEED = {"x": np.eye(2, 3, dtype=np.float32), "boxes": BOXES, "scores": SCORES}
NAMES = {non_zero_network: {"x"}, nms_network: {"boxes", "scores"}}


def test_reference_runs_non_zero():
    assert netloop.evaluate(non_zero_network(), {"x": np.eye(2, 3, dtype=np.float32)})["y"].tolist() == [[0, 1], [0, 1]]


def test_reference_runs_non_maximum_suppression():
    made = netloop.evaluate(nms_network(), {"boxes": BOXES, "scores": SCORES})

    assert made["rows"].tolist() == HALF_OVERLAP
    assert made["rows"].dtype == np.int64
    assert made["count"] == 6


def test_reference_goes_on_with_what_was_found():
    network = INetworkDefinition()
    x = network.add_input("x", FLOAT, (4,))
    places = network.add_shuffle(network.add_non_zero(x).get_output(0))
    places.reshape_dims = (-1,)
    found = network.add_gather(x, places.get_output(0), 0).get_output(0)
    found = network.add_unary(found, UnaryOperation.NEG).get_output(0)
    found.name = "y"
    network.mark_output(found)

    assert netloop.evaluate(network, {"x": np.float32([0, 3, 0, 4])})["y"].tolist() == [-3, -4]


@pytest.mark.parametrize("make", [non_zero_network, nms_network])
def test_pure_function_has_fixed_shapes(make):
    function, weights = netloop.to_jax(make())

    with pytest.raises(NetworkError) as caught:
        function(weights, {name: array for name, array in FEED.items() if name in NAMES[make]})

    assert [finding.code for finding in caught.value.findings] == ["NL501"]


@pytest.mark.parametrize("make", [non_zero_network, nms_network])
def test_engine_agrees_with_the_reference(make):
    feed = {name: array for name, array in FEED.items() if name in NAMES[make]}

    evaluated, compiled = netloop.evaluate(make(), feed), netloop.compile(make())(feed)

    assert {name: np.asarray(array).tolist() for name, array in compiled.items()} == {
        name: array.tolist() for name, array in evaluated.items()
    }


@pytest.mark.parametrize("layer", [INonZeroLayer(), INMSLayer(), IUniqueLayer()])
def test_nothing_lowers_what_only_the_run_tells(layer):
    with pytest.raises(AssertionError, match="programs have fixed shapes"):
        layer.lower(np.zeros(1))


# ---------------------------------------------------------------------------- unique

# From ONNX's reference, on its own examples: values, first indices, inverse indices, counts
UNIQUE_BY_ONNX = [
    (IUniqueLayer(), [2, 1, 1, 3, 4, 3], [1, 2, 3, 4], [1, 0, 3, 4], [1, 0, 0, 2, 3, 2], [2, 1, 2, 1]),
    (IUniqueLayer(sorted=False), [2, 1, 1, 3, 4, 3], [2, 1, 3, 4], [0, 1, 3, 4], [0, 1, 1, 2, 3, 2], [1, 2, 2, 1]),
    (IUniqueLayer(axis=0), [[1, 0, 0], [1, 0, 0], [2, 3, 4]], [[1, 0, 0], [2, 3, 4]], [0, 2], [0, 0, 1], [2, 1]),
    (
        IUniqueLayer(axis=-1),
        [[1, 0, 0], [1, 0, 0], [2, 3, 3]],
        [[0, 1], [0, 1], [3, 2]],
        [1, 0],
        [1, 0, 0],
        [2, 1],
    ),
    (
        IUniqueLayer(axis=1),
        [[[1, 1], [0, 1], [2, 1], [0, 1]], [[1, 1], [0, 1], [2, 1], [0, 1]]],
        [[[0, 1], [1, 1], [2, 1]], [[0, 1], [1, 1], [2, 1]]],
        [1, 0, 2],
        [1, 0, 2, 0],
        [2, 1, 1],
    ),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, jnp.bfloat16, np.int64, np.uint8])
@pytest.mark.parametrize(("layer", "x", "values", "first", "like", "counts"), UNIQUE_BY_ONNX)
def test_unique_finds_what_onnx_finds(layer, x, values, first, like, counts, dtype):
    found = evaluate(layer, np.array(x, dtype))

    assert [value.tolist() for value in found] == [values, first, like, counts]
    assert [array.dtype for array in found] == [dtype, np.int32, np.int32, np.int32]


def test_numbers_that_are_none_are_one():
    values, first, like, counts = evaluate(IUniqueLayer(), np.array([np.nan, 1, -np.nan, 0.0, -0.0]))

    np.testing.assert_array_equal(values, [0, 1, np.nan])
    assert (first.tolist(), like.tolist(), counts.tolist()) == ([3, 1, 0], [2, 1, 2, 0, 0], [2, 1, 2])


def test_slices_with_numbers_that_are_none_are_one():
    counts = evaluate(IUniqueLayer(axis=0), np.array([[np.nan, 1], [np.nan, 1]]))[3]

    assert counts.tolist() == [2]


def test_unique_of_bool():
    assert evaluate(IUniqueLayer(sorted=False), np.array([True, False, True]))[0].tolist() == [True, False]


@pytest.mark.parametrize(
    ("layer", "shape", "shapes"),
    [
        (IUniqueLayer(), (0, 2), [(0,), (0,), (0,), (0,)]),
        (IUniqueLayer(), (), [(1,), (1,), (1,), (1,)]),
        (IUniqueLayer(axis=0), (0, 2), [(0, 2), (0,), (0,), (0,)]),
        (IUniqueLayer(axis=0), (3, 0), [(1, 0), (1,), (3,), (1,)]),
    ],
)
def test_unique_of_nothing(layer, shape, shapes):
    assert [array.shape for array in evaluate(layer, np.zeros(shape))] == shapes


def test_unique_has_as_many_as_only_the_run_tells():
    made = IUniqueLayer(axis=1, indices_type=INT64).infer(f32(2, 3))

    assert made == (f32(2, -1), i64(-1), i64(3), i64(-1))


def test_unique_of_what_is_no_number_is_refused():
    refuses(IUniqueLayer(), TensorType(np.dtype(jnp.int4), (2,)), match="bool, numbers or strings, not int4[2]")


def test_unique_along_an_axis_that_is_not_there_is_refused():
    refuses(IUniqueLayer(axis=1), f32(2), match="axis 1 is not one of the 1 axes")


def test_engine_finds_unique_elements():
    network = INetworkDefinition()
    layer = network.add_unique(network.add_input("x", FLOAT, (-1,)), sorted=False)
    for name, tensor in zip(("values", "counts"), (layer.get_output(0), layer.get_output(3)), strict=True):
        tensor.name = name
        network.mark_output(tensor)
    engine = netloop.compile(network)

    found = engine({"x": np.float32([3, 1, 3, 3])})
    assert {name: np.asarray(value).tolist() for name, value in found.items()} == {"values": [3, 1], "counts": [3, 1]}
