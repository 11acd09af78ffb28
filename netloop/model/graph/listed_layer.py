"""Layers as a network lists them: with the ``type`` that TensorRT gives to a plain ILayer."""

from functools import cache
from typing import Any

from netloop.model.graph.layer import ILayer


class ListedLayer:
    """A layer as ``network[i]`` returns it, whose ``type`` is a LayerType.

    TensorRT's ``network[i]`` is a plain ILayer, and scripts set its ``__class__`` to reach the attributes of its kind.
    Only ``type`` then means something else: in an activation or a pooling it is the function. This object is the layer
    in all else. It has its attributes and methods, equals it, and is an instance of its class.
    """

    def __getattribute__(self, name: str) -> Any:
        if name in ("__class__", "__eq__", "__hash__"):
            return object.__getattribute__(self, name)
        layer, has_own_type = object.__getattribute__(self, "_listed")
        return layer.LAYER_TYPE if name == "type" and not has_own_type else getattr(layer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        layer: ILayer = object.__getattribute__(self, "_listed")[0]
        setattr(layer, name, value)
        if name == "__class__":
            object.__setattr__(self, "_listed", (layer, value is not ILayer))

    def __eq__(self, other: object) -> bool:
        return _listed(self) is _listed(other)

    def __hash__(self) -> int:
        return hash(_listed(self))

    def __repr__(self) -> str:
        return repr(_listed(self))

    def __str__(self) -> str:
        return str(_listed(self))


def as_listed(layer: ILayer) -> ILayer:
    """Return a layer as its network lists it: itself, unless its ``type`` would not be a LayerType."""
    if "type" not in layer.ATTRIBUTES:
        return layer
    result = object.__new__(_class_of(type(layer)))
    object.__setattr__(result, "_listed", (layer, False))
    return result


@cache
def _class_of(kind: type[ILayer]) -> Any:
    return type(kind.__name__, (ListedLayer, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})


def _listed(other: object) -> object:
    return object.__getattribute__(other, "_listed")[0] if isinstance(other, ListedLayer) else other
