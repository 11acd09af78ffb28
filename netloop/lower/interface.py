"""The narrow view that the lowering of loops and conditionals has of the program around them."""

from collections.abc import Collection, Iterable
from typing import Any, Protocol

import jax

from netloop.graph.infer import TypeTable
from netloop.graph.layer import ILayer
from netloop.graph.tensor import ITensor
from netloop.layers.loop import ILoop
from netloop.lower.error_flags import ErrorTable
from netloop.lower.frame import Frame
from netloop.lower.loop.facts import LoopFacts
from netloop.lower.loop.strategy import LoopStrategy
from netloop.nest import Scopes, Step


class Lowering(Protocol):
    """A program while it is traced; ``Program`` is the implementation.

    Attributes:
        types: the types of all tensors, each of fixed shape.
        scopes: the loops in which the tensors vary.
        facts: what is known of its loops before they run.
        errors: the findings that error flags stand for.
        passes: the names of the passes in use, which allow forms of lowering.
        loop_strategies: how each loop runs and why.
        batched_layers: the layers of each loop that run for many iterations at once.
    """

    types: TypeTable
    scopes: Scopes
    facts: LoopFacts
    errors: ErrorTable
    passes: Collection[str]
    loop_strategies: dict[ILoop, LoopStrategy]
    batched_layers: dict[ILoop, list[ILayer]]

    def run(self, steps: Iterable[Step], frame: Frame) -> None:
        """Run steps in order, and add their results to the frame."""
        ...

    def read(self, tensor: ITensor, frame: Frame) -> Any:
        """The value of a tensor: a numpy array if it is a compile-time constant, else a JAX array."""
        ...

    def array(self, tensor: ITensor, frame: Frame) -> jax.Array:
        """The value of a tensor as a JAX array of exactly its type."""
        ...

    def note(self, by: str, what: str) -> None:
        """Record what a pass did."""
        ...
