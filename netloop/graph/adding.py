"""What the ``add_`` methods of a network stand on; they are beside the layers that they add."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, fields
from functools import wraps
from inspect import getattr_static
from typing import Any, TypeVar

from netloop.diagnostics import Finding, LayerError, NetworkError
from netloop.dims import UNORDERED
from netloop.graph.infer import TypeTable
from netloop.graph.layer import ILayer, check_tensor
from netloop.graph.owner import Owner
from netloop.graph.tensor import ITensor
from netloop.types import TensorType

L = TypeVar("L", bound=ILayer)


class Adding(ABC):
    """What has methods that add layers to a network: the network itself, its loops and its conditionals.

    Where ``network.none_on_error``, these methods answer what raises NetworkError with None, once it is logged and the
    network is as it was before.
    """

    ADDING = ("add_", "set_condition")
    """What the names of these methods begin with."""

    @property
    @abstractmethod
    def network(self) -> AddsLayers:
        """The network that they add to."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in list(vars(cls).items()):
            if name.startswith(Adding.ADDING):
                setattr(cls, name, _answering(method))


def _answering(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def answer(self: Adding, *arguments: Any, **named: Any) -> Any:
        network = self.network
        count = len(network.layers)
        try:
            return method(self, *arguments, **named)
        except NetworkError as error:
            if not network.none_on_error:
                raise
            network.withdraw(count)
            for finding in error.findings:
                network.report(finding)
            return None

    return answer


class AddsLayers(Adding, Owner):
    """A network, so far as the methods that add layers know it.

    They raise TypeError for an argument of the wrong Python type, and NetworkError for a tensor of another network.

    Attributes:
        layers: the layers, in the order in which they were added.
        types: the types of the tensors.
        none_on_error: whether a method whose layer cannot be made logs why, and gives None.
    """

    layers: list[ILayer]
    types: TypeTable

    @property
    def network(self) -> AddsLayers:
        """Itself."""
        return self

    @property
    def none_on_error(self) -> bool:
        """Whether a method whose layer cannot be made logs why, and gives None."""
        return False

    def report(self, finding: Finding) -> None:
        """Log why a layer cannot be made."""

    def add(self, layer: L, inputs: Sequence[ITensor | None]) -> L:
        """Add a layer, wired to ``inputs``.

        Raises:
            NetworkError: an input is of another network; or, where ``none_on_error``, the layer has no meaning,
                whatever is set later.
        """
        layer.attach(self.types, len(self.layers), inputs)
        self.layers.append(layer)
        complaint = self.types.complaint(layer) if self.none_on_error else None
        if complaint is not None and _is_wrong_anyway(layer):
            raise NetworkError(complaint)
        return layer

    def withdraw(self, count: int) -> None:
        """Take the layers after the first ``count`` away again."""
        while len(self.layers) > count:
            self.layers.pop().detach()


# ---------------------------------------------------------------------------- what is wrong whatever is set later


class _OpenError(Exception):
    """Something was asked for that may be set later."""


class _OpenInput:
    """An input that ``set_input`` may give later, of which nothing is known."""

    def __getattr__(self, name: str) -> Any:
        raise _OpenError(name)


class _AsAdded:
    """A layer as its own ``infer`` may know it when it is added: attributes that have a default may be set later."""

    def __init__(self, layer: ILayer) -> None:
        open_ones = (each.name for each in fields(layer) if each.default is not MISSING)  # pyright: ignore[reportArgumentType]
        self._open = {*open_ones, *layer.INPUT_OF}
        self._layer = layer

    def __getattr__(self, name: str) -> Any:
        if name in self._open:
            raise _OpenError(name)
        if name in vars(self._layer):
            return vars(self._layer)[name]
        found = getattr_static(type(self._layer), name)
        return found.__get__(self, type(self._layer)) if hasattr(found, "__get__") else found


def _is_wrong_anyway(layer: ILayer) -> bool:
    """Whether a layer that is wrong now stays so, whichever attributes and inputs are set later."""
    tensors = [*layer.type_inputs()]
    tensors += [None] * (layer.MAX_INPUTS - len(tensors))
    known = (_OpenInput() if each is None else layer.types.of(each) for each in tensors)
    try:
        type(layer).infer(_AsAdded(layer), *known)  # pyright: ignore[reportArgumentType]
    except LayerError:
        return True
    except _OpenError:
        return False
    return False


# ---------------------------------------------------------------------------- arguments


def check_tensors(inputs: Iterable[ITensor], name: str = "inputs") -> list[ITensor]:
    """The elements of ``inputs``, if all are tensors.

    Raises:
        TypeError: one is not.
    """
    if not isinstance(inputs, Iterable) or isinstance(inputs, UNORDERED):
        raise TypeError(f"{name} is a sequence of tensors, not {inputs!r}")
    return [check_tensor(each, f"{name}[{position}]") for position, each in enumerate(inputs)]


def third_from_end(tensor: ITensor) -> int:
    """The axis that TensorRT takes where none is given."""
    found = check_tensor(tensor, "input").types.of(tensor)
    return max(0, found.rank - 3) if isinstance(found, TensorType) else 0
