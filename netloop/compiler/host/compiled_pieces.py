"""Pieces: consecutive steps that are compiled as one program, and which steps these can be."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from netloop.compiler.host.frame import HostFrame, Poisoned
from netloop.compiler.host.routes import reads_of
from netloop.compiler.lower.compilability import fits_program
from netloop.compiler.lower.frame import Frame
from netloop.compiler.lower.loop.chunked_while import ChunkedWhile
from netloop.compiler.lower.loop.facts import known_count
from netloop.compiler.lower.loop.partial_while import PartialWhile
from netloop.compiler.lower.loop.state import Carry
from netloop.compiler.lower.loop.strategy import LoopStrategy
from netloop.compiler.lower.lowering import LoweringOptions
from netloop.compiler.lower.program import Outcome, Program
from netloop.compiler.phases import Phase
from netloop.compiler.xla_compilation import XlaFunction
from netloop.model.device_errors import completed
from netloop.model.graph import ILayer, ITensor, TypeTable
from netloop.model.layers.assertion import IAssertionLayer
from netloop.model.layers.loop import IIteratorLayer, ILoop, IRecurrenceLayer
from netloop.model.nest import Block, LayerStep, LoopStep, Scopes, Step, layers_of, own_reads, walk
from netloop.values.diagnostics import ExecutionError
from netloop.values.tensor_values import integer
from netloop.values.types import TensorType

MOST_TRIPS_AT_ONCE = 10_000
"""The number of iterations, multiplied with those of inner loops, that a loop may make without being interruptible."""

IN_PYTHON = IAssertionLayer, IIteratorLayer
"""Layers of a loop in Python that numpy computes faster than a call of a program: it checks, or takes a slice."""

Piece = Callable[[HostFrame], None]
"""A compiled piece: takes its inputs from a frame, and adds its results to it."""
LoopPart = Callable[[HostFrame, Carry | None, int], Carry | None]
"""A compiled part of a loop: goes on from a carry, or begins, until it has made a number of iterations; returns the
carry, or None if the loop has ended, whose outputs the frame has then."""
Around = Callable[[Sequence[Any], Sequence[Any]], Frame]
"""Makes the frame of a program from the arrays that it reads and the numbers of the present iterations around it."""


class Pieces:
    """The compiled pieces of a network: one for each run of steps and each set of types that it has met.

    In an ``interruptible`` network a long loop is compiled in chunks of iterations. ``observed`` tensors are needed
    outside of their pieces. Loops ``in_parts`` are not in pieces with other steps. ``steps`` are those that run.

    Attributes:
        loop_strategies: how each loop in a piece ran and why, so far.
        batched_layers: the layers of each such loop that run for many iterations at once, so far.
        phase: the context of each phase of a compilation.
        options: those of the lowering of each piece.
    """

    def __init__(
        self,
        scopes: Scopes,
        options: LoweringOptions,
        interruptible: bool,
        observed: frozenset[ITensor],
        phase: Phase,
        in_parts: Collection[ILoop],
        steps: Iterable[Step],
    ) -> None:
        self._in_parts = in_parts
        # passes leave layers that never run: what only these read would be a result, in memory and not fused
        self._readers = defaultdict[ITensor, set[Step]](set)
        for step in walk(Block(list(steps))):
            for tensor in own_reads(step):
                self._readers[tensor].add(step)
        self.phase, self.options = phase, options
        self.loop_strategies: dict[ILoop, LoopStrategy] = {}
        self.batched_layers: dict[ILoop, list[ILayer]] = {}
        self._scopes = scopes
        self._interruptible = interruptible
        self._observed = observed
        self._compiled: dict[Any, Piece] = {}
        self._parts: dict[Any, LoopPart] = {}
        self._functions = list[XlaFunction | ChunkedWhile | PartialWhile]()

    @property
    def scratch_size(self) -> int:
        """The memory in bytes that the largest piece needs besides inputs and outputs."""
        return max((function.scratch_size for function in self._functions), default=0)

    def length(self, steps: Sequence[Step], frame: HostFrame, types: TypeTable) -> int:
        """The number of first steps that can be one piece; 0 if the first one has to run by itself."""
        for number, step in enumerate(steps):
            if not self._fits(step, frame, types) or (self._interruptible and is_long([step], types)):
                return 1 if number == 0 and self._is_chunked(step, frame, types) else number
        return len(steps)

    def _is_chunked(self, step: Step, frame: HostFrame, types: TypeTable) -> bool:
        """Whether a step is a long loop that can be a piece of its own, in chunks of iterations."""
        # a loop with a long one in it runs in Python, so that the inner one is interruptible
        is_loop = isinstance(step, LoopStep) and self._interruptible and not is_long(step.body.steps, types)
        return is_loop and self._fits(step, frame, types)

    def _fits(self, step: Step, frame: HostFrame, types: TypeTable) -> bool:
        """Whether a step can be compiled with the values so far."""
        if frame.poisoned(step.reads) is not None or self._is_observed_inside(step):
            return False
        is_in_parts = any(isinstance(inner, LoopStep) and inner.loop in self._in_parts for inner in walk(Block([step])))
        return not is_in_parts and fits(step, types)

    def _is_observed_inside(self, step: Step) -> bool:
        """Whether a tensor is observed that a loop or conditional does not let out."""
        # a layer lets all of its outputs out
        if not self._observed or isinstance(step, LayerStep):
            return False
        tensors = (tensor for layer in layers_of(step) for tensor in layer.outputs)
        return any(tensor in self._observed and tensor not in step.writes for tensor in tensors)

    def find(self, steps: Sequence[Step], frame: HostFrame, types: TypeTable) -> Piece:
        """The piece of some steps, compiled unless it has met these types."""
        reads, key, around = self._surroundings(steps, frame)
        if key not in self._compiled:
            self._compiled[key] = self._compile(steps, reads, types, around)
        return self._compiled[key]

    def find_part(self, step: LoopStep, frame: HostFrame, types: TypeTable) -> LoopPart:
        """The piece of a part of the iterations of a loop, compiled unless it has met these types."""
        reads, key, around = self._surroundings([step], frame)
        if key not in self._parts:
            self._parts[key] = self._compile_part(step, reads, types, around)
        return self._parts[key]

    def _surroundings(self, steps: Sequence[Step], frame: HostFrame) -> tuple[list[ITensor], Any, Around]:
        """The tensors that some steps read, a key of their types, and how frames of programs are made of them."""
        reads = frame.arguments_of(reads_of(steps))
        keys = tuple(frame.key_of(tensor) for tensor in reads)
        # only an assertion or an iterator differs in an iteration that is made and one that is not
        layers = (layer for step in steps for layer in layers_of(step))
        is_iteration = frame.is_iteration or not any(isinstance(layer, IN_PYTHON) for layer in layers)
        loops = tuple(frame.trips)

        def around(arrays: Sequence[Any], trips: Sequence[Any]) -> Frame:
            values, numbers = dict(zip(reads, arrays, strict=True)), dict(zip(loops, trips, strict=True))
            # an iterator of a loop in Python checks its position in case the iteration is one past the last
            ended = set[ILoop]() if is_iteration else set(loops)
            return Frame(values, trips=numbers, ended=ended, is_iteration=is_iteration)

        return reads, (tuple(steps), keys, is_iteration), around

    def _program(self, steps: Sequence[Step], types: TypeTable) -> Program:
        return Program(steps, self.needed_later(steps), types, self._scopes, self.options)

    def _compile(self, steps: Sequence[Step], reads: Sequence[ITensor], types: TypeTable, around: Around) -> Piece:
        program = self._program(steps, types)
        call: Callable[..., Outcome]
        if self._interruptible and isinstance(steps[0], LoopStep) and is_long(steps, types):
            call = function = ChunkedWhile(program, steps[0], around, self.phase)
        else:
            function = XlaFunction(lambda *arrays: _without_zeros(program.run_in(around(*arrays))), program, self.phase)
            call = function.completed
        self._functions.append(function)

        def run(frame: HostFrame) -> None:
            self._take(program, call(*_arguments(reads, frame)), frame)

        return run

    def _compile_part(self, step: LoopStep, reads: Sequence[ITensor], types: TypeTable, around: Around) -> LoopPart:
        program = self._program([step], types)
        compiled = PartialWhile(program, step, around, self.phase)
        self._functions.append(compiled)

        def run(frame: HostFrame, carry: Carry | None, until: int) -> Carry | None:
            carry, goes_on, outcome = completed(compiled(*_arguments(reads, frame), carry, until))
            if goes_on:
                return carry
            self._take(program, outcome, frame)
            return None

        return run

    def _take(self, program: Program, outcome: Outcome, frame: HostFrame) -> None:
        """Add the outputs of a program to a frame."""
        # the first call has traced the program, which knows them since
        self.loop_strategies.update(program.loop_strategies)
        self.batched_layers.update(program.batched_layers)
        if outcome.status is not None and integer(outcome.status):
            raise ExecutionError(program.errors.finding(outcome.status))
        for tensor, value, flag in zip(program.outputs, outcome.values, outcome.error_flags, strict=True):
            is_poisoned = flag is not None and integer(flag)
            frame.values[tensor] = Poisoned(program.errors.finding(flag)) if is_poisoned else value

    def needed_later(self, steps: Sequence[Step]) -> list[ITensor]:
        """The tensors of some steps that other steps, the caller or the observer needs."""
        inside = {*walk(Block(list(steps)))}
        written = [tensor for step in steps for tensor in step.writes]
        return [
            tensor
            for tensor in written
            if tensor.is_network_output or tensor in self._observed or not self._readers[tensor] <= inside
        ]


def _arguments(reads: Sequence[ITensor], frame: HostFrame) -> tuple[list[Any], list[Any]]:
    """The values that a program reads of a frame, and the numbers of the present iterations around it."""
    # of numpy, as a compiled program takes no argument of another type than it was traced with
    return [frame.values[tensor] for tensor in reads], [np.int64(trip) for trip in frame.trips.values()]


def closed_first(steps: Iterable[Step], types: TypeTable) -> tuple[list[Step], list[Step]]:
    """Those steps that can be in one piece whatever the others compute, which can run first; and the others.

    Of these, the layers that need nothing else are the first, so that more of the others can be in one piece.
    """
    closed, others, tensors = list[Step](), list[Step](), set[ITensor]()
    for step in steps:
        is_closed = not tensors.intersection(step.reads) and not step.has_assertions and fits(step, types)
        # what reads a step that has to wait waits too
        (closed if is_closed else others).append(step)
        if not is_closed:
            tensors.update(step.writes)
    return closed, sorted(
        others,
        key=lambda step: not isinstance(step, LayerStep) or step.has_assertions or not tensors.isdisjoint(step.reads),
    )


def fits(step: Step, types: TypeTable) -> bool:
    """Whether types decide all shapes in a step, which can then be compiled."""
    is_left_out = isinstance(step, LayerStep) and isinstance(step.layer, IN_PYTHON)
    return not is_left_out and all(
        _keeps_shape(layer, types) and fits_program(layer, types) for layer in layers_of(step)
    )


def is_long(steps: Iterable[Step], types: TypeTable) -> bool:
    """Whether a loop may make more than ``MOST_TRIPS_AT_ONCE`` iterations, multiplied with those of inner loops."""
    return _most_trips(steps, types) > MOST_TRIPS_AT_ONCE


def _most_trips(steps: Iterable[Step], types: TypeTable) -> float:
    return max((_most_trips_of(step, types) for step in steps), default=1)


def _most_trips_of(step: Step, types: TypeTable) -> float:
    inside = max((_most_trips(block.steps, types) for block in step.blocks), default=1)
    count = known_count(step.loop, types) if isinstance(step, LoopStep) else 1
    # even without an iteration, a last value may need the body once
    return math.inf if count is None else max(1, count) * inside


def _keeps_shape(layer: ILayer, types: TypeTable) -> bool:
    """Whether a layer is no recurrence whose shape changes, as its ``keeps_shape`` may allow."""
    if not isinstance(layer, IRecurrenceLayer):
        return True
    first, second = types.of(layer.tensor(0)), types.of(layer.tensor(1))
    return isinstance(first, TensorType) and isinstance(second, TensorType) and first.shape == second.shape


def _without_zeros(outcome: Outcome) -> Outcome:
    """An outcome without a status that is 0 in any case: each result of a program costs time."""
    return outcome._replace(status=None) if isinstance(outcome.status, int) else outcome
