"""Bucketing of inputs: calls whose inputs differ in lengths share programs.

The cache of a text that is generated step by step has another length in every step, and XLA compiles a program for
fixed shapes in seconds. So only the first two sets of shapes that differ along some axes get programs of their own.
Later ones are padded along these axes to the next power of 2, and the lengths are numbers of the program; see
``netloop/compiler/host/padding.py``. A set of shapes gets a program of its own as soon as its padded calls have lost
about as much time as it takes to compile one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import jax

from netloop.compiler.execution.compiled_program import CompiledProgram, ProgramSource
from netloop.compiler.execution.program_cache import Given
from netloop.compiler.execution.ready_call import BoundCall
from netloop.compiler.execution.weight_loading import HostWeights
from netloop.compiler.host.compiled_pieces import fits
from netloop.compiler.host.padded_pieces import PaddedProgram
from netloop.compiler.host.padding import Padding, bucket
from netloop.compiler.host.routes import reads_of
from netloop.compiler.passes import Improved, LoweringForm, Note
from netloop.compiler.phases import PhaseTimer
from netloop.model.check import require_valid
from netloop.model.graph import Axes, ITensor, TypeTable
from netloop.model.nest import layers_of
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import NetworkError
from netloop.values.types import UNKNOWN, Shape, TensorType

FEWEST = 2
"""The number of sets of shapes with programs of their own that differ along the same axes before others are padded."""

MOST_SETS = 64
"""The number of sets of shapes, and of families of them, that are remembered."""

LARGEST_GROWTH = 2.0
"""The size of padded inputs, relative to exact ones, up to which lengths are rounded up to powers of 2."""

LOSS = 0.25
"""The part of the time of a padded call that a program of its own is expected to save."""

Shapes = tuple[Shape, ...]
"""The shapes of the inputs of a call, in order."""

OnHost = Callable[[Improved, TypeTable], CompiledProgram]
"""Makes the program of a network that runs on the host for types of any lengths, given those of a call."""

InputAxis = tuple[int, int]
"""An axis of an input: the positions of both."""


class ShapeFamily(NamedTuple):
    """Sets of input shapes that differ along some axes only.

    Attributes:
        shapes: the shapes, with -1 for each length that differs.
        groups: the axes whose lengths differ, grouped by those that grow together, such as that of a cache and of its
            mask; each with its distance from the shortest one.
    """

    shapes: Shapes
    groups: tuple[tuple[tuple[InputAxis, int], ...], ...]

    @staticmethod
    def of(sets: Sequence[Shapes]) -> ShapeFamily:
        """The family of some sets of shapes of equal ranks."""
        first = sets[0]
        axes = [(at, axis) for at, shape in enumerate(first) for axis in range(len(shape))]
        lengths = {(at, axis): [shapes[at][axis] for shapes in sets] for at, axis in axes}
        differ = [key for key, own in lengths.items() if len({*own}) > 1]

        def growth(key: InputAxis) -> list[int]:
            return [length - lengths[key][0] for length in lengths[key]]

        grouped = [[*own] for _, own in groupby(sorted(differ, key=growth), key=growth)]
        groups = (
            tuple((key, lengths[key][0] - min(lengths[other][0] for other in own)) for key in own) for own in grouped
        )
        shapes = (
            tuple(UNKNOWN if (at, axis) in differ else length for axis, length in enumerate(shape))
            for at, shape in enumerate(first)
        )
        return ShapeFamily(tuple(shapes), tuple(groups))

    def has(self, shapes: Shapes) -> bool:
        """Whether a set of shapes belongs to the family."""
        return _agree(self.shapes, shapes) and all(
            len({shapes[at][axis] - distance for (at, axis), distance in group}) == 1 for group in self.groups
        )

    @property
    def open_count(self) -> int:
        """The number of axes along which its sets differ."""
        return sum(map(len, self.groups))

    def is_shared(self, shapes: Shapes) -> bool:
        """Whether other sets have the padded shapes of one of its sets: a length of 0 or 1 has no padding."""
        return any(shapes[at][axis] - distance > 1 for ((at, axis), distance), *_ in self.groups)

    def padded(self, shapes: Shapes) -> Shapes:
        """The padded shapes of one of its sets: lengths that grow together keep their distances."""
        powers = self._rounded(shapes, _power)
        return powers if self._size(powers) <= LARGEST_GROWTH * self._size(shapes) else self._rounded(shapes, bucket)

    def _rounded(self, shapes: Shapes, rounding: Callable[[int], int]) -> Shapes:
        result = [[*shape] for shape in shapes]
        for group in self.groups:
            (at, axis), distance = group[0]
            shortest = shapes[at][axis] - distance
            for (at, axis), _ in group:
                result[at][axis] += rounding(shortest) - shortest
        return tuple(map(tuple, result))

    def _size(self, shapes: Shapes) -> int:
        """The number of elements of the inputs whose lengths differ."""
        return sum(math.prod(shape) for own, shape in zip(self.shapes, shapes, strict=True) if UNKNOWN in own)


def _agree(open_shapes: Shapes, shapes: Shapes) -> bool:
    """Whether some shapes have the known lengths of others."""
    pairs = zip(open_shapes, shapes, strict=True)
    return all(a in (UNKNOWN, b) for own, shape in pairs for a, b in zip(own, shape, strict=True))


def _power(length: int) -> int:
    """A length rounded up to a power of 2, from 8 on; lengths of 0 and 1 stay as they are."""
    return length if length < 2 else max(8, 1 << (length - 1).bit_length())


class SharedPrograms:
    """The programs for a family of input shapes.

    Args:
        family: the family.
        origin: what they are made from.
        on_host: makes the program of a network that runs on the host.
    """

    def __init__(self, family: ShapeFamily, origin: ProgramSource, on_host: OnHost) -> None:
        self.family = family
        self._origin, self._on_host = origin, on_host
        self._host: CompiledProgram | None = None
        recipe, network = origin.recipe, origin.network
        types = _table(network, family.shapes)
        source = Improved(network, types, require_valid(network, types), [])
        self._source = recipe.improved(source, on_host=True)
        self._load = HostWeights(self._source, origin.constants)
        self._steps = [step for step in self._source.validated.block.steps if step not in self._load.steps]
        # other constants are small, and part of the program
        given = {*self._source.network.inputs, *self._load(origin.weights)}
        self._reads = [tensor for tensor in reads_of(self._steps) if tensor in given]
        self._programs: dict[Shapes, PaddedProgram] = {}
        valued = self._source.network.shape_tensors(lambda tensor: True)
        outputs = (tensor for layer in self._source.network.layers for tensor in layer.outputs)
        self._settled = [(tensor, tensor) for tensor in outputs if tensor not in valued and self._is_fixed(tensor)]

    def _is_fixed(self, tensor: ITensor) -> bool:
        type_ = self._source.types.of(tensor)
        return isinstance(type_, TensorType) and type_.is_fixed

    def _learn(self, types: TypeTable) -> TypeTable:
        """Types of a call, with those that are equal in all calls: of most tensors, which need no inference then."""
        types.learn(self._source.types, self._settled, with_values=False)
        return types

    def program(self, shapes: Shapes) -> CompiledProgram | None:
        """The call of a program for a set of shapes; None if its steps cannot run with padding.

        Where no program holds the network, which runs on the host, all sets share the host's pieces.
        """
        timer, network, padded = PhaseTimer(), self._source.network, self.family.padded(shapes)
        if not self.family.is_shared(shapes):
            return None
        with timer.phase("passes"):
            types = self._learn(_table(network, shapes))
            padding = self._padding(types, dict(zip(network.inputs, padded, strict=True)), shapes)
            if any(types.finding(layer) for step in self._steps for layer in layers_of(step)):
                return None
            if not all(fits(step, types) for step in self._steps):
                self._host = self._host or self._on_host(self._source, types)
                return self._host
            if not all(map(padding.takes, self._steps)):
                return None
            if padded not in self._programs:
                self._programs[padded] = self._lowered(padding, timer)
        return self._call(self._programs[padded], types, padded, timer)

    def _padding(self, types: TypeTable, padded: Mapping[ITensor, Shape], shapes: Shapes) -> Padding:
        pairs = zip(shapes, padded.values(), strict=True)
        longer = {a: b for exact, long in pairs for a, b in zip(exact, long, strict=True) if a != b}

        def rounding(tensor: ITensor, shape: Shape, axes: Axes) -> Shape:
            rounded = (longer.get(length) or bucket(length) for length in shape)
            return padded.get(tensor) or tuple(
                more if axis in axes else length for axis, (length, more) in enumerate(zip(shape, rounded, strict=True))
            )

        padding = Padding(self._reads, types, self._source.types, self._origin.recipe.max_trips, rounding)
        self._learn(padding.types)
        return padding

    def _lowered(self, padding: Padding, timer: PhaseTimer) -> PaddedProgram:
        written = {tensor for step in self._steps for tensor in step.writes}
        outputs = [tensor for tensor in dict.fromkeys(self._source.network.outputs) if tensor in written]
        program = PaddedProgram(self._steps, self._reads, outputs, padding, self._source.validated.scopes, timer.phase)
        program.precision, program.platform = self._origin.recipe.precision, self._origin.recipe.target
        return program

    def _call(self, program: PaddedProgram, types: TypeTable, padded: Shapes, timer: PhaseTimer) -> CompiledProgram:
        network, place, load = self._source.network, self._origin.recipe.placement, self._load
        lengths, outputs = program.exact_lengths(types), [types[tensor].shape for tensor in program.outputs]

        def bind(weights: list[Any]) -> BoundCall:
            loaded = load(weights)

            def call(arrays: Sequence[Any]) -> list[Any]:
                values = {**loaded, **dict(zip(network.inputs, arrays, strict=True))}
                values.update(zip(program.outputs, program.call(values, lengths, outputs), strict=True))
                return place.committed([jax.device_put(values[tensor]) for tensor in network.outputs])

            return call

        shown = ", ".join(
            f"{tensor.name} {list(shape)}"
            for tensor, shape, own in zip(network.inputs, padded, self.family.shapes, strict=True)
            if UNKNOWN in own
        )
        note = Note(LoweringForm.BUCKETING.value, f"the program is for inputs up to {shown}")
        notes = [*self._source.notes, note]
        return CompiledProgram(bind, program, network.loops, None, notes, timer.seconds, network, program.compiled)


def _table(network: INetworkDefinition, shapes: Shapes) -> TypeTable:
    """The types of a network for some shapes of its inputs."""
    types: dict[ITensor, TensorType] = {}
    for tensor, shape in zip(network.inputs, shapes, strict=True):
        assert tensor.declared is not None
        types[tensor] = TensorType(tensor.declared.dtype, shape)
    return TypeTable(types)


class InputBucketing:
    """The choice between programs of their own and shared ones, for the sets of input shapes of an engine.

    Args:
        origin: what its programs are made from.
        on_host: makes the program of a network that runs on the host.
    """

    def __init__(self, origin: ProgramSource, on_host: OnHost) -> None:
        self._origin, self._on_host = origin, on_host
        self._seen: dict[Shapes, None] = {}
        self._cost = 0.0
        self._wanted: set[Shapes] = set()
        self._families: dict[ShapeFamily, SharedPrograms | None] = {}
        self._seconds: dict[Shapes, float] = {}

    def want(self, given: Given) -> None:
        """Have some inputs get a program of their own."""
        self._wanted.add(_shapes(given))

    def find(self, given: Given) -> CompiledProgram | None:
        """A shared program for some inputs; None if they are to have their own, or are invalid."""
        shapes = _shapes(given)
        shared = self._shared(shapes) if self._is_rare(shapes) else None
        program = None if shared is None else shared.program(shapes)
        return self._timed(program, shapes) if program and program.function else program

    def learn(self, given: Given, program: CompiledProgram) -> None:
        """Take note of a program that is for the shapes of some inputs only."""
        _make_room(self._seen)
        self._seen[_shapes(given)] = None
        self._cost = max(self._cost, sum(program.seconds.values()))

    def lasts(self, program: CompiledProgram) -> bool:
        """Whether the inputs of a program are still to have it."""
        return program.lasts()

    def _is_rare(self, shapes: Shapes) -> bool:
        """Whether calls with these shapes have lost less time by padding than a program of their own would take."""
        lost = LOSS * self._seconds.get(shapes, 0.0)
        return shapes not in self._wanted and (not lost or lost < self._cost)

    def _shared(self, shapes: Shapes) -> SharedPrograms | None:
        """The programs of the family of some shapes; None if it has none, or too few sets."""
        family = self._family(shapes)
        if family is None:
            return None
        if family not in self._families:
            _make_room(self._families)
            try:
                self._families[family] = SharedPrograms(family, self._origin, self._on_host)
            except NetworkError:  # it is valid for known lengths only
                self._families[family] = None
        return self._families[family]

    def _family(self, shapes: Shapes) -> ShapeFamily | None:
        """The family of some shapes in which the fewest lengths differ; a new one if it is in none."""
        families = [family for family in self._families if family.has(shapes)] or [*self._new_families(shapes)]
        return min(families, key=lambda family: family.open_count, default=None)

    def _new_families(self, shapes: Shapes) -> Iterator[ShapeFamily]:
        """The families that some shapes form with the sets most like them, where these are enough."""
        pairs = [ShapeFamily.of([other, shapes]) for other in self._seen]
        fewest = min((pair.open_count for pair in pairs), default=0)
        for pair in pairs:
            members = [other for other in self._seen if _agree(pair.shapes, other)]
            if pair.open_count == fewest and len(members) >= FEWEST:
                yield ShapeFamily.of([*members, shapes])

    def _timed(self, program: CompiledProgram, shapes: Shapes) -> CompiledProgram:
        """A program that adds up the time of its calls, but the first one, which may compile it."""
        _make_room(self._seconds)
        is_first = True

        def bind(weights: list[Any]) -> BoundCall:
            bound = program.bind(weights)

            def call(arrays: Sequence[Any]) -> list[Any]:
                nonlocal is_first
                began = time.perf_counter()
                result = bound(arrays)
                if not is_first:
                    self._seconds[shapes] = self._seconds.get(shapes, 0.0) + time.perf_counter() - began
                is_first = False
                return result

            return call

        return replace(program, bind=bind, lasts=lambda: self._is_rare(shapes))


def _shapes(given: Given) -> Shapes:
    return tuple(tuple(value.shape) for value in given.values())


def _make_room(kept: dict[Any, Any]) -> None:
    """Forget everything that is kept if there is too much of it."""
    if len(kept) >= MOST_SETS:
        kept.clear()
