"""NanoSAM's predictor: two engines of TensorRT in torch2trt's modules, with a picture in between."""

import numpy as np
import PIL.Image
import tensorrt as trt
from nanosam.utils.predictor import Predictor, preprocess_image
from onnx import helper

from tests.other_projects.uses.models import agrees, expected, saved

SIZE = 64


def engine_of(path):
    """The path of the engine of a model."""
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network, config, profile = builder.create_network(), builder.create_builder_config(), trt.IOptimizationProfile()
    assert trt.OnnxParser(network, logger).parse_from_file(path)
    for tensor in (network.get_input(index) for index in range(network.num_inputs)):
        if -1 in tensor.shape:
            profile.set_shape(tensor.name, *([abs(n) * (n > 0) or count for n in tensor.shape] for count in (1, 2, 4)))
    config.add_optimization_profile(profile)
    target = path.replace(".onnx", ".engine")
    with open(target, "wb") as file:
        file.write(builder.build_serialized_network(network, config))
    return target


def test_predictor(tmp_path):
    kernel = np.random.default_rng(0).normal(size=(4, 3, 4, 4)).astype(np.float32)
    encoder = saved(
        tmp_path / "encoder.onnx",
        [helper.make_node("Conv", ["image", "kernel"], ["image_embeddings"], strides=[4, 4])],
        {"image": (1, 3, SIZE, SIZE)},
        {"image_embeddings": (1, 4, 16, 16)},
        {"kernel": kernel},
    )
    nodes = [
        helper.make_node("ReduceSum", ["point_coords"], ["where"], keepdims=0),
        helper.make_node("ReduceSum", ["point_labels"], ["which"], keepdims=0),
        helper.make_node("ReduceMean", ["mask_input"], ["mask"], keepdims=0),
        helper.make_node("ReduceSum", ["has_mask_input"], ["has"], keepdims=0),
        helper.make_node("Sum", ["where", "which", "mask", "has"], ["prompt"]),
        helper.make_node("Resize", ["image_embeddings", "", "", "sizes"], ["large"], mode="linear"),
        helper.make_node("Add", ["large", "prompt"], ["low_res_masks"]),
        helper.make_node("ReduceMean", ["low_res_masks"], ["iou_predictions"], axes=[2, 3], keepdims=0),
    ]
    decoder = saved(
        tmp_path / "decoder.onnx",
        nodes,
        {
            "image_embeddings": (1, 4, 16, 16),
            "point_coords": (1, "points", 2),
            "point_labels": (1, "points"),
            "mask_input": (1, 1, 256, 256),
            "has_mask_input": (1,),
        },
        {"iou_predictions": (1, 4), "low_res_masks": (1, 4, 256, 256)},
        {"sizes": np.int64([1, 4, 256, 256])},
    )
    image = PIL.Image.fromarray(np.random.default_rng(1).integers(0, 255, (48, 64, 3), np.uint8))
    predictor = Predictor(engine_of(encoder), engine_of(decoder), SIZE, SIZE)
    predictor.set_image(image)
    points, labels = np.array([[10, 20], [30, 40]]), np.array([1, 0])
    mask, quality, low = predictor.predict(points, labels)

    features = expected(encoder, image=preprocess_image(image, SIZE).cpu().numpy())["image_embeddings"]
    wanted = expected(
        decoder,
        image_embeddings=features,
        point_coords=points[None].astype(np.float32),
        point_labels=labels[None].astype(np.float32),
        mask_input=np.zeros((1, 1, 256, 256), np.float32),
        has_mask_input=np.zeros(1, np.float32),
    )
    agrees(low.cpu().numpy(), wanted["low_res_masks"])
    agrees(quality.cpu().numpy(), wanted["iou_predictions"])
    assert mask.shape == (1, 4, 48, 64)
