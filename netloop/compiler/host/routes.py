"""Cache of how steps are grouped into runs, keyed by the types that they read."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from netloop.compiler.host.frame import HostFrame
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.sources import IConstantLayer
from netloop.model.nest import Block, Step, layers_of

MOST_RUNS = 1024
"""The number of sets of types that are remembered for a run of steps."""


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


class Route:
    """Steps in running order, with the runs that were made of them so far.

    What a run is depends on the types of what its steps and the step after it read, and on nothing else: to look these
    up takes a few microseconds, and to infer all types, a hundred.
    """

    def __init__(self, steps: Sequence[Step], valued: frozenset[ITensor]) -> None:
        self.steps = steps
        self._valued = valued
        self._runs: dict[int, list[tuple[list[ITensor], dict[Hashable, Run]]]] = {}

    def recall(self, position: int, frame: HostFrame) -> Run | None:
        """The run at a position for the types of a frame, if one was kept."""
        for reads, runs in self._runs.get(position, ()):
            run = runs.get(self._key(reads, frame))
            if run is not None and run.lasts():
                return run
        return None

    def keep(self, position: int, run: Run, frame: HostFrame) -> None:
        """Remember a run for the types of a frame."""
        # types of what the step after a run reads may be why the run ends there
        decided = self.steps[position : position + run.length + 1]
        reads = [tensor for tensor in reads_of(decided) if self._may_differ(tensor)]
        if any(tensor not in frame.values and not isinstance(tensor.producer, IConstantLayer) for tensor in reads):
            return  # its type follows from other tensors
        entries = self._runs.setdefault(position, [])
        runs = next((runs for tensors, runs in entries if tensors == reads), None)
        if runs is None:
            runs = dict[Hashable, Run]()
            entries.append((reads, runs))
        # a service may meet new lengths for as long as it runs
        if len(runs) >= MOST_RUNS:
            runs.clear()
        runs[self._key(reads, frame)] = run

    def _key(self, reads: Iterable[ITensor], frame: HostFrame) -> Hashable:
        return frame.is_iteration, *map(frame.key_of, reads)

    def _may_differ(self, tensor: ITensor) -> bool:
        """Whether a tensor can be of another type in another call: weights are not, unless they decide a shape."""
        return not isinstance(tensor.producer, IConstantLayer) or tensor in self._valued


def reads_of(steps: Sequence[Step]) -> list[ITensor]:
    """The tensors that some steps read, and their constants, whose values are given."""
    layers = (layer for step in steps for layer in layers_of(step) if isinstance(layer, IConstantLayer))
    return [*Block(list(steps)).reads(), *(layer.outputs[0] for layer in layers)]
