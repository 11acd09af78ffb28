"""The nodes of the region tree: blocks of steps, and walks over them.

A block holds steps in running order. A step is a layer; a loop, with the block of its body; or a conditional, with a
block for each branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from netloop.model.graph import ILayer, ITensor, Operation
from netloop.model.layers.assertion import IAssertionLayer
from netloop.model.layers.conditional import IIfConditional, IIfConditionalOutputLayer
from netloop.model.layers.loop import IIteratorLayer, ILoop, ILoopOutputLayer, IRecurrenceLayer, ITripLimitLayer


@dataclass(eq=False)
class Block:
    """Steps in running order."""

    steps: list[Step] = field(default_factory=list["Step"])

    def needed(self, wanted: Iterable[ITensor], *, assertions: bool = False) -> list[Step]:
        """The steps that some tensors depend on, and with ``assertions`` those that contain an assertion."""
        missing = set(wanted)
        steps: list[Step] = []
        for step in reversed(self.steps):
            if missing.intersection(step.writes) or (assertions and step.has_assertions):
                steps.append(step)
                missing.update(step.reads)
        return steps[::-1]

    def reads(self, wanted: Iterable[ITensor] = ()) -> dict[ITensor, None]:
        """The tensors from outside that its steps read, and those of ``wanted`` that it does not write."""
        written = {tensor for step in self.steps for tensor in step.writes}
        read = [tensor for step in self.steps for tensor in step.reads] + list(wanted)
        return dict.fromkeys(tensor for tensor in read if tensor not in written)

    @property
    def has_assertions(self) -> bool:
        """Whether there is an assertion in one of its steps."""
        return any(step.has_assertions for step in self.steps)


class _Nestable:
    """The blocks inside a step: none in a layer, the body of a loop, the two branches of a conditional.

    Every step also has ``layers``, its own layer or boundary layers; ``reads``, the tensors from outside that these and
    the steps inside it read; ``writes``, the tensors that later steps can read; and ``has_assertions``, whether it is
    or contains an assertion.
    """

    @property
    def blocks(self) -> Sequence[Block]:
        return ()


@dataclass(eq=False)
class LayerStep(_Nestable):
    """One layer."""

    layer: ILayer

    @property
    def layers(self) -> Sequence[ILayer]:
        return (self.layer,)

    @property
    def reads(self) -> list[ITensor]:
        layer = self.layer
        # a reverse iterator starts from the count of its loop, which is no input of the layer
        trips = layer.trips if isinstance(layer, IIteratorLayer) else None
        return [tensor for tensor in (*layer.inputs, trips) if tensor is not None]

    @property
    def writes(self) -> tuple[ITensor, ...]:
        return self.layer.outputs

    @property
    def has_assertions(self) -> bool:
        return isinstance(self.layer, IAssertionLayer)


@dataclass(eq=False)
class LoopStep(_Nestable):
    """A loop, with its live boundary layers."""

    loop: ILoop
    body: Block = field(default_factory=Block)
    limits: list[ITripLimitLayer] = field(default_factory=list[ITripLimitLayer])
    recurrences: list[IRecurrenceLayer] = field(default_factory=list[IRecurrenceLayer])
    iterators: list[IIteratorLayer] = field(default_factory=list[IIteratorLayer])
    outputs: list[ILoopOutputLayer] = field(default_factory=list[ILoopOutputLayer])
    has_assertions: bool = False

    @property
    def blocks(self) -> Sequence[Block]:
        return (self.body,)

    @property
    def layers(self) -> Sequence[ILayer]:
        # an iterator is a step of the body
        return *self.limits, *self.recurrences, *self.outputs

    @cached_property
    def reads(self) -> list[ITensor]:
        boundary, states = (tensor for layer in self.layers for tensor in layer.inputs), set(self.states)
        return [tensor for tensor in self.body.reads(filter(None, boundary)) if tensor not in states]

    @cached_property
    def writes(self) -> tuple[ITensor, ...]:
        return tuple(output.outputs[0] for output in self.outputs)

    @property
    def states(self) -> list[ITensor]:
        """The value of each recurrence in an iteration."""
        return [recurrence.outputs[0] for recurrence in self.recurrences]

    @property
    def next_states(self) -> list[ITensor]:
        """The tensor of each recurrence's next value."""
        return [recurrence.tensor(1) for recurrence in self.recurrences]

    @property
    def stacked(self) -> list[ILoopOutputLayer]:
        return [output for output in self.outputs if output.stacks]

    @property
    def rows(self) -> list[ITensor]:
        """The tensor of each stacked output's rows."""
        return [output.tensor(0) for output in self.stacked]

    @cached_property
    def iteration(self) -> list[Step]:
        """The steps of an iteration: those that next values, rows and assertions need."""
        return self.body.needed([*self.next_states, *self.rows], assertions=True)


