"""What a layer asks of a plugin, of whichever form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from netloop.diagnostics import LayerError, reason
from netloop.types import Array, TensorType

MOST_REMEMBERED = 64
"""For how many sets of input types the types of the outputs are kept."""

Types = tuple[TensorType, ...]
Key = tuple[Any, ...]


class Kernel(ABC):
    """A plugin at work.

    Attributes:
        num_outputs: the number of its outputs.
        on_host: whether it computes on the host alone, and in no program.
    """

    num_outputs: int
    on_host: bool

    def __init__(self) -> None:
        self._remembered: dict[Key, Types] = {}

    def types(self, inputs: Sequence[TensorType], shape_inputs: Sequence[TensorType]) -> Types:
        """The types of the outputs; those of a set of inputs are found once.

        Raises:
            LayerError: the plugin does not take such inputs, or fails.
        """
        key = key_of(inputs, shape_inputs)
        if key not in self._remembered:
            found = self.find_types(inputs, shape_inputs)
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = found
        return self._remembered[key]

    @abstractmethod
    def find_types(self, inputs: Sequence[TensorType], shape_inputs: Sequence[TensorType]) -> Types:
        """The types of the outputs, found anew.

        Raises:
            LayerError: the plugin does not take such inputs, or fails.
        """

    @abstractmethod
    def evaluate(self, inputs: Sequence[Array], shape_inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The outputs.

        Raises:
            LayerError: the plugin fails.
        """

    @abstractmethod
    def lower(self, inputs: Sequence[Any], shape_inputs: Sequence[Array]) -> tuple[Any, ...]:
        """The outputs as JAX arrays, in a program; never asked of a plugin that is on the host alone.

        Raises:
            LayerError: the plugin fails.
        """


def key_of(inputs: Sequence[TensorType], shape_inputs: Sequence[TensorType]) -> Key:
    """What the types of the outputs depend on."""
    values = (None if each.value is None else each.value.tobytes() for each in shape_inputs)
    return (*inputs, None, *shape_inputs, *values)


@contextmanager
def calling(what: str) -> Generator[None]:
    """Run code of the user: what it raises becomes a complaint, with the exception as its cause.

    Raises:
        LayerError: it raised an exception.
    """
    try:
        yield
    except LayerError:
        raise
    except Exception as error:
        said = str(error).strip().partition("\n")[0]
        found = f"{what} raised {type(error).__name__}{said and f': {said}'}"
        raise LayerError(found, reason("NL411"), code="NL411") from error


def keep(holds: bool, what: str, fix: str = "") -> None:
    """Complain of a plugin that does not do what it is to do.

    Raises:
        LayerError: it does not.
    """
    if not holds:
        raise LayerError(what, reason("NL412"), fix, "NL412")
