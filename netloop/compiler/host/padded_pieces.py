"""Pieces that are compiled once for all lengths up to a bound; see ``padding.py``."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import jax
import numpy as np

from netloop.compiler.host.compiled_pieces import Pieces
from netloop.compiler.host.frame import HostFrame
from netloop.compiler.host.padding import PaddedFacts, Padding
from netloop.compiler.host.routes import Run, reads_of
from netloop.compiler.lower.frame import Frame
from netloop.compiler.lower.lowering import LoweringOptions
from netloop.compiler.lower.program import Program
from netloop.compiler.lru_cache import LruCache
from netloop.compiler.phases import Phase
from netloop.compiler.xla_compilation import XlaFunction
from netloop.model.graph import NO_AXES, ILayer, ITensor, Operation, TypeTable
from netloop.model.graph.padded_axes import filled
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
        self._calls, self._compiled = (
            LruCache[Hashable, PaddedCall](MOST_PADDED),
            LruCache[Hashable, PaddedProgram](MOST_PADDED),
        )

    @property
    def scratch_size(self) -> int:
        """The memory in bytes that the largest of those that are kept needs besides inputs and outputs."""
        return max((program.compiled.scratch_size for program in self._compiled), default=0)

    def find(self, steps: Sequence[Step], frame: HostFrame, types: TypeTable) -> Run | None:
        """Some first steps as a padded piece; None if they are to have a piece for their exact lengths."""
        reads = frame.arguments_of(reads_of(steps))
        # a sequence has no axes
        if not all(isinstance(frame.values[tensor], jax.Array | np.ndarray | np.generic) for tensor in reads):
            return None
        padding = Padding(reads, types, self._before, frame.known, self._pieces.options.max_trips)
        here = list(takewhile(padding.takes, steps))
        if not any(padding.axes(tensor) for step in here for tensor in (*step.reads, *step.writes)):
            return None
        if self.is_first(steps, frame):
            return None
        # an iteration and what asks for a value after the last one may begin with the same steps and read the same
        key = tuple(here), *map(frame.key_of, reads)
        call = self._calls.find(key, lambda: PaddedCall(self._program(here, frame, padding), types, self._pieces))
        return Run(len(here), call, call.is_better) if call.is_better() else None

    def is_first(self, steps: Sequence[Step], frame: HostFrame) -> bool:
        """Whether some steps have met no other lengths than those of a frame, which need no padding then."""
        key = tuple(map(frame.key_of, frame.arguments_of(reads_of(steps))))
        return self._first.setdefault(steps[0], key) == key

    def _program(self, steps: Sequence[Step], frame: HostFrame, padding: Padding) -> "PaddedProgram":
        reads = frame.arguments_of(reads_of(steps))

        def make() -> PaddedProgram:
            outputs, phase = self._pieces.needed_later(steps), self._pieces.phase
            return PaddedProgram(steps, reads, outputs, padding, self._scopes, phase, self._pieces.options)

        return self._compiled.find((tuple(steps), *(_key(padding.types[tensor]) for tensor in reads)), make)


def _key(type_: TensorType) -> Hashable:
    """A key of a padded type: equal types may have other values, which decide shapes."""
    return type_.dtype, type_.shape, None if type_.value is None else type_.value.tobytes()


@dataclass
class PaddedFrame(Frame):
    """The state of tracing steps for padded tensors; ``lengths`` are those of their axes without padding."""

    lengths: Mapping[tuple[ITensor, int], Any] = field(default_factory=dict[tuple[ITensor, int], Any])


class PaddedProgram(Program):
    """Steps lowered for padded tensors.

    Args:
        padding: the padded types, and the numbers that padding has to be.
        phase: the context of each phase of its compilation.
        options: those of the lowering.

    Attributes:
        padding: the padded types, and the numbers that padding has to be.
        reads: what the steps read, with the padded shape of each.
        lengths: the tensors and axes whose lengths without padding are arguments.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        reads: Sequence[ITensor],
        outputs: Sequence[ITensor],
        padding: Padding,
        scopes: Scopes,
        phase: Phase,
        options: LoweringOptions,
    ) -> None:
        super().__init__(steps, outputs, padding.types, scopes, options)
        self.facts = PaddedFacts(padding.types, self.constants, None)
        self.reads = {tensor: padding.types[tensor].shape for tensor in reads}
        self.padding = padding
        wanted = (pair for layer in padding.neutrals for pair in self._lengths_of(layer))
        self.lengths = list(dict.fromkeys(wanted))
        self.compiled = XlaFunction(self._trace, self, phase)

    @property
    def shaped(self) -> set[ITensor]:
        """The tensors of which a call takes the shapes without padding."""
        return {*self.outputs, *(tensor for tensor, _ in self.lengths)}

    def exact_lengths(self, types: TypeTable) -> Array:
        """The numbers that a call takes for its lengths, of the exact types."""
        return np.array([types[tensor].shape[axis] for tensor, axis in self.lengths], np.int32)

    def call(self, values: Mapping[ITensor, Any], lengths: Array, shapes: Sequence[Shape]) -> list[Any]:
        """The outputs, cut to some shapes, for exact values of what the steps read."""
        # to take a cache to the host and back takes longer than to compile its padding, if the device has a memory
        stays = self.platform != "cpu"

        def resized(value: Any, shape: Shape, on_host: Callable[[Any, Shape], Any]) -> Any:
            if value.shape == shape:
                return value
            return _resized(value, shape) if stays and isinstance(value, jax.Array) else on_host(value, shape)

        arrays = [resized(values[tensor], shape, _longer) for tensor, shape in self.reads.items()]
        results = self.compiled.completed(arrays, lengths)
        return [resized(value, shape, shorter) for value, shape in zip(results, shapes, strict=True)]

    def _lengths_of(self, layer: ILayer) -> Iterator[tuple[ITensor, int]]:
        """The tensors and axes whose lengths the lowering of a layer asks for."""
        neutrals = self.padding.neutrals[layer]
        for position, tensor in enumerate(layer.inputs):
            if tensor is not None:
                axes = neutrals[position].axes if position in neutrals else NO_AXES
                is_asked = isinstance(layer, Operation) and layer.TAKES_LENGTHS
                yield from ((tensor, axis) for axis in sorted(self.padding.axes(tensor) if is_asked else axes))
        if isinstance(layer, Operation) and layer.TAKES_LENGTHS:
            yield from ((tensor, axis) for tensor in layer.outputs for axis in sorted(self.padding.axes(tensor)))

    def _trace(self, arrays: Sequence[Any], lengths: Any) -> list[Any]:
        values = dict(zip(self.reads, arrays, strict=True))
        numbers = {pair: lengths[index] for index, pair in enumerate(self.lengths)}
        return self.run_in(PaddedFrame(values, lengths=numbers)).values

    def _operand(self, layer: ILayer, position: int, frame: Frame) -> Any:
        if (layer, position) in self.padding.sizes:
            return self.padding.sizes[layer, position]
        result, neutral = super()._operand(layer, position, frame), self.padding.neutrals.get(layer, {}).get(position)
        return result if neutral is None else filled(result, neutral, self._lengths(layer.inputs[position], frame))

    def _named(self, layer: Operation, frame: Frame) -> dict[str, Any]:
        named = super()._named(layer, frame)
        if layer.TAKES_LENGTHS and layer in self.padding.neutrals:
            named["lengths"] = [self._lengths(tensor, frame) for tensor in (*layer.inputs, *layer.outputs)]
        return named

    def _lengths(self, tensor: ITensor | None, frame: Frame) -> dict[int, Any]:
        """The lengths without padding of the axes of a tensor, as far as they are arguments."""
        assert isinstance(frame, PaddedFrame)
        return {axis: length for (other, axis), length in frame.lengths.items() if other is tensor}


