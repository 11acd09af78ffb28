"""Models of transformers that join images, texts and sounds, and of time series, with tiny random weights."""

from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from tests.real_models.recipe import Recipes
from tests.real_models.sources.exporting import Keywords, Make, add, image
from tests.real_models.sources.language_models import ENCODER_DECODER, TINY, mask, tokens
from tests.real_models.sources.media_models import SWIN, VIT

RECIPES = Recipes()

Sizes = list[dict[str, Tensor]]
TEXT = {**TINY, "max_position_embeddings": 16, "bos_token_id": 1, "eos_token_id": 2}
DECODER = {
    "vocab_size": 99,
    "d_model": 32,
    "decoder_layers": 2,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 40,
    "pad_token_id": 0,
}


def of(model: nn.Module, sizes: Sizes, **fixed: Any) -> tuple[nn.Module, Sizes]:
    return Keywords(model, list(sizes[0]), **fixed), sizes


def pairs(length: int = 8, side: int = 32) -> Sizes:
    """Two batches of texts and images."""
    return [
        {"input_ids": tokens(n, length), "pixel_values": image(n, side), "attention_mask": mask(n, length)}
        for n in (2, 3)
    ]


def siglip() -> tuple[nn.Module, Sizes]:
    config = transformers.SiglipConfig(text_config={**TEXT, "projection_size": 32}, vision_config=VIT)
    return of(transformers.SiglipModel(config), pairs())


def chinese_clip() -> tuple[nn.Module, Sizes]:
    config = transformers.ChineseCLIPConfig(text_config=TEXT, vision_config=VIT, projection_dim=16)
    return of(transformers.ChineseCLIPModel(config), pairs())


def clip_segmentation() -> tuple[nn.Module, Sizes]:
    vision = {**VIT, "num_hidden_layers": 3}
    config = transformers.CLIPSegConfig(
        text_config=TEXT,
        vision_config=vision,
        projection_dim=16,
        extract_layers=[0, 1],
        reduce_dim=8,
        decoder_attention_heads=2,
    )
    return of(transformers.CLIPSegForImageSegmentation(config), pairs())


def blip() -> tuple[nn.Module, Sizes]:
    text = {**TEXT, "encoder_hidden_size": 32, "projection_dim": 16}
    config = transformers.BlipConfig(text_config=text, vision_config=VIT, projection_dim=16, image_text_hidden_size=16)
    return of(transformers.BlipForImageTextRetrieval(config), pairs(), use_itm_head=True)


def layout() -> tuple[nn.Module, Sizes]:
    config = transformers.LayoutLMv3Config(
        **{
            **TINY,
            "max_2d_position_embeddings": 40,
            "coordinate_size": 6,
            "shape_size": 4,
            "input_size": 32,
            "patch_size": 8,
        }
    )
    sizes = [{**size, "bbox": torch.arange(4).repeat(size["input_ids"].shape[0], 8, 1)} for size in pairs()]
    return of(transformers.LayoutLMv3ForTokenClassification(config), sizes)


def owl_vit() -> tuple[nn.Module, Sizes]:
    config = transformers.OwlViTConfig(text_config=TEXT, vision_config=VIT, projection_dim=32)
    sizes = [
        {"input_ids": tokens(2 * n, 8), "pixel_values": image(n, 32), "attention_mask": mask(2 * n, 8)} for n in (1, 2)
    ]
    return of(transformers.OwlViTForObjectDetection(config), sizes)


def git() -> tuple[nn.Module, Sizes]:
    config = transformers.GitConfig(**{**TEXT, "vision_config": VIT, "max_position_embeddings": 64})
    return of(transformers.GitForCausalLM(config), pairs(), use_cache=False)


def vision_decoder(encoder: Any, decoder: Any, side: int, channels: int = 3) -> tuple[nn.Module, Sizes]:
    """A reader of images: an encoder of images and a decoder of texts."""
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    config.decoder_start_token_id = config.pad_token_id = 1
    model = transformers.VisionEncoderDecoderModel(config)
    sizes = [{"pixel_values": image(n, side, channels), "decoder_input_ids": tokens(n, m)} for n, m in ((2, 5), (3, 8))]
    return of(model, sizes, use_cache=False)


