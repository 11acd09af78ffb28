"""Facts about loops that hold before they run: trip counts, lengths that suffice, and what cannot fail."""

from collections.abc import Container, Iterable

from netloop.model.graph.infer import TypeTable
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.assertion import IAssertionLayer
from netloop.model.layers.loop import IIteratorLayer, ILoop, ILoopOutputLayer
from netloop.model.nest import IfStep, LayerStep, LoopStep, Step
from netloop.values.enums import TripLimit


def known_count(loop: ILoop, types: TypeTable) -> int | None:
    """The COUNT limit of a loop by the known values of tensors; None if it has none or its value is not known."""
    limit = loop.limit(TripLimit.COUNT)
    counts = None if limit is None else types[limit.tensor(0)].ints()
    return None if counts is None else max(0, counts[0])


class LoopFacts:
    """Known facts about the loops of a program while it is compiled.

    Each fact that is known removes a check, and its error flag, from the program: a loop whose count and lengths are
    constants carries no flag and costs what it would cost without errors. A count that is known only for the given
    weights is no fact, as it is not among ``constants``.
    """

    def __init__(self, types: TypeTable, constants: Container[ITensor], max_trips: int | None) -> None:
        self.max_trips = max_trips
        self._types = types
        self._constants = constants

    def count(self, loop: ILoop) -> int | None:
        """The COUNT limit of a loop if it is a compile-time constant, else None."""
        limit = loop.limit(TripLimit.COUNT)
        is_constant = limit is not None and limit.tensor(0) in self._constants
        return known_count(loop, self._types) if is_constant else None

    def may_exceed_max_trips(self, loop: ILoop) -> bool:
        """Whether a loop may make more iterations than ``max_trips``: its count is unknown or larger."""
        count = self.count(loop)
        return self.max_trips is not None and (count is None or count > self.max_trips)

    def exceeds_max_trips(self, loop: ILoop) -> bool:
        """Whether a loop always makes more iterations than ``max_trips``."""
        return loop.limit(TripLimit.WHILE) is None and self.count(loop) is not None and self.may_exceed_max_trips(loop)

    def stays_inside(self, iterator: IIteratorLayer) -> bool:
        """Whether an iterator always ends before the end of its axis."""
        count = self.count(iterator.loop)
        return count is not None and count <= self._types[iterator.tensor(0)].shape[iterator.axis]

    def length(self, output: ILoopOutputLayer) -> int:
        """The length of a stacked output, which every program knows."""
        length = output.known_length(self._types)
        assert length is not None
        return length

    def has_room(self, output: ILoopOutputLayer) -> bool:
        """Whether a stacked output always has room for all iterations."""
        count = self.count(output.loop)
        return count is not None and count <= self.length(output)

    def can_fail(self, steps: Iterable[Step], ended: Container[ILoop] = ()) -> bool:
        """Whether anything in some steps can fail, also one iteration past the last one of the loops ``ended``."""
        return any(self._step_can_fail(step, ended) for step in steps)

    def _step_can_fail(self, step: Step, ended: Container[ILoop]) -> bool:
        if isinstance(step, LayerStep):
            layer = step.layer
            # past the last iteration even an iterator that stays inside may be past its axis
            is_open = isinstance(layer, IIteratorLayer) and (layer.loop in ended or not self.stays_inside(layer))
            return is_open or isinstance(layer, IAssertionLayer)
        if any(self.can_fail(block.steps, ended) for block in step.blocks):
            return True
        if isinstance(step, IfStep):
            return False
        return self.may_exceed_max_trips(step.loop) or any(
            self._output_can_fail(step, output) for output in step.outputs
        )

    def _output_can_fail(self, step: LoopStep, output: ILoopOutputLayer) -> bool:
        if output.stacks:
            return not self.has_room(output)
        # LAST_VALUE is element n after n iterations
        return self.can_fail(step.body.needed([output.tensor(0)]), {step.loop})
