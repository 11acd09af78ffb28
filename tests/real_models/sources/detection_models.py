"""Detectors and segmenters of transformers that decode queries, with tiny random weights."""

from typing import Any

import transformers
from torch import Tensor, nn

from tests.real_models.recipe import Recipes
from tests.real_models.sources.exporting import Keywords, Make, add, image
from tests.real_models.sources.media_models import IMAGES, SWIN

RECIPES = Recipes()

QUERIES: dict[str, Any] = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "num_queries": 5,
}
RESNET = {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone": None}
DEFORMABLE = {**QUERIES, "encoder_n_points": 2, "decoder_n_points": 2}
REAL_TIME: dict[str, Any] = {
    "d_model": 16,
    "encoder_hidden_dim": 16,
    "encoder_in_channels": [8, 16, 16],
    "feat_strides": [8, 16, 32],
    "encoder_ffn_dim": 24,
    "encoder_attention_heads": 2,
    "decoder_in_channels": [16, 16, 16],
    "decoder_ffn_dim": 24,
    "decoder_attention_heads": 2,
    "decoder_layers": 2,
    "num_queries": 5,
    "decoder_n_points": 2,
    "anchor_image_size": None,
    "use_pretrained_backbone": False,
    "backbone": None,
}


def backbone(*stages: str) -> Any:
    return transformers.ResNetConfig(**IMAGES["ResNet"], out_features=list(stages))


def residual(*stages: str) -> Any:
    """The backbone of RT-DETR."""
    return transformers.RTDetrResNetConfig(
        embedding_size=8,
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 8, 16, 16],
        layer_type="basic",
        out_features=list(stages),
    )


def swin(*stages: str) -> Any:
    return transformers.SwinConfig(
        **{**SWIN, "image_size": 64, "depths": [1, 1, 1, 1], "num_heads": [1, 2, 2, 2], "out_features": list(stages)}
    )


def detector(kind: str, side: int = 64, head: str = "ForObjectDetection", **options: Any) -> Make:
    """A detector for two batch sizes."""

    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        config = getattr(transformers, f"{kind}Config")(**options)
        model = getattr(transformers, kind + head)(config)
        return Keywords(model, ["pixel_values"]), [{"pixel_values": image(n, side)} for n in (1, 2)]

    return make


LATE = ("stage2", "stage3", "stage4")
PIXELS = {"feature_size": 32, "mask_feature_size": 32, "hidden_dim": 32, "num_attention_heads": 2, "num_queries": 5}
MAKES: dict[str, Any] = {
    "conditionaldetr": lambda: detector("ConditionalDetr", **QUERIES, **RESNET, backbone_config=backbone("stage4"))(),
    "dabdetr": lambda: detector(
        "DabDetr",
        **{**{k: v for k, v in QUERIES.items() if k != "d_model"}, "hidden_size": 32},
        **RESNET,
        backbone_config=backbone("stage4"),
    )(),
    "tabletransformer": lambda: detector("TableTransformer", **QUERIES, **RESNET, backbone_config=backbone("stage4"))(),
    "deformabledetr": lambda: detector(
        "DeformableDetr", **DEFORMABLE, **RESNET, num_feature_levels=3, backbone_config=backbone(*LATE)
    )(),
    "deformabledetr_twostage": lambda: detector(
        "DeformableDetr",
        **DEFORMABLE,
        **RESNET,
        num_feature_levels=3,
        backbone_config=backbone(*LATE),
        two_stage=True,
        with_box_refine=True,
        two_stage_num_proposals=5,
    )(),
    "rtdetr": lambda: detector("RTDetr", **REAL_TIME, backbone_config=residual(*LATE))(),
    "rtdetrv2": lambda: detector("RTDetrV2", **REAL_TIME, backbone_config=residual(*LATE))(),
    "dfine": lambda: detector("DFine", **REAL_TIME, backbone_config=residual(*LATE))(),
    "maskformer": lambda: detector(
        "MaskFormer",
        64,
        "ForInstanceSegmentation",
        fpn_feature_size=32,
        mask_feature_size=32,
        backbone_config=swin("stage1", "stage2", "stage3", "stage4"),
        decoder_config=transformers.DetrConfig(**QUERIES, **RESNET, backbone_config=backbone("stage4")),
    )(),
    "mask2former": lambda: detector(
        "Mask2Former",
        64,
        "ForUniversalSegmentation",
        **PIXELS,
        encoder_feedforward_dim=24,
        dim_feedforward=24,
        encoder_layers=1,
        decoder_layers=2,
        backbone_config=swin("stage1", "stage2", "stage3", "stage4"),
    )(),
    "upernet": lambda: detector(
        "UperNet",
        64,
        "ForSemanticSegmentation",
        backbone_config=swin("stage1", "stage2", "stage3", "stage4"),
        hidden_size=16,
        use_auxiliary_head=False,
        pool_scales=[1, 2],
    )(),
}
for name, make in MAKES.items():
    if name != "upernet":  # the exporter of TorchScript pools to known sizes only
        add(RECIPES, f"hf_{name}_script", make, dynamo=False)
for name in ("deformabledetr", "upernet"):
    add(RECIPES, f"hf_{name}", MAKES[name])
