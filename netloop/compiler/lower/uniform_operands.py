"""Operands of products in a form that XLA does not take for one number; docs/decisions/0038 has the reason."""

from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.model.graph import ITensor, Operation, TypeTable
from netloop.model.layers.sources import IConstantLayer
from netloop.values.types import TensorType


def varied(x: Any) -> Any:
    """A floating-point array, with -0 added to each element in a form that XLA does not fold; no number changes."""
    x = jnp.asarray(x)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    places = lax.iota(np.uint32, x.size).reshape(x.shape)
    wide = np.float64 if x.dtype == np.float64 else np.float32  # in which no place is infinite
    return x + (places.astype(wide) * wide(-0.0)).astype(x.dtype)


def may_be_uniform(tensor: ITensor, types: TypeTable) -> bool:
    """Whether a tensor is computed only from numbers, one in all or one for each batch, also as constants."""
    # what holds more numbers, such as a kernel of one pixel, is a matrix itself once its axes are exchanged
    most = prod(types[tensor].shape[:-2])
    seen, waiting = set[ITensor](), [tensor]
    while waiting:
        tensor = waiting.pop()
        if tensor in seen or _has_one_number(types[tensor], most):
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


def _has_one_number(of: TensorType, most: int) -> bool:
    """Whether a tensor is one number, or one for each batch of matrices; there are at most so many batches."""
    return of.is_tensor and all(length == 1 for length in of.shape[-2:]) and prod(of.shape[:-2]) <= most


def _is_one_number(layer: IConstantLayer) -> bool:
    values = layer.evaluate().reshape(-1)
    # the ends first: most weights differ there, and are not compared whole
    return not values.size or bool(values[0] == values[-1] and np.all(values == values[0]))
