"""Decoders of transformers with tiny random weights, with and without a cache of keys and values."""

from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import DynamicCache

from tests.real_models.recipe import Recipes
from tests.real_models.sources.exporting import Keywords, Make, add
from tests.real_models.sources.language_models import mask, tokens

RECIPES = Recipes()

HEADS, LAYERS, WIDTH = 4, 2, 32
LLAMA = {
    "vocab_size": 99,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GPT2 = {"vocab_size": 99, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 64}
EXPERTS = {
    "experts_implementation": "batched_mm",
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "num_experts": 4,
    "moe_intermediate_size": 24,
}
KINDS: dict[str, dict[str, Any]] = {
    "GPT2": GPT2,
    "Llama": LLAMA,
    "Mistral": {**LLAMA, "sliding_window": 6},
    "Qwen2": LLAMA,
    "Qwen3": {**LLAMA, "head_dim": 8},
    "Gemma": {**LLAMA, "head_dim": 8},
    "Gemma2": {**LLAMA, "head_dim": 8, "sliding_window": 6},
    "Phi": LLAMA,
    "Phi3": LLAMA,
    "GPTNeoX": LLAMA,
    "GPTNeo": {
        "vocab_size": 99,
        "hidden_size": WIDTH,
        "num_layers": LAYERS,
        "num_heads": HEADS,
        "attention_types": [[["global", "local"], 1]],
        "window_size": 4,
        "max_position_embeddings": 64,
    },
    "GPTJ": {**GPT2, "rotary_dim": 4},
    "OPT": {
        "vocab_size": 99,
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "ffn_dim": 48,
        "word_embed_proj_dim": 16,
        "max_position_embeddings": 64,
    },
    "Bloom": {"vocab_size": 99, "hidden_size": WIDTH, "n_layer": LAYERS, "n_head": HEADS},
    "Falcon": {**LLAMA, "alibi": False},
    "Mpt": {"vocab_size": 99, "d_model": WIDTH, "n_layers": LAYERS, "n_heads": HEADS, "max_seq_len": 64},
    "CodeGen": {**GPT2, "rotary_dim": 4},
    "StableLm": LLAMA,
    "Olmo2": LLAMA,
    "Cohere": LLAMA,
    "Granite": LLAMA,
    "SmolLM3": LLAMA,
    "Mixtral": {**LLAMA, **EXPERTS},
    "Qwen2Moe": {**LLAMA, **EXPERTS, "shared_expert_intermediate_size": 24},
    "Mamba": {"vocab_size": 99, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "state_size": 4},
    "Rwkv": {"vocab_size": 99, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "attention_hidden_size": WIDTH},
    "XGLM": {
        "vocab_size": 99,
        "d_model": WIDTH,
        "num_layers": LAYERS,
        "attention_heads": HEADS,
        "ffn_dim": 48,
        "max_position_embeddings": 64,
    },
}
HEAD = {"GPT2": "LMHeadModel"}


def made(kind: str, **more: Any) -> nn.Module:
    """A decoder with random weights."""
    config = getattr(transformers, f"{kind}Config")(**{**KINDS[kind], "attn_implementation": "eager", **more})
    return getattr(transformers, kind + HEAD.get(kind, "ForCausalLM"))(config)


def prompt(kind: str) -> Make:
    """A decoder without a cache, for two batch sizes and lengths."""

    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        sizes = [{"input_ids": tokens(*n), "attention_mask": mask(*n).flip(1)} for n in ((2, 8), (3, 12))]
        if kind in ("Mamba", "Rwkv"):
            sizes = [{"input_ids": size["input_ids"]} for size in sizes]
        return Keywords(made(kind), list(sizes[0]), use_cache=False), sizes

    return make


class Cached(nn.Module):
    """A decoder that takes and returns the keys and values of the tokens before."""

    variadic = True

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        ids, attention, *past = inputs
        pairs = list(zip(past[::2], past[1::2], strict=True))
        cache = DynamicCache(pairs)
        found = self.model(input_ids=ids, attention_mask=attention, past_key_values=cache, use_cache=True)
        layers = found.past_key_values.layers
        return found.logits, *(value for layer in layers for value in (layer.keys, layer.values))


def with_cache(kind: str, heads: int, new: tuple[int, int] = (1, 1)) -> Make:
    """A decoder with a cache, for two lengths of the past."""

    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        def size(batch: int, past: int, new: int) -> dict[str, Tensor]:
            chance = torch.Generator().manual_seed(past)
            cache = {
                f"past.{layer}.{part}": torch.randn(batch, heads, past, WIDTH // HEADS, generator=chance)
                for layer in range(LAYERS)
                for part in ("key", "value")
            }
            return {"input_ids": tokens(batch, new), "attention_mask": mask(batch, past + new).flip(1), **cache}

        return Cached(made(kind)), [size(2, 6, new[0]), size(3, 9, new[1])]

    return make


for name in KINDS:
    if name == "Cohere":  # TorchScript's exporter writes a product of unequal shapes
        continue
    add(RECIPES, f"hf_{name.lower()}_script", prompt(name), dynamo=False)
for name in ("GPT2", "Llama", "Gemma2", "Phi3", "Cohere", "Mixtral", "Qwen2Moe", "Mamba"):
    add(RECIPES, f"hf_{name.lower()}", prompt(name))
for name, heads in {"GPT2": 4, "Llama": 2, "Mistral": 2, "Qwen2": 2, "OPT": 4, "GPTNeoX": 4}.items():
    add(RECIPES, f"hf_{name.lower()}_cache_script", with_cache(name, heads), dynamo=False)
for name, heads in {"GPT2": 4, "Llama": 2}.items():
    add(RECIPES, f"hf_{name.lower()}_cache", with_cache(name, heads))
add(RECIPES, "hf_llama_cache_many_script", with_cache("Llama", 2, (3, 4)), dynamo=False)
