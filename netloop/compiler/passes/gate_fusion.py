"""Compute adjacent gates of recurrent cells as one layer, and sigmoids in their tanh form."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from netloop.compiler.passes.base import OFF, Pass
from netloop.compiler.passes.rewriter import Rewriter, operand
from netloop.model.graph.layer import Elementary, ILayer, layer
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.pointwise import IActivationLayer, IElementWiseLayer
from netloop.model.layers.slice import ISliceLayer
from netloop.values.dims import DimsLike
from netloop.values.enums import ActivationType, ElementWiseOperation, LayerType, SampleMode
from netloop.values.types import TensorType

SIGMOID, TANH = ActivationType.SIGMOID, ActivationType.TANH
TANH_FORM_ERROR = 1.2e-7
"""The largest error of a sigmoid in its tanh form: one unit in the last place of 1 in float32."""

APART = "gates_apart"
"""The form in which each sigmoid is a layer of its own."""


@layer(LayerType.INTERNAL, "Fused Gates")
class FusedGatesLayer(Elementary):
    """The sigmoid of some sections of an axis, and tanh of the others.

    The sigmoid is computed as 0.5 tanh(0.5 x) + 0.5, so that one vector function computes all sections. For large
    negative x its error is more than the value itself, which does no harm to a factor of a product.

    Attributes:
        axis: the axis, counted from the end.
        sizes: the lengths of the sections.
        logistic: 1 for each section that is a sigmoid, 0 for each that is tanh.
    """

    axis: int
    sizes: DimsLike
    logistic: DimsLike

    def infer(self, x: TensorType) -> TensorType:
        return x.without_value()

    def formula(self, xp: Any, x: Any) -> Any:
        is_logistic = np.repeat(np.array(self.logistic, bool), self.sizes)
        is_logistic = is_logistic.reshape(-1, *[1] * (-1 - self.axis))
        # the reference has the sigmoid itself, so that comparisons show the error of its tanh form
        if xp is np:
            return np.where(is_logistic, 1 / (1 + np.exp(-x)), np.tanh(x))
        half = np.where(is_logistic, x.dtype.type(0.5), x.dtype.type(1))
        return jnp.tanh(x * half) * half + (1 - half)


class GateFusion(Pass):
    """Compute gates through tanh, which XLA has as a vector function for CPUs, and adjacent ones at once.

    On GPUs XLA computes each gate in the kernel that reads it. Slices of joined gates it does not: they are a kernel of
    their own, and an LSTM of 512 has 3.0 launches in an iteration instead of 2.3.
    """

    name = "gate_fusion"
    level = 3
    platforms = frozenset({"cpu"})
    # only then are the gates of a cell slices of one tensor
    after = ("horizontal_fusion",)
    rule = (
        "On CPUs, a sigmoid in a loop whose result is only multiplied is computed through tanh, within "
        f"{TANH_FORM_ERROR}, and adjacent gates become one layer. Float32 only."
    )
    alternatives = (OFF, APART)

    def rewrite(self, rewriter: Rewriter) -> bool:
        gates = [gate for gate in rewriter.layers(IActivationLayer) if _is_gate(rewriter, gate)]
        sections: dict[tuple[ITensor, int], list[_Section]] = defaultdict(list)
        for section in filter(None, map(_section_of, gates if rewriter.form != APART else ())):
            sections[section.source, section.axis].append(section)
        fused: set[ILayer] = set()
        for run in (run for group in sections.values() for run in _adjacent(group)):
            _fuse(rewriter, run)
            fused.update(section.gate for section in run)
        rest = [gate for gate in gates if gate not in fused and gate.type is SIGMOID]
        single = [gate for gate in rest if operand(gate, 0).type.rank > 0]  # a scalar has no axis to have sections of
        for gate in single:
            source = operand(gate, 0)
            _fuse(rewriter, [_Section(gate, source, -1, 0, source.type.shape[-1])])
        if fused or single:
            rewriter.note(f"{len(fused) + len(single)} gates are computed through tanh")
        return bool(fused or single)


def _is_gate(rewriter: Rewriter, layer: IActivationLayer) -> bool:
    """Whether a layer in a loop is tanh, or a sigmoid whose result is only multiplied."""
    (output,) = layer.outputs
    # an output of the network keeps the exact form
    in_loop = rewriter.scopes.depth(output) > 0 and rewriter.may_replace(output) and output.type.dtype == np.float32
    return in_loop and (layer.type is TANH or (layer.type is SIGMOID and _is_only_multiplied(rewriter, output)))


def _is_only_multiplied(rewriter: Rewriter, tensor: ITensor) -> bool:
    readers = [reader for reader, _ in tensor.uses]
    return bool(readers) and all(_is_product(reader) or _is_multiplied_slice(rewriter, reader) for reader in readers)


def _is_product(layer: ILayer) -> bool:
    return isinstance(layer, IElementWiseLayer) and layer.op is ElementWiseOperation.PROD


def _is_multiplied_slice(rewriter: Rewriter, layer: ILayer) -> bool:
    if not isinstance(layer, ISliceLayer) or not rewriter.may_replace(layer.outputs[0]):
        return False
    return all(_is_product(reader) for reader, _ in layer.outputs[0].uses)


class _Section(NamedTuple):
    """A gate of a section of an axis, which is counted from the end."""

    gate: IActivationLayer
    source: ITensor
    axis: int
    begin: int
    end: int


def _section_of(gate: IActivationLayer) -> _Section | None:
    """Return the section that a gate reads; None if it does not read a slice of one axis."""
    slice = operand(gate, 0).producer
    # start, size and stride must be known, so no tensor may give them
    if not isinstance(slice, ISliceLayer) or any(slice.inputs[1:]) or slice.mode is not SampleMode.STRICT_BOUNDS:
        return None
    source = operand(slice, 0)
    rank, shape = source.type.rank, slice.outputs[0].type.shape
    cut = [axis for axis in range(rank) if shape[axis] != source.type.shape[axis]]
    # one layer computes sections of one axis that are next to each other
    if len(cut) != 1 or any(number != 1 for number in slice.stride):
        return None
    axes = range(rank) if slice.axes is None else [axis % rank for axis in slice.axes]
    begin = dict(zip(axes, slice.start, strict=True))[cut[0]]
    return _Section(gate, source, cut[0] - rank, begin, begin + shape[cut[0]])


def _adjacent(sections: list[_Section]) -> Iterator[list[_Section]]:
    """Runs of two or more sections of which each begins where the one before ends."""
    runs: list[list[_Section]] = []
    for section in sorted(sections, key=lambda section: section.begin):
        if not runs or section.begin != runs[-1][-1].end:
            runs.append([])
        runs[-1].append(section)
    return (run for run in runs if len(run) > 1)


def _fuse(rewriter: Rewriter, run: list[_Section]) -> None:
    _, source, axis, begin, _ = run[0]
    length, sizes = run[-1].end - begin, [section.end - section.begin for section in run]
    if length < source.type.shape[axis]:
        source = rewriter.make.slice(source, [begin], [length], axes=[source.type.rank + axis])
    logistic = [int(section.gate.type is SIGMOID) for section in run]
    tensor = rewriter.network.add(FusedGatesLayer(axis=axis, sizes=sizes, logistic=logistic), [source]).outputs[0]
    for section, size in zip(run, sizes, strict=True):
        is_all = size == length
        part = (
            tensor
            if is_all
            else rewriter.make.slice(tensor, [section.begin - begin], [size], axes=[tensor.type.rank + axis])
        )
        rewriter.replace(section.gate.outputs[0], part)
