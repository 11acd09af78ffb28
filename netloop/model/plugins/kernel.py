"""The interface by which the plugin layer runs a plugin of either form."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from netloop.values.diagnostics import LayerError, reason
from netloop.values.types import Array, TensorType

MOST_REMEMBERED = 64
"""The number of sets of input types whose results are cached."""

Types = tuple[TensorType, ...]
Key = tuple[Any, ...]


class Kernel(ABC):
    """The execution of a plugin.

    Attributes:
        num_outputs: the number of its outputs.
        on_host: whether it computes only on the host, and cannot be compiled.
    """

    num_outputs: int
    on_host: bool

    def __init__(self) -> None:
        self._remembered: dict[Key, Types] = {}

    def types(self, inputs: Sequence[TensorType], shape_inputs: Sequence[TensorType]) -> Types:
        """Return the types of the outputs, cached by the types of the inputs.

        Raises:
            LayerError: the plugin does not accept these inputs, or fails.
        """
        key = key_of(inputs, shape_inputs)
        if key not in self._remembered:
            types = self.find_types(inputs, shape_inputs)
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = types
        return self._remembered[key]

    @abstractmethod
    def find_types(self, inputs: Sequence[TensorType], shape_inputs: Sequence[TensorType]) -> Types:
        """Return the types of the outputs, not cached.

        Raises:
            LayerError: the plugin does not accept these inputs, or fails.
        """

    @abstractmethod
    def evaluate(self, inputs: Sequence[Array], shape_inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Compute the outputs.

        Raises:
            LayerError: the plugin fails.
        """

    @abstractmethod
    def lower(self, inputs: Sequence[Any], shape_inputs: Sequence[Array]) -> tuple[Any, ...]:
        """Return the outputs as JAX arrays, in a compiled program; never called if ``on_host``.

        Raises:
            LayerError: the plugin fails.
        """


def key_of(inputs: Sequence[TensorType], shape_inputs: Sequence[TensorType]) -> Key:
    """The cache key of the types of the outputs: the types of the inputs and the values of the shape inputs."""
    values = (None if tensor_type.value is None else tensor_type.value.tobytes() for tensor_type in shape_inputs)
    return (*inputs, None, *shape_inputs, *values)


@contextmanager
def calling(what: str) -> Generator[None]:
    """Run the user's code, and turn an exception into a LayerError with the exception as its cause.

    Raises:
        LayerError: the code raised an exception.
    """
    try:
        yield
    except LayerError:
        raise
    except Exception as error:
        first_line = str(error).strip().partition("\n")[0]
        text = f"{what} raised {type(error).__name__}{first_line and f': {first_line}'}"
        raise LayerError(text, reason("NL411"), code="NL411") from error


def ensure(holds: bool, what: str, fix: str = "") -> None:
    """Check a condition that the interface of a plugin requires.

    Raises:
        LayerError: it does not hold.
    """
    if not holds:
        raise LayerError(what, reason("NL412"), fix, "NL412")
