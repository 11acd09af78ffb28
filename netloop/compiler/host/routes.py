"""Cache of how steps are grouped into runs, keyed by the types that they read."""

from collections.abc import Callable, Collection, Container, Hashable, Sequence
from typing import NamedTuple

from netloop.compiler.host.frame import NO_TYPE, HostFrame
from netloop.model.graph import ITensor, TypeTable
from netloop.model.layers.sources import IConstantLayer
from netloop.model.nest import Block, Step, layers_of
from netloop.values.types import TensorType

MOST_RUNS = 1024
"""The number of sets of types that are remembered for a run of steps."""


LEAST_COMPILED = 8
"""The number of layers from which the call of a program takes less time than numpy, which takes 5 to 10 us for each."""

OFTEN = 300
"""The number of times that numpy computes such layers, for lengths of one bucket, before they are compiled.

The compilation of a layer takes 2 to 5 ms, so that it takes about as long as numpy has taken then."""


class Run(NamedTuple):
    """Consecutive steps that run together.

    Attributes:
        length: the number of steps.
        action: runs them: takes what it reads from a frame, and adds its results to it.
        lasts: whether they are still to run in this way.
    """

    length: int
    action: Callable[[HostFrame], None]
    lasts: Callable[[], bool] = lambda: True


class _Reads:
    """Tensors that some steps read: the ``open`` ones, which have another type in another call, and the others."""

    def __init__(self, tensors: Sequence[ITensor], open_ones: Collection[ITensor]) -> None:
        self.tensors = tensors
        self._open = [tensor for tensor in tensors if tensor in open_ones]
        self._fixed = [tensor for tensor in tensors if tensor not in open_ones]

    def key(self, frame: HostFrame) -> Hashable:
        """A key of their types in a frame."""
        # of dozens of tensors, only whether they failed
        kinds = [*map(type, map(frame.values.get, self._fixed))]
        failed = None if NO_TYPE.isdisjoint(kinds) else tuple(kinds)
        return frame.is_iteration, failed, *map(frame.key_of, self._open)

    def bucket_key(self, frame: HostFrame) -> Hashable:
        """A key that is equal for types whose lengths share buckets."""
        return tuple(map(frame.bucket_key_of, self._open))


class _Calls:
    """The number of times that numpy has computed consecutive layers, for each key of the types that they read."""

    def __init__(self, reads: _Reads, is_bucketed: bool, before: int) -> None:
        self._key = reads.bucket_key if is_bucketed else reads.key
        self._before = before
        self._numbers: dict[Hashable, int] = {}

    def count(self, frame: HostFrame) -> int:
        """Count a call; the number of those with its key."""
        key = self._key(frame)
        if key not in self._numbers and len(self._numbers) >= MOST_RUNS:
            self._numbers.clear()
        number = self._numbers.get(key, self._before) + 1
        self._numbers[key] = number
        return number


class Route:
    """Steps in running order, with the runs that were made of them so far.

    What a run is depends on the types of what its steps and the step after it read, and on nothing else: to look these
    up takes a few microseconds, and to infer all types, a hundred.

    Args:
        steps: the steps.
        types: the types of all tensors as far as they are known before the network runs.
        valued: the tensors whose values decide the shape of some tensor.
        quick: the steps that numpy computes as long as they are met rarely.
        is_bucketed: whether new lengths share programs.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        types: TypeTable,
        valued: frozenset[ITensor],
        quick: Container[Step],
        is_bucketed: bool,
    ) -> None:
        self.steps = steps
        self._types, self._valued, self._is_bucketed = types, valued, is_bucketed
        self._runs: dict[int, list[tuple[_Reads, dict[Hashable, Run]]]] = {}
        # where numpy begins to compute, there is one look at whether a program should
        self._ends = _run_ends([step in quick for step in steps])
        self._calls: dict[int, _Calls] = {}
        for start in range(len(steps)):
            if start == 0 or self._ends[start - 1] < start:
                self._begin(start)

    def _begin(self, start: int, before: int = 0) -> None:
        """Count the calls of the layers from some position that numpy computes, if a program may be worthwhile."""
        end = self._ends[start] if start < len(self.steps) else start
        if end - start >= LEAST_COMPILED or start < end < len(self.steps):
            self._calls[start] = _Calls(self._reads(reads_of(self.steps[start:end])), self._is_bucketed, before)

    def is_met_often(self, position: int, frame: HostFrame) -> bool:
        """Whether a program is to compute the layers from here that numpy has computed so far."""
        calls = self._calls.get(position)
        return calls is not None and calls.count(frame) > OFTEN

    def divide(self, position: int, length: int) -> bool:
        """Take note that a program holds a number of layers from a position; whether these are enough for one."""
        # the next layer runs by itself, and the one behind it may begin another program
        for start in {position + length, position + length + 1} - self._calls.keys():
            self._begin(start, OFTEN)
        # what needs a program behind these layers is in the same one, which costs nothing
        is_enough = length >= LEAST_COMPILED or position + length > self._ends[position]
        if not is_enough:
            self._calls.pop(position, None)
        return is_enough

    def recall(self, position: int, frame: HostFrame) -> Run | None:
        """The run at a position for the types of a frame, if one was kept."""
        for reads, runs in self._runs.get(position, ()):
            run = runs.get(reads.key(frame))
            if run is not None and run.lasts():
                return run
        return None

    def keep(self, position: int, run: Run, frame: HostFrame) -> None:
        """Remember a run for the types of a frame."""
        # types of what the step after a run reads may be why the run ends there
        decided = self.steps[position : position + run.length + 1]
        tensors = [tensor for tensor in reads_of(decided) if tensor not in frame.known and self._may_be_another(tensor)]
        if any(tensor not in frame.values and not isinstance(tensor.producer, IConstantLayer) for tensor in tensors):
            return  # its type follows from other tensors
        entries = self._runs.setdefault(position, [])
        entry = next((entry for entry in entries if entry[0].tensors == tensors), None)
        if entry is None:
            entry = self._reads(tensors), dict[Hashable, Run]()
            entries.append(entry)
        reads, runs = entry
        # a service may meet new lengths for as long as it runs
        if len(runs) >= MOST_RUNS:
            runs.clear()
        runs[reads.key(frame)] = run

    def _reads(self, tensors: Sequence[ITensor]) -> _Reads:
        return _Reads(tensors, {*filter(self._is_open, tensors)})

    def _is_open(self, tensor: ITensor) -> bool:
        """Whether a tensor can be of another type in another call."""
        type_ = self._types.of(tensor)
        if not isinstance(type_, TensorType) or not type_.is_tensor or not type_.is_fixed:
            return True
        return tensor in self._valued and type_.value is None

    def _may_be_another(self, tensor: ITensor) -> bool:
        """Whether a tensor can have another value in another call: weights have not, unless they decide a shape."""
        return not isinstance(tensor.producer, IConstantLayer) or tensor in self._valued


def _run_ends(flags: Sequence[bool]) -> list[int]:
    """For each flag, the position behind the last one of the flags from there on that are set; its own if it is not."""
    ends, end = list[int](), len(flags)
    for position in range(len(flags) - 1, -1, -1):
        end = end if flags[position] else position
        ends.append(end)
    return ends[::-1]


def reads_of(steps: Sequence[Step]) -> list[ITensor]:
    """The tensors that some steps read, and their constants, whose values are given."""
    layers = (layer for step in steps for layer in layers_of(step) if isinstance(layer, IConstantLayer))
    return [*Block(list(steps)).reads(), *(layer.outputs[0] for layer in layers)]
