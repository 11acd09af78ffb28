"""Operands of products in a form that XLA does not take for one number; docs/decisions/0038 has the reason."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.graph.infer import TypeTable
from netloop.graph.layer import Operation
from netloop.graph.tensor import ITensor
from netloop.layers.sources import IConstantLayer
from netloop.types import TensorType


def varied(x: Any) -> Any:
    """A floating-point array, added to a vector of -0, which changes no number, and which XLA does not fold."""
    x = jnp.asarray(x)
    if not x.ndim or not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    longest = int(np.argmax(x.shape))
    return x + lax.broadcasted_iota(x.dtype, x.shape, longest) * jnp.asarray(-0.0, x.dtype)


def may_be_uniform(tensor: ITensor, types: TypeTable) -> bool:
    """Whether a tensor is computed only from single numbers, and from constants that are one number."""
    seen, waiting = set[ITensor](), [tensor]
    while waiting:
        tensor = waiting.pop()
        if tensor in seen or _has_one_element(types[tensor]):
            continue
        seen.add(tensor)
        layer = tensor.producer
        if layer is None or (isinstance(layer, Operation) and layer.draws):
            return False
        if isinstance(layer, IConstantLayer):
            if not _is_one_number(layer):
                return False
        else:
            waiting += [source for source in layer.inputs if source is not None]
    return True


def _has_one_element(of: TensorType) -> bool:
    return of.is_tensor and all(length == 1 for length in of.shape)


def _is_one_number(layer: IConstantLayer) -> bool:
    values = layer.evaluate().reshape(-1)
    return not values.size or bool(values[0] == values[-1] and np.all(values == values[0]))
