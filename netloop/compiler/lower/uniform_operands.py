"""Operands of products in a form that XLA does not take for one number; docs/decisions/0038 has the reason."""

from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from netloop.model.graph import ITensor, Operation, TypeTable
from netloop.model.layers.pointwise import ICastLayer, IIdentityLayer
from netloop.model.layers.quantize import IDequantizeLayer
from netloop.model.layers.rearrange import Rearrangement
from netloop.model.layers.sources import IConstantLayer
from netloop.values.types import TensorType

KEEPING_ELEMENTS = ICastLayer, IDequantizeLayer, IIdentityLayer, Rearrangement
"""Layers whose output has an element for each one of their first input."""


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
    matrices = _matrices(tensor, types)
    seen, waiting = set[ITensor](), [tensor]
    while waiting:
        tensor = waiting.pop()
        if tensor in seen or (tensor not in matrices and _has_one_number(types[tensor])):
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


def _matrices(tensor: ITensor, types: TypeTable) -> set[ITensor]:
    """The tensors of one number for each batch whose elements are those of a tensor with fewer batches: its matrices.

    A kernel of one pixel is one for convolutions with the channels last.
    """
    most, matrices = prod(types[tensor].shape[:-2]), set[ITensor]()
    while isinstance(layer := tensor.producer, KEEPING_ELEMENTS) and layer.inputs[0] is not None:
        tensor = layer.inputs[0]
        if prod(types[tensor].shape) > most:
            matrices.add(tensor)
    return matrices


def _has_one_number(of: TensorType) -> bool:
    """Whether a tensor is one number, or one for each batch of matrices."""
    return of.is_tensor and all(length == 1 for length in (of.shape[-2:] if len(of.shape) > 2 else of.shape))


def _is_one_number(layer: IConstantLayer) -> bool:
    values = layer.evaluate().reshape(-1)
    # the ends first: most weights differ there, and are not compared whole
    return not values.size or bool(values[0] == values[-1] and np.all(values == values[0]))