class PaddedCall:
    """The calls of a padded program for exact lengths, which are those of ``types``."""

    def __init__(self, program: PaddedProgram, types: TypeTable, pieces: Pieces) -> None:
        self._program = program
        self._pieces = pieces
        self._shapes = [types[tensor].shape for tensor in program.outputs]
        self._lengths = program.exact_lengths(types)
        self._calls = 0

    def is_better(self) -> bool:
        """Whether the lengths are still too rare for a piece of their own."""
        return self._calls < FEW

    def __call__(self, frame: HostFrame) -> None:
        self._calls += 1
        program = self._program
        results = program.call(frame.values, self._lengths, self._shapes)
        # the first call has traced the program, which knows them since
        self._pieces.loop_strategies.update(program.loop_strategies)
        frame.values.update(zip(program.outputs, results, strict=True))


def _longer(value: Any, shape: Shape) -> Array:
    """An array with zeros up to a shape."""
    # in numpy, as JAX would compile a padding for each length
    result: Array = np.zeros(shape, value.dtype)
    result[tuple(map(slice, value.shape))] = value
    return result


def shorter(value: Any, shape: Shape) -> Any:
    """An array that is cut to a shape."""
    # numpy cuts by a view; JAX would compile a slice for each length
    return value if value.shape == shape else np.asarray(value)[tuple(map(slice, shape))]


def _resized(value: jax.Array, shape: Shape) -> jax.Array:
    """An array with zeros up to a shape, or cut to it, on its device."""
    widths = [(0, more - length, 0) for length, more in zip(value.shape, shape, strict=True)]
    return jax.lax.pad(value, np.zeros((), value.dtype), widths)
