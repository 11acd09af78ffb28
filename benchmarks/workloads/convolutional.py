"""Convolutional networks in plain JAX: NHWC, batch norms folded into the kernels, XLA's own convolutions."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.workload import Arrays

BLOCKS = (
    # kernel, expanded, channels, squeezes, swish, stride
    (3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2), (5, 120, 40, 1, 0, 1),
    (5, 120, 40, 1, 0, 1), (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1),
    (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1), (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1),
    (5, 960, 160, 1, 1, 1),
)  # fmt: skip
"""The blocks of MobileNetV3-Large (arXiv:1905.02244, table 1)."""


def folded(weights: Arrays) -> dict[str, Any]:
    """Kernels as HWIO and biases, by the names of the convolutions, with the batch norms that follow; other weights."""
    made: dict[str, Any] = {}
    for name, array in weights.items():
        if array.ndim == 4:
            path = name.removesuffix(".weight")
            made[path] = _fold(array, weights.get(f"{path}.bias"), _norm_after(path, weights))
        elif not name.endswith(("running_mean", "running_var", "num_batches_tracked")):
            made[name] = array
    return made


def _fold(kernel: np.ndarray, bias: np.ndarray | None, norm: tuple[np.ndarray, ...] | None) -> tuple[Any, Any]:
    bias = np.zeros(len(kernel), np.float32) if bias is None else bias
    if norm is not None:
        scale, shift = norm
        kernel, bias = kernel * scale[:, None, None, None], bias * scale + shift
    return np.ascontiguousarray(kernel.transpose(2, 3, 1, 0)), bias


def _norm_after(path: str, weights: Arrays) -> tuple[np.ndarray, ...] | None:
    """The scale and shift of the batch norm after a convolution, which PyTorch numbers or names after it."""
    folder, _, last = path.rpartition(".")
    names = [f"{folder}.{int(last) + 1}"] if last.isdigit() else []
    names += [f"{folder}.bn{last[4:]}".lstrip(".")] if last.startswith("conv") else []
    for name in names:
        if f"{name}.running_var" in weights:
            epsilon = 1e-3 if path.startswith("features") else 1e-5
            scale = weights[f"{name}.weight"] / np.sqrt(weights[f"{name}.running_var"] + epsilon)
            return scale, weights[f"{name}.bias"] - weights[f"{name}.running_mean"] * scale
    return None


def conv(x: Any, weights: tuple[Any, Any], stride: int = 1) -> Any:
    """A convolution of NHWC whose kernel is padded by half of its size; depthwise if the kernel has one channel."""
    kernel, bias = weights
    height, width, depth, _ = kernel.shape
    made = lax.conv_general_dilated(
        x, kernel, (stride, stride), [(height // 2, height // 2), (width // 2, width // 2)],
        dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=x.shape[-1] // depth,
    )  # fmt: skip
    return made + bias


def pooled(x: Any, size: tuple[int, int], stride: tuple[int, int], padding: int = 0) -> Any:
    """The largest element of each window of NHWC."""
    around = [(0, 0), (padding, padding), (padding, padding), (0, 0)]
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, *size, 1), (1, *stride, 1), around)


def resnet50(weights: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """ResNet-50 (arXiv:1512.03385)."""
    x = jax.nn.relu(conv(inputs["image"].transpose(0, 2, 3, 1), weights["conv1"], 2))
    x = pooled(x, (3, 3), (2, 2), 1)
    for stage, blocks in enumerate((3, 4, 6, 3), 1):
        for block in range(blocks):
            at, stride = f"layer{stage}.{block}", 2 if stage > 1 and not block else 1
            y = jax.nn.relu(conv(x, weights[f"{at}.conv1"]))
            y = conv(jax.nn.relu(conv(y, weights[f"{at}.conv2"], stride)), weights[f"{at}.conv3"])
            x = jax.nn.relu(y + (x if block else conv(x, weights[f"{at}.downsample.0"], stride)))
    return {"scores": x.mean((1, 2)) @ weights["fc.weight"].T + weights["fc.bias"]}


def mobilenet(weights: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """MobileNetV3-Large."""
    x = jax.nn.hard_swish(conv(inputs["image"].transpose(0, 2, 3, 1), weights["features.0.0"], 2))
    for number, (_, expanded, channels, squeezes, swish, stride) in enumerate(BLOCKS, 1):
        part, act, y = 0, jax.nn.hard_swish if swish else jax.nn.relu, x
        at = f"features.{number}.block"
        if expanded != x.shape[-1]:
            y, part = act(conv(y, weights[f"{at}.0.0"])), 1
        y = act(conv(y, weights[f"{at}.{part}.0"], stride))
        if squeezes:
            part += 1
            mean = jax.nn.relu(conv(y.mean((1, 2), keepdims=True), weights[f"{at}.{part}.fc1"]))
            y *= jax.nn.hard_sigmoid(conv(mean, weights[f"{at}.{part}.fc2"]))
        y = conv(y, weights[f"{at}.{part + 1}.0"])
        x = x + y if stride == 1 and channels == x.shape[-1] else y
    x = jax.nn.hard_swish(conv(x, weights["features.16.0"])).mean((1, 2))
    x = jax.nn.hard_swish(x @ weights["classifier.0.weight"].T + weights["classifier.0.bias"])
    return {"scores": x @ weights["classifier.3.weight"].T + weights["classifier.3.bias"]}
