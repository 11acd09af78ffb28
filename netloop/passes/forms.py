"""Functions in the form that is fastest."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from netloop.enums import ActivationType, ElementWiseOperation
from netloop.graph.layer import ILayer
from netloop.graph.tensor import ITensor
from netloop.layers.pointwise import IActivationLayer, IElementWiseLayer
from netloop.layers.slice import ISliceLayer
from netloop.nest import LayerStep, walk
from netloop.passes.draft import Draft, operand


class LogisticByTanh(IActivationLayer):
    """The logistic function, computed as 0.5 tanh(0.5 x) + 0.5.

    Within 1.2e-7 of the exact value, which is one unit in the last place of 1 in float32. For large negative x that is
    more than the value itself: it is for factors only.
    """

    def formula(self, xp: Any, x: Any) -> Any:
        return 0.5 * jnp.tanh(0.5 * x) + 0.5 if xp is jnp else super().formula(xp, x)


def choose_forms(draft: Draft) -> None:
    """Compute gates through tanh, which XLA has as a vector function."""
    found = [step.layer for step in walk(draft.block) if isinstance(step, LayerStep) and _is_gate(draft, step.layer)]
    for layer in found:
        gate = draft.network.add(LogisticByTanh(type=ActivationType.SIGMOID), [operand(layer, 0)])
        draft.replace(layer.outputs[0], gate.outputs[0])
    if found:
        draft.note(f"{len(found)} logistic functions are computed through tanh")


def _is_gate(draft: Draft, layer: ILayer) -> bool:
    """Whether a layer is a logistic function in a loop, and only multiplies."""
    if not isinstance(layer, IActivationLayer) or layer.type is not ActivationType.SIGMOID:
        return False
    (output,) = layer.outputs
    in_loop = bool(draft.scopes.of(output)) and draft.may_replace(output)
    return in_loop and output.type.dtype == np.float32 and _multiplies(draft, output)


def _multiplies(draft: Draft, tensor: ITensor) -> bool:
    readers = [reader for reader, _ in tensor.uses]
    return bool(readers) and all(_is_product(each) or _is_part(draft, each) for each in readers)


def _is_product(layer: ILayer) -> bool:
    return isinstance(layer, IElementWiseLayer) and layer.op is ElementWiseOperation.PROD


def _is_part(draft: Draft, layer: ILayer) -> bool:
    return (
        isinstance(layer, ISliceLayer)
        and draft.may_replace(layer.outputs[0])
        and all(_is_product(reader) for reader, _ in layer.outputs[0].uses)
    )
