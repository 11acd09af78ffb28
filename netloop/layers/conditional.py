"""Conditionals, and the meaning of their three boundary layers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from netloop.checked_attributes import Settings
from netloop.diagnostics import SourceLocation, require
from netloop.enums import LayerType
from netloop.graph.adding import Adding, AddsLayers
from netloop.graph.call_site import call_site
from netloop.graph.infer import TypeTable
from netloop.graph.layer import ILayer, Types, check_tensor, layer
from netloop.graph.tensor import ITensor
from netloop.layers.loop import Meaning, Trips
from netloop.types import TensorType, join


class IIfConditional(Adding, Settings):
    """A choice between two subgraphs, made by :meth:`INetworkDefinition.add_if_conditional`.

    Nothing is put into a branch: the layers that only one branch needs run only when it is taken.

    Attributes:
        name: its name, for messages.
        layers: its boundary layers, in the order in which they were added.
        source_location: the line of the user's source that made it.
    """

    name: str = ""
    layers: list[IIfConditionalBoundaryLayer]
    source_location: SourceLocation

    def __init__(self, network: AddsLayers, name: str, source_location: SourceLocation | None = None) -> None:
        self._network = network
        self.name = name
        vars(self).update(layers=[], source_location=source_location or call_site())

    @property
    def network(self) -> AddsLayers:
        """The network that it is in."""
        return self._network

    def set_condition(self, condition: ITensor) -> IConditionLayer:
        """Choose by ``condition``, a bool scalar: true takes the first branch, false the second."""
        return self._bound(IConditionLayer(conditional=self), condition=condition)

    def add_input(self, input: ITensor) -> IIfConditionalInputLayer:
        """Bring a tensor into the branches. netloop needs no inputs to be lazy; TensorRT does."""
        return self._bound(IIfConditionalInputLayer(conditional=self), input=input)

    def add_output(self, true_subgraph_output: ITensor, false_subgraph_output: ITensor) -> IIfConditionalOutputLayer:
        """The first tensor if the condition is true, the second if it is false."""
        return self._bound(
            IIfConditionalOutputLayer(conditional=self),
            true_subgraph_output=true_subgraph_output,
            false_subgraph_output=false_subgraph_output,
        )

    def _bound(self, made: Any, **tensors: ITensor) -> Any:
        self._network.add(made, [check_tensor(tensor, name) for name, tensor in tensors.items()])
        self.layers.append(made)
        made.types.forget(made.dependent_tensors())
        return made

    @property
    def condition(self) -> ITensor | None:
        """The tensor that decides; None while there is none."""
        layers = [each for each in self.layers if isinstance(each, IConditionLayer)]
        return layers[-1].inputs[0] if layers else None

    @property
    def output_layers(self) -> list[IIfConditionalOutputLayer]:
        """The layers that hold the results."""
        return [each for each in self.layers if isinstance(each, IIfConditionalOutputLayer)]

    def __repr__(self) -> str:
        return f"<IIfConditional {self.name!r}>"


class IIfConditionalBoundaryLayer(ILayer):
    """A layer at the boundary of a conditional.

    Attributes:
        conditional: the conditional.
    """

    READ_ONLY = frozenset({"conditional"})

    conditional: IIfConditional

    @abstractmethod
    def element(self, at: Trips, types: TypeTable) -> Meaning:
        """The value of the output at the trips ``at``."""


@layer(LayerType.CONDITION, "Condition")
class IConditionLayer(IIfConditionalBoundaryLayer):
    """What decides a conditional: a bool scalar. The layer has no output.

    Attributes:
        conditional: the conditional.
    """

    NUM_OUTPUTS = 0

    conditional: IIfConditional

    def dependent_tensors(self) -> Sequence[ITensor]:
        return [tensor for each in self.conditional.output_layers for tensor in each.outputs]

    def infer(self, x: TensorType) -> Types:
        require(x.is_bool and x.rank == 0, f"the condition of {self.conditional.name!r} is {x}, and must be a bool[]")
        return ()

    def element(self, at: Trips, types: TypeTable) -> Meaning:
        return (yield self.inputs[0], at)  # pyright: ignore[reportReturnType]


@layer(LayerType.CONDITIONAL_INPUT, "Input")
class IIfConditionalInputLayer(IIfConditionalBoundaryLayer):
    """The input itself, as the branches of a conditional see it.

    Attributes:
        conditional: the conditional.
    """

    TENSORS_ONLY = False

    conditional: IIfConditional

    def infer(self, x: TensorType) -> TensorType:
        return x

    def element(self, at: Trips, types: TypeTable) -> Meaning:
        return (yield self.inputs[0], at)  # pyright: ignore[reportReturnType]


@layer(LayerType.CONDITIONAL_OUTPUT, "Output")
class IIfConditionalOutputLayer(IIfConditionalBoundaryLayer):
    """Input 0 if the condition is true, input 1 if it is false; only the one taken is evaluated.

    Both have one element type and equally many axes; a length in which they differ is known only when the network runs.
    Where the condition is known while building, the type is that of the branch taken, whatever the other.

    Attributes:
        conditional: the conditional.
    """

    REQUIRED_INPUTS = 2
    TENSORS_ONLY = False

    conditional: IIfConditional

    def type_inputs(self) -> Sequence[ITensor | None]:
        return [*self.inputs, self.conditional.condition]

    def infer(self, true: TensorType, false: TensorType, condition: TensorType | None = None) -> TensorType:
        if condition is not None and condition.value is not None and condition.rank == 0:
            return true if condition.value else false
        made = join(true, false)
        require(
            made is not None,
            f"the branches of {self.conditional.name!r} give {true} and {false}",
            "which branch is taken is not known before the network runs, so both have one element type and rank",
            "convert or reshape one of them",
        )
        assert made is not None
        return made

    def element(self, at: Trips, types: TypeTable) -> Meaning:
        condition = self.conditional.condition
        assert condition is not None, f"{self.conditional.name!r} has no condition"
        taken = 0 if (yield condition, at) else 1
        return (yield self.inputs[taken], at)  # pyright: ignore[reportReturnType]
