"""torchvision's models, with random weights."""

from collections.abc import Callable
from typing import Any

import torch
import torchvision
from torch import Tensor, nn

from tests.real_models.recipe import Recipes
from tests.real_models.sources.exporting import Make, add, image

RECIPES = Recipes()

BY_DYNAMO = {
    "resnet18": 64,
    "resnet50": 64,
    "mobilenet_v2": 64,
    "mobilenet_v3_small": 64,
    "shufflenet_v2_x0_5": 64,
    "convnext_tiny": 64,
    "swin_v2_t": 64,
    "vit_b_32": 224,
}
"""Classifiers and the sides of their images."""
BY_SCRIPT = {
    "resnet18": 64,
    "resnet34": 64,
    "mobilenet_v3_small": 64,
    "squeezenet1_0": 64,
    "mobilenet_v3_large": 64,
    "efficientnet_b0": 64,
    "mnasnet0_5": 64,
    "densenet121": 64,
    "regnet_x_400mf": 64,
    "resnext50_32x4d": 64,
    "googlenet": 64,
    "inception_v3": 96,
    "maxvit_t": 224,
    "swin_t": 64,
}


def classifier(name: str, side: int) -> Make:
    """A classifier for two batch sizes."""

    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        extra = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        model = torchvision.models.get_model(name, weights=None, num_classes=10, **extra)
        return spread(model), [{"image": image(2, side)}, {"image": image(3, side)}]

    return make


def spread(model: nn.Module) -> nn.Module:
    """A model whose batch normalizations have statistics of their own, unlike those of an untrained one."""
    chance = torch.Generator().manual_seed(1)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d) and module.running_mean is not None:
            module.running_mean.uniform_(-0.1, 0.1, generator=chance)
            module.running_var.uniform_(0.5, 1.5, generator=chance)
    return model


def segmenter(name: str, side: int) -> Make:
    """A segmentation model, for images of two sizes."""

    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        model = torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=4)
        return First(spread(model)), [{"image": image(1, side)}, {"image": image(1, side + 32)}]

    return make


class First(nn.Module):
    """The first of the outputs, which a model returns as a dictionary."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Tensor) -> Tensor:
        return self.model(image)["out"]


class Detector(nn.Module):
    """A detector of the objects in one image."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.model([image])[0].values())


def detector(name: str, side: int, **options: Any) -> Make:
    """A detector for images of two sizes, with few candidates."""

    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        small = {"min_size": side, "max_size": 2 * side, **options}
        model = torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=5, **small)
        return Detector(spread(model)), [{"image": image(1, side)[0]}, {"image": image(1, side + 32)[0]}]

    return make


class Flow(nn.Module):
    """RAFT with few updates."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        return self.model(first, second, num_flow_updates=2)[-1]


def optical_flow() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    """Small RAFT, for two batch sizes."""
    model = torchvision.models.optical_flow.raft_small(weights=None)
    sizes = [{"first": image(n, 128), "second": image(n + 1, 128)[:n]} for n in (1, 2)]
    return Flow(model), sizes


def video() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    """A 3-D ResNet."""
    model = torchvision.models.video.r3d_18(weights=None, num_classes=4)
    clip = image(2, 32).repeat(4, 1, 1, 1).unflatten(0, (2, 4)).transpose(1, 2).contiguous()
    return model, [{"clip": clip}, {"clip": clip[:1]}]


def fixed_detector(name: str, side: int) -> Make:
    """A detector for images of one size, which it has itself."""

    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        model = torchvision.models.get_model(
            name, weights=None, weights_backbone=None, num_classes=5, topk_candidates=40, detections_per_img=10
        )
        return Detector(spread(model)), [{"image": image(1, side)[0]}, {"image": image(1, side + 32)[0]}]

    return make


def add_all(kinds: dict[str, int], make: Callable[[str, int], Make], suffix: str = "", **options: Any) -> None:
    for name, side in kinds.items():
        add(RECIPES, f"tv_{name}{suffix}", make(name, side), **options)


FEW = {"rpn_pre_nms_top_n_test": 60, "rpn_post_nms_top_n_test": 20, "box_detections_per_img": 10}
FEW_ANCHORS = {"topk_candidates": 40, "detections_per_img": 10, "score_thresh": 1e-4}

add_all(BY_DYNAMO, classifier)
add_all(BY_SCRIPT, classifier, "_script", dynamo=False)
add_all({"lraspp_mobilenet_v3_large": 64, "deeplabv3_mobilenet_v3_large": 64}, segmenter)
add_all({"fcn_resnet50": 64}, segmenter, "_script", dynamo=False)
add(RECIPES, "tv_raft_small_script", optical_flow, dynamo=False)
add(RECIPES, "tv_r3d_18", video)
for key, more in {
    "fasterrcnn_mobilenet_v3_large_fpn": FEW,
    "maskrcnn_resnet50_fpn": FEW,
    "keypointrcnn_resnet50_fpn": {**FEW, "num_keypoints": 5},
    "retinanet_resnet50_fpn": FEW_ANCHORS,
    "fcos_resnet50_fpn": FEW_ANCHORS,
}.items():
    add(RECIPES, f"tv_{key}_script", detector(key, 64, **more), dynamo=False)
add_all(
    {"efficientnet_v2_s": 64, "regnet_y_400mf": 64, "vgg11_bn": 64, "alexnet": 64}, classifier, "_script", dynamo=False
)
add_all({"ssdlite320_mobilenet_v3_large": 320, "ssd300_vgg16": 300}, fixed_detector, "_script", dynamo=False)
add_all({"regnet_y_400mf": 64}, classifier)
