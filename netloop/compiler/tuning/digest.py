"""The digest of a network: equal for networks that compile to the same program."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from netloop.model.network import INetworkDefinition
from netloop.model.plan.json_reader import to_json
from netloop.model.plan.network_json import NetworkWriter
from netloop.values.diagnostics import NetworkError

UNIMPORTANT = "name", "place"
"""Attributes of layers, tensors, loops and conditionals without effect on a program."""


def digest_of(network: INetworkDefinition, inputs: Mapping[str, Any], options: object) -> str | None:
    """The digest of a network for the shapes of some inputs; None for one with layers that plans do not have.

    Names, source locations and the values of large weights do not count. ``options`` is text of what else does.
    """
    try:
        document = NetworkWriter(network).document()
    except NetworkError:
        return None
    for kind in ("inputs", "loops", "conditionals"):
        document[kind] = [_essence(value) for value in document[kind]]
    document["layers"] = [
        _essence({**value, "outputs": [*map(_essence, value["outputs"])]}) for value in document["layers"]
    ]
    shapes = [(np.shape(tensor), str(getattr(tensor, "dtype", type(tensor).__name__))) for tensor in inputs.values()]
    whole = {**document, "name": None, "files": None}
    return hashlib.sha256(to_json(whole) + repr((shapes, options)).encode()).hexdigest()


def _essence(node: dict[str, Any]) -> dict[str, Any]:
    return {name: attribute for name, attribute in node.items() if name not in UNIMPORTANT}
