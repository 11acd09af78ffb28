"""Recurrent language models of transformers, and those that mix recurrent layers with attention."""

from typing import Any

import transformers
from torch import Tensor, nn

from tests.real_models.recipe import Recipes
from tests.real_models.sources.decoder_models import EXPERTS, LAYERS, LLAMA, WIDTH
from tests.real_models.sources.exporting import Keywords, Make, add
from tests.real_models.sources.language_models import mask, tokens

RECIPES = Recipes()

SMALL = {"vocab_size": 99, "hidden_size": WIDTH, "num_hidden_layers": LAYERS}
MAMBA = {
    "mamba_n_heads": 8,
    "mamba_d_head": 8,
    "mamba_n_groups": 1,
    "mamba_d_state": 8,
    "mamba_chunk_size": 4,
    "mamba_expand": 2,
}
SPARSE = {**LLAMA, **EXPERTS}
WITHOUT_MASK = ("Mamba2", "FalconMamba", "xLSTM")
KINDS: dict[str, dict[str, Any]] = {
    "Mamba2": {**SMALL, "state_size": 8, "num_heads": 4, "head_dim": 16, "n_groups": 2, "chunk_size": 4},
    "FalconMamba": {**SMALL, "state_size": 4},
    "xLSTM": {**SMALL, "num_blocks": LAYERS, "num_heads": 4, "chunk_size": 4},
    "RecurrentGemma": {**LLAMA, "num_hidden_layers": 3, "lru_width": WIDTH, "attention_window_size": 8},
    "Jamba": {
        **SPARSE,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "mamba_d_state": 4,
        "mamba_dt_rank": 4,
        "use_mamba_kernels": False,
    },
    "Bamba": {**LLAMA, **MAMBA, "attn_layer_indices": [1]},
    "Zamba2": {
        **LLAMA,
        "num_key_value_heads": 4,
        "num_hidden_layers": 3,
        "layers_block_type": ["mamba", "mamba", "hybrid"],
        "num_mem_blocks": 1,
        "n_mamba_heads": 8,
        "mamba_headdim": 8,
        "mamba_ngroups": 1,
        "mamba_d_state": 8,
        "chunk_size": 4,
        "adapter_rank": 4,
        "use_mem_rope": False,
        "use_shared_attention_adapter": False,
    },
    "FalconH1": {**LLAMA, **MAMBA, "mamba_d_ssm": 64, "head_dim": 8},
    "GraniteMoeHybrid": {
        **SPARSE,
        **MAMBA,
        "layer_types": ["mamba", "attention"],
        "shared_intermediate_size": 24,
    },
    "Lfm2": {**LLAMA, "layer_types": ["conv", "full_attention"], "block_multiple_of": 8},
    "NemotronH": {
        **LLAMA,
        "hybrid_override_pattern": "M*-",
        "num_hidden_layers": 3,
        "mamba_num_heads": 4,
        "mamba_head_dim": 16,
        "n_groups": 2,
        "ssm_state_size": 8,
        "chunk_size": 4,
        "head_dim": 8,
    },
    "Gemma3Text": {**LLAMA, "head_dim": 8, "sliding_window": 6},
    "Olmo3": {**LLAMA, "sliding_window": 6},
    "OlmoE": {**SPARSE},
    "Qwen3Moe": {**SPARSE, "head_dim": 8},
    "GptOss": {**SPARSE, "head_dim": 8, "sliding_window": 6},
    "Nemotron": LLAMA,
    "Starcoder2": LLAMA,
    "Persimmon": LLAMA,
    "BitNet": LLAMA,
    "Exaone4": {**LLAMA, "sliding_window": 6},
    "HunYuanDenseV1": {**LLAMA, "head_dim": 8},
    "Arcee": {**LLAMA, "head_dim": 8},
}
CLASSES = {
    "Gemma3Text": ("Gemma3TextConfig", "Gemma3ForCausalLM"),
    "OlmoE": ("OlmoeConfig", "OlmoeForCausalLM"),
}


def model(kind: str, **more: Any) -> nn.Module:
    """A language model with random weights."""
    config, head = CLASSES.get(kind, (f"{kind}Config", f"{kind}ForCausalLM"))
    options = {**KINDS[kind], "attn_implementation": "eager", **more}
    return getattr(transformers, head)(getattr(transformers, config)(**options))


def prompt(kind: str) -> Make:
    """A language model for two batch sizes and lengths."""

    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        sizes = [{"input_ids": tokens(*n), "attention_mask": mask(*n).flip(1)} for n in ((2, 8), (3, 12))]
        if kind in WITHOUT_MASK:
            sizes = [{"input_ids": size["input_ids"]} for size in sizes]
        return Keywords(model(kind), list(sizes[0]), use_cache=False), sizes

    return make


RECURRENT = "Mamba2", "FalconMamba", "xLSTM", "RecurrentGemma", "Lfm2"
MIXED = "Jamba", "Bamba", "Zamba2", "FalconH1", "GraniteMoeHybrid", "NemotronH"
BY_DYNAMO = (*RECURRENT, *MIXED, "Gemma3Text", "GptOss")
for name in BY_DYNAMO:
    add(RECIPES, f"hf_{name.lower()}", prompt(name))
for name in KINDS:
    # the exporter of TorchScript transposes the chunks of these to other ranks
    if name not in ("Mamba2", "Bamba", "Zamba2", "FalconH1", "GraniteMoeHybrid", "NemotronH"):
        add(RECIPES, f"hf_{name.lower()}_script", prompt(name), dynamo=False)
