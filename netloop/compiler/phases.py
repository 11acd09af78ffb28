"""The phases of making a program, and the seconds that each took."""

import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext

Phase = Callable[[str], AbstractContextManager[None]]
"""Returns the context of a phase, by its name: passes, load, trace or compile."""


def unwatched(name: str) -> AbstractContextManager[None]:
    """The context of a phase that nobody watches."""
    return nullcontext()


class PhaseTimer:
    """The times of phases; those of several functions of one program add up.

    Args:
        watch: the context of each phase, besides.

    Attributes:
        seconds: the duration of each phase that has ended.
    """

    def __init__(self, watch: Phase = unwatched) -> None:
        self.seconds: dict[str, float] = {}
        self._watch = watch

    @contextmanager
    def phase(self, name: str, continues: bool = False) -> Generator[None]:
        """One phase, or the rest of one, which is not watched again."""
        began = time.perf_counter()
        with nullcontext() if continues else self._watch(name):
            yield
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
