"""A network while it is rewritten for one set of input types."""

from __future__ import annotations

from collections.abc import Iterator

from netloop.formulas import FormulaBuilder
from netloop.graph.infer import TypeTable
from netloop.graph.layer import ILayer
from netloop.graph.tensor import ITensor
from netloop.nest import Block, IfStep, LayerStep, LoopStep, Scopes, nest, walk, weights_alone
from netloop.network import INetworkDefinition


class Rewriter:
    """A copy of a network, with the types of its inputs settled, that passes may edit.

    Layers keep their numbers, names and places, and new ones come last; what nothing needs any more stays, and is
    never run.

    Args:
        network: the network.
        types: the types of its tensors for the inputs of a call.

    Attributes:
        network: the copy.
        make: adds layers to it.
        notes: what was done since the network was last read, a line each.
        scopes: the loops in which the tensors vary, as when the network was last read.
        block: the steps that it runs as, likewise.
        weights: the tensors that follow from constants alone, likewise.
    """

    def __init__(self, network: INetworkDefinition, types: TypeTable) -> None:
        self.network = network.copy(shares_weights=True)
        for original, twin in zip(network.inputs, self.network.inputs, strict=True):
            vars(twin)["declared"] = types[original]
        self.make = FormulaBuilder(self.network)
        self.read()

    def read(self) -> None:
        """See the network as it is now."""
        self.scopes = Scopes(self.network)
        self.block = nest(self.network, self.scopes)
        self.weights = weights_alone(self.block)
        self.notes: list[str] = []

    def note(self, what: str) -> None:
        """Tell what was done."""
        self.notes.append(what)

    def blocks(self) -> Iterator[Block]:
        """Every block: the whole, bodies of loops, branches."""
        yield self.block
        for step in walk(self.block):
            if isinstance(step, LoopStep):
                yield step.body
            elif isinstance(step, IfStep):
                yield from step.branches

    def loops(self) -> Iterator[LoopStep]:
        """Every loop."""
        return (step for step in walk(self.block) if isinstance(step, LoopStep))

    def replace(self, old: ITensor, new: ITensor) -> None:
        """Let everything that reads ``old`` read ``new``; an output of the network stays what it is."""
        for reader, position in list(old.uses):
            reader.set_input(position, new)

    def may_replace(self, tensor: ITensor) -> bool:
        """Whether nothing but layers needs a tensor."""
        return tensor not in self.network.outputs

    def is_settled(self, tensor: ITensor, layer: ILayer) -> bool:
        """Whether a tensor is known before the loop around a layer begins, or follows from weights alone."""
        return tensor in self.weights or len(self.scopes.of(tensor)) < len(self.scopes.of_layer(layer))

    def is_sure(self, tensor: ITensor) -> bool:
        """Whether a tensor is surely there, as what a loop gives is not: its number of trips may not fit."""
        return tensor in self.weights or tensor in self.network.inputs


def layer_steps(block: Block) -> list[LayerStep]:
    """The steps of a block that are one layer each."""
    return [step for step in block.steps if isinstance(step, LayerStep)]


def operand(layer: ILayer, position: int) -> ITensor:
    """An input that is there."""
    found = layer.inputs[position]
    assert found is not None
    return found
