"""The copy of a network that passes edit."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar

from netloop.compiler.product_precision import FLOAT32, ProductType
from netloop.model.formulas import FormulaBuilder
from netloop.model.graph.infer import TypeTable
from netloop.model.graph.layer import ILayer
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import ILoop
from netloop.model.nest import Block, IfStep, LayerStep, LoopStep, Scopes, Step, nest, walk, weight_only_tensors
from netloop.model.network import INetworkDefinition
from netloop.values.types import TensorType

L = TypeVar("L", bound=ILayer)


NO_BOUNDS: Mapping[str, int] = MappingProxyType({})
"""No loop has a bound."""


class Rewriter:
    """A copy of a network, for inputs of fixed types, that passes edit.

    Layers keep their numbers, names and source locations, so that weights, random numbers and errors find them. New
    layers come last. A layer that nothing needs any more stays in the copy, and never runs.

    Attributes:
        network: the copy.
        make: the formula builder that adds layers to the copy.
        platform: the JAX platform that the network is compiled for.
        bounds: the largest numbers of iterations of loops by name, for derivatives in reverse mode.
        is_pure: whether it becomes a pure function, in which nothing runs on the host.
        product_type: the type of the operands of float32 products.
        form: the form of the pass in progress, one of its ``alternatives``; "rule" for its rule.
        notes: what was done since the copy was last read, a line each.
        rooms: the numbers of iterations for which the buffers of loops have room; they become larger when full.
        trip_counts: the trip counts of loops that passes have asked for.
        refusals: the reasons why loops run on the host that a pass would have had compiled.
        scopes: the loops in which each tensor varied when the copy was last read.
        block: the region tree at that time.
        weights: the tensors that depended on constants only at that time.
    """

    def __init__(
        self,
        network: INetworkDefinition,
        types: TypeTable,
        platform: str = "cpu",
        bounds: Mapping[str, int] = NO_BOUNDS,
        is_pure: bool = False,
        product_type: ProductType = FLOAT32,
    ) -> None:
        # the arrays of weights are shared, as a second copy would only take memory
        self.network = network.copy(shares_weights=True, types=types)
        self.make = FormulaBuilder(self.network)
        self.platform, self.bounds, self.is_pure, self.product_type = platform, bounds, is_pure, product_type
        self.form = "rule"
        self.rooms: dict[ILoop, ITensor] = {}
        self.trip_counts: dict[ILoop, ITensor] = {}
        self.refusals: dict[ILoop, str] = {}
        self.read()

    def read(self) -> None:
        """Analyse the copy as it is now."""
        self.scopes = Scopes(self.network)
        self.block = nest(self.network, self.scopes)
        self.weights = weight_only_tensors(self.block)
        self.notes: list[str] = []
        self._steps: list[Step] | None = None

    def note(self, what: str) -> None:
        """Record what was done."""
        self.notes.append(what)

    def steps(self) -> list[Step]:
        """All steps in running order, without those in branches that are not possible for the types of the inputs."""
        # most passes look at all of them, and change nothing
        if self._steps is None:
            self._steps = [*walk(self.block, self._is_possible)]
        return self._steps

    def _is_possible(self, branch: Block) -> bool:
        types = self.network.types
        tensors = (tensor for step in branch.steps for tensor in (*step.reads, *step.writes))
        return all(isinstance(types.of(tensor), TensorType) for tensor in tensors)

    def blocks(self) -> Iterator[Block]:
        """Every block: the whole network, the bodies of loops, and branches; without those of ``steps``."""
        yield self.block
        for step in self.steps():
            yield from filter(self._is_possible, step.blocks) if isinstance(step, IfStep) else step.blocks

    def loops(self) -> Iterator[LoopStep]:
        """Every loop in ``steps``."""
        return (step for step in self.steps() if isinstance(step, LoopStep))

    def layers(self, kind: type[L]) -> list[L]:
        """The layers of a kind in ``steps``; those at the boundary of loops and conditionals are left out."""
        layers = (step.layer for step in self.steps() if isinstance(step, LayerStep))
        return [layer for layer in layers if isinstance(layer, kind)]

    def replace(self, old: ITensor, new: ITensor) -> None:
        """Let all readers of ``old`` read ``new``. An output of the network stays what it is."""
        for reader, position in list(old.uses):
            reader.set_input(position, new)

    def take_over(self, old: ITensor, new: ITensor) -> None:
        """Put ``new`` in the place of ``old``, for all readers but the layer that makes it, and as an output."""
        for reader, position in list(old.uses):
            if reader is not new.producer:
                reader.set_input(position, new)
        self.replace_output(old, new)

    def replace_output(self, old: ITensor, new: ITensor) -> None:
        """Mark ``new`` as an output in the place of ``old``, if that is one."""
        # callers know outputs by their names and their order, which stay
        if old.is_network_output:
            outputs = self.network.outputs
            position, name = outputs.index(old), old.name
            self.network.unmark_output(old)
            self.network.mark_output(new)
            outputs.insert(position, outputs.pop())
            old.name = f"{name} before {new.name}"
            new.name = name

    def may_replace(self, tensor: ITensor) -> bool:
        """Whether only layers read a tensor."""
        return tensor not in self.network.outputs

    def is_loop_invariant(self, tensor: ITensor, layer: ILayer) -> bool:
        """Whether a tensor is known before the innermost loop around a layer begins."""
        # what follows from weights only is computed at load time, wherever it is read
        return tensor in self.weights or self.scopes.depth(tensor) < self.scopes.depth(layer)

    def always_exists(self, tensor: ITensor) -> bool:
        """Whether computing a tensor cannot fail. A loop can: its trip count may not fit an axis."""
        return tensor in self.weights or tensor in self.network.inputs


def layer_steps(block: Block) -> list[LayerStep]:
    """Return the steps of a block that are one layer each."""
    return [step for step in block.steps if isinstance(step, LayerStep)]


def operand(layer: ILayer, position: int) -> ITensor:
    """Return an input that must be there."""
    result = layer.inputs[position]
    assert result is not None
    return result
