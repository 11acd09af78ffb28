"""Parts of image generators of diffusers, with tiny random weights."""

from typing import Any

import diffusers
import torch
from torch import Tensor, nn

from tests.real_models.recipe import Recipes
from tests.real_models.sources.exporting import Keywords, Make, add

RECIPES = Recipes()

DOWN, UP = ("DownBlock2D", "CrossAttnDownBlock2D"), ("CrossAttnUpBlock2D", "UpBlock2D")
UNET: dict[str, Any] = {
    "block_out_channels": (8, 16),
    "layers_per_block": 1,
    "cross_attention_dim": 16,
    "attention_head_dim": 4,
    "norm_num_groups": 4,
    "down_block_types": DOWN,
}
VAE: dict[str, Any] = {
    "block_out_channels": (8, 16),
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
    "norm_num_groups": 4,
    "latent_channels": 4,
}


def noise(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def conditioned(batch: int, side: int) -> dict[str, Tensor]:
    return {
        "sample": noise(batch, 4, side, side),
        "timestep": torch.full((batch,), 7),
        "encoder_hidden_states": noise(batch, 5, 16),
    }


def unet() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    model = diffusers.UNet2DConditionModel(sample_size=16, up_block_types=UP, **UNET)
    sizes = [conditioned(1, 16), conditioned(2, 24)]
    return Keywords(model, list(sizes[0]), return_dict=False), sizes


def controlnet() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    model = diffusers.ControlNetModel(conditioning_embedding_out_channels=(4, 8), **UNET)
    sizes = [
        {**conditioned(n, side), "controlnet_cond": noise(n, 3, 2 * side, 2 * side)} for n, side in ((1, 16), (2, 24))
    ]
    return Keywords(model, list(sizes[0]), return_dict=False), sizes


class Encoder(nn.Module):
    """The mean and variance that a variational encoder computes."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model.encode(x, return_dict=False)[0].parameters


class Decoder(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, z: Tensor) -> Tensor:
        return self.model.decode(z, return_dict=False)[0]


def encoder() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    return Encoder(diffusers.AutoencoderKL(**VAE)), [{"x": noise(n, 3, side, side)} for n, side in ((1, 32), (2, 48))]


def decoder() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    return Decoder(diffusers.AutoencoderKL(**VAE)), [{"z": noise(n, 4, side, side)} for n, side in ((1, 16), (2, 24))]


def tiny_decoder() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    model = diffusers.AutoencoderTiny(
        encoder_block_out_channels=(8, 8),
        decoder_block_out_channels=(8, 8),
        num_encoder_blocks=(1, 1),
        num_decoder_blocks=(1, 1),
    )
    return Decoder(model), [{"z": noise(n, 4, side, side)} for n, side in ((1, 16), (2, 24))]


def quantized() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    model = diffusers.VQModel(**{**VAE, "num_vq_embeddings": 16, "vq_embed_dim": 4})
    return Keywords(model, ["sample"], return_dict=False), [{"sample": noise(n, 3, 32, 32)} for n in (1, 2)]


def transformer(kind: str, inputs: Any, **options: Any) -> Make:
    """A transformer that removes noise, for two batch sizes."""

    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        sizes = [inputs(n) for n in (1, 2)]
        return Keywords(getattr(diffusers, kind)(**options), list(sizes[0]), return_dict=False), sizes

    return make


def of_class(n: int) -> dict[str, Tensor]:
    return {"hidden_states": noise(n, 4, 8, 8), "timestep": torch.full((n,), 7), "class_labels": torch.arange(n)}


def of_text(n: int) -> dict[str, Tensor]:
    return {
        "hidden_states": noise(n, 4, 8, 8),
        "encoder_hidden_states": noise(n, 5, 16),
        "pooled_projections": noise(n, 12),
        "timestep": torch.full((n,), 7),
    }


def of_flux(n: int) -> dict[str, Tensor]:
    return {
        "hidden_states": noise(n, 16, 4),
        "encoder_hidden_states": noise(n, 5, 16),
        "pooled_projections": noise(n, 12),
        "timestep": torch.full((n,), 0.5),
        "img_ids": torch.arange(48.0).reshape(16, 3),
        "txt_ids": torch.zeros(5, 3),
    }


def of_pixart(n: int) -> dict[str, Tensor]:
    return {
        "hidden_states": noise(n, 4, 8, 8),
        "encoder_hidden_states": noise(n, 5, 16),
        "timestep": torch.full((n,), 7),
    }


HEADS = {"num_attention_heads": 2, "attention_head_dim": 8, "num_layers": 2}
MAKES: dict[str, Make] = {
    "unet2d_condition": unet,
    "controlnet": controlnet,
    "vae_encoder": encoder,
    "vae_decoder": decoder,
    "vae_tiny_decoder": tiny_decoder,
    "vqmodel": quantized,
    "dit": transformer(
        "DiTTransformer2DModel",
        of_class,
        **HEADS,
        in_channels=4,
        out_channels=4,
        sample_size=8,
        norm_num_groups=4,
        num_embeds_ada_norm=10,
    ),
    "sd3": transformer(
        "SD3Transformer2DModel",
        of_text,
        **HEADS,
        sample_size=8,
        patch_size=2,
        in_channels=4,
        joint_attention_dim=16,
        caption_projection_dim=16,
        pooled_projection_dim=12,
        out_channels=4,
    ),
    "flux": transformer(
        "FluxTransformer2DModel",
        of_flux,
        patch_size=1,
        in_channels=4,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=8,
        num_attention_heads=2,
        joint_attention_dim=16,
        pooled_projection_dim=12,
        axes_dims_rope=(2, 2, 4),
    ),
    "pixart": transformer(
        "PixArtTransformer2DModel",
        of_pixart,
        **HEADS,
        in_channels=4,
        out_channels=8,
        sample_size=8,
        norm_num_groups=4,
        cross_attention_dim=16,
        caption_channels=16,
        use_additional_conditions=False,
    ),
}
for name, make in MAKES.items():
    add(RECIPES, f"df_{name}_script", make, dynamo=False)
for name in ("dit", "flux"):
    add(RECIPES, f"df_{name}", MAKES[name])
