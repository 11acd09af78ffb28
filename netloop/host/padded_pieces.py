"""Pieces that are compiled once for all lengths of an axis up to a bound; see ``padding.py``."""

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import jax.numpy as jnp
import numpy as np

from netloop.device_errors import completed
from netloop.graph.infer import TypeTable
from netloop.graph.layer import ILayer
from netloop.graph.tensor import ITensor
from netloop.host.compiled_pieces import Pieces
from netloop.host.frame import HostFrame
from netloop.host.padding import PRODUCTS, SHORTEST, Axes, Padding, bucket, is_known
from netloop.host.routes import Run, reads_of
from netloop.lower.frame import Frame
from netloop.lower.program import Program
from netloop.nest import Scopes, Step, layers_of
from netloop.types import UNKNOWN, Array, Shape, TensorType
from netloop.xla_compilation import InterruptibleJit

MOST_COMPILED = 64
"""The number of padded pieces that are kept."""


class PaddedPieces:
    """The padded pieces of a network.

    Args:
        pieces: the pieces that are not padded.
        before: the types of all tensors as far as they are known before the network runs.
    """

    def __init__(self, pieces: Pieces, scopes: Scopes, before: TypeTable) -> None:
        self._pieces = pieces
        self._scopes = scopes
        self._before = before
        self._compiled: dict[Hashable, PaddedProgram] = {}

    def find(self, steps: Sequence[Step], frame: HostFrame, types: TypeTable) -> Run | None:
        """Some first steps as a padded piece; None if none of them is a product that is padded."""
        if frame.trips:
            return None
        open_reads = (each for each in reads_of(steps) if each in frame.values)
        shapes = {each: shape for each in open_reads if (shape := self._padded(each, types)) is not None}
        padding = Padding(shapes, types, self._before) if shapes else None
        here = list(takewhile(padding.takes, steps)) if padding is not None else []
        if padding is None or not any(isinstance(each, PRODUCTS) for each in padding.masks):
            return None
        return Run(len(here), _Call(self._program(here, frame, types, padding), frame, types))

    def _padded(self, tensor: ITensor, types: TypeTable) -> Shape | None:
        """The padded shape of a tensor; None if it is not padded."""
        before, exact = self._before.of(tensor), types[tensor].shape
        if not isinstance(before, TensorType) or before.rank != len(exact):
            return None
        is_open = [known == UNKNOWN and length >= SHORTEST for known, length in zip(before.shape, exact, strict=True)]
        made = tuple(bucket(n) if pads else n for n, pads in zip(exact, is_open, strict=True))
        return made if made != exact else None

    def _program(self, steps: Sequence[Step], frame: HostFrame, types: TypeTable, padding: Padding) -> "PaddedProgram":
        given = {each: self._type(each, types, padding) for each in reads_of(steps) if each in frame.values}
        values = tuple(None if each.value is None else each.value.tobytes() for each in given.values())
        key = tuple(steps), tuple(given.values()), values
        if key not in self._compiled:
            if len(self._compiled) >= MOST_COMPILED:
                self._compiled.clear()
            outputs = self._pieces.needed_later(steps)
            self._compiled[key] = PaddedProgram(steps, outputs, given, self._scopes, padding.masks)
        return self._compiled[key]

    def _type(self, tensor: ITensor, types: TypeTable, padding: Padding) -> TensorType:
        found = types[tensor].with_shape(padding.shapes.get(tensor, types[tensor].shape))
        return TensorType(found.dtype, found.shape, types[tensor].value if is_known(self._before, tensor) else None)


class PaddedProgram(Program):
    """Steps lowered for padded tensors.

    Args:
        given: the types of what the steps read, with padding.
        masks: the axes of the first operand of each layer along which garbage has to be zero.

    Attributes:
        reads: what the steps read.
        lengths: the tensors and axes whose lengths without padding are arguments.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        outputs: Sequence[ITensor],
        given: Mapping[ITensor, TensorType],
        scopes: Scopes,
        masks: Mapping[ILayer, Axes],
    ) -> None:
        super().__init__(steps, outputs, TypeTable(given), scopes)
        self.reads = given
        self._masks = masks
        layers = [layer for step in steps for layer in layers_of(step)]
        masked = ((layer.inputs[0], axis) for layer in layers for axis in sorted(masks.get(layer, ())))
        self.lengths = list(dict.fromkeys((tensor, axis) for tensor, axis in masked if tensor is not None))
        self._given_lengths: Any = None
        self.compiled = InterruptibleJit(self._trace)

    def _trace(self, arrays: Sequence[Any], lengths: Any) -> list[Any]:
        self._given_lengths = lengths
        return self.run_in(Frame(dict(zip(self.reads, arrays, strict=True)))).values

    def _operand(self, layer: ILayer, position: int, frame: Frame) -> Any:
        found, tensor = super()._operand(layer, position, frame), layer.inputs[position]
        for axis in sorted(self._masks.get(layer, ())) if position == 0 and tensor is not None else ():
            length = self._given_lengths[self.lengths.index((tensor, axis))]
            within = jnp.arange(found.shape[axis]) < length
            found = jnp.where(within.reshape([-1 if each == axis else 1 for each in range(found.ndim)]), found, 0)
        return found


class _Call:
    """The call of a padded program for the types of a frame."""

    def __init__(self, program: PaddedProgram, frame: HostFrame, types: TypeTable) -> None:
        self._program = program
        self._shapes = [types[each].shape for each in program.outputs]
        self._lengths = np.array([types[tensor].shape[axis] for tensor, axis in program.lengths], np.int32)

    def __call__(self, frame: HostFrame) -> None:
        program = self._program
        arrays = [_longer(frame.values[each], of.shape) for each, of in program.reads.items()]
        made = completed(program.compiled(arrays, self._lengths))
        for tensor, value, shape in zip(program.outputs, made, self._shapes, strict=True):
            frame.values[tensor] = value if value.shape == shape else np.asarray(value)[tuple(map(slice, shape))]


def _longer(value: Any, shape: Shape) -> Any:
    """An array with zeros up to a shape."""
    if value.shape == shape or not math.prod(shape):
        return value
    made: Array = np.zeros(shape, value.dtype)
    made[tuple(map(slice, value.shape))] = value
    return made
