"""Models of images, audio and several media of transformers, with tiny random weights."""

from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from tests.real_models.recipe import Recipes
from tests.real_models.sources.exporting import Keywords, Make, add, image
from tests.real_models.sources.language_models import TINY, mask, tokens

RECIPES = Recipes()

VIT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 32,
    "patch_size": 8,
    "attn_implementation": "eager",
}
STAGES = {"depths": [1, 1], "hidden_sizes": [8, 16], "num_stages": 2}
SWIN = {"image_size": 32, "patch_size": 4, "embed_dim": 8, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4}
IMAGES: dict[str, dict[str, Any]] = {
    "ViT": VIT,
    "DeiT": VIT,
    "Beit": VIT,
    "Dinov2": VIT,
    "Swin": SWIN,
    "Swinv2": SWIN,
    "ConvNext": {"depths": [1, 1, 1, 1], "hidden_sizes": [8, 8, 16, 16]},
    "ResNet": {"embedding_size": 8, "depths": [1, 1, 1, 1], "hidden_sizes": [8, 8, 16, 16]},
    "PoolFormer": {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]},
    "MobileViT": {"hidden_sizes": [8, 12, 16], "neck_hidden_sizes": [8, 8, 8, 8, 8, 8, 16], "image_size": 64},
}
SEGMENTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "Segformer": (
        "ForSemanticSegmentation",
        {
            "hidden_sizes": [8, 8, 16, 16],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 1, 2, 2],
            "decoder_hidden_size": 16,
        },
    ),
    "DPT": (
        "ForDepthEstimation",
        {
            **VIT,
            "num_hidden_layers": 4,
            "backbone_out_indices": [0, 1, 2, 3],
            "neck_hidden_sizes": [8, 8, 8, 8],
            "fusion_hidden_size": 8,
            "is_hybrid": False,
        },
    ),
    "GLPN": (
        "ForDepthEstimation",
        {
            "hidden_sizes": [8, 8, 16, 16],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 1, 2, 2],
            "decoder_hidden_size": 8,
        },
    ),
}
SPEECH = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "conv_dim": [16, 16, 16],
    "conv_stride": [5, 4, 2],
    "conv_kernel": [10, 4, 2],
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
    "vocab_size": 20,
    "attn_implementation": "eager",
}
SPEECHES: dict[str, dict[str, Any]] = {
    "Wav2Vec2": SPEECH,
    "Hubert": SPEECH,
    "WavLM": SPEECH,
    "SEW": {**SPEECH, "squeeze_factor": 2},
    "Data2VecAudio": SPEECH,
}


def config(kind: str, options: dict[str, Any]) -> Any:
    return getattr(transformers, f"{kind}Config")(**options)


def of_images(kind: str, head: str, options: dict[str, Any], side: int = 32) -> Make:
    """A model of images, for two batch sizes."""

    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        model = getattr(transformers, kind + head)(config(kind, options))
        return Keywords(model, ["pixel_values"]), [{"pixel_values": image(n, side)} for n in (2, 3)]

    return make


def sound(batch: int, length: int) -> Tensor:
    return torch.randn(batch, length, generator=torch.Generator().manual_seed(length))


def of_speech(kind: str) -> Make:
    """A recognizer of speech, for two batch sizes and lengths."""

    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        model = getattr(transformers, f"{kind}ForCTC")(config(kind, SPEECHES[kind]))
        return Keywords(model, ["input_values"]), [{"input_values": sound(*n)} for n in ((1, 1600), (2, 2400))]

    return make


def whisper() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    """Whisper's encoder and decoder."""
    options = {
        "vocab_size": 99,
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "num_mel_bins": 16,
        "max_source_positions": 30,
        "max_target_positions": 30,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 1,
        "suppress_tokens": None,
        "begin_suppress_tokens": None,
    }
    model = transformers.WhisperForConditionalGeneration(config("Whisper", options))
    sizes = [
        {"input_features": torch.stack([sound(16, 60)] * n[0]), "decoder_input_ids": tokens(*n)}
        for n in ((2, 5), (3, 8))
    ]
    return Keywords(model, list(sizes[0]), use_cache=False), sizes


def clip() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    """CLIP, for two batches of texts and images."""
    text = {**TINY, "max_position_embeddings": 16, "bos_token_id": 1, "eos_token_id": 2}
    model = transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=VIT, projection_dim=16))
    sizes = [{"input_ids": tokens(n, 8), "pixel_values": image(n, 32), "attention_mask": mask(n, 8)} for n in (2, 3)]
    return Keywords(model, list(sizes[0])), sizes


def detr() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    """DETR on a small ResNet."""
    backbone = transformers.ResNetConfig(**IMAGES["ResNet"], out_features=["stage4"])
    options = {
        "d_model": 16,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
        "num_queries": 5,
        "use_timm_backbone": False,
        "use_pretrained_backbone": False,
        "backbone": None,
        "backbone_config": backbone,
    }
    model = transformers.DetrForObjectDetection(config("Detr", options))
    return Keywords(model, ["pixel_values"]), [{"pixel_values": image(n, 64)} for n in (1, 2)]


def vocoder() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    """The vocoder of SpeechT5, HiFi-GAN."""
    options = {
        "model_in_dim": 16,
        "upsample_initial_channel": 16,
        "upsample_rates": [4, 2],
        "upsample_kernel_sizes": [8, 4],
        "resblock_kernel_sizes": [3, 5],
        "resblock_dilation_sizes": [[1, 3], [1, 3]],
    }
    model = transformers.SpeechT5HifiGan(transformers.SpeechT5HifiGanConfig(**options))
    return Keywords(model, ["spectrogram"]), [{"spectrogram": torch.stack([sound(12, 16)] * n)} for n in (2, 3)]


def series() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    """PatchTST, which forecasts time series."""
    options = {
        "context_length": 32,
        "patch_length": 8,
        "patch_stride": 8,
        "num_input_channels": 2,
        "d_model": 16,
        "num_attention_heads": 2,
        "ffn_dim": 24,
        "num_hidden_layers": 2,
        "prediction_length": 6,
    }
    model = transformers.PatchTSTForPrediction(transformers.PatchTSTConfig(**options))
    sizes = [{"past_values": torch.stack([sound(32, 2)] * n)} for n in (2, 3)]
    return Keywords(model, ["past_values"]), sizes


SINGLE: dict[str, Callable[[], tuple[nn.Module, list[dict[str, Tensor]]]]] = {
    "whisper": whisper,
    "clip": clip,
    "detr": detr,
    "hifigan": vocoder,
    "patchtst": series,
}

MAKES: dict[str, Make] = dict(SINGLE)
for name, options in IMAGES.items():
    head = "Model" if name == "Dinov2" else "ForImageClassification"
    MAKES[name.lower()] = of_images(name, head, options, options.get("image_size", 64))
for name, (head, options) in SEGMENTERS.items():
    MAKES[name.lower()] = of_images(name, head, options, options.get("image_size", 64))
MAKES["yolos"] = of_images("Yolos", "ForObjectDetection", {**VIT, "image_size": [32, 32], "num_detection_tokens": 5})
for name in SPEECHES:
    MAKES[name.lower()] = of_speech(name)
for name, make in MAKES.items():
    if name not in ("whisper", "patchtst"):
        add(RECIPES, f"hf_{name}_script", make, dynamo=False)
for name in ("whisper", "patchtst", "clip", "detr", "vit", "swin", "segformer", "wav2vec2"):
    add(RECIPES, f"hf_{name}", MAKES[name])
