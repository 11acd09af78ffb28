"""The base of the engines whose weights can be replaced while other threads call them."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from netloop.compiler.execution.engines import Tunable
from netloop.process.forked import require_jax

R = TypeVar("R")


class Refittable(Tunable):
    """An engine of any kind whose weights a refit replaces.

    Attributes:
        generation: what identifies the weights; None while a refit replaces them.
    """

    def __init__(self) -> None:
        self._refit = threading.RLock()
        self.generation: object = object()

    def forget_programs(self) -> None:
        """Compile again in the next call, because weights that are part of the programs have changed."""
        raise NotImplementedError

    def _take_weights(self) -> None:
        """Copy the current arrays of the constants to the device."""
        raise NotImplementedError

    @contextmanager
    def replacing_weights(self) -> Generator[None]:
        """A context in which the layers of the network get new weights.

        A call that begins meanwhile waits for the end, and calls in progress keep the old weights.
        """
        require_jax()
        with self._refit:
            self.generation = None
            try:
                yield
                self._take_weights()
            finally:
                self.generation = object()

    def move_weights(self) -> None:
        with self.replacing_weights():
            pass

    def _of_one_generation(self, find: Callable[[], R]) -> tuple[R, object]:
        """The result of a function that reads programs and weights, between two refits; and the generation.

        The generation is None in a refit itself.
        """
        require_jax()  # in a fork, a thread of the parent may hold a lock forever
        generation = self.generation
        if generation is not None:
            result = find()
            # a program that was compiled during a refit may have old and new weights in it
            if self.generation is generation:
                return result, generation
        with self._refit:
            return find(), self.generation
