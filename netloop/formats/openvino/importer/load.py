"""``netloop.openvino.load``: an OpenVINO model as a network."""

import os
from collections.abc import Mapping
from os import PathLike
from typing import Any

from netloop.formats.openvino.importer.graph import OpenVinoImporter
from netloop.formats.openvino.importer.model import TAGS, ModelReader
from netloop.formats.openvino.importer.weights import WeightsFile
from netloop.formats.openvino.importer.xml import LARGEST_DOCUMENT, parse
from netloop.formats.shared import read_model_file
from netloop.formats.shared.own_operators import OwnOperator, checked
from netloop.model.network import INetworkDefinition
from netloop.process.file_reading import memory_errors_as
from netloop.values.diagnostics import ModelError


def load(
    model: str | PathLike[str] | bytes,
    weights: str | PathLike[str] | bytes | None = None,
    *,
    inputs: Mapping[str, Any] | None = None,
    operators: Mapping[str, OwnOperator] | None = None,
) -> INetworkDefinition:
    """Import an OpenVINO model of version 10 or 11 as a network, with the names of the model's inputs.

    An axis whose length the model leaves open has the length -1, to be given by each call of the engine. ``Loop``,
    ``TensorIterator`` and ``If`` become loops and conditionals of the network.

    Args:
        model: the path of the XML file, or its bytes.
        weights: the path of the file of weights, or its bytes; by default the path of the model, with the suffix
            ``.bin``.
        inputs: values for some inputs, by name, which become constants instead of inputs of the network. An array has
            the element type of its input, and a Python number or list takes it.
        operators: functions for operators, by their type, such as ``"Tanh"``; they replace netloop's.
            ``function(network, inputs, attributes)`` adds what computes such a layer to the network and returns its
            output or outputs; ``inputs`` are tensors, and ``attributes`` a dict of strings.

    Raises:
        ModelError: the model is invalid or has unsupported operators; it has all errors.
        InputError: a value of ``inputs`` does not fit its input, or the model has no such input.
        TypeError: an argument is of the wrong Python type.
    """
    if not isinstance(model, str | PathLike | bytes):
        raise TypeError(f"model is a path or bytes, not {type(model).__name__}")
    if not isinstance(weights, str | PathLike | bytes | None):
        raise TypeError(f"weights are a path or bytes, not {type(weights).__name__}")
    name = "the model" if isinstance(model, bytes) else os.fspath(model)
    path = "" if isinstance(model, bytes) else os.path.splitext(name)[0] + ".bin"
    if weights is None and path and os.path.exists(path):
        weights = path
    network = INetworkDefinition()
    with memory_errors_as(ModelError, name):
        data = model if isinstance(model, bytes) else read_model_file(name, "NL751", LARGEST_DOCUMENT)
        graph = ModelReader(name).model(parse(data, name, TAGS))
        with WeightsFile(weights, path) as opened:
            OpenVinoImporter(name, graph, opened, network, inputs, checked(operators)).add()
    return network
