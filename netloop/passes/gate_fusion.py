"""Gates, in the form that is fastest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from netloop.dims import DimsLike
from netloop.enums import ActivationType, ElementWiseOperation, LayerType, SampleMode
from netloop.graph.layer import Elementary, ILayer, layer
from netloop.graph.tensor import ITensor
from netloop.layers.pointwise import IActivationLayer, IElementWiseLayer
from netloop.layers.slice import ISliceLayer
from netloop.nest import LayerStep, walk
from netloop.passes.rewriter import Rewriter, operand
from netloop.types import TensorType

SIGMOID, TANH = ActivationType.SIGMOID, ActivationType.TANH


@layer(LayerType.ACTIVATION, "Gates")
class GatesLayer(Elementary):
    """The logistic function of some stretches of an axis, and tanh of the others.

    The logistic function is computed as 0.5 tanh(0.5 x) + 0.5, so that one vector function makes all. It is within
    1.2e-7 of the exact value, which is one unit in the last place of 1 in float32. For large negative x that is more
    than the value itself: it is for what only multiplies.

    Attributes:
        axis: the axis, counted from the end.
        sizes: the lengths of the stretches.
        logistic: 1 for each that is logistic, 0 for each that is tanh.
    """

    axis: int
    sizes: DimsLike
    logistic: DimsLike

    def infer(self, x: TensorType) -> TensorType:
        return x.without_value()

    def formula(self, xp: Any, x: Any) -> Any:
        is_logistic = np.repeat(np.array(self.logistic, bool), self.sizes)
        is_logistic = is_logistic.reshape(-1, *[1] * (-1 - self.axis))
        if xp is np:
            return np.where(is_logistic, 1 / (1 + np.exp(-x)), np.tanh(x))
        half = jnp.where(is_logistic, x.dtype.type(0.5), x.dtype.type(1))
        return jnp.tanh(x * half) * half + (1 - half)


def choose_forms(rewriter: Rewriter) -> None:
    """Compute gates through tanh, which XLA has as a vector function, and those side by side at once."""
    gates = [
        each for step in walk(rewriter.block) if isinstance(step, LayerStep) for each in _gates(rewriter, step.layer)
    ]
    parts: dict[tuple[ITensor, int], list[_Part]] = defaultdict(list)
    for each in gates:
        found = _part_of(each)
        if found is not None:
            parts[found.source, found.axis].append(found)
    done: set[ILayer] = set()
    for run in (run for group in parts.values() for run in _side_by_side(group)):
        _compute_at_once(rewriter, run)
        done.update(each.gate for each in run)
    for each in gates:
        if each not in done and each.type is SIGMOID:
            _compute_alone(rewriter, each)
            done.add(each)
    if done:
        rewriter.note(f"{len(done)} gates are computed through tanh")


# ---------------------------------------------------------------------------- what is a gate


def _gates(rewriter: Rewriter, layer: ILayer) -> list[IActivationLayer]:
    """A layer that is tanh in a loop, or a logistic function that only multiplies; nothing for any other."""
    if not isinstance(layer, IActivationLayer) or layer.type not in (SIGMOID, TANH):
        return []
    (output,) = layer.outputs
    in_loop = bool(rewriter.scopes.of(output)) and rewriter.may_replace(output) and output.type.dtype == np.float32
    return [layer] if in_loop and (layer.type is TANH or _multiplies(rewriter, output)) else []


def _multiplies(rewriter: Rewriter, tensor: ITensor) -> bool:
    readers = [reader for reader, _ in tensor.uses]
    return bool(readers) and all(_is_product(each) or _is_part(rewriter, each) for each in readers)


def _is_product(layer: ILayer) -> bool:
    return isinstance(layer, IElementWiseLayer) and layer.op is ElementWiseOperation.PROD


def _is_part(rewriter: Rewriter, layer: ILayer) -> bool:
    if not isinstance(layer, ISliceLayer) or not rewriter.may_replace(layer.outputs[0]):
        return False
    return all(_is_product(reader) for reader, _ in layer.outputs[0].uses)


# ---------------------------------------------------------------------------- gates side by side


class _Part(NamedTuple):
    """A gate of a stretch of an axis, counted from the end."""

    gate: IActivationLayer
    source: ITensor
    axis: int
    begin: int
    end: int


def _part_of(gate: IActivationLayer) -> _Part | None:
    """The stretch that a gate is of; None if it is of no slice of one axis."""
    slice = operand(gate, 0).producer
    if not isinstance(slice, ISliceLayer) or any(slice.inputs[1:]) or slice.mode is not SampleMode.STRICT_BOUNDS:
        return None
    source = operand(slice, 0)
    rank, shape = source.type.rank, slice.outputs[0].type.shape
    cut = [axis for axis in range(rank) if shape[axis] != source.type.shape[axis]]
    if len(cut) != 1 or any(each != 1 for each in slice.stride):
        return None
    axes = range(rank) if slice.axes is None else [each % rank for each in slice.axes]
    begin = dict(zip(axes, slice.start, strict=True))[cut[0]]
    return _Part(gate, source, cut[0] - rank, begin, begin + shape[cut[0]])


def _side_by_side(parts: list[_Part]) -> Iterator[list[_Part]]:
    """ChunkedWhile that follow each other, where there are two or more."""
    run: list[_Part] = []
    for part in sorted(parts, key=lambda each: each.begin):
        if run and part.begin != run[-1].end:
            if len(run) > 1:
                yield run
            run = []
        run.append(part)
    if len(run) > 1:
        yield run


def _compute_at_once(rewriter: Rewriter, run: list[_Part]) -> None:
    _, source, axis, begin, _ = run[0]
    length, sizes = run[-1].end - begin, [each.end - each.begin for each in run]
    if length < source.type.shape[axis]:
        source = rewriter.make.slice(source, [begin], [length], axes=[source.type.rank + axis])
    logistic = [int(each.gate.type is SIGMOID) for each in run]
    made = rewriter.network.add(GatesLayer(axis=axis, sizes=sizes, logistic=logistic), [source]).outputs[0]
    for each in run:
        place, size = each.begin - begin, each.end - each.begin
        rewriter.replace(each.gate.outputs[0], rewriter.make.slice(made, [place], [size], axes=[made.type.rank + axis]))


def _compute_alone(rewriter: Rewriter, gate: IActivationLayer) -> None:
    x = operand(gate, 0)
    if x.type.rank > 0:
        alone = GatesLayer(axis=-1, sizes=[x.type.shape[-1]], logistic=[1])
        rewriter.replace(gate.outputs[0], rewriter.network.add(alone, [x]).outputs[0])
