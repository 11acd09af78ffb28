"""Conditionals and their three kinds of boundary layers; ``docs/loops.md`` defines their meaning.

Source: https://docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/work-with-conditionals.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netloop.model.graph import ITensor, TypeTable, layer
from netloop.model.graph.infer import Known
from netloop.model.graph.layer import Types
from netloop.model.layers.control_flow import BoundaryLayer, ControlFlow, Meaning, Trips
from netloop.values.diagnostics import Finding, require
from netloop.values.enums import LayerType
from netloop.values.types import TensorType, join, join_ranks


class IIfConditional(ControlFlow):
    """A choice between two subgraphs, made by :meth:`INetworkDefinition.add_if_conditional`.

    No layer is put into a branch: layers that only one branch depends on are computed only when it is taken.

    Attributes:
        name: the name, used in messages.
        layers: the boundary layers, in the order in which they were added.
        source_location: the line of the user's script that added the conditional.
    """

    UNLISTED = frozenset({"condition", "output_layers"})

    name: str = ""

    def set_condition(self, condition: ITensor) -> IConditionLayer:
        """Choose by ``condition``, a bool scalar: true takes the first branch, false the second."""
        result = self._bound(IConditionLayer(conditional=self), condition=condition)
        result.types.forget(result.dependent_tensors())
        return result

    def add_input(self, input: ITensor) -> IIfConditionalInputLayer:
        """Pass a tensor into the branches. TensorRT needs inputs for lazy evaluation; netloop does not.

        Args:
            input: the input.
        """
        return self._bound(IIfConditionalInputLayer(conditional=self), input=input)

    def add_output(self, true_subgraph_output: ITensor, false_subgraph_output: ITensor) -> IIfConditionalOutputLayer:
        """Add an output: the first tensor if the condition is true, the second if it is false.

        Both have the same element type; a dim in which they differ is data-dependent. If their ranks differ, only
        another conditional or an output of the network can take the output. If the condition is a compile-time
        constant, the type is that of the branch taken, whatever the type of the other.

        Args:
            true_subgraph_output: input 0.
            false_subgraph_output: input 1.
        """
        return self._bound(
            IIfConditionalOutputLayer(conditional=self),
            true_subgraph_output=true_subgraph_output,
            false_subgraph_output=false_subgraph_output,
        )

    @property
    def condition(self) -> ITensor | None:
        """The condition, a bool scalar; None before ``set_condition``."""
        layers = self.layers.of_kind(IConditionLayer)
        return layers[-1].inputs[0] if layers else None

    @property
    def output_layers(self) -> list[IIfConditionalOutputLayer]:
        """The output layers, in the order in which they were added."""
        return self.layers.of_kind(IIfConditionalOutputLayer)


@dataclass(eq=False, repr=False, kw_only=True)
class IIfConditionalBoundaryLayer(BoundaryLayer):
    """A layer at the boundary of a conditional.

    Attributes:
        conditional: the conditional.
    """

    READ_ONLY = frozenset({"conditional"})

    conditional: IIfConditional


@layer(LayerType.CONDITION, "Condition")
class IConditionLayer(IIfConditionalBoundaryLayer):
    """The condition of a conditional, a bool scalar. The layer has no output."""

    NUM_OUTPUTS = 0

    def dependent_tensors(self) -> Sequence[ITensor]:
        return [tensor for output in self.conditional.output_layers for tensor in output.outputs]

    def infer(self, x: TensorType) -> Types:
        require(
            x.is_bool and x.rank == 0,
            f"the condition of {self.conditional.name!r} is {x}, but must be a bool[]",
            why="it takes one branch or the other, so the condition is a single True or False",
            fix="compare with add_elementwise, and take one element with add_gather",
        )
        return ()

    def element(self, at: Trips, types: TypeTable) -> Meaning:
        return (yield self.tensor(0), at)


@layer(LayerType.CONDITIONAL_INPUT, "Input")
class IIfConditionalInputLayer(IIfConditionalBoundaryLayer):
    """The input, passed into the branches of a conditional unchanged."""

    TENSORS_ONLY = False
    TAKES_STRINGS = True

    def infer(self, x: TensorType) -> TensorType:
        return x

    def element(self, at: Trips, types: TypeTable) -> Meaning:
        return (yield self.tensor(0), at)


@layer(LayerType.CONDITIONAL_OUTPUT, "Output")
class IIfConditionalOutputLayer(IIfConditionalBoundaryLayer):
    """Input 0 if the condition is true, input 1 if it is false; only the branch taken is evaluated.

    Both have the same element type; a dim in which they differ is data-dependent. If their ranks differ, only another
    conditional or an output of the network can take the output. If the condition is a compile-time constant, the type
    is that of the branch taken, whatever the type of the other.
    """

    REQUIRED_INPUTS = 2
    TENSORS_ONLY = False
    TAKES_STRINGS = True

    def type_inputs(self) -> Sequence[ITensor | None]:
        return [*self.inputs, self.conditional.condition]

    def possible_types(self, types: list[Known | None]) -> list[Known | None]:
        true, false, condition = (*types, None)[:3]
        value = condition.value if isinstance(condition, TensorType) else None
        may_be_taken = [value is None or bool(value), value is None or not value]
        if isinstance(true, Finding) and may_be_taken[1]:
            true = false
        elif isinstance(false, Finding) and may_be_taken[0]:
            false = true
        return [true, false, condition]

    def infer(self, true: TensorType, false: TensorType, condition: TensorType | None = None) -> TensorType:
        if condition is not None and condition.value is not None and condition.rank == 0:
            return true if condition.value else false
        tensor_type = join(true, false) or join_ranks(true, false)
        require(
            tensor_type is not None,
            f"the branches of {self.conditional.name!r} give {true} and {false}",
            "the branch is chosen at run time, so both must have the same element type",
            "convert one of them",
        )
        assert tensor_type is not None
        return tensor_type

    def element(self, at: Trips, types: TypeTable) -> Meaning:
        condition = self.conditional.condition
        assert condition is not None, f"{self.conditional.name!r} has no condition"
        taken = 0 if (yield condition, at) else 1
        return (yield self.tensor(taken), at)