def trocr() -> tuple[nn.Module, Sizes]:
    decoder = transformers.TrOCRConfig(**DECODER, cross_attention_hidden_size=32)
    return vision_decoder(transformers.DeiTConfig(**VIT), decoder, 32)


def donut() -> tuple[nn.Module, Sizes]:
    encoder = transformers.DonutSwinConfig(**{**SWIN, "depths": [1, 1], "num_heads": [2, 2]})
    decoder = transformers.MBartConfig(**{**DECODER, "d_model": 16, "is_decoder": True, "add_cross_attention": True})
    return vision_decoder(encoder, decoder, 32)


def segment_anything() -> tuple[nn.Module, Sizes]:
    vision = {
        "hidden_size": 32,
        "output_channels": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "image_size": 64,
        "patch_size": 8,
        "window_size": 4,
        "global_attn_indexes": [1],
        "mlp_dim": 48,
        "num_pos_feats": 8,
    }
    prompts = {"hidden_size": 16, "image_size": 64, "patch_size": 8, "mask_input_channels": 4}
    decoder = {"hidden_size": 16, "mlp_dim": 24, "num_attention_heads": 2, "iou_head_hidden_dim": 16}
    config = transformers.SamConfig(vision_config=vision, prompt_encoder_config=prompts, mask_decoder_config=decoder)
    sizes = [
        {"pixel_values": image(n, 64), "input_points": torch.full((n, 1, m, 2), 20.0) + torch.arange(m)[:, None]}
        for n, m in ((1, 2), (2, 3))
    ]
    return of(transformers.SamModel(config), sizes)


def masked_autoencoder() -> tuple[nn.Module, Sizes]:
    options = {"decoder_hidden_size": 16, "decoder_num_attention_heads": 2, "decoder_num_hidden_layers": 1}
    config = transformers.ViTMAEConfig(**{**VIT, **options, "decoder_intermediate_size": 24})
    sizes = [{"pixel_values": image(n, 32), "noise": torch.rand(n, 16)} for n in (2, 3)]
    return of(transformers.ViTMAEForPreTraining(config), sizes)


def depth_anything() -> tuple[nn.Module, Sizes]:
    backbone = transformers.Dinov2Config(
        **{**VIT, "num_hidden_layers": 4},
        out_features=["stage1", "stage2", "stage3", "stage4"],
        reshape_hidden_states=False,
    )
    config = transformers.DepthAnythingConfig(
        backbone_config=backbone,
        patch_size=8,
        reassemble_hidden_size=32,
        neck_hidden_sizes=[8, 8, 8, 8],
        fusion_hidden_size=8,
        head_hidden_size=8,
    )
    return of(transformers.DepthAnythingForDepthEstimation(config), [{"pixel_values": image(n, 32)} for n in (2, 3)])


def images(kind: str, head: str, side: int = 32, **options: Any) -> Make:
    """A model of images, for two batch sizes."""

    def make() -> tuple[nn.Module, Sizes]:
        model = getattr(transformers, kind + head)(getattr(transformers, f"{kind}Config")(**options))
        return of(model, [{"pixel_values": image(n, side)} for n in (2, 3)])

    return make


SERIES = {
    "prediction_length": 4,
    "context_length": 8,
    "lags_sequence": [1, 2, 3],
    "num_time_features": 2,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
}


class Forecast(nn.Module):
    """The parameters of the distribution that a forecaster predicts."""

    variadic = True

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        past, past_time, observed, future_time, future = inputs
        answer = self.model(
            past_values=past,
            past_time_features=past_time,
            past_observed_mask=observed,
            future_time_features=future_time,
            future_values=future,
            use_cache=False,
        )
        return (*answer.params, answer.loc, answer.scale) if answer.loc is not None else tuple(answer.params)


def forecaster(kind: str, **more: Any) -> Make:
    """A probabilistic forecaster with lags, for two batch sizes."""

    def make() -> tuple[nn.Module, Sizes]:
        config = getattr(transformers, f"{kind}Config")(**SERIES, **more)
        sizes = [
            {
                "past": torch.rand(n, 11),
                "past_time": torch.rand(n, 11, 2),
                "observed": torch.ones(n, 11),
                "future_time": torch.rand(n, 4, 2),
                "future": torch.rand(n, 4),
            }
            for n in (2, 3)
        ]
        return Forecast(getattr(transformers, f"{kind}ForPrediction")(config)), sizes

    return make


