"""Assertions."""

from typing import Any

from netloop.model.graph import ILayer, ITensor, NetworkBase, layer
from netloop.values.diagnostics import Finding, require
from netloop.values.enums import LayerType
from netloop.values.types import TensorType

MOST_CONDITIONS = 64


@layer(LayerType.ASSERTION, "Assertion")
class IAssertionLayer(ILayer):
    """Stop with an error unless every element of the condition is true.

    The condition is bool, 0-D or 1-D, with at most 64 elements; an empty one holds. There is no output. A network with
    an element that is false by shapes and integers alone, in every run, is refused when it is built.

    Attributes:
        message: the message of the error.
    """

    NUM_OUTPUTS = 0

    message: str

    def infer(self, condition: TensorType) -> tuple[()]:
        require(condition.is_bool, f"the condition must be bool, not {condition}", fix="compare with add_elementwise")
        require(
            condition.rank <= 1,
            f"the condition must be 0-D or 1-D, not {condition}",
            fix="flatten it with add_shuffle",
            why="each element is a condition, and its position is in the error",
        )
        require(
            condition.volume <= MOST_CONDITIONS,
            f"the condition has {condition.volume} elements, but may have at most {MOST_CONDITIONS}",
            fix="combine them into fewer elements",
            why="an engine carries a flag for each of them",
        )
        return ()

    @staticmethod
    def holds(condition: Any) -> Any:
        """Whether every element is true, as a scalar of the condition's array module."""
        return condition.all()

    def failure(self) -> Finding:
        """The finding that the condition does not hold."""
        return self.finding("NL601", f"the assertion {self.name!r} does not hold: {self.message}")


class AssertionMethods(NetworkBase):
    """The ``add_`` methods of this family."""

    FAMILY = "errors"

    def add_assertion(self, condition: ITensor, message: str) -> IAssertionLayer:
        """Stop with ``message`` if an element of ``condition`` is false.

        The condition is bool, 0-D or 1-D, with at most 64 elements; an empty one holds. There is no output. A
        network with an element that is false by shapes and integers alone, in every run, is refused when it is built.

        Args:
            condition: the input.
            message: the message of the error.
        """
        return self.add(IAssertionLayer(message=message), condition=condition)
