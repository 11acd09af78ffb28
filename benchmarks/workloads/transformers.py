"""Transformers in plain JAX."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

HEADS = 4


def norm(weights: Any, at: str, x: Any, epsilon: float) -> Any:
    """A layer norm of PyTorch."""
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + epsilon) * weights[f"{at}.weight"] + weights[f"{at}.bias"]


def dense(weights: Any, at: str, x: Any) -> Any:
    """A linear layer of PyTorch."""
    return x @ weights[f"{at}.weight"].T + weights[f"{at}.bias"]


def heads(x: Any) -> Any:
    """The parts of each head: (tokens, width) to (heads, tokens, width of a head)."""
    return x.reshape(len(x), HEADS, -1).transpose(1, 0, 2)


def attention(query: Any, key: Any, value: Any, bias: Any = 0.0) -> Any:
    """Attention of all heads, as (tokens, width)."""
    scores = query @ key.transpose(0, 2, 1) * query.shape[-1] ** -0.5 + bias
    mixed = jax.nn.softmax(scores, -1) @ value
    return mixed.transpose(1, 0, 2).reshape(mixed.shape[1], -1)


def bert(weights: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """BERT of four layers."""
    ids, base = inputs["ids"][0], "model.embeddings"
    x = weights[f"{base}.word_embeddings.weight"][ids] + weights[f"{base}.position_embeddings.weight"][: len(ids)]
    x = norm(weights, f"{base}.LayerNorm", x + weights[f"{base}.token_type_embeddings.weight"][0], 1e-12)
    bias = jnp.where(inputs["mask"][0] != 0, 0, jnp.finfo(jnp.float32).min)
    for layer in range(4):
        at = f"model.encoder.layer.{layer}"
        parts = (heads(dense(weights, f"{at}.attention.self.{name}", x)) for name in ("query", "key", "value"))
        mixed = dense(weights, f"{at}.attention.output.dense", attention(*parts, bias))
        x = norm(weights, f"{at}.attention.output.LayerNorm", x + mixed, 1e-12)
        wide = jax.nn.gelu(dense(weights, f"{at}.intermediate.dense", x), approximate=False)
        x = norm(weights, f"{at}.output.LayerNorm", x + dense(weights, f"{at}.output.dense", wide), 1e-12)
    return {"states": x[None]}


def gpt2(weights: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """A step of GPT-2 of four layers."""
    past, made = inputs["keys"].shape[3], []
    x = weights["model.transformer.wte.weight"][inputs["ids"][0]] + weights["model.transformer.wpe.weight"][past]
    for layer in range(4):
        at = f"model.transformer.h.{layer}"
        joined = plain(weights, f"{at}.attn.c_attn", norm(weights, f"{at}.ln_1", x, 1e-5))
        query, *new = (heads(word) for word in jnp.split(joined, 3, -1))
        old = inputs["keys"][layer, 0], inputs["values"][layer, 0]
        key, value = (jnp.concatenate(pair, 1) for pair in zip(old, new, strict=True))
        x = x + plain(weights, f"{at}.attn.c_proj", attention(query, key, value))
        wide = jax.nn.gelu(plain(weights, f"{at}.mlp.c_fc", norm(weights, f"{at}.ln_2", x, 1e-5)))
        x = x + plain(weights, f"{at}.mlp.c_proj", wide)
        made.append((key, value))
    x = norm(weights, "model.transformer.ln_f", x, 1e-5)
    keys, values = (jnp.stack(entry)[:, None] for entry in zip(*made, strict=True))
    return {"logits": (x @ weights["model.lm_head.weight"].T)[None], "new_keys": keys, "new_values": values}


def plain(weights: Any, at: str, x: Any) -> Any:
    """A product with a matrix that GPT-2 stores by rows of inputs."""
    return x @ weights[f"{at}.weight"] + weights[f"{at}.bias"]
