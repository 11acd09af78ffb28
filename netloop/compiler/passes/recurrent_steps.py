"""Compute the steps of recurrent layers by kernels of netloop's own, where no loop is one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np

from netloop.compiler.machine_code.processor import Processor, processor
from netloop.compiler.passes.base import OFF, Pass
from netloop.compiler.passes.embedding_folding import folded_gather
from netloop.compiler.passes.kernel_functions import PARAMETERS
from netloop.compiler.passes.recurrent_cells import Parts, Read, Recognition, Unfit, require
from netloop.compiler.passes.recurrent_kernels import RecurrentKernelLayer, call_of, is_worth_it
from netloop.compiler.passes.recurrent_loops import LEAST_ROWS
from netloop.compiler.passes.rewriter import Rewriter, layer_steps
from netloop.compiler.recurrent.cell import ITERATOR, RecurrentCell
from netloop.model.graph import ILayer, ITensor
from netloop.model.layers.matrix import IMatrixMultiplyLayer
from netloop.model.nest import Block, LayerStep, LoopStep
from netloop.values.enums import TripLimit

LEAST_WEIGHTS = 1 << 19
"""The least elements of weights, those of an LSTM of 256. With fewer, XLA's product of one row takes the time of the
kernel, and a program without calls of machine code can overlap with the next call."""
LEAST_GATES = 3
"""The least products of a row that are worth a kernel, from ``LEAST_ROWS`` rows on: layers of 1024 and 16 rows, each
one product, took 1.3 times XLA's time on one thread."""
TRIES = 8
"""The times that a cell is looked for in a block, each time without the products that were of no use before."""

ACTIVATED = frozenset(kind.name.lower() for kind in PARAMETERS)
"""The kinds of values that are activations."""


