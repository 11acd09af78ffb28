"""Bucketing of inputs: calls whose inputs differ in lengths share programs.

The cache of a text that is generated step by step has another length in every step, and XLA compiles a program for
fixed shapes in seconds. So only the first two sets of shapes that differ along some axes get programs of their own.
Later ones are padded along these axes to the next power of 2, and the lengths are numbers of the program; see
``netloop/compiler/host/padding.py``. A set of shapes gets a program of its own as soon as its padded calls have lost
about as much time as it takes to compile one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal

import jax
import numpy as np

from netloop.compiler.execution.bucket_types import BucketTypes
from netloop.compiler.execution.compiled_program import CompiledProgram, ProgramSource
from netloop.compiler.execution.program_cache import MOST_SHARED, Given
from netloop.compiler.execution.ready_call import BoundCall
from netloop.compiler.execution.shape_families import ShapeFamily, Shapes, agree
from netloop.compiler.execution.weight_loading import HostWeights, own_copy
from netloop.compiler.host.compiled_pieces import fits
from netloop.compiler.host.frame import bucket
from netloop.compiler.host.padded_pieces import PaddedProgram
from netloop.compiler.host.padding import Padding
from netloop.compiler.host.routes import reads_of
from netloop.compiler.lru_cache import LruCache
from netloop.compiler.passes import Improved, LoweringForm, Note
from netloop.compiler.passes.growth import Unbuffered
from netloop.compiler.phases import PhaseTimer
from netloop.model.check import require_valid
from netloop.model.graph import Axes, ITensor, TypeTable
from netloop.model.graph.infer import Known
from netloop.model.nest import Block, walk
from netloop.model.network import INetworkDefinition
from netloop.values.diagnostics import NetworkError
from netloop.values.types import UNKNOWN, Shape, TensorType, join

FEWEST = 2
"""The number of sets of shapes with programs of their own that differ along the same axes before others are padded."""

FEWEST_NUMBERS = 3
"""The last number of the lengths of a bucket from which types are inferred for three of them instead of for each."""

MOST_SETS = 64
"""The number of sets of shapes, and of families of them, that are remembered."""

LOSS = 0.25
"""The part of the time of a padded call that a program of its own is expected to save."""

OnHost = Callable[[Improved, TypeTable], CompiledProgram]
"""Makes the program of a network that runs on the host for types of any lengths, given those of a call."""


@dataclass
class _Bucket:
    """Lengths of a group that share a program, with those of the other groups.

    Attributes:
        first: the number of the shortest of its lengths so far.
        table: the types for that.
        types: those for all of its lengths; False if they are on no lines, None if nothing has asked for them.
    """

    first: int
    table: TypeTable
    types: BucketTypes | Literal[False] | None = None


class SharedPrograms:
    """The programs for a family of input shapes.

    Args:
        family: the family.
        origin: what they are made from.
        on_host: makes the program of a network that runs on the host.
    """

    def __init__(self, family: ShapeFamily, members: Sequence[Shapes], origin: ProgramSource, on_host: OnHost) -> None:
        self.family = family
        self._origin, self._on_host = origin, on_host
        self._host: CompiledProgram | None = None
        network, types = origin.network, _table(origin.network, family.shapes)
        source = Improved(network, types, require_valid(network, types), [])
        self._source = origin.recipe.improved(source, on_host=True)
        network, types = self._source.network, self._source.types
        self._load = HostWeights(self._source, origin.constants, is_padded=True)
        self._steps = [step for step in self._source.validated.block.steps if step not in self._load.steps]
        # other constants are small, and part of the program
        given = {*network.inputs, *self._load(origin.weights)}
        self._reads = [tensor for tensor in reads_of(self._steps) if tensor in given]
        self._programs = LruCache[Shapes, PaddedProgram](MOST_SETS)
        valued = network.shape_tensors()
        # what reads no open length has the same types in all calls, so that most layers need no inference; an output of
        # fixed shape does not suffice, as a layer may be invalid for some lengths that it reads
        closed = (
            layer for layer in network.layers if all(_is_fixed(types, x) for x in (*layer.inputs, *layer.outputs))
        )
        self._settled = {tensor: tensor for layer in closed for tensor in layer.outputs if tensor not in valued}
        self._before = self._types(family.shapes)
        self._assumed: dict[ITensor, TensorType] = {}
        self._give_common([self._types(shapes) for shapes in members])
        layers = (layer for step in walk(Block(self._steps)) for layer in step.layers)
        self._open = [layer for layer in layers if not self._assumed.keys().isdisjoint(layer.outputs)]
        self._buckets = LruCache[Hashable, _Bucket](MOST_SETS)

    def _give_common(self, tables: Sequence[TypeTable]) -> None:
        """Take what the types of some calls have in common for the types of all calls, as long as calls have it.

        Inference does not know it: the length of a cache with a row is 1 more than that of the cache, so that their
        difference is 1 in all calls.
        """
        for layer in self._source.network.layers:
            for tensor in layer.outputs:
                if tensor not in self._settled:
                    common = reduce(_common, (table.of(tensor) for table in tables))
                    if isinstance(common, TensorType):
                        self._before.give(tensor, common)
                        self._assumed[tensor] = common

    def _types(self, shapes: Shapes) -> TypeTable:
        """The types of a call with inputs of some shapes."""
        types = _table(self._source.network, shapes)
        types.learn(self._source.types, self._settled.items(), with_values=False)
        return types

    def program(self, shapes: Shapes) -> CompiledProgram | None:
        """The call of a program for a set of shapes; None if its steps cannot run with padding.

        Where no program holds the network, which runs on the host, all sets share the host's pieces.
        """
        if not self.family.is_shared(shapes):
            return None
        timer, padded = PhaseTimer(), self.family.padded(shapes)
        with timer.phase("passes"):
            program = self._programs.get(padded)
            types = None if program is None else self._types_in_bucket(program, shapes, padded)
            if program is not None and types is not None:
                return self._call(program, types, padded, timer)
            types = self._types(shapes)
            if not self._are_common(types):
                return None
            if program is None:
                if not all(fits(step, types) for step in self._steps):
                    self._host = self._host or self._on_host(self._source, types)
                    return self._host
                padding = self._padding(types, padded, shapes)
                if not all(map(padding.takes, self._steps)):
                    return None
                program = self._programs.put(padded, self._lowered(padding, timer))
            elif not program.padding.holds(types, self._steps):
                return None
            self._begin_buckets(shapes, padded, types)
        return self._call(program, types, padded, timer)

    def _are_common(self, types: TypeTable) -> bool:
        """Whether the types of a call have what is common to all calls."""
        return all(_is_common(types.of(tensor), common) for tensor, common in self._assumed.items())

    def _types_in_bucket(self, program: PaddedProgram, shapes: Shapes, padded: Shapes) -> TypeTable | None:
        """The types of what a call of a program reads and writes, if they follow from those for other lengths."""
        for group, (key, number) in enumerate(self._bucket_keys(shapes, padded)):
            bucket = self._buckets.get(key)
            if bucket is not None and number > bucket.first:
                if bucket.types is None:
                    bucket.types = self._bucket_types(program, shapes, padded, group, bucket)
                if bucket.types and bucket.types.has(number - bucket.first):
                    return bucket.types.at(number - bucket.first, program.shaped)
        return None

    def _begin_buckets(self, shapes: Shapes, padded: Shapes, types: TypeTable) -> None:
        """Have the types of a call be the first ones of its buckets, if its lengths are shorter than those so far."""
        for key, number in self._bucket_keys(shapes, padded):
            bucket = self._buckets.get(key)
            if bucket is None or number < bucket.first:
                self._buckets.put(key, _Bucket(number, types))

    def _bucket_keys(self, shapes: Shapes, padded: Shapes) -> Iterator[tuple[Hashable, int]]:
        """The bucket in which the lengths of each group are, for those of the other groups, and their number."""
        numbers = self.family.numbers(shapes)
        for group, number in enumerate(numbers):
            yield (padded, group, *numbers[:group], *numbers[group + 1 :]), number

    def _bucket_types(
        self, program: PaddedProgram, shapes: Shapes, padded: Shapes, group: int, bucket: _Bucket
    ) -> BucketTypes | Literal[False]:
        """The types for all lengths of a bucket; False if one cannot have the program, or they are on no line."""
        number, last = self.family.numbers(shapes)[group], self.family.numbers(padded)[group] - bucket.first
        # the types of three lengths are inferred
        if last < FEWEST_NUMBERS:
            return False

        def table(by: int) -> TypeTable:
            return self._types(self.family.longer(shapes, group, bucket.first + by - number)) if by else bucket.table

        values = [
            tensor for tensor, kind in self._assumed.items() if kind.value is not None or kind.partial is not None
        ]
        try:
            types = BucketTypes(self._open, values, table, last)
        except Unbuffered:
            return False
        tables = types.tables.values()
        is_one = all(self._are_common(table) and program.padding.holds(table, self._steps) for table in tables)
        return types if is_one else False

    def _padding(self, types: TypeTable, padded: Shapes, shapes: Shapes) -> Padding:
        of_inputs = dict(zip(self._source.network.inputs, padded, strict=True))
        pairs = zip(shapes, padded, strict=True)
        longer = {a: b for exact, long in pairs for a, b in zip(exact, long, strict=True) if a != b}

        def rounding(tensor: ITensor, shape: Shape, axes: Axes) -> Shape:
            rounded = (longer.get(length) or bucket(length) for length in shape)
            return of_inputs.get(tensor) or tuple(
                more if axis in axes else length for axis, (length, more) in enumerate(zip(shape, rounded, strict=True))
            )

        padding = Padding(self._reads, types, self._before, {}, self._origin.recipe.max_trips, rounding)
        padding.learn(self._source.types, self._settled)
        return padding

    def _lowered(self, padding: Padding, timer: PhaseTimer) -> PaddedProgram:
        written = {tensor for step in self._steps for tensor in step.writes}
        outputs = [tensor for tensor in dict.fromkeys(self._source.network.outputs) if tensor in written]
        scopes, options = self._source.validated.scopes, self._origin.recipe.host_options
        return PaddedProgram(self._steps, self._reads, outputs, padding, scopes, timer.phase, options)

    def _call(self, program: PaddedProgram, types: TypeTable, padded: Shapes, timer: PhaseTimer) -> CompiledProgram:
        network, place, load = self._source.network, self._origin.recipe.placement, self._load
        lengths, outputs = program.exact_lengths(types), [types[tensor].shape for tensor in program.outputs]
        kept = set(network.inputs).intersection(network.outputs)

        def bind(weights: list[Any]) -> BoundCall:
            loaded = load(weights)

            def call(arrays: Sequence[Any]) -> list[Any]:
                values = {**loaded, **dict(zip(network.inputs, arrays, strict=True))}
                values.update(zip(program.outputs, program.call(values, lengths, outputs), strict=True))
                # an input that is an output too may be an array of the caller's, to which it may write
                copies = {tensor: own_copy(values[tensor]) for tensor in kept if isinstance(values[tensor], np.ndarray)}
                values.update(copies)
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


def _is_fixed(types: TypeTable, tensor: ITensor | None) -> bool:
    type_ = None if tensor is None else types.of(tensor)
    return type_ is None or (isinstance(type_, TensorType) and type_.is_fixed)


def _common(a: Known, b: Known) -> Known:
    """A type with what two types have in common; where a call is invalid, the type of the other one."""
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return a if isinstance(a, TensorType) else b
    result = join(a, b)
    values = a.elements(), b.elements()
    if result is None or a.shape != b.shape or values[0] is None or values[1] is None:
        return result or a
    differ = np.ma.getmaskarray(values[0]) | np.ma.getmaskarray(values[1]) | (values[0].data != values[1].data)
    if not differ.any():
        return replace(result, value=values[0].data)
    return result if differ.all() else replace(result, partial=np.ma.MaskedArray(values[0].data, differ))


def _is_common(exact: Known, common: TensorType) -> bool:
    """Whether a type, and its value, have what is common to those of other calls."""
    if not isinstance(exact, TensorType) or join(exact, common) != common:
        return False
    if common.value is not None:
        return exact.value is not None and np.array_equal(common.value, exact.value)
    if common.partial is None:
        return True
    known = ~np.ma.getmaskarray(common.partial)
    return exact.value is not None and np.array_equal(common.partial.data[known], exact.value[known])


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
        self._lock = threading.Lock()

    def want(self, arrays: Iterable[Any]) -> None:
        """Give some inputs a program of their own from now on, and no shared one."""
        self._wanted.add(_shapes(arrays))

    def find(self, given: Given) -> CompiledProgram | None:
        """A shared program for some inputs; None if they are to have their own, or are invalid."""
        shapes = _shapes(given.values())
        # programs are compiled without the lock, those that are shared in their first call
        with self._lock:
            shared = self._shared(shapes) if self._is_rare(shapes) else None
            program = None if shared is None else shared.program(shapes)
            if program is None:
                _make_room(self._seen)
                self._seen[shapes] = None
            return self._timed(program, shapes) if program and program.function else program

    def learn(self, given: Given, program: CompiledProgram) -> None:
        """Take note of a program that is for the shapes of some inputs only."""
        self._cost = max(self._cost, sum(program.seconds.values()))

    def lasts(self, program: CompiledProgram) -> bool:
        """Whether a program stays that of its inputs; if not, they get one of their own."""
        return program.lasts()

    def _is_rare(self, shapes: Shapes) -> bool:
        """Whether calls with these shapes have lost less time by padding than a program of their own would take."""
        lost = LOSS * self._seconds.get(shapes, 0.0)
        return shapes not in self._wanted and (not lost or lost < self._cost)

    def _shared(self, shapes: Shapes) -> SharedPrograms | None:
        """The programs of a family of some shapes; None if too few sets are like them."""
        families = [family for family in self._families if family.has(shapes)]
        if not families:
            members = self._members(shapes)
            if len(members) <= FEWEST:
                return None
            families = [ShapeFamily.of(members)]
            _make_room(self._families)
            try:
                self._families[families[0]] = SharedPrograms(families[0], members, self._origin, self._on_host)
            except NetworkError:  # it is valid for known lengths only
                self._families[families[0]] = None
        return self._families[min(families, key=lambda family: family.open_count)]

    def _members(self, shapes: Shapes) -> list[Shapes]:
        """Some shapes, after those with programs of their own that differ from them along the fewest axes."""
        pairs = [ShapeFamily.of([other, shapes]) for other in self._seen]
        fewest = min((pair.open_count for pair in pairs), default=0)
        closest = (pair.shapes for pair in pairs if pair.open_count == fewest)
        groups = ([other for other in self._seen if agree(pair, other)] for pair in closest)
        return [*max(groups, key=len, default=[]), shapes]

    def _timed(self, program: CompiledProgram, shapes: Shapes) -> CompiledProgram:
        """A program that adds up the time of its calls, but the first one, which may compile it."""
        _make_room(self._seconds, MOST_SHARED)
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


def _shapes(arrays: Iterable[Any]) -> Shapes:
    return tuple(tuple(array.shape) for array in arrays)


def _make_room(kept: dict[Any, Any], most: int = MOST_SETS) -> None:
    """Forget everything that is kept if there is too much of it."""
    if len(kept) >= most:
        kept.clear()
