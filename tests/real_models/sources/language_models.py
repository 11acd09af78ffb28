"""Encoders and sequence-to-sequence models for text of transformers, with tiny random weights."""

from typing import Any

import torch
import transformers
from torch import Tensor, nn

from tests.real_models.recipe import Recipes
from tests.real_models.sources.exporting import Keywords, Make, add

RECIPES = Recipes()

TINY = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
    "pad_token_id": 0,
    "attn_implementation": "eager",
}
ENCODERS: dict[str, dict[str, Any]] = {
    "Bert": {},
    "Roberta": {},
    "Electra": {"embedding_size": 16},
    "Albert": {"embedding_size": 16},
    "MobileBert": {"embedding_size": 16, "intra_bottleneck_size": 16, "true_hidden_size": 16},
    "DebertaV2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8},
    "Deberta": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "MPNet": {},
    "RoFormer": {},
    "SqueezeBert": {"embedding_size": 32},
    "FNet": {},
    "ModernBert": {"global_attn_every_n_layers": 2, "local_attention": 8},
    "XLMRoberta": {},
    "IBert": {},
    "Ernie": {},
    "LayoutLM": {"max_2d_position_embeddings": 40},
}


def tokens(batch: int, length: int) -> Tensor:
    """Token ids without padding."""
    return torch.randint(3, 90, (batch, length), generator=torch.Generator().manual_seed(length))


def mask(batch: int, length: int) -> Tensor:
    """A mask in which the first sequence is shorter."""
    made = torch.ones(batch, length, dtype=torch.long)
    made[0, length - 2 :] = 0
    return made


def encoder(kind: str, head: str = "Model", **more: Any) -> Make:
    """An encoder for two batch sizes and lengths."""

    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        config = getattr(transformers, f"{kind}Config")(**{**TINY, **ENCODERS.get(kind, {}), **more})
        model = getattr(transformers, f"{kind}{head}")(config)
        sizes = [{"input_ids": tokens(*n), "attention_mask": mask(*n)} for n in ((2, 8), (3, 12))]
        if kind == "FNet":
            sizes = [{"input_ids": size["input_ids"]} for size in sizes]
        return Keywords(model, list(sizes[0])), sizes

    return make


def distilled() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    """DistilBERT, whose configuration has names of its own."""
    config = transformers.DistilBertConfig(
        vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=40
    )
    sizes = [{"input_ids": tokens(*n), "attention_mask": mask(*n)} for n in ((2, 8), (3, 12))]
    return Keywords(transformers.DistilBertForSequenceClassification(config), list(sizes[0])), sizes


ENCODER_DECODER = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 40,
    "pad_token_id": 0,
    "decoder_start_token_id": 1,
    "eos_token_id": 2,
    "forced_eos_token_id": 2,
}
T5 = {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
SEQUENCE_TO_SEQUENCE: dict[str, dict[str, Any]] = {
    "Bart": ENCODER_DECODER,
    "Marian": ENCODER_DECODER,
    "MBart": ENCODER_DECODER,
    "Pegasus": ENCODER_DECODER,
    "M2M100": ENCODER_DECODER,
    "BlenderbotSmall": ENCODER_DECODER,
    "T5": {**T5, "decoder_start_token_id": 1},
    "MT5": {**T5, "decoder_start_token_id": 1, "feed_forward_proj": "gated-gelu"},
    "LED": {**ENCODER_DECODER, "attention_window": 4, "max_encoder_position_embeddings": 40},
    "ProphetNet": {
        "vocab_size": 99,
        "hidden_size": 32,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
        "num_encoder_attention_heads": 4,
        "num_decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
        "max_position_embeddings": 40,
    },
}


def sequence_to_sequence(kind: str) -> Make:
    """An encoder with its decoder, for two batch sizes and lengths."""

    def make() -> tuple[nn.Module, list[dict[str, Tensor]]]:
        config = getattr(transformers, f"{kind}Config")(**SEQUENCE_TO_SEQUENCE[kind])
        head = "Model" if kind == "Marian" else "ForConditionalGeneration"
        model = getattr(transformers, kind + ("MTModel" if kind == "Marian" else head))(config)
        sizes = [
            {"input_ids": tokens(*n), "attention_mask": mask(*n), "decoder_input_ids": tokens(n[0], n[1] - 3)}
            for n in ((2, 8), (3, 12))
        ]
        return Keywords(model, list(sizes[0]), use_cache=False), sizes

    return make


for name in ENCODERS:
    if name == "FNet":  # its transforms have no form in TorchScript's exporter
        continue
    add(RECIPES, f"hf_{name.lower()}_script", encoder(name), dynamo=False)
for name in ("Bert", "Roberta", "Electra", "Albert", "ModernBert", "FNet", "DebertaV2"):
    add(RECIPES, f"hf_{name.lower()}", encoder(name))
add(RECIPES, "hf_bert_classifier_script", encoder("Bert", "ForSequenceClassification"), dynamo=False)
add(RECIPES, "hf_electra_tokens_script", encoder("Electra", "ForTokenClassification"), dynamo=False)
add(RECIPES, "hf_roberta_words_script", encoder("Roberta", "ForMaskedLM"), dynamo=False)
add(RECIPES, "hf_distilbert_script", distilled, dynamo=False)
for name in SEQUENCE_TO_SEQUENCE:
    add(RECIPES, f"hf_{name.lower()}_script", sequence_to_sequence(name), dynamo=False)
for name in ("T5", "Bart"):
    add(RECIPES, f"hf_{name.lower()}", sequence_to_sequence(name))
