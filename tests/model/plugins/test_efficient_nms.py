"""TensorRT's plugin EfficientNMS_TRT."""

import numpy as np
import pytest

import netloop as trt
from tests.support.log import Log
from tests.support.onnx_models import model

BOXES = np.float32([[[0, 0, 4, 4], [0, 0, 4, 3], [2, 2, 6, 6], [10, 10, 12, 12]]])
"""The second box overlaps the first by 12 / 16, the third by 4 / 28, and the fourth not at all."""
SCORES = np.float32([[[0.9, 0.1], [0.8, 0.6], [0.3, 0.7], [0.2, 0.5]]])


def detected(boxes=BOXES, scores=SCORES, **attributes):
    """The numbers, boxes, scores and classes that the plugin finds in each image."""
    network = trt.Builder(Log()).create_network()
    arrays = {"boxes": boxes, "scores": scores}
    inputs = [network.add_input(name, trt.float32, (-1, *array.shape[1:])) for name, array in arrays.items()]
    fields = [
        trt.PluginField(name, np.array([value]), kind)
        for name, value in attributes.items()
        for kind in [trt.PluginFieldType.FLOAT64 if isinstance(value, float) else trt.PluginFieldType.INT64]
    ]
    creator = trt.get_plugin_registry().get_creator("EfficientNMS_TRT", "1", "")
    plugin = creator.create_plugin("nms", trt.PluginFieldCollection_(fields), trt.TensorRTPhase.BUILD)
    layer = network.add_plugin_v3(inputs, [], plugin)
    for number in range(4):
        layer.get_output(number).name = str(number)
        network.mark_output(layer.get_output(number))
    assert [layer.get_output(number).shape[0] for number in range(4)] == [-1] * 4
    builder = trt.Builder(Log())
    engine = trt.Runtime(Log()).deserialize_cuda_engine(
        builder.build_serialized_network(network, builder.create_builder_config())
    )
    counts, *rows = (np.asarray(array) for array in engine(arrays).values())
    assert not any(array[image, count:].any() for array in rows for image, count in enumerate(counts[:, 0]))
    return [
        [(int(label), float(score), box.tolist()) for box, score, label in zip(*rows_of_image, strict=True)][:count]
        for rows_of_image, count in zip(zip(*rows, strict=True), counts[:, 0], strict=True)
    ]


def labels_and_scores(**attributes):
    [detections] = detected(**attributes)
    return [(label, round(score, 3)) for label, score, _ in detections]


def test_boxes_of_a_class_leave_out_those_that_overlap_them():
    assert labels_and_scores(score_threshold=0.25) == [(0, 0.9), (1, 0.7), (1, 0.6), (1, 0.5), (0, 0.3)]


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"score_threshold": 0.55}, [(0, 0.9), (1, 0.7), (1, 0.6)]),
        ({"score_threshold": 0.55, "iou_threshold": 0.8}, [(0, 0.9), (0, 0.8), (1, 0.7), (1, 0.6)]),
        ({"max_output_boxes": 2}, [(0, 0.9), (1, 0.7)]),
        ({"background_class": 1}, [(0, 0.9), (0, 0.3)]),
        ({"class_agnostic": 1}, [(0, 0.9), (1, 0.7), (1, 0.5)]),
        ({"score_activation": 1, "score_threshold": 0.665}, [(0, 0.711), (1, 0.668)]),
        ({"score_threshold": 0.95}, []),
    ],
)
def test_attributes_mean_what_tensorrt_says(attributes, expected):
    assert labels_and_scores(**attributes) == expected


def test_centres_and_sizes_become_corners():
    centred = np.concatenate([(BOXES[..., :2] + BOXES[..., 2:]) / 2, BOXES[..., 2:] - BOXES[..., :2]], -1)

    assert detected(centred, box_coding=1) == detected()


def test_each_class_may_have_boxes_of_its_own():
    boxes = np.stack([BOXES, BOXES + 100], 2)

    [detections] = detected(boxes, score_threshold=0.55)
    assert [box[0] for _, _, box in detections] == [0, 102, 100]


def test_images_do_not_depend_on_each_other():
    both = detected(np.concatenate([BOXES, BOXES[:, ::-1]]), np.concatenate([SCORES, SCORES[:, ::-1] / 2]))

    assert both[0] == detected()[0]
    assert [label for label, _, _ in both[1]] == [0, 1, 1, 1]


@pytest.mark.parametrize(
    ("shapes", "says"),
    [
        ([(1, 4, 4), (1, 4, 2), (1, 4, 4)], "without anchors, and not 3 tensors"),
        ([(1, 4, 5), (1, 4, 2)], r"boxes are \[image, box, 4\]"),
    ],
)
def test_other_inputs_are_refused(network, shapes, says):
    inputs = [network.add_input(f"x{number}", trt.float32, shape) for number, shape in enumerate(shapes)]
    creator = trt.get_plugin_registry().get_creator("EfficientNMS_TRT", "1", "")
    plugin = creator.create_plugin("nms", trt.PluginFieldCollection_([]), trt.TensorRTPhase.BUILD)

    with pytest.raises(trt.NetworkError, match=says):
        assert network.add_plugin_v3(inputs, [], plugin).get_output(0).shape


def test_node_of_a_model_is_the_plugin(network):
    text = """g (float[1,4,4] x, float[1,4,2] y) => (int32[1,1] n, float[1,3,4] b, float[1,3] s, int32[1,3] c) {
        n, b, s, c = TRT.EfficientNMS_TRT <plugin_version = "1", max_output_boxes = [3], iou_threshold = 0.5> (x, y)
    }"""
    proto = model(text)
    proto.opset_import.add(domain="TRT", version=1)
    assert trt.OnnxParser(network, Log()).parse(proto.SerializeToString())

    detections = trt.compile(network)({"x": BOXES, "y": SCORES})
    assert detections["n"].tolist() == [[3]]
    assert detections["c"].tolist() == [[0, 1, 1]]