@dataclass(eq=False)
class IfStep(_Nestable):
    """A conditional, or those of its outputs that vary in the same loops, with its two branches."""

    conditional: IIfConditional
    outputs: list[IIfConditionalOutputLayer] = field(default_factory=list[IIfConditionalOutputLayer])
    branches: tuple[Block, Block] = field(default_factory=lambda: (Block(), Block()))
    has_assertions: bool = False

    @property
    def blocks(self) -> Sequence[Block]:
        return self.branches

    @property
    def layers(self) -> Sequence[ILayer]:
        return self.outputs

    @property
    def condition(self) -> ITensor:
        result = self.conditional.condition
        assert result is not None
        return result

    def results(self, branch: int) -> list[ITensor]:
        """The values of its outputs if a branch is taken: branch 0 if the condition is true, else 1."""
        return [tensor for output in self.outputs if (tensor := output.inputs[branch]) is not None]

    @cached_property
    def reads(self) -> list[ITensor]:
        inside = {tensor: None for branch in (0, 1) for tensor in self.branches[branch].reads(self.results(branch))}
        return list({self.condition: None} | inside)

    @cached_property
    def writes(self) -> tuple[ITensor, ...]:
        return tuple(output.outputs[0] for output in self.outputs)


Step = LayerStep | LoopStep | IfStep


def walk(block: Block, enters: Callable[[Block], bool] = lambda _: True) -> Iterator[Step]:
    """All steps of a block and of the blocks inside it, in running order; a loop or conditional precedes its inside.

    Branches that ``enters`` says no to are left out, with all that is inside of them.
    """
    # an explicit stack, as recursive generators would pass each step through as many frames as it is nested deep
    stack = [iter(block.steps)]
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
            continue
        yield step
        blocks = filter(enters, step.blocks) if isinstance(step, IfStep) else step.blocks
        stack.extend(iter(inner.steps) for inner in reversed([*blocks]))


def depths_of(block: Block) -> dict[Step, int]:
    """The number of loops and conditionals of a block around each step; a step precedes those inside it."""
    numbers: dict[Step, int] = dict.fromkeys(block.steps, 0)
    for step in walk(block):
        numbers.update((other, numbers[step] + 1) for inner in step.blocks for other in inner.steps)
    return numbers


def layers_of(step: Step) -> Iterator[ILayer]:
    """The layers of a step, and of the steps inside it."""
    return (layer for node in walk(Block([step])) for layer in node.layers)


def own_reads(step: Step) -> list[ITensor]:
    """The tensors that a step itself reads, without those that steps inside it read."""
    if isinstance(step, LayerStep):
        return step.reads
    if isinstance(step, IfStep):
        return [step.condition, *step.results(0), *step.results(1)]
    boundary = (*step.limits, *step.recurrences, *step.iterators, *step.outputs)
    return [tensor for layer in boundary for tensor in layer.inputs if tensor is not None]


def weight_only_tensors(block: Block) -> set[ITensor]:
    """The tensors that are constants, or computed from constants only by layers that always compute the same."""
    tensors: set[ITensor] = set()
    for step in walk(block):
        if isinstance(step, LayerStep) and isinstance(step.layer, Operation):
            layer = step.layer
            if layer.is_foldable and not layer.on_host and tensors.issuperset(step.reads):
                tensors.update(step.writes)
    return tensors
