"""The part of a program that the lowering of its loops and conditionals uses."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from netloop.compiler.lower.constants import CompileTimeConstants
from netloop.compiler.lower.frame import ErrorTable, Frame
from netloop.compiler.lower.loop.facts import LoopFacts
from netloop.compiler.lower.loop.strategy import LoopStrategy
from netloop.compiler.passes import NO_FORMS, Forms, Note
from netloop.compiler.product_precision import CALLERS
from netloop.model.graph.infer import TypeTable
from netloop.model.graph.layer import ILayer
from netloop.model.graph.tensor import ITensor
from netloop.model.layers.loop import ILoop
from netloop.model.nest import Block, Scopes, Step


@dataclass(frozen=True)
class LoweringOptions:
    """The decisions by which steps become a program.

    Attributes:
        max_trips: the largest number of iterations of a loop, each time it is entered; None for any number.
        passes: the names of the passes in use, which allow forms of lowering.
        forms: the forms of those that do not follow their rule.
        platform: the JAX platform that it is for: cpu, gpu or tpu.
        precision: that of float32 products: a value of ``jax_default_matmul_precision``, or ``CALLERS``.
        is_pure: whether it is part of a pure function, which may be differentiated.
        bounds: the largest numbers of iterations of loops, by their names, that are to have derivatives in reverse.
    """

    max_trips: int | None = None
    passes: frozenset[str] = frozenset()
    forms: Forms = field(default_factory=lambda: NO_FORMS)
    platform: str = "cpu"
    precision: str | None = CALLERS
    is_pure: bool = False
    bounds: Mapping[str, int] = field(default_factory=dict[str, int])


class Lowering(ABC):
    """A program while it is traced.

    Attributes:
        lock: that of the thread that traces it.
        types: the types of all tensors, each of fixed shape.
        scopes: the loops in which the tensors vary.
        passes: the names of the passes in use, which allow forms of lowering.
        forms: the forms of those that do not follow their rule.
        facts: what is known of the loops before they run.
        errors: the findings that error flags stand for.
        loop_strategies: how each loop runs and why.
        batched_layers: the layers of each loop that run for many iterations at once.
        notes: what forms of lowering did, once each.
        is_pure, bounds, platform, precision: those of its options.
    """

    def __init__(self, block: Block, types: TypeTable, scopes: Scopes, options: LoweringOptions) -> None:
        self.lock = threading.RLock()
        self.types = types
        self.scopes = scopes
        self.passes, self.forms = options.passes, options.forms
        self.is_pure, self.bounds = options.is_pure, options.bounds
        self.platform, self.precision = options.platform, options.precision
        self.constants = CompileTimeConstants(types, block.reads())
        self.facts = LoopFacts(types, self.constants, options.max_trips)
        self.errors = ErrorTable()
        self.loop_strategies: dict[ILoop, LoopStrategy] = {}
        self.batched_layers: dict[ILoop, list[ILayer]] = {}
        # a dict, as a body may be traced more than once and would give its notes again
        self.notes: dict[Note, None] = {}

    @abstractmethod
    def run(self, steps: Iterable[Step], frame: Frame) -> None:
        """Run steps in order, and add their results to the frame."""

    def read(self, tensor: ITensor, frame: Frame) -> Any:
        """The value of a tensor: a numpy array if it is a compile-time constant, else a JAX array."""
        # in numpy, so that what follows is computed while JAX traces
        return self.types[tensor].value if tensor in self.constants else frame.values[tensor]

    def array(self, tensor: ITensor, frame: Frame) -> jax.Array:
        """The value of a tensor as a JAX array of exactly its type."""
        return jnp.asarray(self.read(tensor, frame), self.types[tensor].dtype)

    @contextmanager
    def without(self, forms: Collection[str]) -> Generator[None]:
        """A context in which some forms of lowering are not taken."""
        passes = self.passes
        self.passes = passes.difference(forms)
        try:
            yield
        finally:
            self.passes = passes

    def note(self, by: str, what: str) -> None:
        """Record what a pass did."""
        self.notes[Note(by, what)] = None
