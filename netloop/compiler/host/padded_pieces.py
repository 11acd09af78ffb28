"""Pieces that are compiled once for all lengths up to a bound; see ``padding.py``."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from netloop.compiler.host.compiled_pieces import Pieces
from netloop.compiler.host.frame import HostFrame
from netloop.compiler.host.padding import Padding, is_known
from netloop.compiler.host.routes import Run, reads_of
from netloop.compiler.lower.frame import Frame
from netloop.compiler.lower.program import Program
from netloop.compiler.phases import Phase
from netloop.compiler.xla_compilation import XlaFunction
from netloop.model.device_errors import completed
from netloop.model.graph import Axes, ILayer, ITensor, TypeTable
from netloop.model.nest import Scopes, Step
from netloop.values.types import Array, Shape, TensorType

MOST_PADDED = 64
"""The number of padded pieces, and of lengths whose calls are counted, that are kept."""

FEW = 100
"""The calls after which a length gets a piece of its own: its compilation takes about as long as they lose by padding.

On a small text-to-speech model a call loses 0.3 to 0.8 ms by padding, and a piece is compiled in 160 ms."""


class PaddedPieces:
    """The padded pieces of a network.

    The first length that some steps meet gets a piece of its own, so that a network that meets one length compiles one
    piece and is not padded. Other lengths share padded pieces until they have been met often.

    Args:
        pieces: the pieces that are not padded.
        before: the types of all tensors as far as they are known before the network runs.
    """

    def __init__(self, pieces: Pieces, scopes: Scopes, before: TypeTable) -> None:
        self._pieces = pieces
        self._scopes = scopes
        self._before = before
        self._first: dict[Step, Hashable] = {}
        self._calls: dict[Hashable, PaddedCall] = {}
        self._compiled: dict[Hashable, PaddedProgram] = {}

    @property
    def scratch_size(self) -> int:
        """The memory in bytes that the largest of those that are kept needs besides inputs and outputs."""
        return max((program.compiled.scratch_size for program in self._compiled.values()), default=0)

    def find(self, steps: Sequence[Step], frame: HostFrame, types: TypeTable) -> Run | None:
        """Some first steps as a padded piece; None if they are to have a piece for their exact lengths."""
        reads = [tensor for tensor in reads_of(steps) if tensor in frame.values]
        # inside of a loop the numbers of the iterations would be arguments too, and a sequence has no axes
        if frame.trips or not all(isinstance(frame.values[tensor], jax.Array | np.ndarray) for tensor in reads):
            return None
        padding = Padding(types, self._before)
        for tensor in reads:
            padding.reads(tensor)
        here = list(takewhile(padding.takes, steps))
        # other layers compile quickly, or numpy computes them (docs/decisions/0036)
        if not any(layer.HAS_PRODUCTS for layer in padding.masks):
            return None
        key = steps[0], *map(frame.key_of, reads)
        if self._first.setdefault(steps[0], key) == key:
            return None
        if key not in self._calls:
            _make_room(self._calls)
            self._calls[key] = PaddedCall(self._program(here, frame, types, padding), types)
        call = self._calls[key]
        return Run(len(here), call, call.is_better) if call.is_better() else None

    def _program(self, steps: Sequence[Step], frame: HostFrame, types: TypeTable, padding: Padding) -> "PaddedProgram":
        tensor_types = {
            tensor: self._type(tensor, types, padding) for tensor in reads_of(steps) if tensor in frame.values
        }
        # equal types may have other values, which decide shapes here
        values = tuple(
            None if tensor_type.value is None else tensor_type.value.tobytes() for tensor_type in tensor_types.values()
        )
        key = tuple(steps), tuple(tensor_types.values()), values
        if key not in self._compiled:
            _make_room(self._compiled)
            outputs, phase = self._pieces.needed_later(steps), self._pieces.phase
            program = PaddedProgram(steps, outputs, tensor_types, self._scopes, padding.masks, phase)
            program.precision, program.platform = self._pieces.precision, self._pieces.platform
            self._compiled[key] = program
        return self._compiled[key]

    def _type(self, tensor: ITensor, types: TypeTable, padding: Padding) -> TensorType:
        value = types[tensor].value if is_known(self._before, tensor) else None
        return TensorType(types[tensor].dtype, padding.shapes[tensor], value)


@dataclass
class PaddedFrame(Frame):
    """The state of tracing steps for padded tensors; ``lengths`` are those without padding."""

    lengths: Mapping[tuple[ITensor, int], Any] = field(default_factory=dict[tuple[ITensor, int], Any])


class PaddedProgram(Program):
    """Steps lowered for padded tensors.

    Args:
        types: the types of what the steps read, with padding.
        masks: the axes of the first operand of each layer along which garbage has to be zero.
        phase: the context of each phase of its compilation.

    Attributes:
        reads: what the steps read.
        lengths: the tensors and axes whose lengths without padding are arguments.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        outputs: Sequence[ITensor],
        types: Mapping[ITensor, TensorType],
        scopes: Scopes,
        masks: Mapping[ILayer, Axes],
        phase: Phase,
    ) -> None:
        super().__init__(steps, outputs, TypeTable(types), scopes)
        self.reads = types
        self._masks = masks
        masked = ((layer.inputs[0], axis) for layer, axes in masks.items() for axis in sorted(axes))
        self.lengths = list(dict.fromkeys((tensor, axis) for tensor, axis in masked if tensor is not None))
        self.compiled = XlaFunction(self._trace, self, phase)

    def _trace(self, arrays: Sequence[Any], lengths: Any) -> list[Any]:
        values = dict(zip(self.reads, arrays, strict=True))
        return self.run_in(PaddedFrame(values, lengths=dict(zip(self.lengths, lengths, strict=True)))).values

    def _operand(self, layer: ILayer, position: int, frame: Frame) -> Any:
        result, tensor = super()._operand(layer, position, frame), layer.inputs[position]
        assert isinstance(frame, PaddedFrame)
        for axis in sorted(self._masks.get(layer, ())) if position == 0 else ():
            assert tensor is not None
            # the length is an argument, so that all lengths of a bucket share the program
            within = jnp.arange(result.shape[axis]) < frame.lengths[tensor, axis]
            result = jnp.where(within.reshape([-1 if index == axis else 1 for index in range(result.ndim)]), result, 0)
        return result