def mixer() -> tuple[nn.Module, Sizes]:
    config = transformers.PatchTSMixerConfig(
        context_length=32,
        patch_length=8,
        patch_stride=8,
        num_input_channels=2,
        d_model=16,
        num_layers=2,
        prediction_length=6,
    )
    return of(transformers.PatchTSMixerForPrediction(config), [{"past_values": torch.rand(n, 32, 2)} for n in (2, 3)])


def translated_speech() -> tuple[nn.Module, Sizes]:
    config = transformers.Speech2TextConfig(
        **{
            **ENCODER_DECODER,
            "input_feat_per_channel": 16,
            "conv_channels": 16,
            "max_source_positions": 60,
            "max_target_positions": 40,
        }
    )
    sizes = [
        {
            "input_features": torch.rand(n, m, 16),
            "attention_mask": torch.ones(n, m, dtype=torch.long),
            "decoder_input_ids": tokens(n, 5),
        }
        for n, m in ((2, 24), (3, 32))
    ]
    return of(transformers.Speech2TextForConditionalGeneration(config), sizes, use_cache=False)


STAGES = {"depths": [1, 1, 1, 1], "hidden_sizes": [8, 8, 16, 16]}
MAKES: dict[str, Callable[[], tuple[nn.Module, Sizes]]] = {
    "siglip": siglip,
    "chineseclip": chinese_clip,
    "clipseg": clip_segmentation,
    "blip": blip,
    "layoutlmv3": layout,
    "owlvit": owl_vit,
    "git": git,
    "trocr": trocr,
    "donut": donut,
    "sam": segment_anything,
    "vitmae": masked_autoencoder,
    "depthanything": depth_anything,
    "convnextv2": images("ConvNextV2", "ForImageClassification", **STAGES),
    "regnet": images("RegNet", "ForImageClassification", 32, embedding_size=8, **STAGES, groups_width=4),
    "bit": images("Bit", "ForImageClassification", 32, embedding_size=8, **STAGES, num_groups=2),
    "mobilenetv1": images("MobileNetV1", "ForImageClassification", 32, depth_multiplier=0.25),
    "mobilenetv2": images("MobileNetV2", "ForImageClassification", 32, depth_multiplier=0.25),
    "levit": images(
        "Levit",
        "ForImageClassification",
        64,
        image_size=64,
        hidden_sizes=[16, 24, 32],
        num_attention_heads=[2, 3, 4],
        depths=[1, 1, 1],
        key_dim=[8, 8, 8],
    ),
    "pvt": images(
        "Pvt",
        "ForImageClassification",
        64,
        image_size=64,
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 16, 16, 32],
        num_attention_heads=[1, 2, 2, 4],
    ),
    "vitdet": images("VitDet", "Model", 32, **VIT),
    "dinov2registers": images("Dinov2WithRegisters", "Model", 32, **VIT),
    "dinov3": images("DINOv3ViT", "Model", 32, **VIT),
    "hiera": images(
        "Hiera",
        "Model",
        64,
        image_size=[64, 64],
        embed_dim=8,
        num_heads=[1, 2],
        depths=[1, 1],
        patch_stride=[4, 4],
        masked_unit_size=[4, 4],
        query_stride=[2, 2],
        num_query_pool=1,
    ),
    "swin2sr": images(
        "Swin2SR",
        "ForImageSuperResolution",
        16,
        image_size=16,
        embed_dim=8,
        depths=[1, 1],
        num_heads=[2, 2],
        window_size=4,
        upscale=2,
    ),
    "timeseries": forecaster("TimeSeriesTransformer"),
    "patchtsmixer": mixer,
    "speech2text": translated_speech,
}
BY_DYNAMO = ("siglip", "trocr", "donut", "sam", "patchtsmixer", "dinov2registers")
ONLY = BY_DYNAMO[-2:]
"""Those whose operators or ranks the exporter of TorchScript does not write."""
for name, make in MAKES.items():
    if name not in ONLY:
        add(RECIPES, f"hf_{name}_script", make, dynamo=False)
for name in BY_DYNAMO:
    add(RECIPES, f"hf_{name}", MAKES[name])
