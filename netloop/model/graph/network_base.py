"""Base classes of the ``add_`` methods, each of which is in the module of the layer that it adds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, fields
from enum import Enum
from functools import wraps
from inspect import getattr_static, signature
from typing import Any, TypeVar

from netloop.model.graph.infer import Owner, TypeTable
from netloop.model.graph.layer import ILayer, check_tensor
from netloop.model.graph.tensor import ITensor
from netloop.values.diagnostics import Finding, LayerError, NetworkError
from netloop.values.dims import UNORDERED
from netloop.values.types import TensorType

L = TypeVar("L", bound=ILayer)


class LayerAdder(ABC):
    """An object with methods that add layers to a network: the network itself, a loop or a conditional.

    With ``network.none_on_error``, where such a method would raise NetworkError, it restores the network, logs the
    findings and returns None.
    """

    PREFIXES = ("add_", "set_condition")
    """The prefixes of the names of these methods."""

    @property
    @abstractmethod
    def network(self) -> NetworkBase:
        """The network that they add to."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in list(vars(cls).items()):
            if name.startswith(LayerAdder.PREFIXES):
                setattr(cls, name, _none_on_error(method))


def _none_on_error(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(self: LayerAdder, *arguments: Any, **named: Any) -> Any:
        network = self.network
        count = len(network.layers)
        try:
            return method(self, *arguments, **named)
        except TypeError as error:
            raise _with_call(error, method, self, arguments, named) from error.__cause__
        except NetworkError as error:
            if not network.none_on_error:
                raise
            network.withdraw(count)
            for finding in error.findings:
                network.report(finding)
            return None

    return call


def _with_call(
    error: TypeError, method: Callable[..., Any], owner: LayerAdder, positional: tuple[Any, ...], named: dict[str, Any]
) -> TypeError:
    """The error itself; if the arguments do not fit the method, or are swapped, one that says how to call it."""
    expected = signature(method)
    call = f"{method.__name__}({', '.join(list(expected.parameters)[1:])})"
    try:
        arguments = expected.bind(owner, *positional, **named).arguments
    except TypeError as misfit:
        return TypeError(f"{method.__name__}: {misfit}; call {call}")
    if any(
        isinstance(argument, Enum) and expected.parameters[name].annotation in ("ITensor", ITensor)
        for name, argument in arguments.items()
    ):
        return TypeError(f"{error}; call {call}")
    return error


class NetworkBase(LayerAdder, Owner):
    """The part of a network that the ``add_`` methods use.

    They raise TypeError for an argument of the wrong Python type, and NetworkError for a tensor of another network.

    Attributes:
        name: the name.
        layers: the layers, in the order in which they were added.
        inputs, outputs: the inputs and outputs, in the order in which they were added and marked.
        types: the types of the tensors.
        none_on_error: whether a method whose layer is invalid logs the reason and returns None.
    """

    name: str
    layers: list[ILayer]
    inputs: list[ITensor]
    outputs: list[ITensor]
    types: TypeTable

    @property
    def network(self) -> NetworkBase:
        """Itself."""
        return self

    @property
    def none_on_error(self) -> bool:
        """Whether a method whose layer is invalid logs the reason and returns None."""
        return False

    def report(self, finding: Finding) -> None:
        """Log the reason why a layer is invalid."""

    def add(self, layer: L, inputs: Sequence[ITensor | None] = (), /, **tensors: Any) -> L:
        """Add a layer, wired to ``inputs`` and then to ``tensors``, the arguments of an ``add_`` method by name.

        Raises:
            TypeError: one of ``tensors`` is not a tensor.
            NetworkError: an input is of another network; or, with ``none_on_error``, the layer is invalid, whatever is
                set later.
        """
        inputs = [*inputs, *(check_tensor(value, name) for name, value in tensors.items())]
        layer.attach(self.types, len(self.layers), inputs)
        self.layers.append(layer)
        finding = self.types.finding(layer) if self.none_on_error else None
        if finding is not None and _stays_invalid(layer):
            raise NetworkError(finding)
        return layer

    def withdraw(self, count: int) -> None:
        """Remove all layers after the first ``count``."""
        while len(self.layers) > count:
            self.layers.pop().detach()


# ---------------------------------------------------------------------------- errors that no later call can fix


class _OpenError(Exception):
    """Type inference read an attribute or input that may still be set."""


class _OpenInput:
    """An input that ``set_input`` may still give."""

    def __getattr__(self, name: str) -> Any:
        raise _OpenError(name)


class _AsAdded:
    """A layer as its own ``infer`` may see it when it is added: attributes with a default may still be set."""

    def __init__(self, layer: ILayer) -> None:
        open_ones = (field.name for field in fields(layer) if field.default is not MISSING)  # pyright: ignore[reportArgumentType]
        self._open = {*open_ones, *layer.INPUT_OF}
        self._layer = layer

    def __getattr__(self, name: str) -> Any:
        if name in self._open:
            raise _OpenError(name)
        if name in vars(self._layer):
            return vars(self._layer)[name]
        result = getattr_static(type(self._layer), name)
        return result.__get__(self, type(self._layer)) if hasattr(result, "__get__") else result


def _stays_invalid(layer: ILayer) -> bool:
    """Whether an invalid layer stays invalid, whichever attributes and inputs are set later."""
    # A layer is checked when it is added, before its attributes and further inputs are set. Only an error that does not
    # depend on any of these is certain: so infer runs on a stand-in that raises as soon as it reads one of them.
    tensors = [*layer.type_inputs()]
    tensors += [None] * (layer.MAX_INPUTS - len(tensors))
    types = (_OpenInput() if tensor is None else layer.types.of(tensor) for tensor in tensors)
    try:
        type(layer).infer(_AsAdded(layer), *types)  # pyright: ignore[reportArgumentType]
    except LayerError:
        return True
    except _OpenError:
        return False
    return False


# ---------------------------------------------------------------------------- arguments


def check_tensors(inputs: Iterable[ITensor], name: str = "inputs") -> list[ITensor]:
    """Return ``inputs`` as a list.

    Raises:
        TypeError: an element is not a tensor.
    """
    if not isinstance(inputs, Iterable) or isinstance(inputs, UNORDERED):
        hint = ": write [tensor]" if isinstance(inputs, ITensor) else ""
        raise TypeError(f"{name} must be a sequence of tensors, not {inputs!r}{hint}")
    return [check_tensor(tensor, f"{name}[{position}]") for position, tensor in enumerate(inputs)]


def third_from_end(tensor: ITensor) -> int:
    """The axis that TensorRT uses by default."""
    type_ = check_tensor(tensor, "input").types.of(tensor)
    return max(0, type_.rank - 3) if isinstance(type_, TensorType) else 0