class StepRecognition(Recognition):
    """Layers of a block that are one step of recurrent layers, as a cell of one iteration.

    The layers are products with weights and what is computed from these element by element, up to activations. What
    they read is an array of the only iteration, and what others read of them is stacked. Layers that need a result of
    the cell for something else, and all that depends on those, are not part of it.

    Args:
        rewriter: the network.
        place: the block.
        processor: the vectors of the processor.
        shape: the rows and the units.

    Attributes:
        results: the tensors that others read.
        layers: the layers.
        left: the tensors of the cell that the first layers outside of it read.

    Raises:
        Unfit: there is no such step.
    """

    def __init__(self, rewriter: Rewriter, place: _StepBlock, processor: Processor, shape: tuple[int, int]) -> None:
        self.apart = set[ITensor]()
        self.place = place
        for _ in range(TRIES):
            super().__init__(rewriter, processor, *shape, 1)
            self.layers: dict[ILayer, None] = {}
            self._grow()
            self.results = self._results()
            unused = self._unused_products()
            self.apart |= unused
            if not unused:
                break
        self.stacked = [(self.parts[tensor], False) for tensor in self.results]
        require(bool(self.results) and any(tensor in place.states for tensor, *_ in self.iterators))

    def _grow(self) -> None:
        """Let the layers of the block join that can."""
        self.left = set[ITensor]()
        own, beyond = set[ITensor](), set[ITensor]()
        for step in self.place.steps:
            if isinstance(step, LayerStep) and beyond.isdisjoint(step.reads) and self._joins(step.layer, own):
                self.layers[step.layer] = None
                own.update(step.writes)
            elif not beyond.isdisjoint(step.reads):
                beyond.update(step.writes)
            elif not own.isdisjoint(step.reads):
                self.left.update(own.intersection(step.reads))
                beyond.update(step.writes)

    def _joins(self, layer: ILayer, own: Collection[ITensor]) -> bool:
        """Whether a layer is part of the cell; its parts are known then."""
        if len(layer.outputs) != 1 or layer.outputs[0] in self.rewriter.weights or layer.outputs[0] in self.apart:
            return False
        if not isinstance(layer, IMatrixMultiplyLayer) and not any(tensor in own for tensor in layer.inputs):
            return False
        # a table that is multiplied in advance is read instead of multiplied in each step
        if isinstance(layer, IMatrixMultiplyLayer) and folded_gather(self.rewriter, layer):
            return False
        lists = self.values, self.products, self.iterators, self.invariants
        lengths, number_of_parts = [*map(len, lists)], len(self.parts)
        try:
            self.parts[layer.outputs[0]] = self._computed(layer)
        except Unfit:
            for items, length in zip(lists, lengths, strict=True):
                del items[length:]
            while len(self.parts) > number_of_parts:
                self.parts.popitem()
            return False
        return True

    def _of_outside(self, tensor: ITensor) -> Parts:
        return self._of_invariant(tensor)

    def _times(self, left: ITensor, matrix: ITensor, is_transposed: bool) -> Parts:
        if left.producer in self.layers:
            return self._times_own(left, matrix, is_transposed)
        # what no state decides is computed before the loop, where all rows are one product
        require(self.place.is_late(left))
        read = Read(left, None)
        if read not in self.iterators:
            self.iterators.append(read)
        return self._multiplied((ITERATOR, self.iterators.index(read)), matrix, is_transposed)

    def _results(self) -> list[ITensor]:
        """The tensors that others read, and that are activated: sums of products are as fast with XLA."""
        activated: list[bool] = []
        for value in self.values:
            is_sum = value.is_computed and any(activated[index] for index in value.of)
            activated.append(value.kind in ACTIVATED or is_sum)
        live = self.rewriter.scopes.live
        return [
            tensor
            for layer in self.layers
            for tensor in layer.outputs
            if tensor.type.dtype == np.float32
            and all(activated[part] for part in self.parts[tensor])
            and (tensor.is_network_output or any(at in live and at not in self.layers for at, _ in tensor.uses))
        ]

    def _unused_products(self) -> set[ITensor]:
        """The products that other layers need, and no result: they keep what depends on those from being part."""
        products = {layer.outputs[0] for layer in self.layers if isinstance(layer, IMatrixMultiplyLayer)}
        return products & self._needed_for(self.left) - self._needed_for(self.results)

    def _needed_for(self, tensors: Iterable[ITensor]) -> set[ITensor]:
        """The tensors that some tensors of the cell depend on."""
        needed = set(tensors)
        for layer in reversed(self.layers):
            if layer.outputs[0] in needed:
                needed.update(tensor for tensor in layer.inputs if tensor is not None)
        return needed

    def take_over(self, kernel: ILayer) -> None:
        """Let the outputs of a layer take the places of the results."""
        make = self.rewriter.make
        unique = list(dict.fromkeys(part for parts, _ in self.stacked for part in parts))
        for tensor, (parts, _) in zip(self.results, self.stacked, strict=True):
            rows = [kernel.outputs[unique.index(part)] for part in parts]
            joined = make.concat(rows, 2) if len(rows) > 1 else rows[0]
            self.rewriter.take_over(tensor, make.reshape(joined, tensor.type.shape))


class _StepBlock:
    """A block in which steps are looked for.

    Attributes:
        block: the block.
        states: the tensors that are what the step before gave: the states of a loop, or the inputs of the network.
    """

    def __init__(self, rewriter: Rewriter, block: Block, loop: LoopStep | None) -> None:
        self.block, self._rewriter = block, rewriter
        # fission computes what only outputs need after the loop, for all iterations at once
        self.steps = block.steps if loop is None or not _is_scan(loop) else block.needed(loop.next_states)
        self.states = frozenset(rewriter.network.inputs if loop is None else loop.states)
        self._late = set(self.states)
        for step in block.steps if loop else ():
            if not self._late.isdisjoint(step.reads):
                self._late.update(step.writes)
        self._is_loop = loop is not None

    def is_late(self, tensor: ITensor) -> bool:
        """Whether a tensor is known only when the step begins."""
        return not self._is_loop or tensor in self._late

    def shapes(self) -> Iterator[tuple[int, int]]:
        """The rows and units of states that are multiplied by weights."""
        for step in layer_steps(self.block):
            if isinstance(step.layer, IMatrixMultiplyLayer):
                for tensor in self.states.intersection(step.reads):
                    if tensor.type.is_tensor and tensor.type.rank and tensor.type.volume:
                        yield tensor.type.volume // tensor.type.shape[-1], tensor.type.shape[-1]


