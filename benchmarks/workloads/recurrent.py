"""Networks of convolutions and LSTMs in plain JAX."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.workloads.convolutional import conv, pooled
from benchmarks.workloads.transformers import dense

POOLS = {0: (2, 2), 4: (2, 2), 8: (2, 1), 12: (4, 1)}


def lstm(weights: Any, at: str, end: str, rows: Any, *, reverse: bool = False) -> Any:
    """All states of an LSTM of PyTorch over rows."""
    size = weights[f"{at}.weight_hh_{end}"].shape[1]
    inside = rows @ weights[f"{at}.weight_ih_{end}"].T + weights[f"{at}.bias_ih_{end}"] + weights[f"{at}.bias_hh_{end}"]
    carried = weights[f"{at}.weight_hh_{end}"].T

    def body(state: Any, row: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(row + h @ carried, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(body, (jnp.zeros(size), jnp.zeros(size)), inside, reverse=reverse)[1]


def speech(weights: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Features of sound to the logarithms of probabilities of letters."""
    x = inputs["sound"]
    for layer, stride in ((0, 2), (2, 1)):
        kernel, bias = weights[f"near.{layer}.weight"], weights[f"near.{layer}.bias"]
        x = lax.conv_general_dilated(x, kernel, (stride,), [(2, 2)], dimension_numbers=("NCH", "OIH", "NCH"))
        x = jax.nn.relu(x + bias[:, None])
    rows = x[0].T
    for layer in range(2):
        rows = lstm(weights, "far", f"l{layer}", rows)
    return {"letters": jax.nn.log_softmax(dense(weights, "letters", rows), -1)[None]}


def reader(weights: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """A line of text to letters."""
    x = inputs["line"].transpose(0, 2, 3, 1)
    for layer, pool in POOLS.items():
        x = pooled(jax.nn.relu(conv(x, weights[f"image.{layer}"])), pool, pool)
    rows = x[0, 0]
    both = [lstm(weights, "line", "l0", rows), lstm(weights, "line", "l0_reverse", rows, reverse=True)]
    scores = jax.nn.softmax(dense(weights, "letters", jnp.concatenate(both, -1)), -1)[None]
    return {"scores": scores, "letters": scores.argmax(-1)}