class PaddedCall:
    """The calls of a padded program for exact lengths, which are those of ``types``."""

    def __init__(self, program: PaddedProgram, types: TypeTable) -> None:
        self._program = program
        self._shapes = [types[tensor].shape for tensor in program.outputs]
        self._lengths = [np.int32(types[tensor].shape[axis]) for tensor, axis in program.lengths]
        self._calls = 0

    def is_better(self) -> bool:
        """Whether the lengths are still too rare for a piece of their own."""
        return self._calls < FEW

    def __call__(self, frame: HostFrame) -> None:
        self._calls += 1
        program = self._program
        arrays = [_longer(frame.values[key], of.shape) for key, of in program.reads.items()]
        result = completed(program.compiled(arrays, self._lengths))
        for tensor, value, shape in zip(program.outputs, result, self._shapes, strict=True):
            # numpy cuts by a view; JAX would compile a slice for each length
            frame.values[tensor] = value if value.shape == shape else np.asarray(value)[tuple(map(slice, shape))]


def _longer(value: Any, shape: Shape) -> Any:
    """An array with zeros up to a shape."""
    if value.shape == shape:
        return value
    # in numpy, as JAX would compile a padding for each length
    result: Array = np.zeros(shape, value.dtype)
    result[tuple(map(slice, value.shape))] = value
    return result


def _make_room(kept: dict[Hashable, Any]) -> None:
    """Forget everything that is kept if there is too much of it."""
    if len(kept) >= MOST_PADDED:
        kept.clear()