def _is_scan(loop: LoopStep) -> bool:
    """Whether the number of iterations of a loop is known."""
    count = loop.loop.limit(TripLimit.COUNT)
    return count is not None and loop.loop.limit(TripLimit.WHILE) is None and count.tensor(0).type.ints() is not None


class RecurrentSteps(Pass):
    """Compute a step of recurrent layers in one call, where it is called from outside or a loop does more than that."""

    name = "recurrent_steps"
    level = 3
    platforms = frozenset({"cpu"})
    # whole loops are better
    after = ("recurrent_kernels", "matmul_recognition")
    rule = (
        "On CPUs, where the extra `kernels` is installed: layers that multiply inputs of the network, or states of a "
        "loop that is not one kernel, by weights, and compute the next states by element-wise layers and activations, "
        f"are one call of machine code of netloop's own. The weights have {LEAST_WEIGHTS:,} elements or more, and of "
        f"{LEAST_ROWS} rows or more {LEAST_GATES} gates; "
        "otherwise it is as in `recurrent_kernels`."
    )
    alternatives = (OFF,)

    def rewrite(self, rewriter: Rewriter) -> bool:
        notes = list[str]()
        while not rewriter.is_pure and _replaced(rewriter):
            notes += rewriter.notes
            # what depends on what has changed
            rewriter.read()
        rewriter.notes = notes
        return bool(notes)


def _replaced(rewriter: Rewriter) -> bool:
    """Replace the layers of one step by a kernel, if there is one."""
    places = [_StepBlock(rewriter, rewriter.block, None)]
    places += [_StepBlock(rewriter, step.body, step) for step in rewriter.loops()]
    return any(_replaced_in(rewriter, place) for place in places)


def _replaced_in(rewriter: Rewriter, place: _StepBlock) -> bool:
    steps = [step for shape in dict.fromkeys(place.shapes()) if (step := _step(rewriter, place, shape)) is not None]
    if not steps:
        return False
    # the widths of all inputs are tried, and one that divides the units gives a part of the step only
    recognition, cell, own = max(steps, key=lambda step: (len(step[0].layers), step[1].units))
    kernel = RecurrentKernelLayer(cell=cell, processor=own, count=1, loop=None)
    kernel.name = recognition.results[0].name
    names = ", ".join(repr(tensor.name) for tensor in recognition.results)
    recognition.take_over(rewriter.network.add(kernel, recognition.inputs(cell)))
    rewriter.note(f"the step to {names} is {call_of(cell)}")
    return True


def _step(
    rewriter: Rewriter, place: _StepBlock, shape: tuple[int, int]
) -> tuple[StepRecognition, RecurrentCell, Processor] | None:
    """The step of so many rows and units that is worth a kernel, and its cell; None if there is none."""
    # most networks have no such step, and need no compiler imported
    own = processor()
    if own is None:
        return None
    try:
        recognition = StepRecognition(rewriter, place, own, shape)
        cell = recognition.cell()
    except Unfit:
        return None
    # without weights there are no sources
    is_large = recognition.weights() >= LEAST_WEIGHTS and is_worth_it(cell, own)
    has_gates = cell.rows < LEAST_ROWS or any(len(source.products) >= LEAST_GATES for source in cell.sources)
    return (recognition, cell, own) if is_large and has_gates else None
